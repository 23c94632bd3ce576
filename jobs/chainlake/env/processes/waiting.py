"""A wait says what it waits for: after a second, and then once a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

#: A wait that is over sooner is not worth a line.
FIRST_S = 1.0
AGAIN_S = 60.0


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Notice:
    """What a wait says. Made where the wait begins, and asked in each of its turns.

    Args:
        what: what is waited for, asked when it is said: the holder of a lock can change meanwhile.
        say: receives the line; it goes to stderr if not given.
    """

    def __init__(self, what: Callable[[], str], say: Callable[[str], None] = _to_stderr) -> None:
        self._what = what
        self._say = say
        self._begun = time.monotonic()
        self._next = FIRST_S

    def turn(self) -> None:
        """Say it if it is time."""
        waited = time.monotonic() - self._begun
        if waited >= self._next:
            self._say(f"waiting for {self._what()} ({waited:.0f} s so far)")
            self._next = waited + AGAIN_S
