"""How some days of a source are resolved: which task reads what, what it found, and the change that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa

from chainlake.days import day_of
from chainlake.definitions.source import Source
from chainlake.ingest.events.corrections import (
    PAIRS,
    KeysWork,
    Superseded,
    competing,
    superseded_loads,
    superseded_pairs,
)
from chainlake.ingest.events.resolve import DayCounts, PartReport, ResolveWork, rates_of
from chainlake.ingest.events.slices import raw_batches, raw_slices
from chainlake.ingest.landing.completeness import EMPTY, DayFigures
from chainlake.ingest.landing.effective import Effective, in_order
from chainlake.ingest.staged import staged
from chainlake.lake.store.errors import Overtaken
from chainlake.lake.store.port import Change, DayFiles, Lake
from chainlake.run.ports import Ports
from chainlake.schemas.events import events_table
from chainlake.schemas.ops_rows import FileRow, RateRow
from chainlake.storage.parquet import parquet_dataset

#: How many data files a task searches for the keys of loads.
_FILES_PER_TASK = 64


@dataclass(frozen=True)
class Resolved:
    """What became of the raw rows of some days.

    Args:
        counted: each day's counts and checksum, with counts of 0 if it has no rows; ``rows_raw`` is counted
            independently of the fates.
        rates: rows of ``ops.rates``, one per day, type and key with events.
        change: how the events differ from those in the table.
        conflicts: Parquet files of the conflicting rows as quarantine rows.
    """

    counted: dict[date, DayFigures]
    rates: list[RateRow]
    change: Change
    conflicts: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of events on all days."""
        return sum(int(row["rows"]) for row in self.counted.values())


@dataclass(frozen=True)
class Resolution:
    """How days of a source are resolved.

    Args:
        source: the source, whose lock the caller holds.
        ports: the ports that read and write.
        staging: existing folder for staged files.
    """

    source: Source
    ports: Ports
    staging: str

    def of(self, files: Sequence[Effective], days: Sequence[date]) -> Resolved:
        """Find the fates of the raw rows of ``days``.

        Args:
            files: the effective files.
            days: the days, ascending.

        Raises:
            AuditFailed: an event breaks a rule of the events table.
            Overtaken: someone else changed the events in the meantime.
        """
        source, lake, table = self.source, self.ports.lake, events_table(self.source)
        counted: dict[date, DayFigures] = {day: {**EMPTY} for day in days}
        base = lake.version(table.schema, table.name)
        near = in_order(f for f in files if days and f.may_be_on(days[0], days[-1]))
        work = ResolveWork(
            source=source,
            loads=tuple(f.load_id for f in near),
            superseded=self._superseded(files, near),
            events=lake.task_folder(table),
            staging=self.staging,
            now=datetime.now(UTC),
        )
        raw, events = lake.day_files("raw", source.name, days), lake.day_files(table.schema, table.name, days, base)
        tasks = self.ports.tasks
        reports = tasks.map(work, raw_slices(source, days, raw, events, tasks.parallelism))
        change = lake.additions(
            table,
            [file for report in reports for file in report.files],
            [path for report in reports for path in report.moved],
        )
        if change.base_version != base:
            raise Overtaken.of(table)
        for day, count in raw_counts(lake, source, work.loads, days).items():
            counted[day]["rows_raw"] = count
        for day, row in _days(reports).items():
            counted[day].update(row)
        conflicts = tuple(path for report in reports for path in report.conflicts)
        rates: list[RateRow] = [
            {
                "source": source.name,
                "day": row["day"],
                "type": row["type"],
                "key": row["key"],
                "events": row["events"],
                "first_ts": row["first_ts"],
                "last_ts": row["last_ts"],
            }
            for row in rates_of(reports).to_pylist()
        ]
        return Resolved(counted, rates, change, conflicts)

    def _superseded(self, files: Sequence[Effective], near: Sequence[Effective]) -> Superseded:
        """Which rows of ``near`` other ``files`` have replaced."""
        dates = {f.file_date for f in near}
        rivals = [f for f in files if f.file_date in dates]
        if "key" not in self.source.replaces:
            return Superseded(superseded_loads(self.source, rivals))
        members = [f for several in competing(rivals).values() for f in several]
        if not members:
            return Superseded()
        # The keys that a file holds are those of all its rows, on any day.
        paths = sorted(_raw_files(self.ports.lake, self.source, members))
        work = KeysWork(self.source, tuple(f.load_id for f in members), self.staging)
        parts = [paths[at : at + _FILES_PER_TASK] for at in range(0, len(paths), _FILES_PER_TASK)]
        found = [path for several in self.ports.tasks.map(work, parts) for path in several]
        held = parquet_dataset(found) if found else PAIRS.empty_table()
        return Superseded(pairs=staged(self.staging, "beaten", superseded_pairs(held, members)))


def raw_counts(lake: Lake, source: Source, loads: Sequence[str], days: Sequence[date]) -> dict[date, int]:
    """Number of rows of ``loads`` per day, counted again in the table: what the fates must add up to."""
    return _per_day(source, loads, lake.day_files("raw", source.name, days))


def days_of_loads(lake: Lake, source: Source, rows: Iterable[FileRow]) -> set[date]:
    """The days on which loads have rows.

    Args:
        lake: the tables.
        source: the source.
        rows: the rows of ``ops.files`` that name the loads.
    """
    known = [(row["load_id"], first, last) for row in rows if (first := row["first_ts"]) and (last := row["last_ts"])]
    if not known:
        return set()
    begin, end = min(first for _, first, _ in known), max(last for _, _, last in known)
    found = lake.day_files("raw", source.name, _from_to(begin.astimezone(UTC).date(), end.astimezone(UTC).date()))
    return set(_per_day(source, sorted({load for load, _, _ in known}), found))


def _from_to(first: date, last: date) -> set[date]:
    return {first + timedelta(days=n) for n in range((last - first).days + 1)}


def _per_day(source: Source, loads: Sequence[str], files: DayFiles) -> dict[date, int]:
    """Number of rows of ``loads`` per day."""
    found: dict[date, int] = {}
    for batch in raw_batches(source, files.paths, loads, ["ts"]):
        ts = batch["ts"].cast(pa.date32(), safe=False).cast(pa.int32())
        numbers, counts = np.unique(ts.to_numpy(), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            day = day_of(number)
            found[day] = found.get(day, 0) + count
    return found


def _raw_files(lake: Lake, source: Source, files: Sequence[Effective]) -> list[str]:
    """The data files of the raw table that can hold rows of ``files``."""
    first = min((f.first for f in files if f.first is not None), default=None)
    last = max((f.last for f in files if f.last is not None), default=None)
    if first is None or last is None:
        return []
    return lake.day_files("raw", source.name, _from_to(first, last)).paths


def _days(reports: Sequence[PartReport]) -> dict[date, DayFigures]:
    """Counts and checksum of each day; several tasks may have parts of a day."""
    sums: dict[date, DayCounts] = {}
    for report in reports:
        for day, counts in report.days.items():
            sums[day] = counts.plus(sums[day]) if day in sums else counts
    return {
        day: {
            "rows": counts.rows,
            "duplicates": counts.duplicates,
            "conflicts": counts.conflicts,
            "superseded": counts.superseded,
            "checksum": counts.checksum,
        }
        for day, counts in sums.items()
    }
