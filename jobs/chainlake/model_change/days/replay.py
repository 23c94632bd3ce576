"""Runs a group over days, and spreads groups over tasks: what the library and the step share."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa

from chainlake.days import US_PER_DAY, day_start_us
from chainlake.model_change.days.definitions import Config
from chainlake.model_change.days.runs import start
from chainlake.model_change.rounds.rows import FindingRow, MetricRow


@dataclass(frozen=True)
class GroupDays:
    """What a run of a group over some days gave.

    Args:
        found: rows of the definition's table.
        metrics: rows of ``models.metrics``.
        states: the state at the end of each day that was wanted.
        eps: the threshold in force afterwards; None if it is not known yet.
        warnings: what its first windows showed.
        near_ties: rounds that a difference in the last bit, as on another machine, could have decided otherwise.
    """

    found: list[FindingRow]
    metrics: list[MetricRow]
    states: dict[date, str]
    eps: float | None
    warnings: tuple[str, ...]
    near_ties: int


@dataclass(frozen=True)
class GroupRun:
    """One group of a definition and the days ``[first, end)`` to run it over, from ``snapshot``, the state at the end
    of the day before, or from the start if that is None."""

    config: Config
    group: str
    first: date
    end: date
    snapshot: str | None = None

    @property
    def weight(self) -> float:
        """Expected work in no particular unit: the number of rows times the size of their matrices."""
        rounds = (self.end - self.first).days * (US_PER_DAY // self.config.round_us)
        return rounds * len(self.config.groups[self.group]) * (len(self.config.feature_names) + 1.0) ** 2


class GroupReplay:
    """A group on its way through its days, a batch of them at a time.

    Args:
        run: the group and its days.
        every_state: keep the state of every day, not only of the last one.
    """

    def __init__(self, run: GroupRun, *, every_state: bool = True):
        self._run, self._every_state = run, every_state
        self._group = start(run.config, run.group, run.snapshot)
        self._found: list[FindingRow] = []
        self._metrics: list[MetricRow] = []
        self._states: dict[date, str] = {}
        self._next = run.first

    def until(self, end: date, reduced: pa.Table) -> None:
        """Run the days that follow the last one run, up to ``end`` or the run's own end, whichever comes first.

        Args:
            end: the day after the last one to run.
            reduced: the rounds of at least these days, from `reduce.reduce_rows`; rows of other groups and days are
                ignored.
        """
        end = min(end, self._run.end)
        for day, part in by_day(reduced, self._next, end):
            gave = self._group.day(day, part)
            self._found += gave.found
            self._metrics += [gave.metrics] if gave.metrics else []
            if self._every_state:
                self._states[day] = self._group.snapshot()
        self._next = max(self._next, end)

    def gave(self) -> GroupDays:
        """What the days run so far gave."""
        if not self._every_state:
            self._states[self._run.end - timedelta(days=1)] = self._group.snapshot()
        group = self._group
        return GroupDays(self._found, self._metrics, self._states, group.eps, tuple(group.warnings), group.near_ties)


def run_days(run: GroupRun, reduced: pa.Table, *, every_state: bool = True) -> GroupDays:
    """Run a group over all its days.

    Args:
        run: the group and its days.
        reduced: the rounds of the days, from `reduce.reduce_rows`; rows of other groups are ignored.
        every_state: keep the state of every day, not only of the last one.
    """
    replay = GroupReplay(run, every_state=every_state)
    replay.until(run.end, reduced)
    return replay.gave()


def by_day(reduced: pa.Table, first: date, end: date) -> list[tuple[date, pa.Table]]:
    """Every day of ``[first, end)`` with its rows, including days without rows."""
    table = reduced.sort_by("round_us")
    us = table["round_us"].to_numpy()
    days = [first + timedelta(days=i) for i in range((end - first).days)]
    cuts = us.searchsorted([day_start_us(day) for day in (*days, end)]) if days else []
    return [(day, table.slice(cuts[i], cuts[i + 1] - cuts[i])) for i, day in enumerate(days)]


def pack(weights: Sequence[float], bins: int) -> list[int]:
    """A bin for each weight, so that no bin is much fuller than the others: heaviest first, into the emptiest bin.

    A weight larger than the fair share of a bin ends up alone in a low bin. Low bins are started early, so it is worked
    on alongside the many small ones, not after them.
    """
    load = [(0.0, i) for i in range(bins)]
    place = [0] * len(weights)
    for item in sorted(range(len(weights)), key=lambda i: (-weights[i], i)):
        total, i = heapq.heappop(load)
        place[item] = i
        heapq.heappush(load, (total + weights[item], i))
    return place
