"""The days of a stretch of time, read once for all patterns that a task matches there, one pattern after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa

from chainlake.detect.tasks.feed import Events, by_time
from chainlake.lake.delta.event_files import narrowed

#: Events that a task may hold: those kept of all days, of a day, and of a keyed pattern's slice.
MOST_ROWS = 3_000_000


@dataclass(frozen=True)
class Read:
    """What a pattern will read of the days of a slice, each once: the arguments of ``EventFiles.read``."""

    columns: Sequence[str]
    types: Iterable[str]
    lo: int
    hi: int


@dataclass
class _Day:
    """All that will be read of a day, and what was read."""

    lo: int
    hi: int
    columns: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    readers: int = 0
    kept: pa.Table | None = None
    too_large: bool = False


class KeptDays:
    """Events as :class:`Feed` takes them: each day is read from its files once, and kept until nobody needs it.

    Args:
        files: the files.
        reads: what will be read.
        most: events that are kept at a time; the days beyond are read again for each pattern.
    """

    def __init__(self, files: Events, reads: Iterable[Read], most: int = MOST_ROWS) -> None:
        self._files, self._most, self._rows = files, most, 0
        self._days: dict[date, _Day] = {}
        for one in reads:
            for number in files.within(one.lo, one.hi):
                day = self._days.setdefault(number, _Day(one.lo, one.hi))
                day.lo, day.hi = min(day.lo, one.lo), max(day.hi, one.hi)
                day.columns.update(one.columns)
                day.types.update(one.types)
                day.readers += 1

    def within(self, lo: int, hi: int) -> list[date]:
        """As ``EventFiles.within``."""
        return self._files.within(lo, hi)

    def read(self, day: date, columns: Sequence[str], types: Iterable[str], lo: int, hi: int) -> pa.Table:
        """As ``EventFiles.read``, of what was announced; by time if the day is kept."""
        of = self._days[day]
        of.readers -= 1
        if of.kept is None and (of.too_large or not of.readers):
            return self._files.read(day, columns, types, lo, hi)
        events = of.kept
        if events is None:
            events = by_time(self._files.read(day, sorted(of.columns), of.types, of.lo, of.hi))
            if self._rows + len(events) <= self._most:
                of.kept = events
                self._rows += len(events)
            else:
                of.too_large = True
        elif not of.readers:
            of.kept = None
            self._rows -= len(events)
        return narrowed(events, day, columns, types, lo, hi)
