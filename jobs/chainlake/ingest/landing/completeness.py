"""Which days of a source can be computed from: open, complete, provisional. No Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import NotRequired, TypedDict

from chainlake.days import Days
from chainlake.definitions.source import Source
from chainlake.ingest.checksum import EMPTY_CHECKSUM
from chainlake.ingest.landing.expected import LandedNames, glob_matches, missing_expected
from chainlake.ingest.landing.outcomes import days_of, is_read, unread
from chainlake.ingest.path_fields import path_fields
from chainlake.lake.records.event_days import quiet_ranges
from chainlake.lake.records.runs import FINISHED
from chainlake.schemas.ops_rows import DayStatus, EventDayRow, FileRow, RunRow

_ONE = timedelta(days=1)


class DayFigures(TypedDict):
    """What became of the raw rows of a day: how many had each fate, and the checksum of the events.

    ``rows_raw`` is how many rows there are, counted independently of the fates; if absent, it is the sum of the fates.
    """

    rows: int
    duplicates: int
    conflicts: int
    superseded: int
    rows_raw: NotRequired[int]
    checksum: str | None


class CountedDay(EventDayRow):
    """A row of ``ops.event_days``, with ``rows_raw`` for the accounting gate, which is not a column of it."""

    rows_raw: int


@dataclass(frozen=True)
class Arrived:
    """Which of the expected files are there.

    Args:
        paths: paths of the files that were read.
        lacking: days with files that were not read → the paths of these.
    """

    paths: Collection[str]
    lacking: Mapping[date, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def names(self) -> LandedNames:
        """The names of the files that were read."""
        return LandedNames(self.paths)

    @classmethod
    def of(cls, source: Source, rows: Collection[FileRow], waiting: Iterable[str]) -> Arrived:
        """From the current rows of ``ops.files`` and the paths of waiting files."""
        dated = [(row["path"], row["file_date"]) for row in unread(source.replaces, rows)]
        dated += [(path, path_fields(source, path).file_date) for path in waiting]
        lacking: dict[date, list[str]] = {}
        for path, file_date in dated:
            for day in days_of(source, path, file_date):
                lacking.setdefault(day, []).append(path)
        return cls({row["path"] for row in rows if is_read(row)}, lacking)

    def not_there(self, source: Source, day: date) -> list[str]:
        """What is not there for a day: paths of files that were not read, then globs that name none of any kind."""
        unread = sorted(self.lacking.get(day, ()))
        missing = missing_expected(source, day, self.names)
        return [*unread, *(glob for glob in missing if not any(glob_matches(glob, path) for path in unread))]


def status_of(source: Source, day: date, arrived: Arrived, passed: date, now: datetime) -> DayStatus:
    """The status of a day that has a row.

    Args:
        arrived: what was ingested so far.
        passed: the day up to which (exclusive) runs have come.
        now: the current time.
    """
    if day >= passed:
        return "open"
    if not arrived.not_there(source, day):
        return "complete"
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + _ONE
    return "provisional" if now >= end + source.lag else "open"


def passed_to(days: Days, runs: Iterable[RunRow]) -> date:
    """The end of the latest interval that a finished ingest of the source has been through, this run's included.

    The latest is taken, not this run's, so that backfills in any order end with the same rows.
    """
    ends: list[date] = [
        run["day_to"]
        for run in runs
        if run["step"] == "ingest"
        and run["phase"] == "ingest"
        and run["status"] in FINISHED
        and run["day_to"] is not None
    ]
    return max([days.end, *ends])


def day_rows(
    source: Source,
    current: Mapping[date, EventDayRow],
    touched: Mapping[date, DayFigures],
    arrived: Arrived,
    passed: date,
    now: datetime,
    events_version: int | None,
) -> list[CountedDay]:
    """The ``ops.event_days`` rows to write: touched days, days whose status changed, empty days not listed so far.

    Args:
        current: current rows by day.
        touched: counts and checksum of the days just resolved.
        arrived: what was ingested so far, including this run.
        passed: see ``passed_to``.
        events_version: current version of the events table.
    """
    rows: list[CountedDay] = []
    filled = [day for day, row in touched.items() if row["rows"]]
    filled += [day for day, row in current.items() if day not in touched and row["rows"]]
    for day in sorted(touched):
        rows.append(_row(source, day, status_of(source, day, arrived, passed, now), touched[day], events_version))
    for day, row in sorted(current.items()):
        if day in touched or not (row["status"] in ("open", "provisional") or _lost(day, row, arrived)):
            continue
        status = status_of(source, day, arrived, passed, now)
        # A day that was already computed from is not reopened because someone has made the source wait longer.
        status = "provisional" if status == "open" and row["status"] != "open" else status
        if status != row["status"]:
            rows.append(_row(source, day, status, _figures(row), row["events_version"]))
    if filled:
        # Days of a range that ingest has not passed entirely are listed, since a day without a row would be waited
        # for.
        quiet = {start: end for start, end in quiet_ranges(filled) if end <= passed}
        lacking = (day for day in arrived.lacking if min(filled) <= day < passed)
        for day in sorted({*_listed(min(filled), passed, quiet), *lacking}):
            if day not in current and day not in touched:
                rows.append(_row(source, day, status_of(source, day, arrived, passed, now), EMPTY, events_version))
    return rows


def _listed(first: date, end: date, quiet: Mapping[date, date]) -> Iterator[date]:
    """The days ``[first, end)`` except those in the ranges ``quiet``, from → to."""
    day = first
    while day < end:
        if day in quiet:
            day = quiet[day]
        else:
            yield day
            day += _ONE


def _lost(day: date, row: EventDayRow, arrived: Arrived) -> bool:
    """Whether a complete day has got a file that cannot be read; the order of arrival must not matter."""
    return row["status"] == "complete" and day in arrived.lacking


#: Counts of a day without rows.
EMPTY: DayFigures = {
    "rows": 0, "duplicates": 0, "conflicts": 0, "superseded": 0, "rows_raw": 0, "checksum": EMPTY_CHECKSUM,
}  # fmt: skip


def changing_rows(source: str, days: Iterable[date]) -> list[EventDayRow]:
    """Rows that announce a change of the events of ``days``; without a checksum, nobody computes from them."""
    return [{"source": source, "day": day, "status": "changing"} for day in sorted(days)]


def _figures(row: EventDayRow) -> DayFigures:
    """The figures of a day that was resolved before; their sum was checked then."""
    return {
        "rows": row["rows"] or 0,
        "duplicates": row["duplicates"] or 0,
        "conflicts": row["conflicts"] or 0,
        "superseded": row["superseded"] or 0,
        "checksum": row["checksum"],
    }


def _row(source: Source, day: date, status: DayStatus, figures: DayFigures, events_version: int | None) -> CountedDay:
    fates = figures["rows"] + figures["duplicates"] + figures["conflicts"] + figures["superseded"]
    return {
        "source": source.name,
        "day": day,
        "status": status,
        "rows": figures["rows"],
        "duplicates": figures["duplicates"],
        "conflicts": figures["conflicts"],
        "superseded": figures["superseded"],
        "rows_raw": figures.get("rows_raw", fates),
        "checksum": figures["checksum"],
        "events_version": events_version,
    }
