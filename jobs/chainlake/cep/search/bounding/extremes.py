"""The largest or smallest value of any range of a column, by two lookups in a sparse table."""

from __future__ import annotations

import numpy as np

#: How many bytes a table may take; in longer columns, neighbours are merged, and ranges widened to whole groups.
ROOM = 1 << 25
#: For each length of a range, the level of the table at which two entries cover it.
LEVELS = np.array([0, *(n.bit_length() - 1 for n in range(1, 1 << 16))], np.int32)
#: How many positions apart the times are from which ``most_within`` counts.
_APART = 32


class Extremes:
    """The extremes of a column.

    Args:
        values: the column; NaN does not count.
        upper: whether the largest values are asked for, not the smallest.
        longest: the most values that a range has.
    """

    def __init__(self, values: np.ndarray, upper: bool, longest: int) -> None:
        better = np.maximum if upper else np.minimum
        row = np.where(np.isnan(values), -np.inf if upper else np.inf, values)
        self.shift = 0
        while self._levels(longest) * (len(row) >> self.shift) * 8 > ROOM or longest >> self.shift >= len(LEVELS) - 2:
            self.shift += 1
        if self.shift and len(row):
            row = better.reduceat(row, np.arange(0, len(row), 1 << self.shift))
        table = np.empty((self._levels(longest), len(row)))
        table[0] = row
        for level in range(1, len(table)):
            whole = max(len(row) - (1 << level - 1), 0)
            better(table[level - 1, :whole], table[level - 1, len(row) - whole :], out=table[level, :whole])
            table[level, whole:] = table[level - 1, whole:]
        self.width = max(len(row), 1)
        self.table = table.ravel() if len(row) else np.full(1, -np.inf if upper else np.inf)
        self._better = better

    def _levels(self, longest: int) -> int:
        return max(longest >> self.shift, 1).bit_length() + 1

    def of(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """The extremes of the ranges ``[lo, hi)``, none of which is empty."""
        lo, hi = lo >> self.shift, ((hi - 1) >> self.shift) + 1
        level = LEVELS[hi - lo].astype(np.int64)
        begin = level * self.width
        found: np.ndarray = self._better(self.table[begin + lo], self.table[begin + hi - (1 << level)])
        return found


def most_within(ts: np.ndarray, ticks: int) -> int:
    """An upper bound of how many of the ascending times are within ``ticks`` of each other."""
    if not len(ts):
        return 1
    if ticks >= int(ts[-1]) - int(ts[0]):
        return len(ts)
    # A group that begins between one of these and the next ends at most ``ticks`` after the last time before the next.
    begins = np.arange(0, len(ts), _APART)
    lasts = ts[np.minimum(begins + _APART, len(ts)) - 1]
    return int((np.searchsorted(ts, lasts + ticks, "right") - begins).max())
