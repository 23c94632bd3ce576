"""Days that are made from published matches, and how the applications that find the matches share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np

from chainlake.days import Days, day_number
from chainlake.lake.records.staleness import TO_DO, Judged
from chainlake.operations.backfills.applications import Application, Part


@dataclass(frozen=True)
class DerivedDays:
    """The days of a pattern's episodes, or of its ranking, that a backfill has to look at.

    Args:
        judged: the episodes or the ranking.
        to_do: days to do as things are now, ascending; each has to be within the reach of an application.
        following: other days, ascending: their matches, or the days before them, may turn out to differ.
        unsure: those of ``to_do`` that are to do only because their matches differ, and whose matches are searched for
            again: they may come out as those that the day was made from.
        reads: some days, ascending and at least one → the whole days of matches that they are made from.
    """

    judged: Judged
    to_do: tuple[date, ...]
    following: tuple[date, ...]
    unsure: frozenset[date]
    reads: Callable[[Sequence[date]], Days]

    @property
    def pattern(self) -> str:
        """Name of the pattern."""
        return self.judged.name.partition("/")[2]

    @property
    def span(self) -> Days:
        """The days of matches that all these days are made from."""
        return self.reads(sorted((*self.to_do, *self.following)))

    def part(self, to_do: Sequence[date], following: Sequence[date]) -> Part:
        """What an application does that was given some of the days, at least one."""
        days = tuple(day for day in to_do if day not in self.unsure)
        possible = tuple(sorted({*following, *self.unsure.intersection(to_do)}))
        at = self._positions(days)
        recorded = self.judged.recorded("status")[at] != None  # noqa: E711 (element by element)
        known = self.judged.state[at]
        states = Counter(np.where(np.isin(known, TO_DO), known, np.where(recorded, "stale", "missing")).tolist())
        rows = int(self.judged.rows(self._positions((*days, *possible))).sum())
        definition, reads = self.judged.definition, self.reads(sorted((*days, *possible)))
        return Part(definition.name, definition.table_name, days, possible, dict(states), reads, 0, rows, True)

    def _positions(self, days: Sequence[date]) -> np.ndarray:
        return np.flatnonzero(np.isin(self.judged.numbers, [day_number(day) for day in days]))


@dataclass
class Share:
    """An application of a backfill, and which of the :class:`DerivedDays` it is given, ascending."""

    application: Application
    to_do: list[date] = field(default_factory=list)
    following: list[date] = field(default_factory=list)

    def has(self, days: DerivedDays) -> bool:
        """Whether the application finds matches of the pattern, or was given days that are made from them."""
        return bool(self.to_do) or days.pattern in self.application.definitions

    def whole(self, days: DerivedDays) -> Application:
        """The application with what it does on its days."""
        if not self.to_do and not self.following:
            return self.application
        return replace(self.application, parts=(*self.application.parts, days.part(self.to_do, self.following)))
