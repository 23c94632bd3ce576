"""The one Spark file of the model monitor: events to one row per key and round, and many groups over the workers.

A group is sequential in time, groups are independent of each other, whichever definition they are of: so each is one
stretch of a partition, and the partitions are packed by the groups' sizes. However many definitions there are, their
events are read and shuffled once per way of making rounds, and their results are collected together.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from chainlake.errors import ChainlakeError
from chainlake.lake.spark.types import frame_of
from chainlake.model_change.config.series import Reduction
from chainlake.model_change.days.replay import GroupDays, GroupRun, pack
from chainlake.model_change.rounds.reduce import reduced_schema

#: Partitions per task slot: enough that a worker which is done early finds more to do.
_PER_SLOT = 4
_GAVE = pa.schema([pa.field("slot", pa.int32()), pa.field("gave", pa.binary())])


def reduced_frame(
    events: DataFrame, reduction: Reduction, columns: Sequence[str], keys: Iterable[str], key: str
) -> DataFrame:
    """The same rows as `reduce.reduce_rows`, computed by Spark: ``key``, ``round_us`` and the columns.

    Sums and means add in the order of (ts, event_id), so that no partitioning shows in their last bits.

    Args:
        events: rows with event_id, ts, the key column, the columns and that of the reduction; only the days wanted.
        reduction: how events become rounds.
        columns: event columns that rounds are made of.
        keys: the key values wanted.
        key: name of the key column.
    """
    round_us = F.expr(f"unix_micros(ts) - pmod(unix_micros(ts), {reduction.round_us})")
    # A join, since thousands of keys make no list of literals.
    wanted = frame_of(events.sparkSession, pa.table({"key": pa.array(sorted(set(keys)), pa.string())}))
    own = F.col(f"`{key}`").cast("string")
    mine = events.withColumn("__key", own).join(F.broadcast(wanted), F.col("__key") == wanted["key"], "left_semi")
    if reduction.missing_if_zero is not None:
        mine = mine.where(~F.col(f"`{reduction.missing_if_zero}`").eqNullSafe(F.lit(0)))
    grouped = mine.groupBy(F.col("__key").alias("key"), round_us.alias("round_us"))
    return grouped.agg(*[_aggregate(reduction.aggregate, name).alias(name) for name in columns])


def run_groups(events: DataFrame, runs: Sequence[GroupRun], key: str) -> list[GroupDays | Exception]:
    """Run groups of any definitions of a source over the workers.

    Args:
        events: events with event_id, ts, the key column and all columns of the definitions, of all their days.
        runs: the groups, not none.
        key: name of the key column.

    Returns:
        for each what `GroupRun.over` gives, or what stopped it: no group stops another.
    """
    spark = events.sparkSession
    bins = min(len(runs), _PER_SLOT * spark.sparkContext.defaultParallelism)
    place = pack([run.weight for run in runs], bins)
    by: dict[Reduction, list[int]] = {}
    for slot, run in enumerate(runs):
        by.setdefault(run.config.reduction, []).append(slot)
    columns = sorted({name for run in runs for name in run.config.columns})
    placed = []
    for reduction, slots in by.items():
        listed = [(name, slot, place[slot]) for slot in slots for name in runs[slot].config.keys(runs[slot].group)]
        kinds = (pa.string(), pa.int32(), pa.int32())
        cells = [pa.array(cell, kind) for cell, kind in zip(zip(*listed, strict=True), kinds, strict=True)]
        homes = frame_of(spark, pa.table(cells, names=["key", "__slot", "__place"]))
        mine = {name for slot in slots for name in runs[slot].config.columns}
        made = [name for name in columns if name in mine]
        reduced = reduced_frame(events, reduction, made, (name for name, _, _ in listed), key)
        cells = [F.col(f"`{n}`") if n in mine else F.lit(None).cast("double").alias(n) for n in columns]
        placed.append(reduced.join(F.broadcast(homes), "key").select("__slot", "__place", "key", "round_us", *cells))
    rows = functools.reduce(DataFrame.unionAll, placed)
    rows = rows.repartitionById(bins, "__place").sortWithinPartitions("__slot")
    # Thousands of definitions and states, once per worker instead of once per task.
    shared = spark.sparkContext.broadcast(list(runs))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for slot, table in _stretches(batches):
            gave = _attempt(shared.value[slot], table)
            yield pa.RecordBatch.from_pydict({"slot": [slot], "gave": [pickle.dumps(gave)]}, _GAVE)

    gave = rows.mapInArrow(work, "slot int, gave binary").toArrow()
    shared.destroy()
    done = {row["slot"]: pickle.loads(row["gave"]) for row in gave.to_pylist()}
    # Groups without a single event have days, and states, all the same.
    return [done[slot] if slot in done else _attempt(run, None) for slot, run in enumerate(runs)]


def _attempt(run: GroupRun, rows: pa.Table | None) -> GroupDays | Exception:
    """What a group gives, or the error that stopped it, in a form that travels."""
    schema = reduced_schema(run.config)
    try:
        return run.over(schema.empty_table() if rows is None else rows.select(schema.names).cast(schema))
    except ChainlakeError as error:
        return error
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _stretches(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of one slot after the other; a partition is sorted by slot, and is never held as a whole."""
    held: list[pa.RecordBatch] = []
    slot = -1
    for batch in batches:
        slots = batch.column("__slot").to_numpy()
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
