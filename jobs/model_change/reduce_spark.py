"""The one Spark file of the model monitor: events to one row per key and round, and many groups over the workers.

A group is sequential in time, groups are independent of each other: so each is one stretch of a partition, and the
partitions are packed by the groups' sizes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.model_change.definitions import Config
from jobs.model_change.reduce import reduced_schema
from jobs.model_change.replay import GroupDays, pack, run_days, weights
from jobs.model_change.series import SeriesConfig

#: Partitions per task slot: enough that a worker which is done early finds more to do.
_PER_SLOT = 4


def reduce_events(events: DataFrame, config: SeriesConfig, key: str) -> pa.Table:
    """The same rows as `reduce.reduce_rows`, computed by Spark and small enough for the driver.

    Args:
        events: rows with event_id, ts, the key column and the model's columns; only the days wanted.
        config: the model.
        key: name of the key column.
    """
    return reduced_frame(events, config, key).toArrow().cast(reduced_schema(config))


def reduced_frame(events: DataFrame, config: SeriesConfig, key: str) -> DataFrame:
    """`reduce_events` before it is collected.

    Sums and means add in the order of (ts, event_id), so that no partitioning shows in their last bits.
    """
    length = config.round_us
    round_us = F.expr(f"unix_micros(ts) - pmod(unix_micros(ts), {length})")
    mine = events.where(F.col(key).isin(*config.all_keys))
    if config.missing_if_zero is not None:
        mine = mine.where(~F.col(f"`{config.missing_if_zero}`").eqNullSafe(F.lit(0)))
    grouped = mine.groupBy(F.col(key).alias("key"), round_us.alias("round_us"))
    return grouped.agg(*[_aggregate(config.aggregate, name).alias(name) for name in config.columns])


def run_groups(
    reduced: DataFrame, config: Config, first: date, end: date, snapshots: Mapping[str, str]
) -> dict[str, GroupDays]:
    """What `replay.run_days` gives for every group of a definition, computed by the workers.

    Args:
        reduced: the rounds of the days, from `reduced_frame`.
        config: the definition.
        first, end: first day, and the day after the last.
        snapshots: state per group at the end of the day before; empty at the start.
    """
    spark, groups = reduced.sparkSession, list(config.groups)
    bins = min(len(groups), _PER_SLOT * spark.sparkContext.defaultParallelism)
    place = pack(weights(config), bins)
    listed = [(key, slot, place[slot]) for slot, group in enumerate(groups) for key in config.keys(group)]
    homes = spark.createDataFrame(listed, "key string, slot int, place int")
    placed = reduced.join(F.broadcast(homes), "key").repartitionById(bins, "place").sortWithinPartitions("slot")
    columns, schema = reduced_schema(config).names, reduced_schema(config)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for slot, rows in _stretches(batches):
            group = groups[slot]
            table = rows.select(columns).cast(schema)
            found = run_days(config, group, table, first, end, snapshots.get(group))
            yield pa.RecordBatch.from_pydict({"slot": [slot], "gave": [pickle.dumps(found)]}, _GAVE)

    gave = placed.mapInArrow(work, "slot int, gave binary").toArrow()
    done = {groups[row["slot"]]: pickle.loads(row["gave"]) for row in gave.to_pylist()}
    empty = schema.empty_table()
    # Groups without a single event have days, and states, all the same.
    return {g: done.get(g) or run_days(config, g, empty, first, end, snapshots.get(g)) for g in groups}


_GAVE = pa.schema([pa.field("slot", pa.int32()), pa.field("gave", pa.binary())])


def _stretches(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of one slot after the other; a partition is sorted by slot, and is never held as a whole."""
    held: list[pa.RecordBatch] = []
    slot = -1
    for batch in batches:
        slots = batch.column("slot").to_numpy()
        at = 0
        while at < len(slots):
            stop = at + int((slots[at:] != slots[at]).argmax() or len(slots) - at)
            if held and slots[at] != slot:
                yield slot, pa.Table.from_batches(held)
                held = []
            slot = int(slots[at])
            held.append(batch.slice(at, stop - at))
            at = stop
    if held:
        yield slot, pa.Table.from_batches(held)


def _aggregate(how: str, name: str) -> Column:
    value = F.col(f"`{name}`").cast("double")
    known = F.when(~F.isnan(value), value)
    if how in ("min", "max"):
        return F.min(known) if how == "min" else F.max(known)
    at = F.when(known.isNotNull(), F.struct("ts", "event_id"))
    if how in ("last", "first"):
        return F.max_by(known, at) if how == "last" else F.min_by(known, at)
    ordered = F.array_sort(F.collect_list(F.when(known.isNotNull(), F.struct("ts", "event_id", known.alias("v")))))
    total = F.aggregate(ordered, F.lit(0.0), lambda sum_, item: sum_ + item["v"])
    size = F.size(ordered)
    return F.when(size > 0, total if how == "sum" else total / size)
