"""What a run in event order costs, measured as docs/automata.md#costs defines it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass
class Costs:
    """The costs of a run.

    Args:
        evaluations: E, edge-condition evaluations of events and sets.
        evaluations_neg: E_neg, negated events tested.
        evaluations_pre: E_pre, single members of sets tested.
        resting: I_rest, most instances that wait after an arrival, not counting initial ones.
        depth_first: I_dfs, most such instances at any moment.
        buffered: B_in, most different events in input buffers.
        referenced: B_all, most different events in input and match buffers, not counting those of complete matches.
        states: most states of trees at a time, including the first ones; 0 without trees.
    """

    evaluations: int = 0
    evaluations_neg: int = 0
    evaluations_pre: int = 0
    resting: int = 0
    depth_first: int = 0
    buffered: int = 0
    referenced: int = 0
    states: int = 0


class Meter:
    """Counts for all automata of a run together: storage that they share counts once."""

    def __init__(self) -> None:
        self.costs = Costs()
        self._instances = 0
        self._buffered: Counter[int] = Counter()
        self._bound: Counter[int] = Counter()
        self._referenced = 0
        self._states = 0

    def stored(self, row: int) -> None:
        """An event went into an input buffer."""
        self._hold(self._buffered, self._bound, row)
        self.costs.buffered = max(self.costs.buffered, len(self._buffered))

    def dropped(self, row: int) -> None:
        """An event left an input buffer."""
        self._let_go(self._buffered, self._bound, row)

    def born(self, rows: Iterable[int]) -> None:
        """An instance that binds ``rows`` began."""
        self._instances += 1
        self.costs.depth_first = max(self.costs.depth_first, self._instances)
        for row in rows:
            self.kept(row)

    def kept(self, row: int) -> None:
        """An instance keeps one more event."""
        self._hold(self._bound, self._buffered, row)

    def died(self, rows: Iterable[int]) -> None:
        """An instance that keeps ``rows`` ended."""
        self._instances -= 1
        for row in rows:
            self._let_go(self._bound, self._buffered, row)

    def state_made(self) -> None:
        """A tree got a state."""
        self._states += 1
        self.costs.states = max(self.costs.states, self._states)

    def state_freed(self) -> None:
        """A tree lost a state."""
        self._states -= 1

    def rested(self) -> None:
        """An arrival is fully processed."""
        self.costs.resting = max(self.costs.resting, self._instances)

    def _hold(self, counts: Counter[int], others: Counter[int], row: int) -> None:
        if row not in counts and row not in others:
            self._referenced += 1
            self.costs.referenced = max(self.costs.referenced, self._referenced)
        counts[row] += 1

    def _let_go(self, counts: Counter[int], others: Counter[int], row: int) -> None:
        if counts[row] > 1:
            counts[row] -= 1
            return
        del counts[row]
        if row not in others:
            self._referenced -= 1
