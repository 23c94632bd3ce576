"""The one Spark file of the model monitor: events to one row per key and round, small enough for the driver."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.model_change.reduce import reduced_schema
from jobs.model_change.series import SeriesConfig


def reduce_events(events: DataFrame, config: SeriesConfig, key: str) -> pa.Table:
    """The same rows as `reduce.reduce_rows`, computed by Spark.

    Sums and means add in the order of (ts, event_id), so that no partitioning shows in their last bits.

    Args:
        events: rows with event_id, ts, the key column and the model's columns; only the days wanted.
        config: the model.
        key: name of the key column.
    """
    length = config.round_us
    round_us = F.expr(f"unix_micros(ts) - pmod(unix_micros(ts), {length})")
    mine = events.where(F.col(key).isin(*config.all_keys))
    if config.missing_if_zero is not None:
        mine = mine.where(~F.col(f"`{config.missing_if_zero}`").eqNullSafe(F.lit(0)))
    grouped = mine.groupBy(F.col(key).alias("key"), round_us.alias("round_us"))
    reduced = grouped.agg(*[_aggregate(config.aggregate, name).alias(name) for name in config.columns])
    return reduced.toArrow().cast(reduced_schema(config))


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
