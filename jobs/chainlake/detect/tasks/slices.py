"""How the work of a pattern is cut: slices of decision time with bounds from counts, and where each one runs.

Slices own matches by decision time and read only what their read range says, so how many there are, and where they
begin, never shows in the result (design §4, §5). What is estimated here only balances the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import factorial
from typing import Any, Protocol

import numpy as np

from chainlake.cep.estimate.cost import Model, linear_extensions
from chainlake.cep.pattern import Pattern
from chainlake.days import Days
from chainlake.detect.tasks.curve import Curve

#: Slices at least, so that none is more than 15 % of the work, bursts within one time stamp excepted (design §5).
PIECES = 8
#: A cell with more than this part of a slice's work is counted more finely.
_FINE = 8
#: Work, in evaluations, that is not worth cutting: a second or two.
NOT_CUT = 20_000_000.0
#: What an event costs to be brought to a worker, and a match to be written, in evaluations.
PER_EVENT, PER_MATCH = 60.0, 200.0
#: Cells of time in which events are counted; those of a cell with too much work are counted once more.
CELLS, FINER_CELLS = 4_096, 1_024
#: Rounds of counting more finely; after four of them a cell of a century is shorter than a microsecond.
_ROUNDS = 5


@dataclass(frozen=True)
class Slice:
    """A stretch of decision time and the events needed for it, both half-open, in ticks."""

    number: int
    own: tuple[int, int]
    read: tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Which slices there are and on which partition each runs.

    Args:
        base: slices of all events; with a partition key, of all keys that are not hot.
        hot: hot key to slices of its own.
        partitions: how many partitions there are.
        place: number of a slice to its partition; base slices of a keyed pattern are spread by key instead.
    """

    base: tuple[Slice, ...]
    hot: Mapping[Any, tuple[Slice, ...]]
    partitions: int
    place: Mapping[int, int]

    @property
    def slices(self) -> tuple[Slice, ...]:
        """All slices, by number."""
        return (*self.base, *(one for those in self.hot.values() for one in those))

    @property
    def read(self) -> tuple[int, int]:
        """The smallest range that holds all read ranges."""
        return min(s.read[0] for s in self.base), max(s.read[1] for s in self.base)


class Cells(Protocol):
    """Counts of events by name; the names of all branches one after another, as
    ``chainlake.cep.plan.partition.name_sql``."""

    def by_cell(self, cells: Sequence[tuple[int, int]], parts: int, key: Any = None) -> np.ndarray:
        """Events per name in each of ``parts`` equal parts of each cell ``[lo, hi)``, of one key or all.

        The parts of a cell are ``ceil((hi - lo) / parts)`` ticks long; the last ones may be empty.
        """
        ...


class Counts(Cells, Protocol):
    """The same, and by key."""

    def by_key(self) -> tuple[list[Any], np.ndarray]:
        """The keys that most events have, and the events per name of each, of shape (names, keys)."""
        ...


def count_cells(times: Iterable[np.ndarray], cells: Sequence[tuple[int, int]], parts: int) -> np.ndarray:
    """``Cells.by_cell`` of events whose times, per name, are in memory."""
    found = []
    for ts in times:
        rows = []
        for lo, hi in cells:
            inside = ts[(ts >= lo) & (ts < hi)]
            rows.append(np.bincount((inside - lo) // part_length(lo, hi, parts), minlength=parts))
        found.append(np.concatenate(rows))
    return np.array(found, np.float64)


def runs(pattern: Pattern, days: Iterable[date]) -> tuple[Slice, ...]:
    """One slice for each run of days without a gap."""
    return _numbered(pattern, spans_of(days), 0)


def spans_of(days: Iterable[date]) -> list[tuple[int, int]]:
    """The runs of days without a gap, µs."""
    ordered = sorted(days)
    breaks = [i for i, day in enumerate(ordered) if i == 0 or (day - ordered[i - 1]).days > 1]
    parts = [ordered[i:j] for i, j in zip(breaks, [*breaks[1:], len(ordered)], strict=True)]
    return [Days(part[0], Days.one(part[-1]).end).micros() for part in parts]


def whole(base: Sequence[Slice]) -> Layout:
    """The slices as they are, on one partition."""
    return Layout(tuple(base), {}, 1, {one.number: 0 for one in base})


def _numbered(pattern: Pattern, bounds: Iterable[tuple[int, int]], first: int) -> tuple[Slice, ...]:
    return tuple(Slice(first + i, own, pattern.read_range(*own)) for i, own in enumerate(bounds))


@dataclass(frozen=True)
class Estimate:
    """Evaluations by decision time, for events of all keys or of one.

    Args:
        pattern: the pattern.
        models: cost model of each branch.
        orders: binding order of each branch.
        scale: per branch and name, events that a name accepts over events counted for it.
        per_key: events per name of each key, of shape (names, keys), if all estimates are of events of one key; the
            models' pass rates count combinations of different keys, too.
    """

    pattern: Pattern
    models: Sequence[Model]
    orders: Sequence[Sequence[str]]
    scale: Sequence[Mapping[str, float]]
    per_key: np.ndarray | None = None

    def split(self, counts: np.ndarray) -> list[dict[str, np.ndarray]]:
        """Rows of counts as name → accepted events, per branch."""
        found, at = [], 0
        for model, scale in zip(self.models, self.scale, strict=True):
            names = list(model.branch.types)
            found.append({name: counts[at + i] * scale.get(name, 1.0) for i, name in enumerate(names)})
            at += len(names)
        return found

    def by_cell(self, edges: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Work of the cells ``[edges[i], edges[i + 1])``, attributed to the last event of a partial match, or to the
        first one of a pattern that waits (whose decision lies a window after it)."""
        work = PER_EVENT * counts.sum(axis=0)
        near = [] if not len(work) else [self._near(edges, row) for row in counts]
        at = 0
        for number, (model, own) in enumerate(zip(self.models, self.split(counts), strict=True)):
            names = list(model.branch.types)
            around = {n: near[at + i] * self.scale[number].get(n, 1.0) for i, n in enumerate(names)}
            at += len(names)
            for weight, bound in self._steps(number):
                tuples = np.zeros(len(work))
                for last in bound:
                    product = own[last].copy()
                    for other in bound - {last}:
                        product *= around[other]
                    tuples += product
                work += weight * tuples
        return work

    def by_key(self, span: int) -> np.ndarray:
        """Work of each key, if its events lie evenly over ``span`` ticks; ``per_key`` is given."""
        counts = self.per_key
        assert counts is not None
        work = PER_EVENT * counts.sum(axis=0)
        share = min(1.0, (self.pattern.window_us + 1) / max(span, 1))
        for number, own in enumerate(self.split(counts)):
            for weight, bound in self._steps(number):
                product = np.full(counts.shape[1], weight * len(bound) * share ** (len(bound) - 1))
                for name in bound:
                    product *= own[name]
                work += product
        return work

    def _steps(self, number: int) -> list[tuple[float, frozenset[str]]]:
        """Per step of a branch's order: what a combination of the names bound so far costs, and these names.

        A name that stands for a set counts as one event: how many fit depends on conditions that are not known here.
        """
        model = self.models[number]
        found = []
        bound: frozenset[str] = frozenset()
        for name in self.orders[number]:
            share = self._passing(number, bound)
            bound |= {name}
            scope = linear_extensions(model.branch, bound) / factorial(len(bound))
            matched = PER_MATCH * self._passing(number, bound) if len(bound) == len(self.orders[number]) else 0.0
            found.append((scope * (share + matched), bound))
        return found

    def _passing(self, number: int, names: frozenset[str]) -> float:
        """The share of combinations that pass all conditions between the names; of those of one key, if so asked."""
        share = self.models[number].passing(names)
        if self.per_key is None or len(names) < 2:
            return share
        own = self.split(self.per_key)[number]
        everything = np.prod([own[name].sum() for name in names])
        alike = np.prod([own[name] for name in names], axis=0).sum()
        return min(1.0, share * float(everything / alike)) if alike else 0.0

    def _near(self, edges: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Events within a window before the middle of each cell (after it, for a pattern that waits)."""
        total = np.concatenate([[0.0], np.cumsum(counts)])
        middle = (edges[:-1] + edges[1:]) / 2
        reach = self.pattern.window_us + 1
        first, last = (middle, middle + reach) if self.pattern.open_right else (middle - reach, middle)
        seen = np.interp(last, edges, total) - np.interp(first, edges, total)
        # Of a cell longer than the window only a part is near; of a shorter one, all of it can be.
        return np.maximum(seen, counts * np.minimum(1.0, reach / np.maximum(np.diff(edges), 1)))


def lay_out(
    base: Sequence[Slice], estimate: Estimate, counts: Counts, parallelism: int, *, not_cut: float = NOT_CUT
) -> Layout:
    """Cut the work so that no slice has more than its share, and place the slices.

    Args:
        base: one slice per run of days.
        estimate: what the work is.
        counts: where the events are.
        parallelism: tasks that run at a time.
        not_cut: work that is not worth cutting.
    """
    pattern = estimate.pattern
    wanted = max(PIECES, 2 * parallelism)
    if pattern.partition_key is None:
        cut, work = _cut(base, *_curve(base, estimate, counts, None, wanted, not_cut, None))
        slices = _numbered(pattern, cut, 0)
        partitions, place = _placed(dict(zip((s.number for s in slices), work, strict=True)), parallelism, 0.0)
        return Layout(slices, {}, partitions, place)
    lo, hi = min(s.read[0] for s in base), max(s.read[1] for s in base)
    keys, per_key = counts.by_key()
    estimate = replace(estimate, per_key=per_key)
    work_of_keys = estimate.by_key(hi - lo)
    total = float(work_of_keys.sum())
    if total <= not_cut:
        return whole(base)
    hot: dict[Any, tuple[Slice, ...]] = {}
    load: dict[int, float] = {}
    rest, number = total, len(base)
    for at in np.flatnonzero(work_of_keys > total / wanted).tolist():
        cut, work = _cut(base, *_curve(base, estimate, counts, keys[at], wanted, not_cut, total / wanted))
        hot[keys[at]] = _numbered(pattern, cut, number)
        number += len(cut)
        rest -= float(work_of_keys[at])
        load |= dict(zip((s.number for s in hot[keys[at]]), work, strict=True))
    partitions, place = _placed(load, parallelism, max(rest, 0.0), least=2 * parallelism)
    return Layout(tuple(base), hot, partitions, place)


def work_curve(base: Sequence[Slice], estimate: Estimate, counts: Cells, pieces: int) -> Curve:
    """Where the work of events of all keys lies, so finely that it can be cut into ``pieces`` or fewer.

    Args:
        base: one slice per run of days.
        estimate: what the work is.
        counts: where the events are.
        pieces: how many parts of equal work there can be.
    """
    return _curve(base, estimate, counts, None, pieces, 0.0, None)[0]


def within(base: Sequence[Slice], pattern: Pattern, bounds: Sequence[tuple[int, int]]) -> tuple[tuple[Slice, ...], ...]:
    """What lies in each part of the time axis of some slices of a pattern: slices again, numbered through."""
    own = [[(max(lo, s.own[0]), min(hi, s.own[1])) for s in base] for lo, hi in bounds]
    own = [[(lo, hi) for lo, hi in spans if lo < hi] for spans in own]
    firsts = np.cumsum([0, *map(len, own)]).tolist()
    return tuple(_numbered(pattern, spans, first) for spans, first in zip(own, firsts, strict=False))


def _cut(base: Sequence[Slice], curve: Curve, pieces: int) -> tuple[list[tuple[int, int]], list[float]]:
    """Bounds of decision time, and the work between them."""
    bounds = curve.cut([s.own for s in base], pieces)
    return bounds, curve.between(bounds)


def _curve(
    base: Sequence[Slice],
    estimate: Estimate,
    counts: Cells,
    key: Any,
    wanted: int,
    not_cut: float,
    largest: float | None,
) -> tuple[Curve, int]:
    """Where the work lies, and into how many pieces it is to be cut.

    Args:
        base: one slice per run of days.
        estimate: what the work is.
        counts: where the events are.
        key: only of this key, or None.
        wanted: how many pieces the whole work should have.
        not_cut: work that is not worth cutting.
        largest: work of a piece; default: the whole over ``wanted``.
    """
    lo, hi = min(s.read[0] for s in base), max(s.read[1] for s in base)
    shift = estimate.pattern.window_us if estimate.pattern.open_right else 0
    starts, found = _counted(counts, [(lo, hi)], CELLS, key)
    for finer in range(_ROUNDS + 1):
        edges = np.append(starts, hi)
        work = estimate.by_cell(edges, found) * _owned(base, edges + shift)
        curve = Curve(edges + shift, np.concatenate([[0.0], np.cumsum(work)]))
        limit = curve.total / wanted if largest is None else largest
        if limit <= 0 or largest is None and curve.total <= not_cut:
            return curve, 1
        heavy = np.flatnonzero((work > limit / _FINE) & (np.diff(edges) > 1))
        if not len(heavy) or finer == _ROUNDS:
            break
        cells = [(int(edges[i]), int(edges[i + 1])) for i in heavy]
        more_starts, more = _counted(counts, cells, FINER_CELLS, key)
        starts = np.concatenate([np.delete(starts, heavy), more_starts])
        order = np.argsort(starts)
        starts, found = starts[order], np.concatenate([np.delete(found, heavy, axis=1), more], axis=1)[:, order]
    return curve, max(1, round(curve.total / limit))


def _owned(base: Sequence[Slice], decided: np.ndarray) -> np.ndarray:
    """Which cells of decision time lie, with their middle, in a slice."""
    middle = (decided[:-1] + decided[1:]) // 2
    return np.logical_or.reduce([(middle >= one.own[0]) & (middle < one.own[1]) for one in base])


def _counted(counts: Cells, cells: Sequence[tuple[int, int]], parts: int, key: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where the parts of the cells begin, and the events per name in each; parts beyond the end of a cell left out."""
    found = counts.by_cell(cells, parts, key)
    starts = np.concatenate([lo + part_length(lo, hi, parts) * np.arange(parts) for lo, hi in cells])
    inside = starts < np.repeat([hi for _, hi in cells], parts)
    return starts[inside], found[:, inside]


def part_length(lo: int, hi: int, parts: int) -> int:
    """Ticks of each part of a cell."""
    return max(1, -(-(hi - lo) // parts))


def _placed(load: Mapping[int, float], parallelism: int, spread: float, least: int = 1) -> tuple[int, dict[int, int]]:
    """Partitions, and one for each slice: the heaviest first, each to the partition with the least work.

    Args:
        load: slice to its work.
        parallelism: tasks that run at a time.
        spread: further work that is spread over all partitions.
        least: as many partitions at least.
    """
    partitions = max(least, min(len(load), 4 * parallelism))
    loads = np.full(partitions, spread / partitions)
    place = {}
    for number in sorted(load, key=lambda n: (-load[n], n)):
        place[number] = int(np.argmin(loads))
        loads[place[number]] += load[number]
    return partitions, place
