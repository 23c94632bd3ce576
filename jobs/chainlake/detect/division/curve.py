"""The work of one pattern or several along the time axis: estimated from counts, and cut into parts of about equal
work. The estimates only balance the work; they never affect the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np

from chainlake.cep.estimate.cost import EVALUATION, Model, linear_extensions
from chainlake.cep.pattern import Pattern

#: The cost of reading and testing an event, and of writing a match, in evaluations (about 15 ns each).
PER_EVENT, PER_MATCH = 60.0, 200.0
#: Number of time cells in which events are counted (10 minutes each in a month), and of parts into which a heavy cell
#: is divided.
CELLS, FINER_CELLS = 4_096, 1_024
#: A cell with more than 1/8 of a piece's work is counted more finely, so that pieces differ by an eighth at most.
_FINE = 8
#: The most rounds of finer counting; after four, a cell of a century is shorter than a microsecond.
_ROUNDS = 5

#: (cells, parts) → events per name in each of ``parts`` equal parts of each cell ``[lo, hi)`` µs, shape (names, cells x
#: parts); the parts of a cell are :func:`part_length` long, and the last ones may be empty.
Count = Callable[[Sequence[tuple[int, int]], int], np.ndarray]


@dataclass(frozen=True)
class Curve:
    """Estimated work by decision time.

    Args:
        at: times, ascending, µs.
        work: evaluations for all decisions before each time; it grows evenly between two times.
        rows: events before each time, counted once per name that accepts them; None if only work matters.
    """

    at: np.ndarray
    work: np.ndarray
    rows: np.ndarray | None = None

    @property
    def total(self) -> float:
        """The whole work, in evaluations."""
        return float(self.work[-1])

    def cut(self, span: tuple[int, int], pieces: int) -> list[tuple[int, int]]:
        """Cut ``span`` into parts, none of which has much more than 1/``pieces`` of the work or of the events.

        There are about ``pieces`` parts if work and events are distributed alike, and at most twice as many if not.
        """
        if pieces == 1 or not self.total:
            return [span]
        shares = np.cumsum(_larger(np.diff(self.work), None if self.rows is None else np.diff(self.rows)))
        total = np.concatenate([[0.0], shares])
        inner = self.at[_nearest(total, max(pieces, round(pieces * total[-1])))]
        lo, hi = span
        cuts = np.unique([lo, *inner[(inner > lo) & (inner < hi)].tolist(), hi]).tolist()
        return list(zip(cuts[:-1], cuts[1:], strict=True))

    def between(self, bounds: Sequence[tuple[int, int]]) -> list[float]:
        """The work of each part."""
        return [float(hi - lo) for lo, hi in np.interp(np.array(bounds), self.at, self.work)]


def sum_of(curves: Sequence[Curve]) -> Curve:
    """The work of several patterns."""
    at = np.unique(np.concatenate([one.at for one in curves]))
    work = np.sum([np.interp(at, one.at, one.work) for one in curves], axis=0)
    rows = [np.interp(at, one.at, one.rows) for one in curves if one.rows is not None]
    return Curve(at, work, np.sum(rows, axis=0) if rows else None)


def _larger(work: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """The fraction of all work or of all events in each cell, whichever is larger."""
    part: np.ndarray = work / work.sum()
    return part if rows is None or not rows.any() else np.asarray(np.maximum(part, rows / rows.sum()))


def _nearest(total: np.ndarray, pieces: int) -> np.ndarray:
    """Indices of the edges that cut a running total into ``pieces``, each as close to its share as cells allow."""
    shares = total[-1] * np.arange(1, pieces) / pieces
    above = np.clip(np.searchsorted(total, shares), 1, len(total) - 1)
    return np.unique(np.where(total[above] - shares > shares - total[above - 1], above - 1, above))


@dataclass(frozen=True)
class Estimate:
    """Estimates evaluations by time.

    Args:
        pattern: the pattern.
        models: cost model of each branch.
        orders: binding order of each branch.
    """

    pattern: Pattern
    models: Sequence[Model]
    orders: Sequence[Sequence[str]]

    def by_cell(self, edges: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Work of the cells ``[edges[i], edges[i + 1])``, attributed to the last event of a partial match, or to the
        first one if the pattern waits (its decision comes a window later).

        Args:
            edges: edges of the cells, µs.
            counts: events per name and cell, with the names of all branches one after another.
        """
        work: np.ndarray = PER_EVENT * counts.sum(axis=0)
        near = [] if not len(work) else [self._near(edges, row) for row in counts]
        at = 0
        for number, model in enumerate(self.models):
            names = list(model.branch.types)
            own = {name: counts[at + i] for i, name in enumerate(names)}
            around = {name: near[at + i] for i, name in enumerate(names)}
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

    def _steps(self, number: int) -> list[tuple[float, frozenset[str]]]:
        """For each step of a branch's order: the cost of a combination of the names bound so far, and these names.

        A name that stands for a set counts as one event, because how many fit depends on conditions not known here.
        """
        model = self.models[number]
        if model.branch.stream is not None:
            # Each event is tested once per name, and a name has about as many events as matches.
            return [(1.0 + PER_MATCH, frozenset({name})) for name in self.orders[number]]
        found = []
        bound: frozenset[str] = frozenset()
        for name in self.orders[number]:
            share = model.passing(bound)
            bound |= {name}
            scope = linear_extensions(model.branch, bound) / factorial(len(bound))
            matched = PER_MATCH * model.passing(bound) if len(bound) == len(self.orders[number]) else 0.0
            found.append((scope * (share + matched), bound))
        for clause in model.heavy:
            # Each pair that passes the cheap conditions costs one call, whatever else is bound.
            scope = linear_extensions(model.branch, clause.names) / factorial(len(clause.names))
            pairs = model.in_scope(clause.names) if len(clause.names) > 1 else 0.0
            share = model.pairs(clause) / pairs if pairs else 1.0
            found.append((scope * share * clause.heavy * 1e-6 / EVALUATION, clause.names))
        return found

    def _near(self, edges: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Events within a window before the middle of each cell (after it, for a pattern that waits)."""
        total = np.concatenate([[0.0], np.cumsum(counts)])
        middle = (edges[:-1] + edges[1:]) / 2
        reach = self.pattern.reach_us + 1
        waits = self.pattern.decision == "start+W"
        first, last = (middle, middle + reach) if waits else (middle - reach, middle)
        seen = np.interp(last, edges, total) - np.interp(first, edges, total)
        # Only a part of a cell is near if the cell is longer than the window; a shorter cell can be near as a whole.
        least = counts * np.minimum(1.0, reach / np.maximum(np.diff(edges), 1))
        return np.asarray(np.maximum(seen, least))


def work_curve(
    estimate: Estimate, owned: Sequence[tuple[int, int]], span: tuple[int, int], count: Count, pieces: int
) -> Curve:
    """The curve of a pattern's work, fine enough to be cut into ``pieces`` or fewer.

    Args:
        estimate: estimates the work.
        owned: the decision times wanted, ``[lo, hi)`` µs each.
        span: the time range of the events that are read, ``[lo, hi)`` µs.
        count: counts events.
        pieces: the most parts of equal work; for one part, nothing is counted more than once.
    """
    shift = estimate.pattern.window_us if estimate.pattern.decision == "start+W" else 0
    starts, found = _counted(count, [span], CELLS)
    for finer in range(_ROUNDS + 1):
        edges = np.append(starts, span[1])
        mine = _inside(owned, edges + shift)
        work, rows = estimate.by_cell(edges, found) * mine, found.sum(axis=0) * mine
        curve = Curve(edges + shift, *(np.concatenate([[0.0], np.cumsum(one)]) for one in (work, rows)))
        if pieces == 1 or not curve.total or finer == _ROUNDS:
            break
        heavy = np.flatnonzero((_larger(work, rows) > 1 / pieces / _FINE) & (np.diff(edges) > 1))
        if not len(heavy):
            break
        cells = [(int(edges[i]), int(edges[i + 1])) for i in heavy]
        more_starts, more = _counted(count, cells, FINER_CELLS)
        starts = np.concatenate([np.delete(starts, heavy), more_starts])
        order = np.argsort(starts)
        starts, found = starts[order], np.concatenate([np.delete(found, heavy, axis=1), more], axis=1)[:, order]
    return curve


def _inside(owned: Sequence[tuple[int, int]], decided: np.ndarray) -> np.ndarray:
    """A flag per cell of decision time whose middle is owned."""
    middle = (decided[:-1] + decided[1:]) // 2
    return np.asarray(np.logical_or.reduce([(middle >= lo) & (middle < hi) for lo, hi in owned]))


def _counted(count: Count, cells: Sequence[tuple[int, int]], parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the parts of the cells begin, and the events per name in each; without parts beyond the end of a cell."""
    found = count(cells, parts)
    starts = np.concatenate([lo + part_length(lo, hi, parts) * np.arange(parts) for lo, hi in cells])
    inside = starts < np.repeat([hi for _, hi in cells], parts)
    return starts[inside], found[:, inside]


def count_cells(times: Iterable[np.ndarray], cells: Sequence[tuple[int, int]], parts: int) -> np.ndarray:
    """The result of a :data:`Count`, for events whose times, per name, are in memory."""
    found = []
    for ts in times:
        rows = []
        for lo, hi in cells:
            inside = ts[(ts >= lo) & (ts < hi)]
            rows.append(np.bincount((inside - lo) // part_length(lo, hi, parts), minlength=parts))
        found.append(np.concatenate(rows))
    return np.array(found, np.float64)


def part_length(lo: int, hi: int, parts: int) -> int:
    """The length of each part of a cell, in ticks."""
    return max(1, -(-(hi - lo) // parts))
