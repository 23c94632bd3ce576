"""Raw rows of days to events, duplicates, conflicts and superseded rows, by Spark and NumPy (design §3).

The result depends on the raw rows of the effective files and on nothing else: not on the order in which they arrived,
nor on what was resolved before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.definitions.source import Source
from chainlake.ingest.checksum import checksum
from chainlake.ingest.events.fates import codes, decide
from chainlake.ingest.events.identity import content_sql, multiset_id_sql, quoted, row_hash_sql, unique_id_sql
from chainlake.ingest.landing.effective import Effective
from chainlake.schemas.events import events_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What became of a raw row.
EVENT, DUPLICATE, CONFLICT, SUPERSEDED = "event", "duplicate", "conflict", "superseded"
#: Rows of a batch that a task gives back.
_BATCH_ROWS = 50_000


def raw_days(raw: DataFrame, loads: Iterable[str]) -> set[date]:
    """The days on which the given loads have rows."""
    from pyspark.sql import functions as F

    rows = raw.where(F.col("load_id").isin(sorted(loads))).select("event_date").distinct().collect()
    return {row["event_date"] for row in rows}


def file_order(files: Iterable[Effective]) -> list[Effective]:
    """The files in the order of design §3: (file date, revision, name)."""
    return sorted(files, key=lambda f: (f.file_date or date.min, f.revision, f.name))


def corrects_keys(source: Source, files: Iterable[Effective]) -> bool:
    """Whether some of ``files`` replace each other key by key."""
    return "key" in source.replaces and bool(_competing(files))


def beaten_loads(source: Source, files: Iterable[Effective]) -> set[str]:
    """The loads of files that others replace as a whole: where ``corrects_keys`` does not hold."""
    if not source.replaces:
        return set()
    competing = _competing(files)
    best = {day: max((f.revision for f in several if f.whole), default=0) for day, several in competing.items()}
    return {f.load_id for day, several in competing.items() for f in several if f.revision < best[day]}


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
        The columns of raw but ``load_id``, the file's order (``_order``), and ``_fate``, ``event_id``, ``seq``; the
        latter two are null unless the fate is ``event``.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    order = file_order(files)
    ranks = _frame(spark, {"load_id": [f.load_id for f in order], "_order": list(range(len(order)))})
    rows = delivered.join(F.broadcast(ranks), "load_id")
    rows = _mark_superseded(spark, source, raw, rows, order)
    first, second = content_sql(source)
    rows = rows.drop("load_id").withColumn("_c1", F.expr(first)).withColumn("_c2", F.expr(second))
    # Windows over these columns would sort all rows three times; a task of NumPy takes a tenth of it.
    rows = rows.repartition("ts", source.key, "type")
    given = [field for field in rows.schema if field.name != "_fate"]
    added = [StructField("_fate", StringType()), StructField("seq", LongType()), StructField("_copy", LongType())]
    decided = rows.mapInArrow(_fates_of(source), StructType([*given, *added]))
    identity = multiset_id_sql(source) if source.identity == "multiset" else unique_id_sql(source)
    return decided.withColumn("event_id", F.when(F.col("_fate") == EVENT, F.expr(identity))).drop("_copy")


def _fates_of(source: Source) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task: all rows of some places in, the same rows with ``_fate``, ``seq`` and ``_copy`` out."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(batches)
        if found:
            yield from decided(source, pa.Table.from_batches(found)).to_batches(max_chunksize=_BATCH_ROWS)

    return work


def decided(source: Source, table: pa.Table) -> pa.Table:
    """All rows of some places with their fates.

    Args:
        source: says how events are told apart.
        table: the raw rows with ``_order``, the rank of their file, ``_c1`` and ``_c2``, the hashes of their content,
            and ``_fate``, null where it is to be found.

    Returns:
        The rows in the order (file, line, entry), with ``_fate``, and ``seq`` and ``_copy``, null where no event is.
    """
    table = table.sort_by([(name, "ascending") for name in ("_order", "line", "entry")])
    fate = np.array(table["_fate"].to_pylist(), dtype=object)
    alive = pc.is_null(table["_fate"]).to_numpy()
    rows = table.filter(pa.array(alive))
    place = codes([rows["ts"], rows[source.key], rows["type"]])
    fates = decide(source, place, codes([rows["_c1"], rows["_c2"]]), rows["_order"].to_numpy())
    fate[alive] = np.where(fates.event, EVENT, np.where(fates.conflict, CONFLICT, DUPLICATE))
    event = np.zeros(len(table), bool)
    event[alive] = fates.event
    seq, copy = np.zeros((2, len(table)), np.int64)
    seq[alive], copy[alive] = fates.seq, fates.copy
    columns = {
        "_fate": pa.array(fate, pa.string()), "seq": pa.array(seq, mask=~event), "_copy": pa.array(copy, mask=~event)
    }  # fmt: skip
    table = table.drop_columns("_fate")
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table


def _frame(spark: SparkSession, columns: dict[str, list[Any]]) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))


def _mark_superseded(
    spark: SparkSession, source: Source, raw: Callable[[], DataFrame], rows: DataFrame, order: list[Effective]
) -> DataFrame:
    """``_fate`` = superseded where a higher revision of the scope exists, else null."""
    from pyspark.sql import functions as F

    if not corrects_keys(source, order):
        beaten = F.col("load_id").isin(sorted(beaten_loads(source, order)))
        return rows.withColumn("_fate", F.when(beaten, SUPERSEDED).otherwise(F.lit(None).cast("string")))
    competing = _competing(order)
    # Which keys a file holds is known from all its rows, on whatever day they lie, and from its path.
    members = [f for files in competing.values() for f in files]
    listed: dict[str, list[Any]] = {
        "load_id": [f.load_id for f in members],
        "_date": [f.file_date for f in members],
        "_revision": [f.revision for f in members],
        "_whole": [f.whole for f in members],
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
        .agg(F.max(F.when(F.col("_whole"), F.col("_revision"))).alias("_best"))
    )
    beaten_rows = (
        held.distinct()
        .join(F.broadcast(scopes), "load_id")
        .join(best_of, ["_date", "_key"])
        .where("_revision < _best")
        .select("load_id", F.col("_key").alias(source.key), F.lit(SUPERSEDED).alias("_fate"))
    )
    return rows.join(F.broadcast(beaten_rows), ["load_id", source.key], "left")


def _competing(order: Iterable[Effective]) -> dict[date, list[Effective]]:
    """Files by file date, where one date has several revisions."""
    by_date: dict[date, list[Effective]] = {}
    for file in order:
        if file.file_date is not None:
            by_date.setdefault(file.file_date, []).append(file)
    return {day: files for day, files in by_date.items() if len({f.revision for f in files}) > 1}


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
            *(F.count(F.when(F.col("_fate") == fate, 1)).alias(name) for name, fate in COUNTED),
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
        counts = days.setdefault(row["day"], {"day": row["day"], **{name: 0 for name, _ in COUNTED}})
        for name, _ in COUNTED:
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


#: Name of a day's count, and the fate that it counts.
COUNTED = (("rows", EVENT), ("duplicates", DUPLICATE), ("conflicts", CONFLICT), ("superseded", SUPERSEDED))


def raw_counts(delivered: DataFrame, files: list[Effective]) -> dict[date, int]:
    """Delivered rows of effective files per day, counted apart from ``resolve``: what its fates must add up to."""
    from pyspark.sql import functions as F

    loads = [f.load_id for f in files]
    rows = delivered.where(F.col("load_id").isin(loads)).groupBy("event_date").count()
    return {row["event_date"]: row["count"] for row in rows.collect()}
