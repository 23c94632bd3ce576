"""Wording that messages share."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``: a number with its noun, whose plural is formed with an s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """``text`` in one line that any terminal shows: what is no printable character is written as an escape."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
