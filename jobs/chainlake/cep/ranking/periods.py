"""The periods to which matches belong."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.errors import UnfitTimes
from chainlake.cep.ranking.kinds import Calendar
from chainlake.cep.ranking.rule import Period
from chainlake.cep.values.arrow import int64_array, numpy_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def periods(period: Period, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The periods of matches.

    Args:
        period: the kind of period.
        first: time of the earliest event of each match, in ticks.
        last: time of the latest.

    Returns:
        for each match and period: the match's number, and the period's beginning and end (0 and 0 for all time).

    Raises:
        InputError: a time has no calendar date.
    """
    every = np.arange(len(first))
    if period.kind == "all":
        return every, np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    if period.kind == "hop":
        # Windows [s, s + size) with last - size < s <= first.
        low = (last - period.size - period.offset) // period.step + 1
        high = (first - period.offset) // period.step
        sizes = np.maximum(high - low + 1, 0)
        rows = np.repeat(every, sizes)
        ends = np.cumsum(sizes)
        number = np.arange(len(rows)) - np.repeat(ends - sizes, sizes) + low[rows]
        starts = period.offset + number * period.step
        return rows, starts, starts + period.size
    at = first if period.by_first else last
    calendar = period.calendar
    if calendar is None:
        starts = period.offset + (at - period.offset) // period.size * period.size
        return every, starts, starts + period.size
    # Where a clock goes back over midnight, the repeated part of the day before belongs to the day that has begun.
    held = _local(period, calendar, at)
    begins = sorted({*held, *map(calendar.after, held)})
    bounds = np.array([(_begin(period, day), _begin(period, calendar.after(day))) for day in begins], np.int64)
    bounds = bounds.reshape(-1, 2)
    number = np.searchsorted(bounds[:, 0], at, "right") - 1
    return every, bounds[number, 0], bounds[number, 1]


def _local(period: Period, calendar: Calendar, at: np.ndarray) -> set[date]:
    """The first days of the periods that hold some times, by the clock of the zone."""
    times = int64_array(at * (1_000_000 // period.second)).cast(pa.timestamp("us", tz=period.zone))
    # Bounds are computed up to two periods later, and a zone's clock can be a day away from UTC.
    margin = timedelta(days=3 * calendar.days + 9) // timedelta(seconds=1)
    seconds = (int(at.min()) // period.second, int(at.max()) // period.second) if len(at) else (0, 0)
    if not _FIRST + margin < seconds[0] <= seconds[1] < _LAST - margin:
        raise UnfitTimes.no_calendar(period.kind)
    days = numpy_of(pc.local_timestamp(times).cast(pa.int64())) // (86_400 * 1_000_000)
    return {calendar.begin((_EPOCH + timedelta(days=int(day))).date()) for day in np.unique(days)}


#: Seconds since 1970 of the first and the last second that have a date.
_FIRST, _LAST = (int((at.replace(tzinfo=UTC) - _EPOCH).total_seconds()) for at in (datetime.min, datetime.max))


def _begin(period: Period, day: date) -> int:
    """The tick at which a day begins by the clock of the zone; if it skips midnight, the next instant."""
    at = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(period.zone))
    return int((at.astimezone(UTC) - _EPOCH) // timedelta(seconds=1)) * period.second
