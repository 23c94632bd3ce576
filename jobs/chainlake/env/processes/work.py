"""What this process is doing, in words, for others who wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile

#: The most characters of a command that others are told.
_SHOWN = 80
_command = ""


@contextmanager
def working_on(words: Sequence[str]) -> Iterator[None]:
    """While inside, the process does what a command says.

    Args:
        words: the command and its arguments; options and what follows them are not told to others.
    """
    global _command
    before = _command
    _command = " ".join(takewhile(lambda word: not word.startswith("-"), words))[:_SHOWN]
    try:
        yield
    finally:
        _command = before


def work() -> str:
    """The command that the process carries out, such as ``chainlake detect stock 2013-10-07 2013-10-08``; or empty."""
    return _command
