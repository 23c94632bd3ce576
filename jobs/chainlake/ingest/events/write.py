"""Ingest's writes to data tables: raw rows by append, everything else as a difference in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from chainlake.definitions.source import Source
from chainlake.errors import InfrastructureError
from chainlake.lake.commits.append import SMALL_APPEND, append_arrow, append_files
from chainlake.lake.commits.difference import (
    Applied,
    Bounds,
    additions,
    apply_difference,
    difference,
    difference_arrow,
    in_few_files,
)
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.reader import open_table
from chainlake.paths import Home
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Up to so many rows on either side, a difference is taken in memory.
_SMALL = 50_000


def append_raw(home: Home, table: Table, rows: DataFrame, count: int, files: Sequence[DataFile] = ()) -> None:
    """Append to a raw table, under the lock of its source.

    Args:
        home: the installation.
        table: the raw table.
        rows: rows to append.
        count: how many they are; with 0, ``rows`` is not computed.
        files: data files to append, which lie under the table's folder.

    Raises:
        InfrastructureError: a commit did not become the table's next version.
    """
    base = tables.version(home, table.schema, table.name) or 0
    purpose = f"ingest-{table.name}"
    if files:
        append_files(home, table, files, app=purpose, base_version=base, mark="raw")
        base += 1
    if not count:
        return
    if count <= SMALL_APPEND:
        small = rows.toArrow().cast(table.arrow())
        append_arrow(home, table, small, app=purpose, base_version=base, mark="raw")
        return
    writer = in_few_files(rows, table, count).write.format("delta").mode("append")
    # A late commit of an attempt that died has this turn or an earlier one, and Delta refuses it.
    writer = writer.option("txnAppId", purpose).option("txnVersion", base + 1)
    writer.save(home.table(table.schema, table.name))
    if tables.version(home, table.schema, table.name) != base + 1:
        raise InfrastructureError(
            f"another writer has changed {table.path_name} in between; nothing of this run counts",
            hint="Run this again.",
        )


def write_difference(
    spark: SparkSession,
    home: Home,
    table: Table,
    *,
    replaces: list[list[tuple[str, str, Any]]],
    current: Callable[[], DataFrame],
    wanted: DataFrame,
    count: int,
    bounds: Bounds | None = None,
    force: bool = False,
) -> Applied:
    """Bring a part of a table to ``wanted`` in one commit, or none if they are equal; under the lock of its source.

    A difference of few rows is taken in memory from what delta-rs reads: Spark's join costs seconds however small.

    Args:
        replaces: which rows of the table ``wanted`` replaces, as pyarrow's disjunctive normal form.
        current: the same rows by Spark.
        wanted: the rows as they should be, in the table's columns; cheap to compute more than once.
        count: how many they are; with 0, ``wanted`` is not computed.
        bounds, force: see ``chainlake.lake.commits.difference.apply_difference``.
    """
    base = tables.version(home, table.schema, table.name)
    if base is None:
        raise InfrastructureError(f"the table {table.path_name} is gone", hint="Run this again.")
    key, compare = list(table.key), table.non_volatile
    held = _count(home, table, replaces)
    diff: DataFrame | pa.Table
    if max(count, held) <= _SMALL:
        schema = table.arrow()
        columns = table.column_names
        old = tables.arrow(home, table.schema, table.name, columns=columns, filters=replaces) if held else None
        new = wanted.select(*columns).toArrow() if count else None
        empty = schema.empty_table()
        diff = difference_arrow(_as(old, schema, empty), _as(new, schema, empty), key, compare)
    elif held:
        diff = difference(current(), wanted, key, compare)
    else:
        diff = additions(wanted)
    return apply_difference(
        spark,
        home,
        table,
        diff,
        purpose=f"ingest-{table.name}",
        base_version=base,
        bounds=bounds,
        force=force,
        kept=not held,
    )


def _as(rows: pa.Table | None, schema: pa.Schema, empty: pa.Table) -> pa.Table:
    return empty if rows is None else rows.cast(schema)


def _count(home: Home, table: Table, where: list[list[tuple[str, str, Any]]]) -> int:
    delta = open_table(home, table.schema, table.name)
    return delta.to_pyarrow_dataset().count_rows(filter=pq.filters_to_expression(where))


def conflict_rows(source: Source, resolved: DataFrame) -> DataFrame:
    """The rows for ``quarantine.<source>`` with stage ``resolve``: what lost against another row of the same event."""
    from pyspark.sql import functions as F

    from chainlake.ingest.events.identity import quoted
    from chainlake.ingest.events.resolve import CONFLICT

    # The delivered text is not kept in raw; what was read from it says as much.
    text = F.to_json(
        F.struct("type", quoted(source.key), "ts", *(quoted(a.name) for a in source.attributes)),
        {"ignoreNullFields": "false"},
    )
    return (
        resolved.where(F.col("_fate") == CONFLICT)
        .select(
            "file_id",
            "line",
            "entry",
            F.lit("resolve").alias("stage"),
            F.lit("conflict").alias("reason"),
            F.lit(None).cast("string").alias("field"),
            F.lit(None).cast("string").alias("value"),
            F.substring(text, 1, 1000).alias("raw"),
            "event_date",
            F.current_timestamp().alias("written_at"),
        )
        .select(*quarantine_table(source).column_names)
    )
