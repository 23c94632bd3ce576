"""The times at which a generated day has events, in UTC and as local time in the files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from chainlake.days import instant, us_of

_SECOND = 1_000_000


@dataclass(frozen=True)
class Slots:
    """The equidistant times of one local day.

    Args:
        day: the local date, as in the file's name.
        utc: microseconds since the epoch, ascending, int64 of shape (T,).
        local: the same times as the files write them (local time without an offset); a day on which clocks are set back
            repeats an hour, and one on which they are set forward lacks one.
        index: number of the slot since the epoch, int64 of shape (T,), continuous over consecutive days.
    """

    day: date
    utc: np.ndarray
    local: list[str]
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.utc)


def slots_of(day: date, zone: str, step_s: int, time_format: str, first_hour: int = 0, last_hour: int = 24) -> Slots:
    """The slots of a local day.

    Args:
        day: local date.
        zone: IANA name of the source's time zone.
        step_s: seconds between two slots.
        time_format: strftime format of the files.
        first_hour, last_hour: the local hours between which there are slots, ``[first, last)``.
    """
    info = ZoneInfo(zone)
    begin = us_of(datetime.combine(day, time(first_hour), info))
    end_day, end_hour = (day + timedelta(days=1), 0) if last_hour == 24 else (day, last_hour)
    end = us_of(datetime.combine(end_day, time(end_hour), info))
    utc = np.arange(begin, end, step_s * _SECOND, dtype=np.int64)
    local = [instant(int(us)).astimezone(info).strftime(time_format) for us in utc]
    if last_hour - first_hour == 24:
        index = utc // (step_s * _SECOND)
    else:
        # The night is cut out, so that prices continue in the morning where they stopped.
        index = np.int64(day.toordinal()) * len(utc) + np.arange(len(utc), dtype=np.int64)
    return Slots(day, utc, local, index)
