"""The days of a pattern's published matches in the form of days of events: what episodes and rankings are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np

from chainlake.days import ALWAYS, Days, day_of, day_of_us
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.event_days import COMPUTABLE, UNMATCHED, EventDays
from chainlake.lake.records.intervals import Intervals
from chainlake.schemas.ops_rows import MatchedDayRow, ReadStatus


def matched_days(pattern: Definition, events: EventDays, wanted: np.ndarray, intervals: Intervals) -> EventDays:
    """The days of the published matches, to be used in place of the days of events.

    A day is complete if its matches were published with today's file and engine, even if they are stale by now: when
    they are published again, the day's checksum tells whether it matters.

    Args:
        pattern: the pattern.
        events: days of its source.
        wanted: its days on which a match can be decided, as days since 1970-01-01.
        intervals: the current rows of ``ops.intervals``.
    """
    rows: dict[date, MatchedDayRow] = {
        # On days of events that are not in ``wanted``, no match can be decided.
        day: {"source": events.source, "day": day, "status": row["status"], "rows": 0, "checksum": ""}
        for day, row in events.rows.items()
    }
    for number in wanted.tolist():
        rows[day_of(number)] = {
            "source": events.source,
            "day": day_of(number),
            "status": UNMATCHED,
            "rows": None,
            "checksum": None,
        }
    part, column = intervals.of(pattern.name), intervals.columns
    for at, number in enumerate(intervals.numbers[part].tolist(), part.start):
        live = (
            column["status"][at] == "done"
            and column["definition_hash"][at] == pattern.definition_hash
            and column["engine_version"][at] == pattern.engine_version
            and column["table_name"][at] == pattern.table_name
        )
        day = day_of(number)
        status = events.status(day)
        rows[day] = {
            "source": events.source,
            "day": day,
            "status": ("provisional" if status == "provisional" else "complete") if live else UNMATCHED,
            "rows": column["rows"][at] if live else None,
            "checksum": column["rows_checksum"][at] if live else None,
        }
    return EventDays(events.source, rows, events.first, events.last, events.quiet, events.last_us)


@dataclass(frozen=True)
class PeriodDays(EventDays):
    """The days of a ranking: each stands for the periods that begin on it.

    A day can be computed as soon as the matches of one of the days that its periods reach are published, and stays
    provisional until those of all of them are.

    Args:
        reach: day → when the matches of its periods are decided, ``[lo, hi)`` µs.
    """

    reach: Callable[[date], tuple[int, int]] = lambda day: (0, 0)

    @classmethod
    def over(cls, matched: EventDays, reach: Callable[[date], tuple[int, int]]) -> PeriodDays:
        """From the days of the matches and the reach of their periods."""
        return cls(
            matched.source, matched.rows, matched.first, matched.last, matched.quiet, matched.last_us, reach=reach
        )

    def published(self, day: date) -> bool:
        """Whether the matches that are decided on a day are published."""
        return super().status(day) in COMPUTABLE

    def status(self, day: date) -> ReadStatus | None:
        """``complete``, ``provisional``, or :data:`UNMATCHED`."""
        found = {super(PeriodDays, self).status(one) for one in self.reached(day)}
        if found and not found.intersection(COMPUTABLE):
            return UNMATCHED
        return "complete" if found <= {"complete"} else "provisional"

    def reached(self, day: date) -> list[date]:
        """The days, from the first event on, on which matches of the periods that begin on ``day`` are decided."""
        lo, hi = self.reach(day)
        if self.first is None or hi <= lo:
            return []
        if (lo, hi) == ALWAYS:
            return sorted(one for one in self.rows if one >= self.first)
        start, end = max(day_of_us(lo), self.first), Days.one(day_of_us(hi - 1)).end
        return list(Days(start, end)) if start < end else []
