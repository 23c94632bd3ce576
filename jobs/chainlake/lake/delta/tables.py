"""Delta tables by path: delta-rs makes and inspects them without a JVM; Spark reads them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainlake.days import instant
from chainlake.lake.delta.damaged import require_entries
from chainlake.lake.delta.log import marked
from chainlake.lake.delta.reader import open_table, rows_of
from chainlake.lake.delta.sums.pages import verified
from chainlake.lake.delta.where import expression
from chainlake.paths import Home
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

#: The property of a table that keeps its change feed.
FEED = "delta.enableChangeDataFeed"


def ensure_table(home: Home, table: Table, *, replace: bool = False) -> None:
    """Make the table if it does not exist: columns with comments, description, NOT NULL and CHECK constraints and the
    change feed, in one commit. It needs no JVM: Spark takes a second for what delta-rs does in milliseconds.

    Args:
        home: the installation.
        table: the table.
        replace: make it anew if it exists; its rows are then gone, and its version numbers continue.
    """
    if not replace and exists(home, table.schema, table.name):
        return
    from deltalake import DeltaTable

    # Delta treats a rule that is null as broken; SQL, and ``Check``, only one that is false.
    rules = {f"delta.constraints.{check.name}": f"coalesce({check.sql}, true)" for check in table.checks}
    DeltaTable.create(
        home.table(table.schema, table.name),
        table.arrow(),
        mode="overwrite" if replace else "ignore",
        partition_by=list(table.partition_by) or None,
        description=table.comment,
        configuration={FEED: "true", "delta.enableDeletionVectors": "false", **rules},
        # delta-rs does not know the names of constraints; Spark enforces them.
        raise_if_key_not_exists=False,
        commit_properties=marked("create"),
    )


def read(spark: SparkSession, home: Home, schema: str, name: str, version: int | None = None) -> DataFrame:
    """The table as a DataFrame, at ``version`` or now."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(home.table(schema, name))


def exists(home: Home, schema: str, name: str) -> bool:
    """Whether the table exists; no JVM.

    Raises:
        DamagedTable: an entry of its log is empty.
    """
    from deltalake import DeltaTable

    log = require_entries(home, schema, name)
    return DeltaTable.is_deltatable(home.table(schema, name)) if log is None else log.exists


def is_empty(home: Home, schema: str, name: str) -> bool:
    """Whether the table, which must exist, holds no rows; no JVM."""
    result: bool = rows_of(home, open_table(home, schema, name)).count_rows() == 0
    return result


def version(home: Home, schema: str, name: str) -> int | None:
    """The table's current version, ``None`` if there is no table; no JVM."""
    table = _open(home, schema, name, without_files=True)
    return None if table is None else table.version()


def arrow(
    home: Home,
    schema: str,
    name: str,
    *,
    columns: list[str] | None = None,
    filters: Any = None,
    version: int | None = None,
) -> pa.Table:
    """The table's rows; no JVM.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema.
        columns: only these; all if not given.
        filters: pyarrow's disjunctive normal form, such as ``[("source", "=", "stock")]``, or an expression.
        version: the version to read; the newest if not given.

    Raises:
        deltalake.exceptions.TableNotFoundError: there is no such table.
        UnreadableTable: its files alone do not determine its rows.
    """
    table = open_table(home, schema, name, version=version)
    chosen = filters
    if isinstance(filters, list):
        every = filters if not filters or isinstance(filters[0], list) else [filters]
        chosen = expression(every, pa.schema(table.schema().to_arrow())) if every else None
    return rows_of(home, table, chosen).to_table(columns=columns, filter=chosen, fragment_scan_options=verified())


def decided_in(lo: int, hi: int) -> list[tuple[str, str, datetime]]:
    """The filter of :func:`arrow` for rows whose decision time is in ``[lo, hi)``, µs."""
    return [("decision_ts", op, instant(us)) for op, us in ((">=", lo), ("<", hi))]


def _open(home: Home, schema: str, name: str, **options: Any) -> DeltaTable | None:
    from deltalake.exceptions import TableNotFoundError

    try:
        return open_table(home, schema, name, **options)
    except TableNotFoundError:
        return None


def arrow_schema(home: Home, schema: str, name: str) -> pa.Schema:
    """The table's columns as they are stored; no JVM.

    Raises:
        deltalake.exceptions.TableNotFoundError: there is no such table.
    """
    table = open_table(home, schema, name, without_files=True)
    return pa.schema(table.schema().to_arrow())
