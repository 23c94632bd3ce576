"""Raw rows of days to events, duplicates, conflicts and superseded rows, in Spark SQL (design §3).

The result depends on the raw rows of the effective files and on nothing else: not on the order in which they arrived,
nor on what was resolved before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.ingest.identity import content_sql, multiset_id_sql, quoted, row_hash_sql, unique_id_sql
from jobs.sources import Source
from schemas.events import events_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What became of a raw row.
EVENT, DUPLICATE, CONFLICT, SUPERSEDED = "event", "duplicate", "conflict", "superseded"
#: Checksum of a day without events; a day without a row in ``ops.event_days`` stands for the same.
EMPTY_CHECKSUM = "0:00000000000000000000000000000000"


@dataclass(frozen=True)
class Effective:
    """One effective file: distinct content under the current definition.

    Args:
        load_id: the load that holds its rows.
        file_date, revision: from its path.
        name: the smallest path that holds it.
        key: the key that its path names, as events hold it, or ``None``.
    """

    load_id: str
    file_date: date | None
    revision: int
    name: str
    key: str | None


def checksum(rows: int, first: int, second: int) -> str:
    """The checksum of a day: number of events, and xor of both 64-bit row hashes (signed) as hex."""
    mask = (1 << 64) - 1
    return f"{rows}:{first & mask:016x}{second & mask:016x}"


def raw_days(raw: DataFrame, loads: Iterable[str]) -> set[date]:
    """The days on which the given loads have rows."""
    from pyspark.sql import functions as F

    rows = raw.where(F.col("load_id").isin(sorted(loads))).select("event_date").distinct().collect()
    return {row["event_date"] for row in rows}


def resolve(
    spark: SparkSession, source: Source, raw: Callable[[], DataFrame], delivered: DataFrame, files: list[Effective]
) -> DataFrame:
    """All delivered rows of ``files`` with their fate.

    Args:
        spark: the session.
        source: the source.
        raw: gives the whole raw table; asked for where files replace each other per key, since what a file holds is
            known from all its rows.
        delivered: the raw rows of whole days.
        files: the effective files.

    Returns:
        The columns of raw, the file's order (``_order``), and ``_fate``, ``event_id``, ``seq``; the latter two are
        null unless the fate is ``event``.
    """
    from pyspark.sql import functions as F

    order = sorted(files, key=lambda f: (f.file_date or date.min, f.revision, f.name))
    ranks = _frame(spark, {"load_id": [f.load_id for f in order], "_order": list(range(len(order)))})
    rows = delivered.join(F.broadcast(ranks), "load_id")
    rows = _mark_superseded(spark, source, raw, rows, order)
    first, second = content_sql(source)
    rows = rows.withColumn("_c1", F.expr(first)).withColumn("_c2", F.expr(second))
    # The windows below all partition by these columns and more, so the rows are moved between tasks only once.
    rows = rows.repartition("type", source.key, "ts")
    alive = rows.where("_fate IS NULL")
    fates = _multiset(source, alive) if source.identity == "multiset" else _unique(source, alive)
    dead = rows.where("_fate IS NOT NULL").withColumn("event_id", F.lit(None).cast("string"))
    return fates.unionByName(dead.withColumn("seq", F.lit(None).cast("bigint")))


def _frame(spark: SparkSession, columns: dict[str, list[Any]]) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))


def _mark_superseded(
    spark: SparkSession, source: Source, raw: Callable[[], DataFrame], rows: DataFrame, order: list[Effective]
) -> DataFrame:
    """``_fate`` = superseded where a higher revision of the scope exists, else null."""
    from pyspark.sql import functions as F

    nothing = F.lit(None).cast("string")
    competing = _competing(order)
    if not source.replaces or not competing:
        return rows.withColumn("_fate", nothing)
    if "key" not in source.replaces:
        best = {day: max(f.revision for f in files) for day, files in competing.items()}
        beaten = [f.load_id for day, files in competing.items() for f in files if f.revision < best[day]]
        return rows.withColumn("_fate", F.when(F.col("load_id").isin(beaten), SUPERSEDED).otherwise(nothing))
    # Which keys a file holds is known from all its rows, on whatever day they lie, and from its path.
    members = [f for files in competing.values() for f in files]
    listed: dict[str, list[Any]] = {
        "load_id": [f.load_id for f in members],
        "_date": [f.file_date for f in members],
        "_revision": [f.revision for f in members],
    }
    scopes = _frame(spark, listed)
    held = raw().where(F.col("load_id").isin(listed["load_id"])).select("load_id", F.col(source.key).alias("_key"))
    named = [f for f in members if f.key is not None]
    if named:
        held = held.union(_frame(spark, {"load_id": [f.load_id for f in named], "_key": [f.key for f in named]}))
    best_of = (
        held.distinct()
        .join(F.broadcast(scopes), "load_id")
        .groupBy("_date", "_key")
        .agg(F.max("_revision").alias("_best"))
    )
    beaten_rows = (
        held.distinct()
        .join(F.broadcast(scopes), "load_id")
        .join(best_of, ["_date", "_key"])
        .where("_revision < _best")
        .select("load_id", F.col("_key").alias(source.key), F.lit(SUPERSEDED).alias("_fate"))
    )
    return rows.join(F.broadcast(beaten_rows), ["load_id", source.key], "left")


def _competing(order: list[Effective]) -> dict[date, list[Effective]]:
    """Files by file date, where one date has several revisions."""
    by_date: dict[date, list[Effective]] = {}
    for file in order:
        if file.file_date is not None:
            by_date.setdefault(file.file_date, []).append(file)
    return {day: files for day, files in by_date.items() if len({f.revision for f in files}) > 1}


def _unique(source: Source, rows: DataFrame) -> DataFrame:
    """One event per (type, key, ts): equal content is a duplicate, other content a conflict."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = Window.partitionBy("type", source.key, "ts")
    ascending = place.orderBy("_order", "line", "entry")
    whole = ascending.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    pick = F.last if source.on_conflict == "latest" else F.first
    content = F.struct("_c1", "_c2")
    rows = rows.withColumn("_won", pick(content).over(whole))
    if source.on_conflict == "quarantine_all":
        differing = (F.min(content).over(whole)) != (F.max(content).over(whole))
        rows = rows.withColumn("_same", ~differing)
    else:
        rows = rows.withColumn("_same", F.col("_won") == content)
    # Of the rows with the winning content, the first in file order is the one that the event is taken from.
    rank = F.row_number().over(place.orderBy(F.col("_same").desc(), "_order", "line", "entry"))
    rows = rows.withColumn("_fate", F.when(~F.col("_same"), CONFLICT).when(rank == 1, EVENT).otherwise(DUPLICATE))
    return (
        rows.withColumn("event_id", F.when(F.col("_fate") == EVENT, F.expr(unique_id_sql(source))))
        .withColumn("seq", F.when(F.col("_fate") == EVENT, F.lit(0).cast("bigint")))
        .drop("_won", "_same")
    )


def _multiset(source: Source, rows: DataFrame) -> DataFrame:
    """Equal rows are different events; copies in several files by maximum, or by sum if deliveries are disjoint."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = ["type", source.key, "ts"]
    content = [*place, "_c1", "_c2"]
    within = content if source.delivery == "disjoint" else [*content, "_order"]
    copy = F.row_number().over(Window.partitionBy(*within).orderBy("_order", "line", "entry")) - 1
    rows = rows.withColumn("_copy", copy)
    # The first file that holds the copy gives the event; the same copy in later files repeats it.
    holder = F.row_number().over(Window.partitionBy(*content, "_copy").orderBy("_order", "line", "entry"))
    rows = rows.withColumn("_fate", F.when(holder == 1, EVENT).otherwise(DUPLICATE))
    ranked = Window.partitionBy(*place, "_fate").orderBy("_order", "line", "entry")
    return (
        rows.withColumn("seq", F.when(F.col("_fate") == EVENT, (F.row_number().over(ranked) - 1).cast("bigint")))
        .withColumn("event_id", F.when(F.col("_fate") == EVENT, F.expr(multiset_id_sql(source))))
        .drop("_copy")
    )


def events_of(source: Source, resolved: DataFrame) -> DataFrame:
    """The events among resolved rows, in the columns of ``events.<source>``."""
    from pyspark.sql import functions as F

    stamped = resolved.where(F.col("_fate") == EVENT).withColumn("ingested_at", F.current_timestamp())
    return stamped.select(*(F.col(quoted(name)) for name in events_table(source).column_names))


def summary(source: Source, resolved: DataFrame) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """``(days, rates)`` in one pass over resolved rows.

    Returns:
        Per day ``rows``, ``duplicates``, ``conflicts``, ``superseded`` and ``checksum``; per day, type and key with
        events ``events``, ``first_ts`` and ``last_ts``.
    """
    from pyspark.sql import functions as F

    first, second = row_hash_sql(events_table(source))
    event = F.col("_fate") == EVENT
    found = (
        resolved.groupBy(F.col("event_date").alias("day"), "type", F.col(quoted(source.key)).alias("key"))
        .agg(
            *(F.count(F.when(F.col("_fate") == fate, 1)).alias(name) for name, fate in _COUNTED),
            F.bit_xor(F.when(event, F.expr(first))).alias("h1"),
            F.bit_xor(F.when(event, F.expr(second))).alias("h2"),
            F.min(F.when(event, F.col("ts"))).alias("first_ts"),
            F.max(F.when(event, F.col("ts"))).alias("last_ts"),
        )
        .toArrow()
        .to_pylist()
    )
    days: dict[date, dict[str, Any]] = {}
    hashes: dict[date, tuple[int, int]] = {}
    for row in found:
        counts = days.setdefault(row["day"], {"day": row["day"], **{name: 0 for name, _ in _COUNTED}})
        for name, _ in _COUNTED:
            counts[name] += row[name]
        h1, h2 = hashes.get(row["day"], (0, 0))
        hashes[row["day"]] = (h1 ^ (row["h1"] or 0), h2 ^ (row["h2"] or 0))
    for day, counts in days.items():
        counts["checksum"] = checksum(counts["rows"], *hashes[day])
    rates = [
        {"events": row["rows"], **{name: row[name] for name in ("day", "type", "key", "first_ts", "last_ts")}}
        for row in found
        if row["rows"]
    ]
    return list(days.values()), rates


_COUNTED = (("rows", EVENT), ("duplicates", DUPLICATE), ("conflicts", CONFLICT), ("superseded", SUPERSEDED))


def raw_counts(delivered: DataFrame, files: list[Effective]) -> dict[date, int]:
    """Delivered rows of effective files per day, counted apart from ``resolve``: what its fates must add up to."""
    from pyspark.sql import functions as F

    loads = [f.load_id for f in files]
    rows = delivered.where(F.col("load_id").isin(loads)).groupBy("event_date").count()
    return {row["event_date"]: row["count"] for row in rows.collect()}
