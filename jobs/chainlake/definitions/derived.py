"""History columns, ``history(price, 5, 10 min)`` in a source file: their form, without values
(docs/semantics.md#histories)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from chainlake.definitions.duration import parse_span

_HISTORY = re.compile(r"\s*history\(\s*(\w+)\s*,\s*(\d{1,9})\s*,([^,()]*)\)\s*\Z")
#: Values of a history at most.
LONGEST = 10_000


@dataclass(frozen=True)
class History:
    """A derived column: the ``count`` last values of ``of`` of an event's key, up to and with the event's own.

    Null if there are fewer, or if two of them that follow each other, or the last one and the event, lie more than
    ``max_gap_us`` apart.

    Args:
        name: of the column.
        of: a numeric attribute.
        count: how many values, at least 1.
        max_gap_us: microseconds.
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
        key: the column that says it, or None.
        histories: the derived columns of each key.
        lists: other columns that are known to hold lists where the columns are not known.
    """

    key: str | None = None
    histories: tuple[History, ...] = ()
    lists: frozenset[str] = frozenset()


def parse_history(name: str, text: str) -> History | None:
    """``history(ATTRIBUTE, COUNT, LONGEST GAP)`` as the column ``name``; ``None`` if it is nothing of the kind."""
    parts = _HISTORY.match(text)
    if parts is None or not 1 <= int(parts[2]) <= LONGEST:
        return None
    gap = parse_span(parts[3])
    return None if gap is None else History(name, parts[1], int(parts[2]), gap // timedelta(microseconds=1))
