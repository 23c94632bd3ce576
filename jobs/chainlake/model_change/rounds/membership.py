"""Which nodes take part in which round: a node leaves on its day, and joins once it has its own full window.

No node counts without a full window: one that joins waits until its last W rounds are complete, and until then the
others continue without it. A change of the node set forces a synchronisation (docs/monitors.md#round-by-round).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.model_change.statistics.statistics import Array


@dataclass(frozen=True)
class Switch:
    """A change of the node set at a round.

    Args:
        kept: for every node of the new set, its place in the old one; -1 for a node that joins.
        x, y: (W - 1, joiners, m) and (W - 1, joiners) rows of the joining nodes before the round.
        gap: (W - 1,) for each of these rows, the rounds since the row before.
    """

    kept: Array
    x: Array
    y: Array
    gap: Array


@dataclass(frozen=True)
class Segment:
    """Consecutive usable rounds with one node set.

    Args:
        rounds: places of these rounds.
        nodes: places of the nodes that take part.
        gap: rounds since the usable round before; 1 where none is missing.
        anew: whether the window starts again because no earlier node is left.
        switch: what changed at the first round; a segment with a switch is one round long.
    """

    rounds: Array
    nodes: Array
    gap: Array
    anew: bool
    switch: Switch | None


@dataclass
class Membership:
    """The node set, from day to day.

    Args:
        nodes: places of the nodes of the last usable round; empty before the first one.
        x, y, gap: while some node waits, the last W - 1 usable rounds of all nodes; NaN where a node was not complete.
        last_used: start of the last usable round, microseconds.
    """

    nodes: Array
    x: Array
    y: Array
    gap: Array
    last_used: int | None = None

    @classmethod
    def start(cls, k: int, m: int) -> Membership:
        """The start, with nothing known of the ``k`` nodes that ever take part in a model of ``m`` coefficients."""
        return cls(np.zeros(0, np.int64), np.zeros((0, k, m)), np.zeros((0, k)), np.zeros(0, np.int64))

    def forget(self) -> None:
        """Start again after a session gap: the next usable round begins with the nodes that the model names then."""
        self.nodes = self.nodes[:0]
        self.x, self.y, self.gap = self.x[:0], self.y[:0], self.gap[:0]

    def split(
        self, ts: Array, x: Array, y: Array, ok: Array, declared: Array, *, window: int, round_us: int
    ) -> list[Segment]:
        """Divide rounds into segments with one node set each.

        Args:
            ts: (n,) starts of the rounds, microseconds.
            x, y: (n, K, m), (n, K) values of all nodes that ever take part.
            ok: (n, K) whether a node's values are complete.
            declared: (n, K) whether the model names the node at that time.
            window: W.
            round_us: length of a round, microseconds.
        """
        ok = ok & declared
        found = []
        cuts = (np.flatnonzero((declared[1:] != declared[:-1]).any(axis=1)) + 1).tolist()
        for lo, hi in zip([0, *cuts], [*cuts, len(ts)], strict=True):
            at = lo
            while at < hi:
                here = declared[at]
                active = np.zeros_like(here)
                active[self.nodes] = here[self.nodes]
                anew = not active.any()
                if anew:
                    active = here
                rounds = at + np.flatnonzero(ok[at:hi][:, active].all(axis=1))
                if not (len(rounds) and active.any()):
                    break
                before = int(ts[rounds[0]]) - round_us if self.last_used is None else self.last_used
                gap = np.diff(ts[rounds], prepend=before) // round_us
                segment = self._segment(ok, rounds, gap, active, here, anew, window)
                self._take(segment, ts, x, y, ok, here, window)
                found.append(segment)
                at = int(segment.rounds[-1]) + 1
        return found

    def _segment(
        self, ok: Array, rounds: Array, gap: Array, active: Array, here: Array, anew: bool, window: int
    ) -> Segment:
        if anew:
            return Segment(rounds, np.flatnonzero(active), gap, len(self.nodes) > 0, None)
        ripe = self._ripe(ok[rounds], here & ~active, window)
        joins = np.flatnonzero(ripe.any(axis=1))
        n = len(rounds)
        if len(joins) and joins[0] == 0:
            active, n = active | ripe[0], 1
        elif len(joins):
            n = int(joins[0])
        nodes = np.flatnonzero(active)
        switch = None
        if not np.array_equal(nodes, self.nodes):
            n, switch = 1, self._switch(nodes)
        return Segment(rounds[:n], nodes, gap[:n], False, switch)

    def _ripe(self, ok: Array, waiting: Array, window: int) -> Array:
        """(n, K): the waiting nodes whose last ``window`` rounds are complete."""
        if not waiting.any():
            return np.zeros(ok.shape, dtype=bool)
        known = np.concatenate([~np.isnan(self.y), ok])
        place = np.arange(1, len(known) + 1)[:, None]
        run = place - np.maximum.accumulate(np.where(known, 0, place), axis=0)
        result: Array = (run[len(self.y) :] >= window) & waiting
        return result

    def _switch(self, nodes: Array) -> Switch:
        old = {int(node): place for place, node in enumerate(self.nodes)}
        kept = np.array([old.get(int(node), -1) for node in nodes], dtype=np.int64)
        new = nodes[kept < 0]
        return Switch(kept, self.x[:, new], self.y[:, new], self.gap)

    def _take(self, segment: Segment, ts: Array, x: Array, y: Array, ok: Array, here: Array, window: int) -> None:
        rows = segment.rounds
        self.nodes, self.last_used = segment.nodes, int(ts[rows[-1]])
        waiting = here.copy()
        waiting[segment.nodes] = False
        if not waiting.any():
            self.x, self.y, self.gap = self.x[:0], self.y[:0], self.gap[:0]
            return
        known = ok[rows]
        rows_x, rows_y = np.where(known[:, :, None], x[rows], np.nan), np.where(known, y[rows], np.nan)
        past = slice(0, 0) if segment.anew else slice(None)
        self.x = np.concatenate([self.x[past], rows_x])
        self.y = np.concatenate([self.y[past], rows_y])
        self.gap = np.concatenate([self.gap[past], segment.gap])
        keep = max(len(self.y) - (window - 1), 0)
        self.x, self.y, self.gap = self.x[keep:], self.y[keep:], self.gap[keep:]
