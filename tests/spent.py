"""Bounds on the time of what is tested, which hold in a busy process and on a busy machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done inside takes this thread at most ``seconds`` of CPU time.

    What other tests left in the process does not count: neither its threads, nor that the garbage collector walks it.
    """
    # To collect first would take longer than most of what is measured.
    gc.disable()
    before = time.thread_time()
    try:
        yield
        spent = time.thread_time() - before
    finally:
        gc.enable()
    assert spent < seconds, f"{spent:.2f} s of CPU time, which should be less than {seconds} s"
