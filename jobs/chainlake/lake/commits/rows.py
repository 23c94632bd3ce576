"""The rows of some days of a published table, against the rows that were staged for them (design §4 "Publish").

Small outputs, the usual case, are compared as Arrow tables and cost Spark nothing but the commit; large ones by Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import Days
from chainlake.lake.commits.difference import (
    Applied,
    Bounds,
    apply_difference,
    apply_files,
    difference,
    difference_arrow,
)
from chainlake.lake.delta import tables
from chainlake.lake.delta.checksums import Checksum, Place, checksums, checksums_of_files, checksums_of_frame
from chainlake.lake.delta.data_files import data_files_of, tasks_write
from chainlake.lake.delta.pages import verified
from chainlake.lake.delta.reader import open_table
from chainlake.paths import Home
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Up to so many staged and published rows are compared on the driver.
SMALL_ROWS = 200_000
#: A column, and its values whose rows a writer owns.
Owners = tuple[str, Sequence[str]]


@dataclass(frozen=True)
class StagedFiles:
    """Staged rows that lie in Parquet files which this process can read.

    Args:
        frame: the rows.
        paths: the files, which hold these rows and nothing else.
        per_day: UTC day → rows.
    """

    frame: DataFrame
    paths: Sequence[str]
    per_day: Mapping[date, int]


@dataclass(frozen=True)
class Change:
    """A difference of some days that has not been committed.

    Args:
        table: the table.
        base_version: its version that the difference was taken from.
        diff: rows and ``_op``, or files all of whose rows are additions.
        bounds: of the day column.
        rows: (owner, day) → rows staged; the owner is empty where the whole table is one writer's.
        ops: (owner, day, ``I``/``U``/``D``) → rows.
        sums: (owner, day) → checksum of the rows staged, which are those published once this is committed.
        kept: whether the difference is the staged rows as they are, which Spark need not keep.
    """

    table: Table
    base_version: int
    diff: DataFrame | pa.Table | StagedFiles
    bounds: Bounds
    rows: Counter[tuple[str, date]] = field(default_factory=Counter)
    ops: Counter[tuple[str, date, str]] = field(default_factory=Counter)
    sums: Mapping[Place, Checksum] = field(default_factory=dict)
    kept: bool = False

    def checksum(self, owner: str, day: date) -> str:
        """The checksum of an owner's day, as ``ops.intervals`` keeps it."""
        return str(self.sums.get((owner, day), Checksum()))

    def commit(self, spark: SparkSession, home: Home, *, purpose: str, force: bool) -> Applied:
        """Write it; see :func:`chainlake.lake.commits.difference.apply_difference`."""
        if isinstance(self.diff, StagedFiles):
            folder = home.table(self.table.schema, self.table.name)
            files = data_files_of(folder, self.table, self.diff.paths)
            return apply_files(home, self.table, files, purpose=purpose, base_version=self.base_version, force=force)
        return apply_difference(
            spark,
            home,
            self.table,
            self.diff,
            purpose=purpose,
            base_version=self.base_version,
            bounds=self.bounds,
            force=force,
            kept=self.kept,
        )


def staged_change(
    spark: SparkSession,
    home: Home,
    table: Table,
    staged: DataFrame | pa.Table | StagedFiles,
    days: Sequence[date],
    *,
    day_column: str,
    only: Owners | None = None,
) -> Change:
    """The difference between the published rows of ``days`` and the staged ones.

    Args:
        spark: the session.
        home: the installation.
        table: the table; made if it does not exist.
        staged: rows of the table; those of other days are not looked at.
        days: the days to publish, not empty; need not be contiguous.
        day_column: a timestamp whose UTC day owns the row, or a date.
        only: ``(column, values)``: the owners whose part of the table is staged.
    """
    tables.ensure_table(home, table)
    base = tables.version(home, table.schema, table.name)
    assert base is not None
    whole = Days(min(days), Days.one(max(days)).end)
    stamped = pa.types.is_timestamp(table.arrow().field(day_column).type)
    bounds: Bounds = (day_column, *whole.micros()) if stamped else (day_column, whole.start, whole.end)
    names = (table.non_volatile, list(table.key))
    published = _published(home, table, base, bounds, only)
    if isinstance(staged, StagedFiles):
        alone = only is None and published is not None and not len(published)
        if alone and staged.per_day.keys() <= set(days) and tasks_write(home.lake):
            rows = Counter({("", day): count for day, count in staged.per_day.items()})
            added = Counter({(*of, "I"): n for of, n in rows.items()})
            sums = checksums_of_files(staged.paths, table.column_names, day_column, table.volatile)
            return Change(table, base, staged, bounds, rows, added, sums)
        staged = staged.frame
    arrow = _small(staged) if published is not None else None
    if published is not None and arrow is not None:
        wanted = _of_days(arrow.select(table.column_names).cast(table.arrow()), days, day_column, only)
        current = _of_days(published.cast(table.arrow()), days, day_column, only)
        diff = difference_arrow(current, wanted, names[1], names[0])
        ops = Counter(zip(*_owned_days(diff, day_column, only), diff["_op"].to_pylist(), strict=True))
        rows = Counter(zip(*_owned_days(wanted, day_column, only), strict=True))
        sums = checksums([wanted], day_column, _owner_column(only), table.volatile)
        return Change(table, base, diff, bounds, rows, ops, sums)
    nothing = published is not None and not len(published)
    return _by_spark(spark, home, table, staged, base, days, bounds, only, names, nothing_published=nothing)


def _published(home: Home, table: Table, base: int, bounds: Bounds, only: Owners | None) -> pa.Table | None:
    """The published rows within ``bounds``, or ``None`` if they are many."""
    import pyarrow.dataset as ds

    column, *limits = bounds
    kind = table.arrow().field(column).type
    low, high = (pa.scalar(value).cast(kind) for value in limits)
    test = (ds.field(column) >= low) & (ds.field(column) < high)
    if only is not None:
        test = test & ds.field(only[0]).isin(list(only[1]))
    rows = open_table(home, table.schema, table.name, version=base).to_pyarrow_dataset()
    if rows.count_rows(filter=test) > SMALL_ROWS:
        return None
    return rows.to_table(columns=table.column_names, filter=test, fragment_scan_options=verified())


def _small(staged: DataFrame | pa.Table) -> pa.Table | None:
    if isinstance(staged, pa.Table):
        return staged
    return staged.toArrow() if staged.count() <= SMALL_ROWS else None


def _days(rows: pa.Table, column: str) -> pa.ChunkedArray:
    return pc.cast(rows[column], pa.date32(), safe=False)


def _owner_column(only: Owners | None) -> str | None:
    return None if only is None else only[0]


def _owned_days(rows: pa.Table, column: str, only: Owners | None) -> tuple[list[str], list[date]]:
    """The owner and the day of every row."""
    owners = [""] * len(rows) if only is None else rows[only[0]].to_pylist()
    return owners, _days(rows, column).to_pylist()


def _of_days(rows: pa.Table, days: Sequence[date], column: str, only: Owners | None) -> pa.Table:
    rows = rows.filter(pc.is_in(_days(rows, column), pa.array(days, pa.date32())))
    return rows if only is None else rows.filter(pc.is_in(rows[only[0]], pa.array(only[1], pa.string())))


def _by_spark(
    spark: SparkSession,
    home: Home,
    table: Table,
    staged: DataFrame | pa.Table,
    base: int,
    days: Sequence[date],
    bounds: Bounds,
    only: Owners | None,
    names: tuple[list[str], list[str]],
    *,
    nothing_published: bool,
) -> Change:
    from pyspark.sql import functions as F

    from chainlake.lake.spark.types import frame_of

    column = bounds[0]
    day = F.to_date(column)

    def mine(frame: DataFrame) -> DataFrame:
        frame = frame.where(_between(F.col(column), bounds)).where(day.isin(list(days)))
        return frame if only is None else frame.where(F.col(only[0]).isin(list(only[1])))

    if isinstance(staged, pa.Table):
        staged = frame_of(spark, staged.cast(table.arrow()), table.arrow())
    wanted = mine(staged.select(*table.column_names))
    owner = F.lit("") if only is None else F.col(only[0])
    sums = checksums_of_frame(wanted, column, _owner_column(only), table.volatile)
    rows = Counter({place: found.rows for place, found in sums.items()})
    if nothing_published:
        added = Counter({(*of, "I"): count for of, count in rows.items()})
        return Change(table, base, wanted.withColumn("_op", F.lit("I")), bounds, rows, added, sums, kept=True)
    diff = difference(mine(tables.read(spark, home, table.schema, table.name, base)), wanted, names[1], names[0])
    diff = diff.persist()
    ops = Counter({(r[0], r[1], r[2]): r[3] for r in diff.groupBy(owner, day, "_op").count().collect()})
    return Change(table, base, diff, bounds, rows, ops, sums)


def _between(column: Column, bounds: Bounds) -> Column:
    from pyspark.sql import functions as F

    low, high = (F.timestamp_micros(F.lit(value)) if isinstance(value, int) else F.lit(value) for value in bounds[1:])
    return (column >= low) & (column < high)
