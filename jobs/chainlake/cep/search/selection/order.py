"""Matches as ranks of their events in time, and the order in which matches are published.

The key of a match is the rank of its last event, then the ranks of its other events in time order, then the
numbers of their names in that order. Keys are compared from left to right, and a key that ends comes before a longer
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Stands for no event, and sorts before every rank.
NONE = -1


@dataclass(frozen=True)
class Ranked:
    """Matches of single events.

    Args:
        ranks: shape (matches, names), the rank of the event to which each name is bound, ``NONE`` if it is not bound.
        times: shape (events,), the time of each rank, in ticks.
    """

    ranks: np.ndarray
    times: np.ndarray

    def __len__(self) -> int:
        return len(self.ranks)

    def at(self, rows: np.ndarray) -> Ranked:
        """Some of the matches."""
        return Ranked(self.ranks[rows], self.times)

    @property
    def terminators(self) -> np.ndarray:
        """The rank of each match's last event."""
        found: np.ndarray = self.ranks.max(axis=1)
        return found

    @property
    def initiators(self) -> np.ndarray:
        """The rank of each match's first event."""
        beyond = np.where(self.ranks == NONE, np.iinfo(np.int64).max, self.ranks)
        found: np.ndarray = beyond.min(axis=1)
        return found

    def in_order(self) -> np.ndarray:
        """The matches in the order in which they are published."""
        forward, names, last = self._by_time()
        columns = [last, *forward.T, *names.T]
        return np.lexsort(columns[::-1])

    def backward(self, order: np.ndarray) -> np.ndarray:
        """For each match, a number that is larger the later its events come, compared from the last one back.

        A match whose events are a prefix of a longer one's has the smaller number. Among matches with the same events,
        the one with the smaller key has the larger number.

        Args:
            order: the matches in the order in which they are published.
        """
        backward = -np.sort(-self.ranks, axis=1)
        place = np.empty(len(self), np.int64)
        place[order] = np.arange(len(self))
        columns = [*backward.T, -place]
        found = np.empty(len(self), np.int64)
        found[np.lexsort(columns[::-1])] = np.arange(len(self))
        return found

    def _by_time(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ranks and numbers of names in time order, ``NONE`` after the last; and each match's last rank."""
        beyond = np.where(self.ranks == NONE, np.iinfo(np.int64).max, self.ranks)
        names = np.argsort(beyond, axis=1, kind="stable")
        forward = np.take_along_axis(self.ranks, names, axis=1)
        last = forward.max(axis=1, initial=NONE)
        # The last event comes first in the key, so it is left out of its place.
        forward = np.where(forward == last[:, None], NONE, forward)
        return forward, np.where(np.sort(beyond, axis=1) == np.iinfo(np.int64).max, NONE, names), last
