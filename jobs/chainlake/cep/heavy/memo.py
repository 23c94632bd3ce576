"""The results of functions for pairs, by the numbers of the pairs' events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

#: How many pairs are remembered at a time, in about 400 MB.
MOST_PAIRS = 20_000_000


def pair_keys(ones: np.ndarray, others: np.ndarray, *, either_way: bool) -> np.ndarray:
    """One number for each pair of event numbers; the same for both orders if a pair is asked for ``either_way``."""
    if either_way:
        ones, others = np.minimum(ones, others), np.maximum(ones, others)
    found: np.ndarray = ones << 32 | others
    return found


@dataclass
class Pairs:
    """Values by key, in sorted runs; a run is merged with the one before it once it is at least half as long."""

    runs: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self.runs)

    def find(self, keys: np.ndarray, into: np.ndarray) -> np.ndarray:
        """Which of the keys are known; their values are written to the array ``into``."""
        known = np.zeros(len(keys), bool)
        for mine, values in self.runs:
            at = np.minimum(np.searchsorted(mine, keys), len(mine) - 1)
            hit = mine[at] == keys
            into[hit] = values[at[hit]]
            known |= hit
        return known

    def add(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Remember the values of new keys, given in ascending order."""
        if not len(keys):
            return
        self.runs.append((keys, values))
        while len(self.runs) > 1 and 2 * len(self.runs[-1][0]) >= len(self.runs[-2][0]):
            (one, of_one), (other, of_other) = self.runs.pop(), self.runs.pop()
            keys, values = np.concatenate([other, one]), np.concatenate([of_other, of_one])
            order = np.argsort(keys, kind="stable")
            self.runs.append((keys[order], values[order]))

    def only(self, numbers: np.ndarray) -> None:
        """Forget pairs with an event that is not among these (sorted)."""
        kept = []
        for keys, values in self.runs:
            here = _among(keys >> 32, numbers) & _among(keys & 0xFFFFFFFF, numbers)
            if here.any():
                kept.append((keys[here], values[here]))
        self.runs = kept


@dataclass
class Memo:
    """What functions gave for pairs during the run of a slice.

    Args:
        most: how many pairs are remembered at a time; beyond that, all are forgotten.
        tables: the pairs of each call, by its key.
    """

    most: int = MOST_PAIRS
    tables: dict[str, Pairs] = field(default_factory=dict)

    def table(self, called: str) -> Pairs:
        """The pairs of a call."""
        return self.tables.setdefault(called, Pairs())

    def bound(self) -> None:
        """Forget everything if there are too many pairs."""
        if sum(map(len, self.tables.values())) > self.most:
            self.tables.clear()

    def only(self, numbers: np.ndarray) -> None:
        """Forget pairs with an event that will not appear again.

        Args:
            numbers: those of the events that may appear again, ascending.
        """
        for table in self.tables.values():
            table.only(numbers)


def _among(numbers: np.ndarray, those: np.ndarray) -> np.ndarray:
    if not len(those):
        return np.zeros(len(numbers), bool)
    found: np.ndarray = those[np.minimum(np.searchsorted(those, numbers), len(those) - 1)] == numbers
    return found
