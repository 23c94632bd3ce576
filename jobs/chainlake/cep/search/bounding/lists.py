"""The lists of a ranking that a partial match can still be in: of a range of periods, and of one key or any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Period

#: A window longer than this reaches all events.
_FAR = 1 << 60


@dataclass(frozen=True)
class PeriodRange:
    """The numbers of the periods that a match with given events can be in.

    Args:
        low: for each event, the first period that a match with it can be in.
        high: the last one.
    """

    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class DayCompetition:
    """Only matches decided on the same UTC day compete, so each period is split by the day of the decision.

    Args:
        wait: ticks from the first event to the decision; None if a match is decided with its last event.
    """

    wait: int | None


class Periods:
    """The periods of some events, numbered in time order.

    Args:
        period: the kind of period.
        window: how many ticks apart the events of a match are at most.
        ts: the times of all events, in any order.
        daily: whether and how matches compete by the day of the decision.

    Raises:
        InputError: a time has no calendar date.
    """

    def __init__(self, period: Period, window: int, ts: np.ndarray, daily: DayCompetition | None = None) -> None:
        self._period, self._window, self._daily = period, min(window, _FAR), daily
        self.starts, ends = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._first, self._many = 0, 1
        if period.kind == "hop" and len(ts):
            self._first = int(self._windows(np.array([ts.min()]))[0][0])
            last = int(self._windows(np.array([ts.max()]))[1][0])
            # If all events are between two windows, there is no period, and the placeholder stays empty.
            self._many = max(last - self._first + 1, 1)
        elif period.kind != "all":
            _, starts, stops = periods(period, ts, ts)
            self.starts, first = np.unique(starts, return_index=True)
            ends = stops[first]
            self._many = max(len(self.starts), 1)
        self._begin, self._days = np.arange(self._many + 1), np.zeros(self._many, np.int64)
        if daily is not None and len(ts):
            self._divide(daily, ts, ends)

    def __len__(self) -> int:
        return int(self._begin[-1])

    def _divide(self, daily: DayCompetition, ts: np.ndarray, ends: np.ndarray) -> None:
        """Number the days on which matches of each period can be decided."""
        period, earliest, latest = self._period, int(ts.min()), int(ts.max())
        wait, late = min(daily.wait or 0, _FAR), 0
        if daily.wait is not None:
            late = wait
        elif period.by_first:
            late = self._window
        starts = self.starts
        if period.kind == "hop":
            starts = period.offset + (np.arange(self._many) + self._first) * period.step
            ends = starts + period.size
        elif period.kind == "all":
            starts, ends = np.array([earliest]), np.array([latest + 1])
        day = period.day
        begin = np.maximum(starts, earliest) // day
        end = np.minimum(np.minimum(ends - 1, latest) + late, latest + wait) // day
        self._days = begin
        self._begin = np.concatenate([[0], np.cumsum(np.maximum(end - begin, 0) + 1)])

    def numbers(self, starts: np.ndarray, days: np.ndarray) -> np.ndarray:
        """The numbers of the periods that matches are in, by the periods' beginnings and the days of decision."""
        if self._period.kind == "hop":
            at = (starts - self._period.offset) // self._period.step - self._first
        else:
            at = np.searchsorted(self.starts, starts)
        return self._numbered(at, days)

    def of(self, ts: np.ndarray) -> PeriodRange:
        """The periods that matches with an event can be in.

        Args:
            ts: the times of the events.
        """
        low, high = self._of(ts)
        if self._daily is None:
            return PeriodRange(low, high)
        # A match is decided with its last event, or ``wait`` after its first one.
        reach = self._window if self._daily.wait is None else min(self._daily.wait, _FAR)
        day, inside = self._period.day, low <= high
        first, last = np.where(inside, low, 0), np.where(inside, high, 0)
        # An event between two windows is in no list.
        return PeriodRange(
            np.where(inside, self._numbered(first, ts // day), len(self)),
            np.where(inside, self._numbered(last, (ts + reach) // day), -1),
        )

    def _numbered(self, at: np.ndarray, days: np.ndarray) -> np.ndarray:
        """The number of each period and day; a day outside the period's counts as the first or last of them."""
        if self._daily is None:
            return at
        begin, end = self._begin[at], self._begin[at + 1]
        found: np.ndarray = np.clip(begin + days - self._days[at], begin, end - 1)
        return found

    def _of(self, ts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The periods that matches with an event can be in, whatever the days of decision."""
        if self._period.kind == "all":
            nothing = np.zeros(len(ts), np.int64)
            return nothing, nothing
        if self._period.kind == "hop":
            low, high = self._windows(ts)
            return low - self._first, high - self._first
        mine = self._at(ts)
        if self._period.by_first:
            return np.maximum(self._at(ts - self._window), 0), mine
        return mine, self._at(ts + self._window)

    def _at(self, ts: np.ndarray) -> np.ndarray:
        """The last period that begins at or before each time."""
        return np.searchsorted(self.starts, ts, "right") - 1

    def _windows(self, ts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last window [s, s + size) that hold each time."""
        period = self._period
        return (ts - period.size - period.offset) // period.step + 1, (ts - period.offset) // period.step
