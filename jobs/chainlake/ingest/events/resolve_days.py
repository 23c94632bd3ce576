"""Resolving some days and writing their events, by Spark or by tasks that need none of it: the rows are the same."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from chainlake.days import day_start_us
from chainlake.definitions.source import Source
from chainlake.errors import InfrastructureError
from chainlake.ingest.events import resolve
from chainlake.ingest.events import resolve_tasks as by_tasks
from chainlake.ingest.events.resolve_tasks import Written
from chainlake.ingest.events.stretches import stretches
from chainlake.ingest.events.write import write_difference
from chainlake.ingest.landing.completeness import EMPTY
from chainlake.ingest.landing.effective import Effective
from chainlake.lake.commits.difference import Applied, apply_difference, apply_files
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import tasks_write
from chainlake.lake.delta.reader import open_table
from chainlake.lake.spark.types import spark_schema
from chainlake.paths import Home
from chainlake.schemas.events import events_table
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Up to so many raw rows, starting tasks for them costs more than Spark's way.
FEW_ROWS = 50_000

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Resolved:
    """What became of the raw rows of some days.

    Args:
        frame: all of them with their fates; if ``written`` is given the conflicting ones only.
        counted: each day's counts and checksum, 0 without rows; ``rows_raw`` is counted apart from the fates.
        rates: per day, type and key with events ``events``, ``first_ts`` and ``last_ts``.
        written: the difference to the events table, if tasks have taken it; else the events are in ``frame``.
        base_version: the version of the events table that ``written`` differs from.
    """

    frame: DataFrame
    counted: dict[date, dict[str, Any]]
    rates: list[dict[str, Any]]
    written: Written | None
    base_version: int

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
    if base is None:
        raise InfrastructureError(f"the table events.{source.name} is gone", hint="Run this again.")
    parts = None
    if tasks_write(home.lake) and not resolve.corrects_keys(source, files):
        parts = stretches(home, source, days, base, FEW_ROWS)
    if parts is not None:
        written = by_tasks.write_events(spark, home, source, parts, files, stack)
        delivered = _raw_counts(home, source, files, days)
        found, rates = written.days, written.rates
        resolved = Resolved(written.conflicts, counted, rates, written, base)
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
    """Bring the events of ``days`` to ``resolved``, in one commit; see
    ``chainlake.ingest.events.write.write_difference``."""
    table = events_table(source)
    if resolved.written is not None:
        return _write_difference_of_tasks(spark, home, table, resolved.written, resolved.base_version, days, force)
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


def _write_difference_of_tasks(
    spark: SparkSession, home: Home, table: Table, written: Written, base: int, days: Sequence[date], force: bool
) -> Applied:
    """Additions are committed as they are; what else there is, Spark merges, and the additions with it."""
    from pyspark.sql import functions as F

    purpose = f"ingest-{table.name}"
    if not written.n_moved:
        return apply_files(home, table, written.files, purpose=purpose, base_version=base, force=force)
    folder = os.path.abspath(home.table(table.schema, table.name))
    paths = [os.path.join(folder, file.path) for file in written.files]
    diff = written.moved
    if paths:
        new = spark.read.schema(spark_schema(table.arrow())).option("basePath", folder).parquet(*paths)
        diff = diff.unionByName(new.withColumn("_op", F.lit("I")))
    applied = apply_difference(
        spark,
        home,
        table,
        diff,
        purpose=purpose,
        base_version=base,
        bounds=_bounds(days),
        force=force,
        kept=True,
    )
    for path in paths:
        os.unlink(path)
    return applied


def _of_days(days: Sequence[date]) -> list[list[tuple[str, str, Any]]]:
    return [[("event_date", "in", list(days) or [_EPOCH])]]


def _bounds(days: Sequence[date]) -> tuple[str, int, int] | None:
    if not days:
        return None
    return "ts", day_start_us(days[0]), day_start_us(days[-1] + timedelta(days=1))


def _raw_counts(home: Home, source: Source, files: Sequence[Effective], days: Sequence[date]) -> dict[date, int]:
    """``resolve.raw_counts`` without Spark: from the table and not from what the tasks were given to read."""
    import pyarrow.dataset as ds

    wanted = ds.field("event_date").isin(pa.array(days, pa.date32()))
    wanted &= ds.field("load_id").isin(pa.array([file.load_id for file in files], pa.string()))
    rows = open_table(home, "raw", source.name).to_pyarrow_dataset()
    found: dict[date, int] = {}
    for batch in rows.to_batches(columns=["event_date"], filter=wanted):
        numbers, counts = np.unique(batch.column(0).cast(pa.int32()).to_numpy(), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            day = _EPOCH + timedelta(days=number)
            found[day] = found.get(day, 0) + count
    return found
