"""History columns, ``history(price, 5, 10 min)`` in a source file: their declarations only
(docs/semantics.md#histories)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from chainlake.definitions.duration import parse_span

_HISTORY = re.compile(r"\s*history\(\s*(\w+)\s*,\s*(\d{1,9})\s*,([^,()]*)\)\s*\Z")
#: The most values of a history.
LONGEST = 10_000


@dataclass(frozen=True)
class History:
    """A derived column: the last ``count`` values of ``of`` for an event's key, up to and including the event's own.

    It is null if there are fewer, or if two successive ones, or the last one and the event, are more than
    ``max_gap_us`` apart.

    Args:
        name: the column's name.
        of: a numeric attribute.
        count: how many values, at least 1.
        max_gap_us: the longest gap, in microseconds.
    """

    name: str
    of: str
    count: int
    max_gap_us: int

    @property
    def reach_us(self) -> int:
        """How far before an event its values can lie, in microseconds."""
        return self.count * self.max_gap_us


@dataclass(frozen=True)
class Series:
    """Which events of a source belong together.

    Args:
        key: the column by which they belong together, or None.
        histories: the columns derived per key.
        lists: other columns known to hold lists, for when the full set of columns is not known.
    """

    key: str | None = None
    histories: tuple[History, ...] = ()
    lists: frozenset[str] = frozenset()


def parse_history(name: str, text: str) -> History | None:
    """``history(ATTRIBUTE, COUNT, LONGEST GAP)`` as the column ``name``; ``None`` if the text has another form."""
    parts = _HISTORY.match(text)
    if parts is None or not 1 <= int(parts[2]) <= LONGEST:
        return None
    gap = parse_span(parts[3])
    return None if gap is None else History(name, parts[1], int(parts[2]), gap // timedelta(microseconds=1))
