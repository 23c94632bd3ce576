"""What the C library does with memory that is freed."""

from __future__ import annotations

import ctypes
from functools import cache

#: What glibc calls these settings, and up to how much freed memory a process may keep for its next arrays.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _KEPT, _MMAPPED = -1, -3, 128 << 20, 32 << 20


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what is freed, from the first call on.

    It gives large arrays back at once otherwise, and the first writes to those of the next piece of events cost a page
    fault per 4 KB again: as much time as a light search.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _MMAPPED)
