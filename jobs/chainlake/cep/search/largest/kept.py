"""Patterns whose events are neighbours, or that keep only the largest matches (``MAXIMAL``, ``OUTERMOST``).

Each branch is searched for all its matches. Those that several branches find are given once. If only the largest are
kept, all matches of the read range are compared before the owned ones are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.scan import BLOCK_ROWS
from chainlake.cep.errors import TooManyCompared
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.dedupe import same_names
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.largest.contained import contained, mixed
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.search.strict.found import BranchRequest, EventBudget, TooMany, found
from chainlake.cep.search.strict.stream import Source

Own = tuple[int, int] | None


@dataclass(frozen=True)
class Finder:
    """The search of such a pattern.

    Args:
        pattern: the pattern.
        events: the events table.
        statistics: what is counted.
        prepare: gives the events that matches decided in a range need.
        loose: gives all matches of a branch that is not ``SEQ STRICT``, by its number, the events, and the owned range;
            if matches are compared, the range in which they must end.
        block_rows: bounds the memory.
    """

    pattern: Pattern
    events: pa.Table
    statistics: Statistics
    prepare: Callable[[Own], Dataset]
    loose: Callable[[int, Dataset, Own], Iterator[MatchBatch]]
    block_rows: int = BLOCK_ROWS

    def run(self, own: Own) -> Iterator[MatchBatch]:
        """The matches decided in ``own``.

        Raises:
            LimitExceeded: comparing matches would need more bound events in memory than the limit allows.
            DefinitionError: neighbours of one key are asked for, but there is no key.
        """
        if not self.pattern.extras.keep:
            data = self.prepare(own)
            seen = Seen(self.pattern)
            for number in range(len(self.pattern.branches)):
                for batch in self._branch(number, data, own, EventBudget(0)):
                    new = seen.new(batch)
                    if new.n:
                        yield new
            return
        parts = [own]
        while parts:
            part = parts.pop()
            done = self.statistics
            before = replace(done, order=[*done.order], backends=[*done.backends])
            try:
                batches = self._largest(part)
                first = next(batches, None)
            except TooMany:
                self.statistics.__dict__.update(before.__dict__)
                parts += self._halves(part)
                continue
            if first is not None:
                yield first
                yield from batches

    def _halves(self, own: Own) -> list[tuple[int, int]]:
        """The later and the earlier half of the owned range, each of which compares fewer matches."""
        if own is None:
            ts = self.prepare(None).columns["ts"].values
            own = int(ts.min()), int(ts.max()) + self.pattern.late_us + 1
        low, high = own
        if high - low < 2:
            pattern = self.pattern
            raise TooManyCompared.of(str(pattern.extras.keep), pattern.name, pattern.limits["compared_events"])
        middle = (low + high) // 2
        return [(middle, high), (low, middle)]

    def _largest(self, own: Own) -> Iterator[MatchBatch]:
        pattern, data = self.pattern, self.prepare(own)
        budget = EventBudget(pattern.limits["compared_events"])
        if len(pattern.branches) == 1 and pattern.branches[0].stream is not None:
            yield from self._branch(0, data, own, budget)
            return
        every: list[MatchBatch] = []
        for number in range(len(pattern.branches)):
            for batch in self._branch(number, data, own, budget):
                budget.take(_members(batch))
                every.append(batch)
        kept = largest(pattern, every)
        at = 0
        for batch in every:
            mine = kept[at : at + batch.n]
            at += batch.n
            if own is not None:
                mine = mine & (batch.decision_us >= own[0]) & (batch.decision_us < own[1])
            if mine.any():
                yield batch.only(mine)

    def _compared(self, own: Own) -> Own:
        """The range in which matches must end that may contain one decided in ``own``, at the end of its window."""
        return None if own is None else (own[0] - self.pattern.window_us, own[1])

    def _branch(self, number: int, data: Dataset, own: Own, budget: EventBudget) -> Iterator[MatchBatch]:
        branch, keep = self.pattern.branches[number], self.pattern.extras.keep
        # Matches that are compared with those of other branches are limited to owned ones only afterwards.
        compared = keep and (len(self.pattern.branches) > 1 or branch.stream is None)
        mine = None if compared else own
        if branch.stream is None:
            yield from self.loose(number, data, self._compared(own) if compared else mine)
            return
        self.statistics.order.append(branch.positive)
        self.statistics.backends.append(("numpy", "neighbours are found by place"))
        # A match contained in another one of its branch is also contained in one that is kept of this branch.
        alone = keep and (keep if len(self.pattern.branches) == 1 else "MAXIMAL")
        source = Source(self.pattern, self.events, data)
        yield from found(BranchRequest(source, number, mine, own, alone, budget, self.block_rows), self.statistics)


def _members(batch: MatchBatch) -> int:
    return len(batch.single) * batch.n + sum(len(rows) for _, rows in batch.kleene.values())


def _elements(batches: list[MatchBatch], names: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The events of all matches, one match after another: offsets, and the number of the name and row of each."""
    total = sum(batch.n for batch in batches)
    none = np.zeros(0, np.int64)
    of, name_of, row_of = [none], [none], [none]
    at = 0
    for batch in batches:
        whole = np.arange(batch.n + 1)
        groups = {**{name: (whole, rows) for name, rows in batch.single.items()}, **batch.kleene}
        for name, (offsets, rows) in groups.items():
            of.append(np.repeat(np.arange(at, at + batch.n), np.diff(offsets)))
            row_of.append(rows)
            name_of.append(np.full(len(rows), names.index(name)))
        at += batch.n
    sets = np.concatenate(of)
    order = np.argsort(sets, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sets, minlength=total))])
    return offsets, np.concatenate(name_of)[order], np.concatenate(row_of)[order]


def _bound_names(pattern: Pattern) -> list[str]:
    return list(dict.fromkeys(name for branch in pattern.branches for name in (*branch.positive, *branch.sets)))


def largest(pattern: Pattern, batches: list[MatchBatch]) -> np.ndarray:
    """Which matches of all branches, in sequence, are kept; one that several branches found is kept in the first.

    Collected sets are not compared.
    """
    names = _bound_names(pattern)
    offsets, name, row = _elements(batches, names)
    if len(offsets) == 1:
        return np.zeros(0, bool)
    branch = np.repeat([batch.branch for batch in batches], [batch.n for batch in batches])
    new = _first_of_equals(offsets, row * len(names) + name, _kinds(pattern)[branch])
    ordinary = np.array([[n in branch.positive for n in names] for branch in pattern.branches])
    sets = np.repeat(np.arange(len(branch)), np.diff(offsets))
    compared = ordinary[branch[sets], name]
    counts = np.bincount(sets[compared], minlength=len(branch))
    name, row = name[compared], row[compared]
    elements = row if pattern.extras.keep == "OUTERMOST" else row * len(names) + name
    kept: np.ndarray = new & ~contained(np.concatenate([[0], np.cumsum(counts)]), elements)
    return kept


def _kinds(pattern: Pattern) -> np.ndarray:
    """A number per branch, equal for branches with the same names, since an empty set differs from no set."""
    numbers: dict[frozenset[str], int] = {}
    return np.array([numbers.setdefault(b.sets.union(b.positive), len(numbers)) for b in pattern.branches])


def _first_of_equals(offsets: np.ndarray, elements: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    keys = [kinds, *(np.add.reduceat(mixed(elements, seed), offsets[:-1]) for seed in (1, 2))]
    order = np.lexsort(keys)
    same = np.logical_and.reduce([np.diff(key[order]) == 0 for key in keys])
    found = np.ones(len(order), bool)
    # Sorting is stable, so the first of equal matches comes first.
    found[order[1:][same]] = False
    return found


class Seen:
    """The matches of earlier branches that later ones may find, too, in 16 bytes each.

    Args:
        pattern: the pattern.
    """

    def __init__(self, pattern: Pattern) -> None:
        branches = pattern.branches
        self.pattern = pattern
        self.names = _bound_names(pattern)
        pairs = [
            (earlier, later)
            for later in range(len(branches))
            for earlier in range(later)
            if same_names(branches[earlier], branches[later])
        ]
        self.doubles = {later: [e for e, at in pairs if at == later] for _, later in pairs}
        self.kept: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {earlier: [] for earlier, _ in pairs}

    def new(self, batch: MatchBatch) -> MatchBatch:
        """The matches that no earlier branch found."""
        if not batch.n or batch.branch not in self.doubles and batch.branch not in self.kept:
            return batch
        offsets, name, row = _elements([batch], self.names)
        bound = row * len(self.names) + name
        one, other = (np.add.reduceat(mixed(bound, seed), offsets[:-1]) for seed in (1, 2))
        new = np.ones(batch.n, bool)
        for earlier in self.doubles.get(batch.branch, ()):
            for ordered, beside in self.kept[earlier]:
                at = np.minimum(np.searchsorted(ordered, one), len(ordered) - 1)
                new &= ~((ordered[at] == one) & (beside[at] == other))
        if batch.branch in self.kept:
            order = np.argsort(one)
            self.kept[batch.branch].append((one[order], other[order]))
        return batch.only(new)
