"""Makes matches from bindings of all ordinary names: PAUSE, UNTIL, the sets of COLLECT (docs/semantics.md#sets)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.blocks import Bindings, flat_blocks
from chainlake.cep.conditions.evaluate import View, spread
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.errors import TooManyMembers
from chainlake.cep.plan.completion import Completion, Gathering
from chainlake.cep.search.binding.negation import not_until
from chainlake.cep.search.binding.pause import without_pause
from chainlake.cep.search.statistics import Statistics

#: For each binding, the positions ``[lo, hi)`` of the candidates in its interval.
_Interval = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Completer:
    """Completes the bindings of one branch.

    Args:
        completion: what is to be done.
        scan: the events and candidates to search.
        limit: how many members a set may have; None if that has been checked.
        statistics: E_neg counts events tested for UNTIL, E_pre members tested for COLLECT.
    """

    completion: Completion
    scan: Scan
    limit: int | None
    statistics: Statistics

    def run(self, found: Bindings) -> Iterator[tuple[np.ndarray, Bindings]]:
        """The matches among some bindings, with their sets, in blocks: the rows of their bindings, and the matches.

        Args:
            found: bindings of all ordinary names, by positions among the candidates.

        Raises:
            LimitExceeded: a set has more members than the limit.
        """
        completion, scan = self.completion, self.scan
        rows = np.arange(found.n)
        if completion.pause is not None:
            kept = np.flatnonzero(without_pause(found, scan.candidates, completion.pause))
            rows, found = rows[kept], found.at(kept)
        for until in completion.until:
            kept = not_until(until, found, scan, completion.kleene, self.statistics.count_neg)
            rows, found = rows[kept], found.at(kept)
        if not completion.gatherings:
            yield rows, found
            return
        intervals = {one.name: self._interval(one, found) for one in completion.gatherings}
        kept = self._possible(found.n, intervals)
        rows, found = rows[kept], found.at(kept)
        intervals = {name: (lo[kept], hi[kept]) for name, (lo, hi) in intervals.items()}
        for part in _parts(sum(hi - lo for lo, hi in intervals.values()) + np.ones(found.n, np.int64), scan.block_rows):
            own = {name: (lo[part], hi[part]) for name, (lo, hi) in intervals.items()}
            kept, whole = self._gathered(found.at(part), own)
            yield rows[part[kept]], whole

    def _interval(self, one: Gathering, found: Bindings) -> _Interval:
        return found.scope(one.scope, self.scan.window, self.scan.candidates, self.scan.candidates[one.name])

    def _possible(self, n: int, intervals: dict[str, _Interval]) -> np.ndarray:
        """The bindings that may have sets of the sizes asked for, as far as this can be known without looking at
        events.
        """
        good = np.ones(n, bool)
        for one in self.completion.gatherings:
            lo, hi = intervals[one.name]
            if _is_whole(one):
                good &= self._has_size(one, hi - lo)
            elif not one.may_be_empty:
                good &= hi > lo
        return np.flatnonzero(good)

    def _has_size(self, one: Gathering, counts: np.ndarray) -> np.ndarray:
        good = np.ones(len(counts), bool) if one.may_be_empty else counts > 0
        offsets = np.concatenate([[0], np.cumsum(counts)])
        nobody = np.zeros(0, np.int64)
        view = View(self.scan.data, len(counts), {}, {one.name: (self.scan.candidates[one.name], offsets, nobody)})
        for clause in one.sizes:
            good = good & view.holds(clause, frozenset())
        return good

    def _gathered(self, found: Bindings, intervals: dict[str, _Interval]) -> tuple[np.ndarray, Bindings]:
        """The bindings whose sets have the sizes asked for and pass the other conditions, and these with their sets."""
        rows = np.arange(found.n)
        sets: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for one in self.completion.gatherings:
            if _is_whole(one):
                continue
            lo, hi = intervals[one.name]
            members = self._members(one, found.at(rows), (lo[rows], hi[rows]))
            kept = np.flatnonzero(self._has_size(one, np.diff(members[0])))
            sets = {name: _some(group, kept) for name, group in {**sets, one.name: members}.items()}
            rows = rows[kept]
        counts = {name: np.diff(offsets) for name, (offsets, _) in sets.items()}
        counts |= {name: (hi - lo)[rows] for name, (lo, hi) in intervals.items() if name not in sets}
        self._check(counts)
        for one in self.completion.gatherings:
            if _is_whole(one):
                lo = intervals[one.name][0][rows]
                offsets = np.concatenate([[0], np.cumsum(counts[one.name])])
                sets[one.name] = offsets, np.arange(offsets[-1]) + np.repeat(lo - offsets[:-1], counts[one.name])
        whole = found.at(rows)
        whole.groups.update(sets)
        view, good = whole.view(self.scan.data, self.scan.candidates), np.ones(whole.n, bool)
        for clause in self.completion.finished:
            good &= view.holds(clause, self.completion.sets)
        return rows[good], whole.only(good)

    def _members(self, one: Gathering, found: Bindings, interval: _Interval) -> tuple[np.ndarray, np.ndarray]:
        """The events of the interval that are bound to no other name and pass all conditions on one member."""
        data, candidates = self.scan.data, self.scan.candidates
        of, base = candidates[one.name], found.view(data, candidates)
        lo, hi = interval
        kept_rows, kept_positions = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for rows, within in flat_blocks(hi - lo, self.scan.block_rows):
            positions = lo[rows] + within
            apart = found.apart(one.scope, candidates, of, rows, positions)
            if apart is not None:
                rows, positions = rows[apart], positions[apart]
            if one.clauses:
                self.statistics.evaluations_pre += len(rows)
                self.statistics.tests += len(rows)
            for clause in one.clauses:
                view = View(data, len(rows), {one.name: (of, positions)}, {}, base, rows)
                good = np.flatnonzero(view.holds(clause, self.completion.kleene))
                rows, positions = rows[good], positions[good]
            kept_rows.append(rows)
            kept_positions.append(positions)
        counts = np.bincount(np.concatenate(kept_rows), minlength=found.n)
        return np.concatenate([[0], np.cumsum(counts)]), np.concatenate(kept_positions)

    def _check(self, counts: dict[str, np.ndarray]) -> None:
        """Check the sets of bindings, all of which have the sizes asked for, against the limit."""
        for name, members in counts.items():
            most = int(members.max(initial=0))
            if self.limit is not None and most > self.limit:
                raise TooManyMembers.collected(most, name, self.limit)


def _is_whole(one: Gathering) -> bool:
    """Whether every event in the interval is a member."""
    return not one.clauses and not one.scope.apart_from


def _some(group: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(rows) == len(group[0]) - 1:
        return group
    return spread(*group, rows)


def _parts(weights: np.ndarray, limit: int) -> Iterator[np.ndarray]:
    """Bindings in runs whose weights add up to about ``limit``."""
    group = (np.cumsum(weights) - 1) // limit
    yield from np.split(np.arange(len(weights)), np.flatnonzero(group[1:] != group[:-1]) + 1) if len(weights) else ()
