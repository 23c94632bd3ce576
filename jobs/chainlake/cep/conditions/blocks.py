"""Bounded blocks of work, and the bindings that travel through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates, View, spread
from chainlake.cep.events.clock import MOST_TICKS
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.plan.steps import Scope

#: Later than every timestamp.
FAR = MOST_TICKS


def flat_blocks(counts: np.ndarray, limit: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Enumerate ``counts[r]`` items for each row r, at most ``limit`` items at a time.

    Yields:
        ``(rows, within)``: the row of each item, and its number within the row, from 0.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    starts = ends - counts
    for x in range(0, total, limit):
        y = min(x + limit, total)
        first = int(np.searchsorted(ends, x, "right"))
        last = int(np.searchsorted(ends, y, "left"))
        sizes = counts[first : last + 1].copy()
        sizes[0] -= x - starts[first]
        sizes[-1] -= ends[last] - y
        rows = np.repeat(np.arange(first, last + 1), sizes)
        yield rows, np.arange(x, y) - np.repeat(starts[first : last + 1], sizes)


@dataclass
class Bindings:
    """A block of partial matches.

    Args:
        n: how many there are.
        singles: name to the position of its event among the name's candidates.
        groups: name to (offsets, positions) of its events.
        start: smallest bound ts of each, FAR if nothing is bound.
        end: largest bound ts of each, -FAR if nothing is bound.
    """

    n: int
    singles: dict[str, np.ndarray]
    groups: dict[str, tuple[np.ndarray, np.ndarray]]
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def root(cls) -> Bindings:
        """One binding, in which nothing is bound."""
        return cls(1, {}, {}, np.array([FAR]), np.array([-FAR]))

    def at(self, rows: np.ndarray) -> Bindings:
        """The bindings at ``rows``."""
        return Bindings(
            len(rows),
            {name: positions[rows] for name, positions in self.singles.items()},
            {name: spread(offsets, flat, rows) for name, (offsets, flat) in self.groups.items()},
            self.start[rows],
            self.end[rows],
        )

    def only(self, kept: np.ndarray) -> Bindings:
        """The bindings where ``kept`` is true."""
        return self if kept.all() else self.at(np.flatnonzero(kept))

    def view(self, data: Dataset, candidates: dict[str, Candidates]) -> View:
        """A view that computes values over these bindings."""
        return View(
            data,
            self.n,
            {name: (candidates[name], positions) for name, positions in self.singles.items()},
            {name: (candidates[name], *group) for name, group in self.groups.items()},
        )

    def latest(self, name: str, candidates: dict[str, Candidates]) -> np.ndarray:
        """Largest ts bound to ``name``."""
        if name in self.singles:
            return candidates[name].times(self.singles[name])
        offsets, flat = self.groups[name]
        return candidates[name].times(flat[offsets[1:] - 1])

    def earliest(self, name: str, candidates: dict[str, Candidates]) -> np.ndarray:
        """Smallest ts bound to ``name``."""
        if name in self.singles:
            return candidates[name].times(self.singles[name])
        offsets, flat = self.groups[name]
        return candidates[name].times(flat[offsets[:-1]])

    def scope(
        self, scope: Scope, window: int, candidates: dict[str, Candidates], of: Candidates
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions ``[lo, hi)`` of the candidates ``of`` in scope and in window, for each binding."""
        lowest = self.end - window
        for name in scope.after:
            lowest = np.maximum(lowest, self.latest(name, candidates) + 1)
        highest = self.start + (window + 1)
        for name in scope.before:
            highest = np.minimum(highest, self.earliest(name, candidates))
        lo = np.searchsorted(of.ts, lowest, "left")
        return lo, np.maximum(lo, np.searchsorted(of.ts, highest, "left"))

    def apart(
        self, scope: Scope, candidates: dict[str, Candidates], of: Candidates, rows: np.ndarray, positions: np.ndarray
    ) -> np.ndarray | None:
        """Which candidates ``positions``, for the bindings ``rows``, are bound to no other name; None if all are."""
        good: np.ndarray | None = None
        for name in scope.apart_from:
            if name in self.singles:
                same = candidates[name].rows[self.singles[name]][rows] == of.rows[positions]
            else:
                offsets, flat = spread(*self.groups[name], rows)
                event = np.repeat(of.rows[positions], np.diff(offsets))
                same = (
                    np.logical_or.reduceat(candidates[name].rows[flat] == event, offsets[:-1])
                    if len(rows)
                    else (np.zeros(0, bool))
                )
            good = ~same if good is None else good & ~same
        return good
