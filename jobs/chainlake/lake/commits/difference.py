"""Differences of ingest, which does not use the lake's port yet (``chainlake.lake.store``)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.env.own_folders import own_folder
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.store.difference import written
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Applied, Change, Lake, Part, Turn
from chainlake.lake.store.spark import SparkLake
from chainlake.paths import Home
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Column, lower bound, upper bound (not included); µs for timestamps, dates for date columns.
Bounds = tuple[str, int, int] | tuple[str, date, date]

#: One output file up to so many rows, and a few of each partition up to a few times as many; above, Spark decides.
_ROWS_PER_FILE = 1_000_000
_FEW_FILES = 4
#: Of a table that is not partitioned, one file per so many.
_ROWS_PER_TASK = 250_000


def difference(current: DataFrame, wanted: DataFrame, key: list[str], compare: list[str]) -> DataFrame:
    """The rows to insert, update and delete, by Spark.

    Args:
        current: published rows.
        wanted: rows as they should be; same columns.
        key: columns that identify a row, unique on both sides.
        compare: columns whose change makes an update.

    Returns:
        the columns of ``wanted`` and ``_op``; a row to delete has its published values.
    """
    from pyspark.sql import functions as F

    w = wanted.withColumn("__in", F.lit(True)).alias("w")
    c = current.select(*wanted.columns).withColumn("__in", F.lit(True)).alias("c")
    on = _all([F.col(f"w.`{name}`").eqNullSafe(F.col(f"c.`{name}`")) for name in key])
    same = _all([F.col(f"w.`{name}`").eqNullSafe(F.col(f"c.`{name}`")) for name in compare if name not in key])
    gone, new = F.col("w.__in").isNull(), F.col("c.__in").isNull()
    op = F.when(new, "I").when(gone, "D").when(~same, "U")
    columns = [
        F.when(gone, F.col(f"c.`{name}`")).otherwise(F.col(f"w.`{name}`")).alias(name) for name in wanted.columns
    ]
    return w.join(c, on, "full_outer").select(*columns, op.alias("_op")).where("_op IS NOT NULL")


def additions(wanted: DataFrame) -> DataFrame:
    """The difference to a table without any of the rows: a join of millions of rows with nothing takes long."""
    from pyspark.sql import functions as F

    return wanted.withColumn("_op", F.lit("I"))


def difference_arrow(current: pa.Table, wanted: pa.Table, key: list[str], compare: list[str]) -> pa.Table:
    """The same for two Arrow tables, by DuckDB, without a JVM."""
    import duckdb

    def side(table: pa.Table) -> pa.Table:
        names = list(dict.fromkeys([*key, *compare]))
        return table.select(names).append_column("__row", pa.array(range(len(table)), pa.int64()))

    changed = " OR ".join(f'w."{n}" IS DISTINCT FROM c."{n}"' for n in compare if n not in key) or "false"
    on = " AND ".join(f'w."{name}" IS NOT DISTINCT FROM c."{name}"' for name in key)
    with duckdb.connect() as connection:
        connection.register("w", side(wanted))
        connection.register("c", side(current))
        found = connection.sql(
            f"SELECT w.__row AS w, c.__row AS c FROM w FULL JOIN c ON {on} "
            f"WHERE w.__row IS NULL OR c.__row IS NULL OR {changed} ORDER BY w, c"
        ).to_arrow_table()
    both = pc.and_(pc.is_valid(found["w"]), pc.is_valid(found["c"]))
    op = pc.if_else(both, "U", pc.if_else(pc.is_valid(found["w"]), "I", "D"))
    upserts = pc.is_valid(found["w"])
    parts = [
        wanted.take(found["w"].filter(upserts)).append_column("_op", op.filter(upserts)),
        current.select(wanted.column_names)
        .take(found["c"].filter(pc.invert(upserts)))
        .append_column("_op", op.filter(pc.invert(upserts))),
    ]
    return pa.concat_tables([parts[0], parts[1].cast(parts[0].schema)])


def apply_difference(
    spark: SparkSession,
    home: Home,
    table: Table,
    diff: DataFrame | pa.Table,
    *,
    purpose: str,
    base_version: int,
    bounds: Bounds | None = None,
    force: bool = False,
    kept: bool = False,
) -> Applied:
    """Commit a difference. The caller holds the lock of the table's source.

    Args:
        spark: the session.
        home: the installation.
        table: the table to change; a row that is updated keeps its day.
        diff: from :func:`difference` or :func:`difference_arrow`.
        purpose: names the writer among those of this table, constant over attempts.
        base_version: the table's version that the difference was taken from.
        bounds, kept: not used.
        force: commit even if nothing differs, so that a dead attempt's late commit is refused.

    Raises:
        AuditFailed: a row breaks a constraint of the table; the message names rule and row.
        Overtaken: somebody else wrote to the table in between.
        OtherColumns: the table has other columns.
    """
    lake: Lake = FilesLake(home) if "://" not in home.lake else SparkLake(home, lambda: spark)
    rows = diff if isinstance(diff, pa.Table) else diff.toArrow()
    scratch = own_folder(home.temporary) / f"change-{uuid.uuid4().hex[:8]}"
    scratch.mkdir()
    found = written(table, Part(()), (), iter(rows.to_batches()), scratch)
    total = found.total
    change = Change(
        table,
        base_version,
        staged=tuple(found.staged),
        moved=tuple(found.moved),
        bounds=table.partition_by,
        scratch=str(scratch),
        added=total["I"],
        changed=total["U"],
        withdrawn=total["D"],
    )
    return lake.commit(change, Turn(purpose, force))


def apply_files(
    home: Home, table: Table, files: Sequence[DataFile], *, purpose: str, base_version: int, force: bool = False
) -> Applied:
    """Commit additions that tasks have written as data files; see :func:`apply_difference`."""
    lake = FilesLake(home)
    change = replace(lake.additions(table, files), base_version=base_version)
    return lake.commit(change, Turn(purpose, force))


def _all(conditions: list[Column]) -> Column:
    from pyspark.sql import functions as F

    result = F.lit(True)
    for condition in conditions:
        result = result & condition
    return result


def in_few_files(frame: DataFrame, table: Table, rows: int) -> DataFrame:
    """``frame``, which has ``rows`` rows of ``table``, in tasks that write files of a good size."""
    if rows <= _ROWS_PER_FILE:
        return frame.coalesce(1 if table.partition_by else max(1, rows // _ROWS_PER_TASK))
    if rows <= _FEW_FILES * _ROWS_PER_FILE:
        # Moving the rows to tasks of their partition costs more than a few files do.
        return frame.coalesce(_FEW_FILES)
    return frame.hint("rebalance", *table.partition_by) if table.partition_by else frame
