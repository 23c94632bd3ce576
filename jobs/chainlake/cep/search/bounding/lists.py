"""In which lists of a ranking a partial match can still end: those of a stretch of periods, and of one key or any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Period


@dataclass(frozen=True)
class Stretch:
    """The periods that a match with some events can be in, by their numbers.

    Args:
        low: of each event, the first period that a match with it can be in.
        high: the last one.
    """

    low: np.ndarray
    high: np.ndarray


class Periods:
    """The periods of some events, numbered in the order of time.

    Args:
        period: what kind of.
        window: ticks that the events of a match are apart at most.
        ts: the times of all events, in any order.

    Raises:
        InputError: a time of which there is no calendar date.
    """

    def __init__(self, period: Period, window: int, ts: np.ndarray) -> None:
        self._period, self._window = period, window
        self.starts = np.zeros(1, np.int64)
        self._first, self._many = 0, 1
        if period.kind == "hop" and len(ts):
            self._first = int(self._windows(np.array([ts.min()]))[0][0])
            last = int(self._windows(np.array([ts.max()]))[1][0])
            self._many = last - self._first + 1
        elif period.kind != "all":
            self.starts = np.unique(periods(period, ts, ts)[1])

    def __len__(self) -> int:
        return self._many if self._period.kind == "hop" else max(len(self.starts), 1)

    def numbers(self, starts: np.ndarray) -> np.ndarray:
        """The numbers of periods that matches are in, by their begins."""
        if self._period.kind == "hop":
            found: np.ndarray = (starts - self._period.offset) // self._period.step - self._first
            return found
        return np.searchsorted(self.starts, starts)

    def of(self, ts: np.ndarray) -> Stretch:
        """The periods that matches with an event can be in.

        Args:
            ts: the times of the events.
        """
        if self._period.kind == "all":
            nothing = np.zeros(len(ts), np.int64)
            return Stretch(nothing, nothing)
        if self._period.kind == "hop":
            low, high = self._windows(ts)
            return Stretch(low - self._first, high - self._first)
        mine, reach = self._at(ts), min(self._window, 1 << 60)
        if self._period.by_first:
            return Stretch(np.maximum(self._at(ts - reach), 0), mine)
        return Stretch(mine, self._at(ts + reach))

    def _at(self, ts: np.ndarray) -> np.ndarray:
        """The last period that begins no later."""
        return np.searchsorted(self.starts, ts, "right") - 1

    def _windows(self, ts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The windows [s, s + size) that hold a time: the first and the last one."""
        period = self._period
        return (ts - period.size - period.offset) // period.step + 1, (ts - period.offset) // period.step
