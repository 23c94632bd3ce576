"""Leaves out partial matches that cannot be completed to one of the best, on NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.steps import scope_of
from chainlake.cep.search.bounding.arrays import Arrays, Columns
from chainlake.cep.search.bounding.lists import PeriodRange
from chainlake.cep.search.bounding.score import Bound
from chainlake.cep.search.bounding.thresholds import BoundedBranch

#: How many events of the first name are followed at a time: at first, and the factor by which that grows.
_FIRST, _GROWTH = 8, 1.5
#: If a partial match may still be in more windows than this, no threshold is looked up.
MOST_WINDOWS = 64


class Cutter:
    """Leaves out partial matches of one branch.

    Args:
        bounded: the branch with its thresholds.
        scan: the events and candidates to search.
        branch: the branch.
    """

    def __init__(self, bounded: BoundedBranch, scan: Scan, branch: Branch) -> None:
        self.bounded, self.scan, self.branch = bounded, scan, branch
        self.columns: Columns = bounded.columns(scan)
        self._ranges: dict[str, PeriodRange] = {}

    def periods_of(self, name: str) -> PeriodRange:
        """The periods that matches with each candidate of a name can be in."""
        if name not in self._ranges:
            data = self.scan.data
            self._ranges[name] = self.bounded.thresholds.periods.of(data.real(self.scan.candidates[name].ts))
        return self._ranges[name]

    def order(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of the name that is bound first, most promising first, and the bound of each candidate."""
        n = len(self.scan.candidates[name])
        every = np.arange(n)
        found, possible = self._bounds({name: every}, self.scan.candidates[name].ts, self.scan.candidates[name].ts)
        bounds = np.full(n, -np.inf)
        bounds[possible] = found
        order = np.argsort(-bounds, kind="stable")
        return order[: int(np.count_nonzero(bounds > -np.inf))], bounds

    def firsts(self, name: str) -> Iterator[Bindings]:
        """The events of the name that is bound first, most promising first, some at a time."""
        order, bounds = self.order(name)
        ts, begin, size = self.scan.candidates[name].ts, 0, float(_FIRST)
        while begin < len(order):
            some = order[begin : begin + int(size)]
            begin, size = begin + len(some), size * _GROWTH
            thresholds = self.bounded.thresholds
            if thresholds.on and len(thresholds.theta) == 1 and bounds[some[0]] < thresholds.theta[0]:
                thresholds.count(0, 1, 1)
                return
            yield Bindings(len(some), {name: some}, {}, ts[some], ts[some])

    def cut(self, found: Bindings) -> Bindings:
        """The partial matches that can still be among the best."""
        thresholds = self.bounded.thresholds
        partial = 0 if len(found.singles) == len(self.branch.positive) else found.n
        if not thresholds.on or not found.n:
            thresholds.count(partial, 0, 0)
            return found
        theta = self.thresholds(found)
        asked = np.flatnonzero(theta > -np.inf)
        keep = np.ones(found.n, bool)
        if len(asked):
            some = found.at(asked)
            bounds, possible = self._bounds(some.singles, some.start, some.end)
            keep[asked] = False
            keep[asked[possible]] = ~(bounds < theta[asked[possible]])
        thresholds.count(partial, len(asked), int(found.n - keep.sum()))
        return found.only(keep)

    def thresholds(self, found: Bindings) -> np.ndarray:
        """The smallest threshold of the lists that each partial match can still be in."""
        thresholds, bounds = self.bounded.thresholds, self.bounded.bounds
        nothing = np.full(found.n, -np.inf)
        per = np.zeros(found.n, np.int64)
        if bounds.per is not None:
            name = next((one for one in sorted(bounds.per) if one in found.singles), None)
            if name is None:
                return nothing
            per = self.bounded.per[name][self.scan.candidates[name].rows[found.singles[name]]]
        each = len(thresholds.per)
        if bounds.period == "all":
            return thresholds.theta[per]
        low = np.maximum.reduce([self.periods_of(name).low[at] for name, at in found.singles.items()])
        high = np.minimum.reduce([self.periods_of(name).high[at] for name, at in found.singles.items()])
        if bounds.end in found.singles or len(found.singles) == len(self.branch.positive):
            low, high = (high, high) if bounds.period == "first" else (low, low if bounds.period == "last" else high)
        # A partial match in no window at all gets the largest threshold.
        theta = np.where(high < low, np.inf, nothing)
        few = np.flatnonzero((high >= low) & (high - low < MOST_WINDOWS))
        least = np.full(len(few), np.inf)
        for further in range(int((high - low)[few].max(initial=-1)) + 1):
            at = np.minimum(low[few] + further, high[few])
            least = np.minimum(least, thresholds.theta[at * each + per[few]])
        theta[few] = least
        return theta

    def _bounds(
        self, singles: dict[str, np.ndarray], start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The largest score of any completion, and the rows of the partial matches that have completions."""
        found = Bindings(len(start), dict(singles), {}, start, end)
        free, candidates = {}, self.scan.candidates
        possible = np.ones(found.n, bool)
        for name in self.branch.positive:
            if name not in singles:
                scope = scope_of(self.branch, name, tuple(singles))
                free[name] = found.scope(scope, self.scan.window, candidates, candidates[name])
                possible &= free[name][0] < free[name][1]
        rows = np.flatnonzero(possible)
        bound = {name: at[rows] for name, at in singles.items()}
        arrays = Arrays(self.columns, bound, {name: (lo[rows], hi[rows]) for name, (lo, hi) in free.items()})
        bounds = self.bounded.bounds
        with np.errstate(all="ignore"):
            score = Bound(arrays).score(bounds.score, bounds.nodes)
        score = np.broadcast_to(np.asarray(score, np.float64), (len(rows),))
        return np.where(np.isnan(score), np.inf, score), rows
