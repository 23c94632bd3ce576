"""Write only what differs (design §4 "Publish"): nothing → no version, only additions → append, else one ``MERGE``.

A difference is the wanted rows plus a column ``_op``: ``I`` (insert), ``U`` (update), ``D`` (delete). It is computed
by Spark, or, when both sides are small, by DuckDB on Arrow data in milliseconds; both give the same rows.

Small appends, the usual case, and files that tasks wrote (:func:`apply_files`) are committed by delta-rs
(``chainlake.lake.commits.append``), everything else by Spark.

Every commit carries ``txnAppId`` = its purpose and ``txnVersion`` = 1 + the version its difference was taken from,
so that Delta refuses the late commit of a dead attempt. Delta *silently skips* such a commit when the turn is long
past, so each commit is marked and looked up in the history afterwards.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.commits.append import SMALL_APPEND, BrokenRule, append_arrow, append_files
from chainlake.lake.delta.columns import require_columns
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.reader import open_table
from chainlake.lake.delta.tables import version
from chainlake.lake.spark.types import frame_of
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

#: Delta takes a MERGE's transaction and mark from the session's settings, so one MERGE at a time.
_merging = threading.Lock()


@dataclass(frozen=True)
class Applied:
    """What :func:`apply_difference` did; ``version`` is ``None`` if no version was made."""

    added: int
    changed: int
    withdrawn: int
    version: int | None


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
    """Commit a difference. The caller holds the lock of the table (or of its source).

    Args:
        spark: the session.
        home: the installation.
        table: the table to change.
        diff: from :func:`difference` or :func:`difference_arrow`.
        purpose: names the writer among those of this table, constant over attempts.
        base_version: the table's version that the difference was taken from.
        bounds: a range of a column that holds all rows of the difference; it prunes the files a ``MERGE`` reads.
        force: commit even if nothing differs, so that a dead attempt's late commit is refused.
        kept: a frame is cheap to compute twice, so that keeping it costs more.

    Raises:
        AuditFailed: a row breaks a constraint of the table; the message names rule and row.
        InfrastructureError: somebody else wrote to the table in between, or it has other columns.
    """
    at = open_table(home, table.schema, table.name, to_write=True)
    if at.version() != base_version:
        raise _overtaken(table)
    require_columns(at, table)
    mark = f"{purpose} {uuid.uuid4().hex}"
    if isinstance(diff, pa.Table) and len(diff) <= SMALL_APPEND and set(diff["_op"].to_pylist()) <= {"I"}:
        _check_arrow_bounds(table, diff, bounds)
        if not len(diff) and not force:
            return Applied(0, 0, 0, None)
        landed = _append_small(home, table, diff, purpose, base_version, mark)
        if landed is not None:
            return Applied(len(diff), 0, 0, landed)
    frame, counts, unpersist = _materialise(spark, table, diff, bounds, kept)
    try:
        if not sum(counts.values()) and not force:
            return Applied(0, 0, 0, None)
        path = home.table(table.schema, table.name)
        try:
            if counts["U"] or counts["D"]:
                _merge(spark, table, path, frame, bounds, purpose, base_version + 1, mark)
            else:
                _append(table, path, frame, counts["I"], purpose, base_version + 1, mark)
        except Exception as error:
            raise (_translated(error, table) or error) from error
    finally:
        if unpersist:
            frame.unpersist()
    return Applied(counts["I"], counts["U"], counts["D"], _landed(home, table, base_version, mark))


def apply_files(
    home: Home, table: Table, files: Sequence[DataFile], *, purpose: str, base_version: int, force: bool = False
) -> Applied:
    """Commit a difference of additions only that tasks have written as data files; the caller holds the lock.

    Args:
        home: the installation; its lake is on a file system.
        table: the table to change.
        files: from ``chainlake.lake.delta.data_files``; none of their rows is in the table, and none breaks a rule of
            it.
        purpose, base_version, force: see :func:`apply_difference`.

    Raises:
        InfrastructureError: somebody else wrote to the table in between.
    """
    if version(home, table.schema, table.name) != base_version:
        raise _overtaken(table)
    if not files and not force:
        return Applied(0, 0, 0, None)
    mark = f"{purpose} {uuid.uuid4().hex}"
    append_files(home, table, files, app=purpose, base_version=base_version, mark=mark)
    return Applied(sum(file.rows for file in files), 0, 0, _landed(home, table, base_version, mark))


def _all(conditions: list[Column]) -> Column:
    from pyspark.sql import functions as F

    result = F.lit(True)
    for condition in conditions:
        result = result & condition
    return result


def _materialise(
    spark: SparkSession, table: Table, diff: DataFrame | pa.Table, bounds: Bounds | None, kept: bool
) -> tuple[DataFrame, Counter[str], bool]:
    """The difference as a frame that is computed once, the rows per operation, and whether to unpersist it."""
    if isinstance(diff, pa.Table):
        counts = Counter(diff["_op"].to_pylist())
        schema = pa.schema([*table.arrow(), pa.field("_op", pa.string())])
        rows = diff.select(schema.names)
        _check_arrow_bounds(table, rows, bounds)
        return frame_of(spark, rows, schema), counts, False
    from pyspark.sql import functions as F

    frame = diff if kept else diff.persist()
    column = bounds[0] if bounds else "_op"
    found = frame.groupBy("_op").agg(F.count("*"), F.min(column), F.max(column)).collect()
    if bounds is not None:
        for _, _, low, high in found:
            _check_bounds(table, low, high, bounds)
    return frame, Counter({row[0]: row[1] for row in found}), not kept


def _append_small(home: Home, table: Table, rows: pa.Table, app: str, base: int, mark: str) -> int | None:
    """The version made; ``None`` if a row breaks a rule: Spark will refuse it too, and say which rule and row."""
    try:
        return append_arrow(home, table, rows, app=app, base_version=base, mark=mark)
    except BrokenRule:
        return None


def _check_arrow_bounds(table: Table, rows: pa.Table, bounds: Bounds | None) -> None:
    if bounds is not None and len(rows):
        extremes = pc.min_max(rows[bounds[0]]).as_py()
        _check_bounds(table, extremes["min"], extremes["max"], bounds)


def _check_bounds(table: Table, low: Any, high: Any, bounds: Bounds) -> None:
    """A row outside would silently be left alone by the ``MERGE``."""
    if isinstance(bounds[1], int):
        # Spark gives naive local times, Arrow aware ones; both are instants.
        low, high = (round(value.timestamp() * 1_000_000) for value in (low, high))
    if low < bounds[1] or high >= bounds[2]:
        raise ValueError(f"rows of {table.path_name} lie outside {bounds}: {low} to {high}")


def _append(table: Table, path: str, frame: DataFrame, rows: int, app: str, turn: int, mark: str) -> None:
    out = in_few_files(frame.select(*table.column_names), table, rows)
    writer = out.write.format("delta").mode("append")
    writer.option("txnAppId", app).option("txnVersion", turn).option("userMetadata", mark).save(path)


def in_few_files(frame: DataFrame, table: Table, rows: int) -> DataFrame:
    """``frame``, which has ``rows`` rows of ``table``, in tasks that write files of a good size."""
    if rows <= _ROWS_PER_FILE:
        return frame.coalesce(1 if table.partition_by else max(1, rows // _ROWS_PER_TASK))
    if rows <= _FEW_FILES * _ROWS_PER_FILE:
        # Moving the rows to tasks of their partition costs more than a few files do.
        return frame.coalesce(_FEW_FILES)
    return frame.hint("rebalance", *table.partition_by) if table.partition_by else frame


def _merge(
    spark: SparkSession,
    table: Table,
    path: str,
    frame: DataFrame,
    bounds: Bounds | None,
    app: str,
    turn: int,
    mark: str,
) -> None:
    from delta.tables import DeltaTable

    on = " AND ".join(f"t.`{name}` = s.`{name}`" for name in table.key)
    if bounds is not None:
        column, low, high = bounds
        on += f" AND t.`{column}` >= {_literal(low)} AND t.`{column}` < {_literal(high)}"
    values: dict[str, str | Column] = {f"`{name}`": f"s.`{name}`" for name in table.column_names}
    wanted = {
        "spark.databricks.delta.write.txnAppId": app,
        "spark.databricks.delta.write.txnVersion": str(turn),
        "spark.databricks.delta.commitInfo.userMetadata": mark,
    }
    with _merging:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        try:
            (
                DeltaTable.forPath(spark, path)
                .alias("t")
                .merge(frame.alias("s"), on)
                .whenMatchedDelete("s._op = 'D'")
                .whenMatchedUpdate("s._op = 'U'", values)
                .whenNotMatchedInsert("s._op = 'I'", values)
                .execute()
            )
        finally:
            for name in wanted:
                spark.conf.unset(name)


def _literal(value: int | date) -> str:
    return f"timestamp_micros({value})" if isinstance(value, int) else f"DATE'{value.isoformat()}'"


def _landed(home: Home, table: Table, base: int, mark: str) -> int:
    """The version that carries ``mark``."""
    delta = open_table(home, table.schema, table.name, without_files=True)
    for commit in delta.history(max(1, delta.version() - base)):
        if commit.get("userMetadata") == mark:
            return int(commit["version"])
    raise _overtaken(table)


def _overtaken(table: Table) -> InfrastructureError:
    return InfrastructureError(
        f"another writer has changed {table.path_name} since this difference was taken; nothing was written",
        hint="Run this again.",
    )


def _translated(error: Exception, table: Table) -> Exception | None:
    """Delta's refusals as ours, with rule and row; ``None`` for anything else."""
    text = str(error)
    broken = re.search(r"\[DELTA_[A-Z_]*(?:CONSTRAINT|NOT_NULL)[A-Z_]*\] (.*(?:\n - .*)*)", text)
    if broken:
        return AuditFailed(f"a row breaks a rule of {table.path_name}: {' '.join(broken.group(1).split())}")
    if re.search(r"\[DELTA_CONCURRENT|Concurrent\w*Exception", text):
        return _overtaken(table)
    return None
