"""How many matches each day has."""

from __future__ import annotations

import numpy as np

from chainlake.cep.errors import TooManyMatches
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.found.batch import MatchBatch

#: If a batch spans no more days than this, its matches are counted day by day.
_DAYS_ONE_BY_ONE = 8


def count_days(pattern: Pattern, batch: MatchBatch, per_day: dict[int, int]) -> None:
    """Add the matches of a batch to the counts of their days.

    Args:
        pattern: the pattern.
        batch: some of its matches.
        per_day: the count of each UTC day, which is updated.

    Raises:
        LimitExceeded: a day has more matches than the front matter allows.
    """
    limit = pattern.limits["matches_per_day"]
    ticks_per_day = 86_400 * (1_000_000 if pattern.strict else 1)
    first, last = _days(batch.within, ticks_per_day)
    if first != last:
        # The matches' own times are looked at only if the bounds of their decision times span several days.
        first, last = _days((batch.decision_us.min(), batch.decision_us.max()), ticks_per_day)
    if first == last:
        counted = [(first, batch.n)]
    elif last - first < _DAYS_ONE_BY_ONE:
        # A comparison per day is quicker than dividing every time, let alone sorting them.
        before = [0, *(np.count_nonzero(batch.decision_us < d * ticks_per_day) for d in range(first + 1, last + 1))]
        counted = [(first + i, n) for i, n in enumerate(np.diff([*before, batch.n]).tolist()) if n]
    else:
        days, counts = np.unique(batch.decision_us // ticks_per_day, return_counts=True)
        counted = list(zip(days.tolist(), counts.tolist(), strict=True))
    for day, count in counted:
        per_day[day] = per_day.get(day, 0) + count
        if per_day[day] > limit:
            raise TooManyMatches.of(pattern.name, limit, np.datetime64(day, "D"), pattern.file)


def _days(within: tuple[int, int], ticks_per_day: int) -> tuple[int, int]:
    """The days of the two ends of a span of time."""
    return int(within[0]) // ticks_per_day, int(within[1]) // ticks_per_day
