"""``ops.event_days`` as readers see it, and the pinning of an events version to it."""

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

#: Days in these states may be computed.
COMPUTABLE = ("complete", "provisional")

#: A checksum that no finished day has.
CHANGING: Literal["changing"] = "changing"
#: Where matches are read in the place of events: status of a day whose matches are not published under the pattern's
#: file and engine of today.
UNMATCHED: Literal["unmatched"] = "unmatched"

#: Days after an event that are listed though they have none; the others before the next event are known to be empty.
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


def quiet_stretches(filled: Iterable[date]) -> list[tuple[date, date]]:
    """The days ``[from, to)`` without an event that are not listed one by one, but for those after the last event.

    A single row of a wrong year would make decades of days otherwise, and each definition would be judged on each.

    Args:
        filled: the days with events.
    """
    days = sorted(filled)
    pairs = ((before + QUIET_AFTER + _ONE, after) for before, after in pairwise(days) if after - before > QUIET_AFTER)
    return [(start, end) for start, end in pairs if start < end]


@dataclass(frozen=True)
class EventDays:
    """The current rows of one source.

    Args:
        source: its name.
        rows: day → row of ``ops.event_days``.
        first: first day with events, ``None`` if there is none.
        last: last day with events.
        quiet: stretches ``[from, to)`` of days between events most of which have no row: they are known to be empty.
        last_us: time of the last event, µs, as ``ops.rates`` has it; ``None`` if it has nothing of the last day.
        memo: fingerprints that were computed from these rows, kept by ``chainlake.lake.records.staleness``.
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
        """Read them, without a JVM."""
        found = cls.of(source, ops.current(home, "event_days", source=source))
        if found.last is None:
            return found
        times = ops.current_table(
            home, "rates", columns=["last_ts"], filters=[("source", "=", source), ("day", "=", found.last)]
        )["last_ts"]
        return replace(found, last_us=pc.max(times.cast(pa.int64())).as_py())

    @classmethod
    def of(cls, source: str, rows: Sequence[EventDayRow]) -> EventDays:
        """From rows that were read elsewhere."""
        filled = [row["day"] for row in rows if row["rows"]]
        first, last = min(filled, default=None), max(filled, default=None)
        return cls(source, {row["day"]: row for row in rows}, first, last, tuple(quiet_stretches(filled)))

    def status(self, day: date) -> ReadStatus | None:
        """``changing``, ``open``, ``complete``, ``provisional``, or ``None`` if no ingest has passed the day.

        A day of a quiet stretch is as the last day before it that is listed, once ingest has passed the whole stretch.
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
        """Which of some days, as days since 1970-01-01, are judged by themselves; the others are known to hold nothing.

        Args:
            numbers: the days.
            late_us: how long after the last event before a quiet stretch something can be decided, µs.
        """
        quiet = np.zeros(len(numbers), bool)
        for start, end in self.quiet:
            quiet |= (numbers >= day_number(start) - -late_us // US_PER_DAY) & (numbers < day_number(end))
        return ~quiet | np.isin(numbers, [day_number(day) for day in self.rows]) if self.quiet else ~quiet

    def events(self, days: Iterable[date]) -> int:
        """Events on the given days, as ingest counted them."""
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
        """Checksums of the days that ``[lo_us, hi_us)`` touches, in order; of all time, of those that have some."""
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
    """Days of an events table are marked as being changed, and will be until their ingest is repeated."""

    @classmethod
    def failed(cls, source: str, unfit: list[date]) -> AbandonedDays:
        """Nobody is changing these days of a source."""
        return cls._of(source, unfit, "and no ingest of it is running: the last one failed or was killed")

    @classmethod
    def waited(cls, source: str, unfit: list[date], timeout_s: float, holder: str) -> AbandonedDays:
        """Somebody is, and took longer than was waited for."""
        return cls._of(source, unfit, f"and was so for {timeout_s:.0f} s: {holder}")

    @classmethod
    def _of(cls, source: str, unfit: list[date], why: str) -> AbandonedDays:
        first, end = min(unfit), Days.one(max(unfit)).end
        days = f"{len(unfit)} day{'s' if len(unfit) > 1 else ''} from {first}"
        return cls(
            f"events.{source} is marked as being changed on {days}, {why}",
            hint=f"Repeat the ingest: run 'chainlake ingest {source} {first} {end}'.",
        )


def pin(home: Home, source: str, days_needed: Days, timeout_s: float = 600) -> Pinned:
    """Pin the events table: each needed day is final in a version that is not newer than the pinned one.

    Days that are being changed are waited for as long as somebody holds the source's lock. If nobody does, their ingest
    has failed or was killed, and waiting would change nothing.

    Args:
        home: the installation.
        source: name of the source.
        days_needed: the days to be read.
        timeout_s: wait so long for days that are being changed.

    Raises:
        AbandonedDays: nobody is changing the days, or somebody was all the time; the message names the ingest to
            repeat.
    """
    deadline = time.monotonic() + timeout_s
    purpose = f"source-{source}"
    unfit: list[date] = []
    notice = Notice(
        lambda: f"{len(unfit)} days of events.{source} from {min(unfit)}, which are changed by {holder(home, purpose)}"
    )
    abandoned = False
    while True:
        # Rows read after it can only describe it or something newer, which is seen below.
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
            # It may have come to its end between the two looks.
            abandoned = True
            continue
        if alone:
            raise AbandonedDays.failed(source, unfit)
        abandoned = False
        if time.monotonic() >= deadline:
            raise AbandonedDays.waited(source, unfit, timeout_s, holder(home, purpose))
        notice.turn()
        time.sleep(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))
