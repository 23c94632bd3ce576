"""On which UTC days periods begin and which days they reach, since matches are published by day."""

from __future__ import annotations

import numpy as np

from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Period
from chainlake.days import ALWAYS, US_PER_DAY

#: Every period of the calendar is at least twice as long.
_PROBE = US_PER_DAY // 4


def spans(period: Period, reach: int, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """When the matches of the periods that begin on some days are decided.

    Args:
        period: the kind of period.
        reach: how long after the end of a period a match of it is decided, at most, in µs.
        numbers: the days, as days since 1970-01-01, ascending.

    Returns:
        for each day, the first instant and the one after the last, in µs; both are equal where no period begins.
    """
    begin = numbers * US_PER_DAY
    if period.kind == "all":
        first = numbers == 0
        return np.where(first, ALWAYS[0], begin), np.where(first, ALWAYS[1], begin)
    if period.calendar is not None:
        starts, ends = _calendar(period, begin)
        at, behind = np.searchsorted(starts, begin), np.searchsorted(starts, begin + US_PER_DAY)
        lo, hi = starts[np.minimum(at, len(starts) - 1)], ends[behind - 1] + reach
        return np.where(behind > at, lo, begin), np.where(behind > at, hi, begin)
    step = period.step if period.kind == "hop" else period.size
    lo = period.offset - (period.offset - begin) // step * step
    last = period.offset + (begin + US_PER_DAY - 1 - period.offset) // step * step
    return np.where(last >= lo, lo, begin), np.where(last >= lo, last + period.size + reach, begin)


def owners(period: Period, reach: int, decided: np.ndarray) -> np.ndarray:
    """The days on which those periods begin that can hold matches decided on some days.

    Args:
        period, reach: as for :func:`spans`.
        decided: the days, as days since 1970-01-01, ascending.
    """
    if not len(decided) or period.kind == "all":
        return np.zeros(min(len(decided), 1), np.int64)
    # Where clocks change, a period of the calendar is a little longer.
    days = period.size // US_PER_DAY + 2 if period.calendar is None else period.calendar.days + 1
    back = days + reach // US_PER_DAY + 1
    numbers = np.arange(int(decided[0]) - back, int(decided[-1]) + 1)
    lo, hi = spans(period, reach, numbers)
    at = np.searchsorted(decided, lo // US_PER_DAY)
    first = np.append(decided, np.iinfo(np.int64).max)[at]
    found: np.ndarray = numbers[(hi > lo) & (first <= (hi - 1) // US_PER_DAY)]
    return found


def _calendar(period: Period, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The beginnings and ends of all periods that begin on some days, and of a few others."""
    probes = np.arange(int(begin[0]), int(begin[-1]) + US_PER_DAY + 2 * _PROBE, _PROBE)
    _, starts, ends = periods(period, probes, probes)
    starts, first = np.unique(starts, return_index=True)
    return starts, ends[first]
