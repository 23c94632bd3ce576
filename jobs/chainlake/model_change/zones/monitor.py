"""Tells whether the mean of the nodes' vectors is inside the region; nodes in their zones are silent.

The mean of the zones' levels is never above the region's, so if every node is in its zone, the mean of the vectors is
in the region. A node that leaves its zone reports. The coordinator then polls further nodes until, facet by facet, what
some have to spare covers what others lack, and redistributes the rest. No alert is missed, and none is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chainlake.model_change.statistics.statistics import Array
from chainlake.schemas.models import ZoneKind

#: Number of rounds tested together right after a report; doubled while all nodes are silent.
_SHORT = 16

#: Gives the levels of zones for the place of a round, or None.
Designer = Callable[[int], "Array | None"]


@dataclass(frozen=True)
class Collection:
    """A round in which the coordinator collected vectors, with a result worth a row.

    Args:
        at: the round's place.
        kind: ``balanced``, ``outside`` or ``inside``.
        violators: nodes outside their zone, ascending.
        collected: all nodes whose vectors it has, in the order in which they came.
        facets: the facets that some violator is beyond.
        excess: the largest distance beyond one.
        levels: (k, F) in force afterwards.
    """

    at: int
    kind: ZoneKind
    violators: tuple[int, ...]
    collected: tuple[int, ...]
    facets: tuple[int, ...]
    excess: float
    levels: Array


@dataclass
class ZoneMonitor:
    """One monitor over time.

    Args:
        limits: (F,) the region's levels.
        levels: (k, F) of the zones; their sum is never above k times the region's.
        outside: whether the mean was outside in the last round.
    """

    limits: Array
    levels: Array
    outside: bool = False

    @classmethod
    def start(cls, limits: Array, k: int) -> ZoneMonitor:
        """The monitor of ``k`` nodes before the first round, each with the region itself as its zone."""
        return cls(limits, np.tile(limits, (k, 1)))

    def feed(self, facets: Array, returned: Designer | None = None) -> tuple[list[Collection], Array, Array]:
        """Take the next rounds.

        Args:
            facets: (n, k, F) values of the facets, finite.
            returned: gives levels designed from history for the place of a round in which the mean has come back.
                Without it, or where it gives None, all nodes get the same room above their values.

        Returns:
            the rounds worth a row, and (n,) messages up and down.
        """
        n = len(facets)
        found: list[Collection] = []
        up, down = np.zeros(n, np.int64), np.zeros(n, np.int64)
        at, size = 0, _SHORT
        while at < n:
            if not self.outside:
                loud = np.flatnonzero((facets[at : at + size] > self.levels).any(axis=(1, 2)))
                if not len(loud):
                    at, size = at + size, size * 2
                    continue
                at += int(loud[0])
            if self.outside:
                found += self._polled(at, facets[at], (up, down), returned)
            else:
                found += self._reported(at, facets[at], up, down)
            at, size = at + 1, _SHORT
        return found, up, down

    def mean_is_outside(self, facets: Array) -> bool:
        """The direct test: whether the mean of all nodes' vectors is beyond some facet, to the last bit."""
        return any(over > 0 for over in _excess(facets, np.tile(self.limits, (len(facets), 1))))

    def _polled(self, at: int, facets: Array, sent: tuple[Array, Array], returned: Designer | None) -> list[Collection]:
        """A round while the mean is outside: all nodes are asked."""
        k, (up, down) = len(facets), sent
        up[at], down[at] = k, k
        if self.mean_is_outside(facets):
            return []
        down[at] += k
        levels = None if returned is None else returned(at)
        self.outside = False
        self.levels = _shared(facets, np.tile(self.limits, (k, 1))) if levels is None else levels
        return [Collection(at, "inside", (), tuple(range(k)), (), 0.0, self.levels)]

    def _reported(self, at: int, facets: Array, up: Array, down: Array) -> list[Collection]:
        """A round in which some node reports: poll others in ascending order until what some have to spare covers
        what others lack."""
        k = len(facets)
        beyond = facets > self.levels
        violators = np.flatnonzero(beyond.any(axis=1))
        crossed = (tuple(np.flatnonzero(beyond.any(axis=0)).tolist()), float((facets - self.levels).max()))
        order = np.concatenate([violators, np.setdiff1d(np.arange(k), violators)])
        collected = order[: self._enough(facets, order, len(violators))]
        outside = len(collected) == k and self.mean_is_outside(facets)
        up[at], down[at] = len(collected), len(collected) - len(violators)
        self.outside = outside
        if not outside:
            down[at] += len(collected)
            # The sum over all nodes is known: so what levels had lost to rounding is regained.
            held = np.tile(self.limits, (k, 1)) if len(collected) == k else self.levels[collected]
            self.levels = self.levels.copy()
            self.levels[collected] = _shared(facets[collected], held)
        kind: ZoneKind = "outside" if outside else "balanced"
        return [Collection(at, kind, tuple(violators.tolist()), tuple(collected.tolist()), *crossed, self.levels)]

    def _enough(self, facets: Array, order: Array, least: int) -> int:
        """How many nodes, in order, must be collected until what some have to spare covers what others lack."""
        spare = self.levels[order] - facets[order]
        near = 1e-9 * (np.abs(self.levels[order]) + np.abs(facets[order]))
        likely = np.all(np.cumsum(spare, axis=0) >= -np.cumsum(near, axis=0), axis=1)
        for count in np.flatnonzero(likely[least - 1 : -1]) + least:
            # Sums of doubles say what is likely; exact sums decide.
            mine = order[:count]
            if all(over <= 0 for over in _excess(facets[mine], self.levels[mine])):
                return int(count)
        return len(order)


def _excess(facets: Array, levels: Array) -> list[float]:
    """By how much the sum of the facets' values exceeds the sum of the levels, facet by facet, rounded once."""
    return [math.fsum([*facets[:, f].tolist(), *(-levels[:, f]).tolist()]) for f in range(facets.shape[1])]


def _shared(facets: Array, held: Array) -> Array:
    """Levels with the same room above every node's values, and with a sum no larger than of those held before."""
    room = -np.array(_excess(facets, held)) / len(facets)
    levels = facets + room
    for f, over in enumerate(_excess(levels, held)):
        # Next to a far-off value, a level's rounding can outweigh everything else; if the sum rose, silence would no
        # longer prove anything. A sum that is slightly low costs a message, and lasts until all nodes are collected.
        while over > 0:
            levels[0, f] = np.nextafter(levels[0, f] - over, -np.inf)
            over = math.fsum([*levels[:, f].tolist(), *(-held[:, f]).tolist()])
    return levels
