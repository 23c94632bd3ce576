"""What the C library does with freed memory."""

from __future__ import annotations

import ctypes
from functools import cache

#: glibc's numbers of two settings, and their values in bytes: how much freed memory a process keeps for its next
#: arrays, and the size from which an array is mapped by itself.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _KEPT, _MMAPPED = -1, -3, 128 << 20, 32 << 20


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed memory, from the first call on.

    Otherwise it gives large arrays back at once, and the first writes to the arrays of the next piece of events cost a
    page fault per 4 KB again, which takes as much time as a light search.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _MMAPPED)
