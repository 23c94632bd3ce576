"""A run that is ready to search: the order of each pattern, and what each task does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chainlake.days import Days
from chainlake.detect.division.counts import Ask, Counting, Survey
from chainlake.detect.division.curve import CELLS, Curve, Estimate, work_curve
from chainlake.detect.division.cut import Share, Wanted, cut, pieces_of, slice_of, spans_of
from chainlake.detect.order import SearchPlan, ask_of, choose_plan, draw_of
from chainlake.detect.work import Work
from chainlake.lake.records.event_days import EventDays
from chainlake.schemas.ops_rows import RateOfKey


@dataclass(frozen=True)
class Planned:
    """A pattern whose order is chosen.

    Args:
        item: the pattern and its days.
        ask: what was counted.
        survey: where its events are.
        plan: how to search it.
    """

    item: Work
    ask: Ask
    survey: Survey
    plan: SearchPlan

    def curve(self, counting: Counting, pieces: int) -> Curve:
        """The curve of its work, fine enough to be cut into ``pieces``."""

        def count(cells: Sequence[tuple[int, int]], parts: int) -> np.ndarray:
            if (list(cells), parts) == ([self.ask.span], CELLS):
                return self.survey.all_cells
            return counting.cells(self.ask, cells, parts)

        estimate = Estimate(self.ask.pattern, self.plan.models, self.plan.orders)
        return work_curve(estimate, spans_of(self.item.fingerprints), self.ask.span, count, pieces)


@dataclass(frozen=True)
class Prepared:
    """Patterns that are searched together.

    Args:
        patterns: the patterns.
        shares: what each task does; they refer to patterns by position.
    """

    patterns: tuple[Planned, ...]
    shares: tuple[Share, ...]


def prepare(
    counting: Counting,
    work: Sequence[Work],
    event_days: EventDays,
    rates: Callable[[Days], Sequence[RateOfKey]],
) -> Prepared:
    """Count, plan and cut some patterns; each event is read once for all of them.

    Args:
        counting: counts the run's events.
        work: the patterns.
        event_days: the source's days, with the number of events of each.
        rates: days → their rows of ``ops.rates``.
    """
    patterns = planned(counting, work, event_days, rates)
    roughly = [one.curve(counting, 1) for one in patterns]
    every = sum(counting.files.rows.values())
    pieces = pieces_of(sum(one.total for one in roughly), every, counting.tasks.parallelism)
    curves = roughly if pieces == 1 else [one.curve(counting, pieces) for one in patterns]
    wanted = [
        Wanted(one.ask.pattern, tuple(one.item.fingerprints), curve)
        for one, curve in zip(patterns, curves, strict=True)
    ]
    return Prepared(patterns, tuple(cut(counting.files, wanted, pieces)))


def planned(
    counting: Counting,
    work: Sequence[Work],
    event_days: EventDays,
    rates: Callable[[Days], Sequence[RateOfKey]],
) -> tuple[Planned, ...]:
    """Count some patterns and choose their orders; arguments as for :func:`prepare`."""
    key, asks = counting.key, [_ask(item) for item in work]
    surveys = counting.surveys(asks)
    draws = [
        draw_of(ask, survey, key, event_days.events(item.read_days))
        for item, ask, survey in zip(work, asks, surveys, strict=True)
    ]
    return tuple(
        Planned(item, draw.ask, survey, choose_plan(draw, survey, rows, key, rates(item.read_days)))
        for item, draw, survey, rows in zip(work, draws, surveys, counting.draw(draws), strict=True)
    )


def _ask(item: Work) -> Ask:
    pattern = item.compiled.pattern
    return ask_of(pattern, [slice_of(pattern, own).read for own in spans_of(item.fingerprints)])
