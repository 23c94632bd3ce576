"""Lets a wait report what it waits for: after a second, and then once a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

#: A wait shorter than this many seconds is not worth a line.
FIRST_S = 1.0
AGAIN_S = 60.0


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Notice:
    """The messages of a wait; made when the wait begins, and called on each turn of its loop.

    Args:
        what: gives what is waited for; called for each message, since the holder of a lock can change.
        say: receives the line; by default it goes to stderr.
    """

    def __init__(self, what: Callable[[], str], say: Callable[[str], None] = _to_stderr) -> None:
        self._what = what
        self._say = say
        self._begun = time.monotonic()
        self._next = FIRST_S

    def turn(self) -> None:
        """Say what is waited for if it is time to."""
        waited = time.monotonic() - self._begun
        if waited >= self._next:
            self._say(f"waiting for {self._what()} ({waited:.0f} s so far)")
            self._next = waited + AGAIN_S
