"""Patterns on Spark: the one file of the matching engine that knows DataFrames (design §5, Distribution).

Candidates are filtered in Spark, cut into slices of decision time (and by key where equality clauses link all names),
put on the partitions that balance the work, and matched by Python workers that stream Arrow batches in and out.
Slices own matches by decision time and read only what their read range says, so neither they nor partitions, row order
or file layout ever show in the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

import chainlake.errors
from chainlake.cep.pattern import Pattern
from chainlake.detect.tasks.slices import Layout, Slice
from chainlake.detect.tasks.worker import COUNTS, REPORT, SLICE, Matcher
from chainlake.errors import InfrastructureError
from chainlake.lake.spark.python_workers import forget_archives
from chainlake.lake.spark.types import spark_schema
from chainlake.schemas.table import Table


def detect_matches(
    events: DataFrame,
    pattern: Pattern,
    table: Table,
    layout: Layout,
    orders: Sequence[Sequence[str]] | None = None,
) -> DataFrame:
    """The matches of ``pattern`` that the slices own.

    Args:
        events: event_id, type, key, ts and the attributes the pattern needs; any order and layout.
        pattern: the compiled pattern.
        table: the match table; its columns are the result's.
        layout: slices that together own the wanted days.
        orders: binding order of each branch; if not given, every worker chooses its own.

    Returns:
        The table's columns and ``#report``, a JSON text that is set on one extra row per partition (all else null
        there): evaluation counts, or the error that stopped it; see :func:`count_reports`.
    """
    found = candidates(events, pattern, layout.read)
    sent = found.select(*columns_of(found.columns, pattern, table))
    sliced = sent.withColumn(SLICE, F.explode(_slices_of(pattern, layout)))
    placed = sliced.repartitionById(layout.partitions, _place_of(pattern, layout))
    ordered = placed.sortWithinPartitions(*_order_of(pattern, layout))
    matcher = Matcher(pattern, table.arrow(), {s.number: s.own for s in layout.slices}, orders)

    def match_partition(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        forget_archives()
        return matcher.run(batches)

    return ordered.mapInArrow(match_partition, spark_schema(matcher.schema))


def _order_of(pattern: Pattern, layout: Layout) -> list[Column]:
    """What rows are sorted by: slice, key, time. Without a key as one number, whose order Spark gets without comparing
    rows."""
    key = [] if pattern.partition_key is None else [F.col(pattern.partition_key)]
    length = layout.read[1] - layout.read[0]
    if key or length * len(layout.slices) >= 1 << 62:
        return [F.col(SLICE), *key, F.col("ts")]
    return [F.col(SLICE).cast("long") * F.lit(length) + (ticks_column(pattern) - F.lit(layout.read[0]))]


def candidates(events: DataFrame, pattern: Pattern, read: tuple[int, int]) -> DataFrame:
    """The events with ts in ``read`` that can be an event of some name, as far as SQL can tell."""
    ticks = ticks_column(pattern)
    found = events.where((ticks >= read[0]) & (ticks < read[1]))
    wanted = pattern.candidate_sql()
    if wanted is not None:
        found = found.where(F.expr(wanted))
    key = pattern.partition_key
    if key is not None and isinstance(found.schema[key].dataType, DoubleType | FloatType):
        # NaN is null, and the two zeros are equal, though hashed as different.
        found = found.withColumn(key, F.when(~F.isnan(key), F.col(key) + F.lit(0.0)))
    if key is not None and all(len(branch.positive) > 1 for branch in pattern.branches):
        # An equality with an unknown value is never true, so such an event is in no match and rejects none. (A lone
        # positive name has equalities with negated ones only, which such an event need not fulfil.)
        found = found.where(F.col(key).isNotNull())
    return found


def ticks_column(pattern: Pattern) -> Column:
    """The time of an event, in the pattern's ticks."""
    return F.unix_micros("ts") if pattern.strict else F.col("ts")


def count_reports(reports: Iterable[str]) -> dict[str, int]:
    """Evaluations summed over the reports of all workers.

    Raises:
        ChainlakeError: the error that stopped one, as the kernel raised it.
    """
    counts = dict.fromkeys(COUNTS, 0)
    for text in reports:
        report = json.loads(text)
        if "error" in report:
            kind = getattr(chainlake.errors, report["error"], InfrastructureError)
            raise kind(report["what"], **report["details"])
        for name in COUNTS:
            counts[name] += report[name]
    return counts


def report_of(frame: DataFrame) -> Column:
    """The column of the reports."""
    return frame[f"`{REPORT.names[0]}`"]


def columns_of(there: Iterable[str], pattern: Pattern, table: Table) -> list[str]:
    """Those of the columns that the kernel and the table's rows need; one that the events lack is null in both."""
    wanted = {"event_id", "type", "ts"} | pattern.columns_needed
    wanted |= set() if pattern.partition_key is None else {pattern.partition_key}
    for column in table.columns:
        kind = column.type.value_type if pa.types.is_list(column.type) else column.type
        if pa.types.is_struct(kind):
            wanted |= {kind.field(i).name for i in range(kind.num_fields)}
    return [name for name in there if name in wanted]


def _slices_of(pattern: Pattern, layout: Layout) -> Column:
    """The numbers of the slices that read a row, as an array column."""
    numbers = _numbers(pattern, layout.base)
    for key, own in layout.hot.items():
        numbers = F.when(F.col(str(pattern.partition_key)) == F.lit(key), _numbers(pattern, own)).otherwise(numbers)
    return numbers


def _numbers(pattern: Pattern, cut: Sequence[Slice]) -> Column:
    """Read ranges overlap by the window only, so a row is in few slices; bounds ascend with the number, so the slices
    of a row are one run of numbers, found by counting the bounds below it."""
    ticks = ticks_column(pattern)
    first = _at_or_below(ticks, [s.read[1] for s in cut], cut[0].number)
    last = _at_or_below(ticks, [s.read[0] for s in cut], cut[0].number - 1)
    return F.when(first <= last, F.sequence(first, last)).otherwise(F.array().cast("array<int>"))


def _at_or_below(ticks: Column, bounds: Sequence[int], add: int) -> Column:
    """How many of the ascending bounds are not above ``ticks``, plus ``add``; by halving, in code that Spark compiles,
    which it does not do for functions on arrays."""
    if not bounds:
        return F.lit(add)
    middle = len(bounds) // 2
    lower = _at_or_below(ticks, bounds[:middle], add)
    upper = _at_or_below(ticks, bounds[middle + 1 :], add + middle + 1)
    return F.when(ticks < F.lit(bounds[middle]), lower).otherwise(upper)


def _place_of(pattern: Pattern, layout: Layout) -> Column:
    """The partition of a row: that of its slice, or of its key if the slice is of many keys."""
    if layout.partitions == 1:
        return F.lit(0)
    places = F.array(*[F.lit(layout.place.get(s.number, -1)) for s in layout.slices])
    place = F.get(places, F.col(SLICE))
    if pattern.partition_key is None:
        return place
    spread = F.pmod(F.xxhash64(pattern.partition_key), F.lit(layout.partitions)).cast("int")
    return F.when(place >= 0, place).otherwise(spread)
