"""A stretch of days of one group, and how many groups are spread over workers: what library, step and Spark share."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from chainlake.days import US_PER_DAY, day_start_us
from chainlake.model_change.days.definitions import Config, start


@dataclass(frozen=True)
class GroupDays:
    """What a group gave over days.

    Args:
        found: rows of the definition's table.
        metrics: rows of ``models.metrics``.
        states: the state at the end of each day wanted.
        eps: the threshold in force afterwards, None if it is not known yet.
        warnings: what its first windows showed.
        near_ties: rounds that another machine's last bit could have decided otherwise.
    """

    found: list[dict[str, Any]]
    metrics: list[dict[str, Any]]
    states: dict[date, str]
    eps: float | None
    warnings: tuple[str, ...]
    near_ties: int


@dataclass(frozen=True)
class GroupRun:
    """One group of a definition and the days ``[first, end)`` to run it over, from the state at the end of the day
    before, or from its start."""

    config: Config
    group: str
    first: date
    end: date
    snapshot: str | None = None

    @property
    def weight(self) -> float:
        """Expected work, in any unit: its rows, and their matrices."""
        rounds = (self.end - self.first).days * (US_PER_DAY // self.config.round_us)
        return rounds * len(self.config.groups[self.group]) * (len(self.config.feature_names) + 1.0) ** 2

    def over(self, reduced: pa.Table) -> GroupDays:
        """What it gives, with the state of every day; see `run_days`."""
        return run_days(self.config, self.group, reduced, self.first, self.end, self.snapshot)


def run_days(
    config: Config,
    group: str,
    reduced: pa.Table,
    first: date,
    end: date,
    snapshot: str | None = None,
    *,
    every_state: bool = True,
) -> GroupDays:
    """Run one group over the days ``[first, end)``.

    Args:
        config: the model or threshold monitor.
        group: its group.
        reduced: the rounds of the days, as `reduce.reduce_rows` gives them; rows of other groups are ignored.
        first, end: first day, and the day after the last.
        snapshot: state at the end of the day before; None at the start.
        every_state: keep the state of every day, not only of the last one.
    """
    run = start(config, group, snapshot)
    found: list[dict[str, Any]] = []
    metrics: list[dict[str, Any]] = []
    states: dict[date, str] = {}
    for day, part in by_day(reduced, first, end):
        rows, row = run.day(day, part)
        found += rows
        metrics += [row] if row else []
        if every_state:
            states[day] = run.snapshot()
    if not every_state:
        states[end - timedelta(days=1)] = run.snapshot()
    return GroupDays(found, metrics, states, run.eps, tuple(run.warnings), run.near_ties)


def by_day(reduced: pa.Table, first: date, end: date) -> list[tuple[date, pa.Table]]:
    """Every day of ``[first, end)`` with its rows, also days without rows."""
    table = reduced.sort_by("round_us")
    us = table["round_us"].to_numpy()
    days = [first + timedelta(days=i) for i in range((end - first).days)]
    cuts = us.searchsorted([day_start_us(day) for day in (*days, end)]) if days else []
    return [(day, table.slice(cuts[i], cuts[i + 1] - cuts[i])) for i, day in enumerate(days)]


def pack(weights: Sequence[float], bins: int) -> list[int]:
    """A bin for each weight so that none is much fuller than the others: the heaviest first, into the emptiest bin.

    A weight above all others' share stands alone, and in a low bin, which Spark starts early: it is then worked on
    beside the many small ones, not after them.
    """
    load = [(0.0, i) for i in range(bins)]
    place = [0] * len(weights)
    for item in sorted(range(len(weights)), key=lambda i: (-weights[i], i)):
        total, i = heapq.heappop(load)
        place[item] = i
        heapq.heappush(load, (total + weights[item], i))
    return place
