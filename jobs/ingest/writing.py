"""Ingest's writes to data tables: raw rows by append, everything else as a difference in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.errors import InfrastructureError
from jobs.lake import tables
from jobs.lake.difference import Applied, Bounds, apply_difference, difference, difference_arrow
from jobs.paths import Home
from schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Up to so many rows on either side, a difference is taken in memory: Spark's join costs seconds however small it is.
_SMALL = 50_000
#: Up to so many rows, one file.
_ONE_FILE = 1_000_000


def append_raw(home: Home, table: Table, rows: DataFrame, count: int) -> None:
    """Append ``rows`` to a raw table, under the lock of its source.

    Raises:
        InfrastructureError: the commit did not become the table's next version.
    """
    base = tables.version(home, table.schema, table.name) or 0
    rows = rows.coalesce(1) if count <= _ONE_FILE else rows.hint("rebalance", *table.partition_by)
    writer = rows.write.format("delta").mode("append")
    # A late commit of an attempt that died has this turn or an earlier one, and Delta refuses it.
    writer = writer.option("txnAppId", f"ingest-{table.name}").option("txnVersion", base + 1)
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
    current: DataFrame,
    wanted: DataFrame,
    count: int | None,
    *,
    purpose: str,
    bounds: Bounds | None = None,
    force: bool = False,
) -> Applied:
    """Bring the rows ``current`` of a table to ``wanted`` in one commit, or none if they are equal.

    Args:
        current: the part of the table that ``wanted`` replaces, read after the lock was taken.
        wanted: the rows as they should be, in the table's columns.
        count: number of wanted rows, if known.
        purpose: see ``jobs.lake.difference.apply_difference``; so are bounds and force.
    """
    base = tables.version(home, table.schema, table.name)
    if base is None:
        raise InfrastructureError(f"the table {table.path_name} is gone", hint="Run this again.")
    key, compare = list(table.key), table.non_volatile
    count = wanted.count() if count is None else count
    if count <= _SMALL and current.limit(_SMALL + 1).count() <= _SMALL:
        schema = table.arrow()
        old = current.select(*table.column_names).toArrow().cast(schema)
        new = wanted.select(*table.column_names).toArrow().cast(schema)
        diff = difference_arrow(old, new, key, compare)
    else:
        diff = difference(current, wanted, key, compare)
    return apply_difference(spark, home, table, diff, purpose=purpose, base_version=base, bounds=bounds, force=force)
