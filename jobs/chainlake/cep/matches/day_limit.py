"""The limit on matches per day, which does not depend on where, or in how many pieces, they are found."""

from __future__ import annotations

import numpy as np

from chainlake.cep.errors import TooManyMatches
from chainlake.cep.pattern import Pattern


class DayLimit:
    """Counts the matches of a pattern per UTC day of their decision.

    Args:
        pattern: its ``limits`` hold ``matches_per_day``.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._counts: dict[int, int] = {}

    def add(self, decision: np.ndarray) -> None:
        """Count matches by their decision times, in ticks.

        Raises:
            LimitExceeded: a day has more than the limit.
        """
        ticks_per_day = 86_400 * (1_000_000 if self._pattern.strict else 1)
        days, counts = np.unique(decision // ticks_per_day, return_counts=True)
        for day, count in zip(days.tolist(), counts.tolist(), strict=True):
            self._counts[day] = self._counts.get(day, 0) + count
            check_day(self._pattern, np.datetime64(day, "D"), self._counts[day])


def check_day(pattern: Pattern, day: object, matches: int) -> None:
    """Compare the number of matches of a day with the limit.

    Raises:
        LimitExceeded: there are more.
    """
    limit = pattern.limits["matches_per_day"]
    if matches > limit:
        raise TooManyMatches.of(pattern.name, limit, day, pattern.file)
