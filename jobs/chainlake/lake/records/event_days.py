"""``ops.event_days`` as readers see it, and how a version of the events is pinned to it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import ALWAYS, US_PER_DAY, Days, day_number, day_of_us
from chainlake.env.processes.waiting import Notice
from chainlake.errors import InfrastructureError
from chainlake.lake.delta import tables
from chainlake.lake.locks import held, holder
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.ops_rows import EventDayRow, MatchedDayRow, ReadStatus
from chainlake.words import counted

#: Days with these statuses may be computed.
COMPUTABLE = ("complete", "provisional")

#: A checksum that no finished day has.
CHANGING: Literal["changing"] = "changing"
#: Status of a day whose matches are not published with today's file of the pattern and today's engine.
UNMATCHED: Literal["unmatched"] = "unmatched"

#: How long after an event days without events are still listed; the rest, up to the next event, are known to be empty.
QUIET_AFTER = timedelta(days=366)

_POLL_SECONDS = 1.0
_ONE = timedelta(days=1)


def waiting_for(status: str) -> str:
    """What a day whose events have a status waits for, in one line."""
    if status == UNMATCHED:
        return "its matches are not published yet"
    if not status:
        return "no ingest has passed this day yet"
    return "its events are being changed" if status == CHANGING else "expected files are missing or not read"


def quiet_ranges(filled: Iterable[date]) -> list[tuple[date, date]]:
    """Ranges ``[from, to)`` of days without events that are not listed one by one; only between events.

    Otherwise a single row with a wrong year would add decades of days, on each of which each definition is judged.

    Args:
        filled: the days with events.
    """
    days = sorted(filled)
    pairs = ((before + QUIET_AFTER + _ONE, after) for before, after in pairwise(days) if after - before > QUIET_AFTER)
    return [(start, end) for start, end in pairs if start < end]


@dataclass(frozen=True)
class EventDays:
    """The current rows of ``ops.event_days`` for one source.

    Args:
        source: its name.
        rows: day → row of ``ops.event_days``.
        first: first day with events, ``None`` if there is none.
        last: last day with events.
        quiet: ranges ``[from, to)`` of days between events; they are known to be empty, and most have no row.
        last_us: time of the last event, µs, from ``ops.rates``; ``None`` if that has nothing for the last day.
        memo: what was computed from these rows, such as fingerprints, kept by ``chainlake.lake.records.staleness``.
    """

    source: str
    rows: Mapping[date, EventDayRow | MatchedDayRow]
    first: date | None
    last: date | None
    quiet: tuple[tuple[date, date], ...] = ()
    last_us: int | None = None
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, home: Home, source: str) -> EventDays:
        """Read the rows, without a JVM."""
        found = cls.of(source, ops.current(home, "event_days", source=source))
        if found.last is None:
            return found
        times = ops.current_table(
            home, "rates", columns=["last_ts"], filters=[("source", "=", source), ("day", "=", found.last)]
        )["last_ts"]
        return replace(found, last_us=pc.max(times.cast(pa.int64())).as_py())

    @classmethod
    def of(cls, source: str, rows: Sequence[EventDayRow]) -> EventDays:
        """From rows that the caller has read."""
        filled = [row["day"] for row in rows if row["rows"]]
        first, last = min(filled, default=None), max(filled, default=None)
        return cls(source, {row["day"]: row for row in rows}, first, last, tuple(quiet_ranges(filled)))

    def status(self, day: date) -> ReadStatus | None:
        """``changing``, ``open``, ``complete``, ``provisional``, or ``None`` if no ingest has passed the day.

        A day of a quiet range has the status of the last day before the range, once ingest has passed the whole
        range.
        """
        row = self.rows.get(day)
        if row is not None:
            return row["status"]
        for start, end in self.quiet:
            if start <= day < end:
                before, after = (self.rows[at]["status"] if at in self.rows else None for at in (start - _ONE, end))
                return before if before in COMPUTABLE and after in COMPUTABLE else None
        return None

    def listed(self, numbers: np.ndarray, late_us: int) -> np.ndarray:
        """Which of some days, as days since 1970-01-01, are judged one by one; the others are known to hold nothing.

        Args:
            numbers: the days.
            late_us: how long after the last event before a quiet range something can be decided, µs.
        """
        quiet = np.zeros(len(numbers), bool)
        for start, end in self.quiet:
            quiet |= (numbers >= day_number(start) - -late_us // US_PER_DAY) & (numbers < day_number(end))
        return ~quiet | np.isin(numbers, [day_number(day) for day in self.rows]) if self.quiet else ~quiet

    def events(self, days: Iterable[date]) -> int:
        """The number of events on the given days, as ingest counted them."""
        return sum(int(self.rows[day]["rows"] or 0) for day in days if day in self.rows)

    def checksum(self, day: date) -> str:
        """The day's checksum; empty for a day without events, whether it has a row or not."""
        row = self.rows.get(day)
        if row is None:
            return ""
        if row["status"] == CHANGING or row["checksum"] is None:
            return CHANGING
        return row["checksum"] if row["rows"] else ""

    def checksums(self, lo_us: int, hi_us: int) -> list[str]:
        """Checksums of the days that ``[lo_us, hi_us)`` touches, in order; for all time, only of days that have one."""
        if hi_us <= lo_us:
            return []
        if (lo_us, hi_us) == ALWAYS:
            return [f"{day} {found}" for day in sorted(self.rows) if (found := self.checksum(day))]
        last = day_of_us(hi_us - 1)
        return [self.checksum(day) for day in Days(day_of_us(lo_us), Days.one(last).end)]


@dataclass(frozen=True)
class Pinned:
    """An events version (``None`` if there is no table yet) and the day rows that describe it."""

    version: int | None
    event_days: EventDays


class AbandonedDays(InfrastructureError):
    """Days of an events table are marked as being changed, and will stay so until their ingest is repeated."""

    @classmethod
    def failed(cls, source: str, unfit: list[date]) -> AbandonedDays:
        """Nobody is changing these days of a source."""
        return cls._of(source, unfit, "and no ingest of it is running: the last one failed or was killed")

    @classmethod
    def waited(cls, source: str, unfit: list[date], timeout_s: float, holder: str) -> AbandonedDays:
        """Someone is, and took longer than was waited for."""
        return cls._of(source, unfit, f"and was so for {timeout_s:.0f} s, by {holder}")

    @classmethod
    def _of(cls, source: str, unfit: list[date], why: str) -> AbandonedDays:
        first, end = min(unfit), Days.one(max(unfit)).end
        days = f"{counted(len(unfit), 'day')} from {first}"
        return cls(
            f"events.{source} is marked as being changed on {days}, {why}",
            hint=f"Repeat the ingest: run 'chainlake ingest {source} {first} {end}'.",
        )


def pin(home: Home, source: str, days_needed: Days, timeout_s: float = 600) -> Pinned:
    """Pin a version of the events table in which each needed day is final.

    It waits for days that are being changed as long as someone holds the source's lock. If nobody does, their ingest
    has failed or was killed, and waiting would not help.

    Args:
        home: the installation.
        source: name of the source.
        days_needed: the days to be read.
        timeout_s: how many seconds to wait for days that are being changed.

    Raises:
        AbandonedDays: nobody is changing the days, or someone was the whole time; the message names the ingest to
            repeat.
    """
    deadline = time.monotonic() + timeout_s
    purpose = f"source-{source}"
    unfit: list[date] = []
    notice = Notice(
        lambda: (
            f"{counted(len(unfit), 'day')} of events.{source} from {min(unfit)}, being changed by "
            f"{holder(home, purpose)}"
        )
    )
    abandoned = False
    while True:
        # Rows that are read after the version describe it or a newer one, which the check below notices.
        version = tables.version(home, "events", source)
        event_days = EventDays.load(home, source)
        unfit = [
            day
            for day, row in event_days.rows.items()
            if day in days_needed and (row["status"] == CHANGING or (row["events_version"] or 0) > (version or 0))
        ]
        if not unfit:
            return Pinned(version, event_days)
        alone = not held(home, purpose)
        if alone and not abandoned:
            # The ingest may have finished between the two looks.
            abandoned = True
            continue
        if alone:
            raise AbandonedDays.failed(source, unfit)
        abandoned = False
        if time.monotonic() >= deadline:
            raise AbandonedDays.waited(source, unfit, timeout_s, holder(home, purpose))
        notice.turn()
        time.sleep(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))
