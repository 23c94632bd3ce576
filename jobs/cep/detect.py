"""Patterns on Spark: the one file of the matching engine that knows DataFrames (design §5, Distribution).

Candidates are filtered in Spark, cut into slices of decision time (and by key where equality clauses link all names),
and each group is matched by the kernel in a Python worker that streams Arrow batches out. Slices own matches by
decision time and read only what their read range says, so their number and bounds never show in the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import jobs.errors
from jobs.cep.kernel import find
from jobs.cep.output import match_rows
from jobs.cep.pattern import Pattern
from jobs.cep.search import Statistics
from jobs.days import US_PER_DAY, day_start_us
from jobs.errors import ChainlakeError, InfrastructureError
from jobs.lake.types import spark_schema
from schemas.table import Table

#: Events of one slice; more make a group's arrays large, fewer cost a group each (about 5 ms).
TARGET_ROWS = 400_000

_COUNTS = ("evaluations", "evaluations_neg", "evaluations_pre")
#: The column beside the table's that carries what a group has to say.
REPORT = pa.schema([pa.field("_report", pa.string())])


@dataclass(frozen=True)
class Slice:
    """A stretch of decision time and the events needed for it, both half-open, in microseconds."""

    number: int
    own: tuple[int, int]
    read: tuple[int, int]


def slices(pattern: Pattern, days: Iterable[date], rows: Mapping[date, int]) -> list[Slice]:
    """Cut ``days`` into slices of about ``TARGET_ROWS`` events.

    Args:
        pattern: says how far before its own stretch a slice must read.
        days: the days whose matches are wanted; need not be contiguous.
        rows: events per day, as ingest counted them; a day without an entry counts as small.
    """
    cut: list[Slice] = []
    for day in sorted(days):
        pieces = max(1, -(-rows.get(day, 0) // TARGET_ROWS))
        bounds = [day_start_us(day) + US_PER_DAY * i // pieces for i in range(pieces + 1)]
        for lo, hi in zip(bounds, bounds[1:], strict=False):
            cut.append(Slice(len(cut), (lo, hi), pattern.read_range(lo, hi)))
    return cut


def detect_matches(
    events: DataFrame,
    pattern: Pattern,
    table: Table,
    cut: Sequence[Slice],
    orders: Sequence[Sequence[str]] | None = None,
) -> DataFrame:
    """The matches of ``pattern`` that the slices own.

    Args:
        events: event_id, type, key, ts and the attributes the pattern needs; any order and layout.
        pattern: the compiled pattern.
        table: the match table; its columns are the result's.
        cut: slices that together own the wanted days.
        orders: binding order of each branch; if not given, every group chooses its own.

    Returns:
        The table's columns and ``_report``, a JSON text that is set on one extra row per group (all else null there):
        evaluation counts, or the error that stopped the group; see :func:`count_reports`.
    """
    sliced = candidates(events, pattern, cut).withColumn("_slice", F.explode(_slices_of(cut)))
    by = ["_slice"] + ([pattern.partition_key] if pattern.partition_key else [])
    schema = spark_schema(pa.unify_schemas([_nullable(table.arrow()), REPORT]))
    return sliced.groupBy(*by).applyInArrow(_matcher(pattern, table, cut, orders), schema)


def candidates(events: DataFrame, pattern: Pattern, cut: Sequence[Slice]) -> DataFrame:
    """The events in the read range of the slices that can be an event of some name, as far as SQL can tell."""
    lo, hi = min(s.read[0] for s in cut), max(s.read[1] for s in cut)
    found = events.where((F.unix_micros("ts") >= lo) & (F.unix_micros("ts") < hi))
    wanted = pattern.candidate_sql()
    return found if wanted is None else found.where(F.expr(wanted))


def count_reports(reports: Iterable[str]) -> dict[str, int]:
    """Evaluations summed over the reports of all groups.

    Raises:
        ChainlakeError: the error that stopped a group, as the kernel raised it.
    """
    counts = dict.fromkeys(_COUNTS, 0)
    for text in reports:
        report = json.loads(text)
        if "error" in report:
            kind = getattr(jobs.errors, report["error"], InfrastructureError)
            raise kind(report["what"], **report["details"])
        for name in _COUNTS:
            counts[name] += report[name]
    return counts


def _slices_of(cut: Sequence[Slice]) -> Column:
    """The numbers of the slices that read a row, as an array column.

    Read ranges overlap by the window only, so a row is in few slices; bounds ascend with the number, so the slices of
    a row are one run of numbers, found by counting the bounds below it.
    """
    ts = F.unix_micros("ts")
    starts = F.array(*[F.lit(s.read[0]) for s in cut])
    ends = F.array(*[F.lit(s.read[1]) for s in cut])
    first = F.size(F.filter(ends, lambda end: end <= ts))
    last = F.size(F.filter(starts, lambda start: start <= ts)) - 1
    return F.when(first <= last, F.sequence(first, last)).otherwise(F.array().cast("array<int>"))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _matcher(
    pattern: Pattern, table: Table, cut: Sequence[Slice], orders: Sequence[Sequence[str]] | None
) -> Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    own = {s.number: s.own for s in cut}
    shape = _nullable(table.arrow())
    schema = pa.unify_schemas([shape, REPORT])

    def match_group(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        statistics = Statistics()
        try:
            events = pa.Table.from_batches(list(batches)).drop_columns(["_slice"])
            found = find(pattern, events, orders=orders, own=own[key[0].as_py()], statistics=statistics)
            for matches in found:
                rows = match_rows(pattern, events, matches, table.arrow())
                for batch in rows.to_batches():
                    yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(len(batch), pa.string())], schema=schema)
            report: dict[str, Any] = {name: int(getattr(statistics, name)) for name in _COUNTS}
        except ChainlakeError as error:
            # An exception would reach the driver as text inside a Spark stack; a row keeps its type and place.
            report = {"error": type(error).__name__, "what": error.what, "details": error.details()}
        nothing = [pa.nulls(1, schema.field(name).type) for name in table.column_names]
        yield pa.RecordBatch.from_arrays([*nothing, pa.array([json.dumps(report)])], schema=schema)

    # Spark reads the annotations to choose the streaming form; they must be types, not the names of types.
    match_group.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return match_group
