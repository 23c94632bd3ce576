"""Wording that messages share."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from zoneinfo import available_timezones

#: Known words that are listed where none is like the one that was written.
_LISTED = 20


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``: a number with its noun, whose plural is formed with an s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def closest(word: str, known: Collection[str], cutoff: float = 0.62) -> str | None:
    """The one of ``known`` most like ``word``, whose case and punctuation count for nothing; None if none is.

    Args:
        word: what was written.
        known: what could have been meant.
        cutoff: how alike they must be, from 0 to 1.
    """
    plain = {squashed(name): name for name in reversed(list(known))}
    close = difflib.get_close_matches(squashed(word), list(plain), n=1, cutoff=cutoff)
    return plain[close[0]] if close else None


def guess(word: str, known: Collection[str]) -> str:
    """The beginning of a hint: what was probably meant, with a space at the end; empty if nothing is like it."""
    meant = closest(word, known)
    return "" if meant is None else f"Did you mean {meant}? "


def nearest(word: str, known: Iterable[object]) -> str | None:
    """A hint naming the known word most like ``word``, or listing some if none is; None if nothing is known."""
    names = sorted(str(name) for name in known)
    close = closest(word, names)
    return f"Did you mean {close}?" if close is not None else f"Known here: {listed(names)}." if names else None


def zone_hint(zone: str) -> str:
    """What to do about a time zone that there is not."""
    meant = closest(zone, sorted(available_timezones()))
    return "Zones have names such as America/New_York." if meant is None else f"Did you mean {meant}?"


def listed(names: Collection[str], most: int = _LISTED) -> str:
    """The first ``most`` names, and how many there are besides."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


def squashed(name: str) -> str:
    """Its letters and digits in lower case; a name that has none as it is."""
    return re.sub(r"[\W_]", "", name).lower() or name
