"""Days of definitions whose file is gone or cannot be read; they are shown as they were last recorded."""

from __future__ import annotations

import numpy as np

from chainlake.days import Days, day_number
from chainlake.lake.records.intervals import Intervals
from chainlake.lake.records.staleness import Judged

UNREADABLE = "its file cannot be read"


def gone(name: str) -> str:
    """What is said about a definition without a file; episodes and rankings end with their pattern."""
    kind, _, bare = name.partition("/")
    return f"its file is gone: 'chainlake retire {name if kind == 'model' else f'pattern/{bare}'}' ends it"


class Recorded(Judged):
    """The days of one such definition; none of them is to do.

    Args:
        name: ``pattern/NAME`` or ``model/NAME``.
        why: why it is not judged.
        intervals: current rows, some of which are the definition's.
        days: only these days; all if None.
    """

    unjudged = True

    def __init__(self, name: str, why: str, intervals: Intervals, days: Days | None) -> None:
        self.name = name
        part = intervals.of(name)
        at = np.arange(part.start, part.stop)
        numbers = intervals.numbers[part]
        if days is not None:
            inside = (numbers >= day_number(days.start)) & (numbers < day_number(days.end))
            at, numbers = at[inside], numbers[inside]
        self.numbers = numbers
        self.ready = np.zeros(len(at), dtype=bool)
        self.provisional = np.zeros(len(at), dtype=bool)
        recorded = intervals.columns["status"][at].astype(str)
        self.state = np.where(recorded == "publishing", "stale", recorded)
        self._at = at
        self._intervals = intervals
        self.reason = why

    def why(self, position: int) -> str:
        """Why the day is not judged, and the reason that was recorded for it."""
        recorded = self._intervals.columns["reason"][self._at[position]]
        if self.state[position] == "retired":
            return str(recorded)
        return f"{self.reason}; {recorded}" if recorded else self.reason

    def alike(self, positions: np.ndarray) -> np.ndarray:
        """For each position, whether its day comes right after the one before, with the same state and reason."""
        whys = np.array([self.why(at) for at in positions.tolist()], dtype=object)
        same: np.ndarray = np.diff(self.numbers[positions], prepend=-1) == 1
        same[1:] &= (whys[1:] == whys[:-1]) & (self.state[positions[1:]] == self.state[positions[:-1]])
        same[:1] = False
        return same
