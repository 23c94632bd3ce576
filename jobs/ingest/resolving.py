"""Resolving some days and writing their events, by Spark or by tasks that need none of it: the rows are the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from jobs.days import day_start_us
from jobs.ingest import by_tasks, resolve
from jobs.ingest.completeness import EMPTY
from jobs.ingest.resolve import Effective
from jobs.ingest.stretches import stretches
from jobs.ingest.writing import rows_held, write_difference
from jobs.lake import tables
from jobs.lake.data_files import DataFile, tasks_write
from jobs.lake.difference import Applied, apply_files
from jobs.paths import Home
from jobs.sources import Source
from schemas.events import events_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Up to so many raw rows, starting tasks for them costs more than Spark's way.
FEW_ROWS = 50_000

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Resolved:
    """What became of the raw rows of some days.

    Args:
        frame: all of them with their fates; if ``files`` is given the conflicting ones only.
        counted: each day's counts and checksum, 0 without rows; ``rows_raw`` is counted apart from the fates.
        rates: per day, type and key with events ``events``, ``first_ts`` and ``last_ts``.
        files: data files that hold the events, not yet committed; ``None`` if the events are in ``frame``.
        base_version: version of the events table in which ``files`` have nothing to replace.
    """

    frame: DataFrame
    counted: dict[date, dict[str, Any]]
    rates: list[dict[str, Any]]
    files: list[DataFile] | None
    base_version: int | None

    @property
    def rows(self) -> int:
        """Events of all days."""
        return sum(int(row["rows"]) for row in self.counted.values())


def resolve_days(
    spark: SparkSession, home: Home, source: Source, files: Sequence[Effective], days: Sequence[date], stack: ExitStack
) -> Resolved:
    """Find the fates of the raw rows of ``days``.

    Args:
        spark: the session.
        home: the installation.
        source: the source, whose lock is held.
        files: the effective files.
        days: in order.
        stack: lets go of what Spark keeps.

    Raises:
        AuditFailed: an event breaks a rule of the events table.
    """
    from pyspark import StorageLevel

    counted: dict[date, dict[str, Any]] = {day: {**EMPTY} for day in days}
    base = tables.version(home, "events", source.name)
    parts = None
    if tasks_write(home.lake) and not resolve.corrects_keys(source, files):
        if not rows_held(home, events_table(source), _of_days(days)):
            parts = stretches(home, source, days, FEW_ROWS)
    if parts is not None:
        written = by_tasks.write_events(spark, home, source, parts, files)
        stack.callback(written.frame.unpersist)
        delivered = _raw_counts(home, source, files, days)
        found, rates = written.days, written.rates
        resolved = Resolved(written.frame, counted, rates, written.files, base)
    else:
        rows = tables.read_days(spark, home, "raw", source.name, days)

        def raw() -> DataFrame:
            return tables.read(spark, home, "raw", source.name)

        frame = resolve.resolve(spark, source, raw, rows, list(files)).persist(StorageLevel.MEMORY_AND_DISK)
        stack.callback(frame.unpersist)
        delivered = resolve.raw_counts(rows, list(files))
        found, rates = resolve.summary(source, frame)
        resolved = Resolved(frame, counted, rates, None, base)
    for day, count in delivered.items():
        counted[day]["rows_raw"] = count
    for row in found:
        counted[row["day"]] |= row
    return resolved


def write_events(
    spark: SparkSession, home: Home, source: Source, resolved: Resolved, days: Sequence[date], *, force: bool
) -> Applied:
    """Bring the events of ``days`` to ``resolved``, in one commit; see ``jobs.ingest.writing.write_difference``."""
    table = events_table(source)
    if resolved.files is not None and resolved.base_version is not None:
        return apply_files(
            home,
            table,
            resolved.files,
            purpose=f"ingest-{table.name}",
            base_version=resolved.base_version,
            force=force,
        )
    return write_difference(
        spark,
        home,
        table,
        replaces=_of_days(days),
        current=lambda: tables.read_days(spark, home, table.schema, table.name, days),
        wanted=resolve.events_of(source, resolved.frame),
        count=resolved.rows,
        bounds=_bounds(days),
        force=force,
    )


def _of_days(days: Sequence[date]) -> list[list[tuple[str, str, Any]]]:
    return [[("event_date", "in", list(days) or [_EPOCH])]]


def _bounds(days: Sequence[date]) -> tuple[str, int, int] | None:
    if not days:
        return None
    return "ts", day_start_us(days[0]), day_start_us(days[-1] + timedelta(days=1))


def _raw_counts(home: Home, source: Source, files: Sequence[Effective], days: Sequence[date]) -> dict[date, int]:
    """``resolve.raw_counts`` without Spark: from the table and not from what the tasks were given to read."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    wanted = ds.field("event_date").isin(pa.array(days, pa.date32()))
    wanted &= ds.field("load_id").isin([file.load_id for file in files])
    rows = DeltaTable(home.table("raw", source.name)).to_pyarrow_dataset()
    found: dict[date, int] = {}
    for batch in rows.to_batches(columns=["event_date"], filter=wanted):
        numbers, counts = np.unique(batch.column(0).cast(pa.int32()).to_numpy(), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            day = _EPOCH + timedelta(days=number)
            found[day] = found.get(day, 0) + count
    return found
