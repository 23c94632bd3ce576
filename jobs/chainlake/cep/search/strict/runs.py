"""Matches of neighbours as places: where the events of each name begin and end in the stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.search.strict.stream import Stream


@dataclass(frozen=True)
class Runs:
    """Some matches, whole or partial.

    Args:
        n: how many there are.
        first: for each name, the place of its first event in each match.
        last: for each name, the place of its last event in each match.
    """

    n: int
    first: dict[str, np.ndarray]
    last: dict[str, np.ndarray]

    def at(self, rows: np.ndarray | slice) -> Runs:
        """The matches at ``rows``."""
        last = {name: places[rows] for name, places in self.last.items()}
        first = {name: last[name] if places is self.last[name] else places[rows] for name, places in self.first.items()}
        return Runs(len(next(iter(last.values()))), first, last)

    def only(self, kept: np.ndarray) -> Runs:
        """The matches where ``kept`` is true."""
        return self if kept.all() else self.at(np.flatnonzero(kept))

    def bind(self, name: str, first: np.ndarray, last: np.ndarray) -> Runs:
        """The same matches with one more name, or with other events of a name."""
        return Runs(self.n, {**self.first, name: first}, {**self.last, name: last})

    def bindings(self, stream: Stream, branch: Branch, names: Iterable[str]) -> Bindings:
        """The events of some names as bindings for tests that go by time; start and end are those of all names."""
        singles, groups = {}, {}
        for name in names:
            if name in branch.kleene:
                groups[name] = stream.members(self.first[name], self.last[name])
            else:
                singles[name] = stream.positions(self.first[name])
        # Later places have later times.
        begin, end = reduce(np.minimum, self.first.values()), reduce(np.maximum, self.last.values())
        return Bindings(self.n, singles, groups, stream.times[begin], stream.times[end])


def joined(parts: list[Runs], names: tuple[str, ...]) -> Runs:
    """All parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    none = [np.zeros(0, np.int64)]
    return Runs(
        sum(part.n for part in parts),
        {name: np.concatenate([part.first[name] for part in parts] or none) for name in names},
        {name: np.concatenate([part.last[name] for part in parts] or none) for name in names},
    )


def portions(runs: Runs, names: tuple[str, ...], members: int) -> Iterator[Runs]:
    """The matches in parts with about ``members`` events and at least one match each."""
    sizes = runs.last[names[-1]] - runs.first[names[0]] + 1
    if runs.n and int(sizes.sum()) <= members:
        yield runs
        return
    group = (np.cumsum(sizes) - 1) // members
    edges = np.flatnonzero(np.diff(group)) + 1
    if not len(edges):
        if runs.n:
            yield runs
        return
    for low, high in zip([0, *edges.tolist()], [*edges.tolist(), runs.n], strict=True):
        yield runs.at(slice(low, high))


def largest_per_boundary(runs: Runs, names: tuple[str, ...]) -> Runs:
    """The matches that no other one with the same boundaries between names contains.

    Boundaries between neighbours are all that two matches must share for one to contain the other, name by name.
    """
    if runs.n < 2:
        return runs
    begin, end = runs.first[names[0]], runs.last[names[-1]]
    between = [runs.last[name] for name in names[:-1]]
    order = np.lexsort((-end, begin, *between))
    same = np.ones(runs.n - 1, bool)
    for places in between:
        same &= np.diff(places[order]) == 0
    group = np.concatenate([[0], np.cumsum(~same)])
    high = group * (int(end.max()) + 1) + end[order]
    # The latest end among matches that begin no later; earlier groups have smaller numbers.
    before = np.maximum.accumulate(high)[:-1]
    kept = np.concatenate([[True], high[1:] > before])
    return runs.at(np.sort(order[kept]))


def outermost(runs: Runs, names: tuple[str, ...]) -> Runs:
    """The matches whose events are not a proper subset of another one's."""
    if runs.n < 2:
        return runs
    begin, end = runs.first[names[0]], runs.last[names[-1]]
    ordered = (begin[1:] > begin[:-1]) | (begin[1:] == begin[:-1]) & (end[1:] <= end[:-1])
    if not ordered.all():
        runs = runs.at(np.lexsort((-end, begin)))
    starts, ends = runs.first[names[0]], runs.last[names[-1]]
    before = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]])
    if np.all(starts[1:] > starts[:-1]):
        return runs.only(ends > before)
    # Equal stretches do not properly contain one another, so the first of them decides for all.
    new = np.concatenate([[True], (np.diff(starts) != 0) | (np.diff(ends) != 0)])
    kept = (ends > before)[np.maximum.accumulate(np.where(new, np.arange(runs.n), 0))]
    return runs.only(kept)
