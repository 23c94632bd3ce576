"""Some days of a source resolved: who reads what, what came of it, and the commit of what differs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from chainlake.definitions.source import Source
from chainlake.errors import InfrastructureError
from chainlake.ingest.events.corrections import PAIRS, Beaten, KeysWork, beaten_loads, beaten_pairs, competing
from chainlake.ingest.events.resolve import PartReport, ResolveWork, rates_of
from chainlake.ingest.events.stretches import stretches
from chainlake.ingest.landing.completeness import EMPTY
from chainlake.ingest.landing.effective import Effective, in_order
from chainlake.ingest.staged import staged
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.reader import open_table
from chainlake.paths import Home
from chainlake.run.tasks import Tasks

_EPOCH = date(1970, 1, 1)
#: Data files that a task looks through for the keys of loads.
_FILES_PER_TASK = 64


@dataclass(frozen=True)
class Resolved:
    """What became of the raw rows of some days.

    Args:
        counted: each day's counts and checksum, 0 without rows; ``rows_raw`` is counted apart from the fates.
        rates: per day, type and key with events ``events``, ``first_ts`` and ``last_ts``.
        files: data files of the events to add, not committed yet.
        moved: Parquet files of the events to change and to withdraw, with ``chainlake.ingest.events.resolve.OP``.
        n_moved: how many they are.
        conflicts: Parquet files of the conflicting rows as quarantine rows.
        base_version: the version of the events table from which the events differ so.
    """

    counted: dict[date, dict[str, Any]]
    rates: list[dict[str, Any]]
    files: tuple[DataFile, ...]
    moved: tuple[str, ...]
    n_moved: int
    conflicts: tuple[str, ...]
    base_version: int

    @property
    def rows(self) -> int:
        """Events of all days."""
        return sum(int(row["rows"]) for row in self.counted.values())


@dataclass(frozen=True)
class Resolution:
    """How days of a source are resolved.

    Args:
        home: the installation.
        source: the source, whose lock is held.
        tasks: who reads and writes.
        staging: folder for what is staged, which exists.
    """

    home: Home
    source: Source
    tasks: Tasks
    staging: str

    def of(self, files: Sequence[Effective], days: Sequence[date]) -> Resolved:
        """Find the fates of the raw rows of ``days``.

        Args:
            files: the effective files.
            days: in order.

        Raises:
            AuditFailed: an event breaks a rule of the events table.
        """
        home, source = self.home, self.source
        counted: dict[date, dict[str, Any]] = {day: {**EMPTY} for day in days}
        base = tables.version(home, "events", source.name)
        if base is None:
            raise InfrastructureError(f"the table events.{source.name} is gone", hint="Run this again.")
        near = in_order(f for f in files if days and f.may_be_on(days[0], days[-1]))
        work = ResolveWork(
            source=source,
            loads=tuple(f.load_id for f in near),
            beaten=self._beaten(files, near),
            events=_folder(home, "events", source),
            staging=self.staging,
            now=datetime.now(UTC),
        )
        reports = self.tasks.map(work, stretches(home, source, days, base))
        for day, count in raw_counts(home, source, work.loads, days).items():
            counted[day]["rows_raw"] = count
        for day, row in _days(reports).items():
            counted[day] |= row
        return Resolved(
            counted=counted,
            rates=rates_of(reports).to_pylist(),
            files=tuple(file for report in reports for file in report.files),
            moved=tuple(path for report in reports for path in report.moved),
            n_moved=sum(report.n_moved for report in reports),
            conflicts=tuple(path for report in reports for path in report.conflicts),
            base_version=base,
        )

    def _beaten(self, files: Sequence[Effective], near: Sequence[Effective]) -> Beaten:
        """What of the rows of ``near`` other ``files`` have replaced."""
        dates = {f.file_date for f in near}
        rivals = [f for f in files if f.file_date in dates]
        if "key" not in self.source.replaces:
            return Beaten(beaten_loads(self.source, rivals))
        members = [f for several in competing(rivals).values() for f in several]
        if not members:
            return Beaten()
        # Which keys a file holds is known from all its rows, on whatever day they lie.
        paths = _raw_files(self.home, self.source, members)
        work = KeysWork(self.source, tuple(f.load_id for f in members), self.staging)
        parts = [paths[at : at + _FILES_PER_TASK] for at in range(0, len(paths), _FILES_PER_TASK)]
        found = [path for several in self.tasks.map(work, parts) for path in several]
        held = ds.dataset(found, format="parquet") if found else PAIRS.empty_table()
        return Beaten(pairs=staged(self.staging, "beaten", beaten_pairs(held, members)))


def raw_counts(home: Home, source: Source, loads: Sequence[str], days: Sequence[date]) -> dict[date, int]:
    """Delivered rows of loads per day: what the fates must add up to.

    They are counted from the table, and not from what the tasks were given to read.
    """
    wanted = ds.field("event_date").isin(pa.array(days, pa.date32()))
    return _per_day(home, source, loads, wanted)


def days_of_loads(home: Home, source: Source, rows: Iterable[dict[str, Any]]) -> set[date]:
    """The days on which loads have rows.

    Args:
        home: the installation.
        source: the source.
        rows: the rows of ``ops.files`` that name the loads.
    """
    known = [row for row in rows if row["first_ts"] is not None]
    if not known:
        return set()
    first = min(row["first_ts"] for row in known).astimezone(UTC).date()
    last = max(row["last_ts"] for row in known).astimezone(UTC).date()
    at = ds.field("event_date")
    wanted = (at >= pa.scalar(first, pa.date32())) & (at <= pa.scalar(last, pa.date32()))
    return set(_per_day(home, source, sorted({row["load_id"] for row in known}), wanted))


def _per_day(home: Home, source: Source, loads: Sequence[str], wanted: ds.Expression) -> dict[date, int]:
    """Rows of ``loads`` per day, of the days that are ``wanted``."""
    wanted &= ds.field("load_id").isin(pa.array(loads, pa.string()))
    rows = open_table(home, "raw", source.name).to_pyarrow_dataset()
    found: dict[date, int] = {}
    for batch in rows.to_batches(columns=["event_date"], filter=wanted):
        numbers, counts = np.unique(batch.column(0).cast(pa.int32()).to_numpy(), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            day = _EPOCH + timedelta(days=number)
            found[day] = found.get(day, 0) + count
    return found


def _raw_files(home: Home, source: Source, files: Sequence[Effective]) -> list[str]:
    """The data files of raw that can hold rows of ``files``."""
    first = min((f.first for f in files if f.first is not None), default=None)
    last = max((f.last for f in files if f.last is not None), default=None)
    if first is None or last is None:
        return []
    days = {first + timedelta(days=n) for n in range((last - first).days + 1)}
    listed = tables.counted_files(home, "raw", source.name, days, None)
    return sorted(os.path.abspath(path) for _, path, _ in listed)


def _days(reports: Sequence[PartReport]) -> dict[date, dict[str, Any]]:
    """Counts and checksum of each day; a day may be of several tasks."""
    sums: dict[date, Any] = {}
    for report in reports:
        for day, counts in report.days.items():
            sums[day] = counts.plus(sums[day]) if day in sums else counts
    names = ("rows", "duplicates", "conflicts", "superseded", "checksum")
    return {day: {name: getattr(counts, name) for name in names} for day, counts in sums.items()}


def _folder(home: Home, schema: str, source: Source) -> str:
    """A table's folder; tasks may run in another one than this process."""
    return os.path.abspath(home.table(schema, source.name))
