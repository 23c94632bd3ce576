"""The largest value of any stretch of a column, by two looks at a table."""

from __future__ import annotations

import numpy as np

#: Bytes that a table may take; of longer columns neighbours are put together, and stretches widened to these.
ROOM = 1 << 25
#: For each length of a stretch the level of the table that has two stretches covering it.
LEVELS = np.array([0, *(n.bit_length() - 1 for n in range(1, 1 << 16))], np.int32)
#: Times between those whose neighbours are counted.
_APART = 32


class Extremes:
    """The extremes of a column.

    Args:
        values: the column; NaN is no value.
        upper: whether the largest is asked for, and not the smallest.
        longest: the most values that a stretch has.
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
        """The extremes of the stretches from ``lo`` to before ``hi``, none of them empty."""
        lo, hi = lo >> self.shift, ((hi - 1) >> self.shift) + 1
        level = LEVELS[hi - lo].astype(np.int64)
        begin = level * self.width
        found: np.ndarray = self._better(self.table[begin + lo], self.table[begin + hi - (1 << level)])
        return found


def most_within(ts: np.ndarray, ticks: int) -> int:
    """At least as many as lie within so many ticks of each other, of some ascending times."""
    if not len(ts):
        return 1
    if ticks >= int(ts[-1]) - int(ts[0]):
        return len(ts)
    # All that begin between two neighbours of these end before the second one and the ticks.
    begins = np.arange(0, len(ts), _APART)
    lasts = ts[np.minimum(begins + _APART, len(ts)) - 1]
    return int((np.searchsorted(ts, lasts + ticks, "right") - begins).max())
