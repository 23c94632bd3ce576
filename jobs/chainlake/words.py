"""Wording that messages share."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``: a number with its noun, whose plural is formed with an s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
