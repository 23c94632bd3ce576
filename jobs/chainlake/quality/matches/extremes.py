"""What a suite needs to see of many matches: per day the smallest and the largest value of each measure, and a null.

Every expectation of the template looks at one column, row by row, and holds for all values between two for which it
holds. So a suite that passes on these few rows passes on all of them. One that fails on them is run on the rows
themselves, which then says which and how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainlake.quality.frames import nullable
from chainlake.quality.matches.files import MatchFiles, aggregated, some_twice, some_unknown
from chainlake.quality.matches.measures import bound_ids, measured_rows
from chainlake.quality.matches.sql import MatchRules

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

_DAY = "decision_day"
_VALUE_WISE = (
    "expect_table_columns_to_match_set",
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_be_null",
    "expect_column_values_to_be_between",
)
#: Columns of which every value is shown, so that they may be compared with a set.
_WHOLE = (_DAY, "names_fit")
_EITHER_OR = "expect_column_values_to_be_in_set"


def tell_all(suite: Mapping[str, Any]) -> bool:
    """Whether all expectations of a suite are such that the extremes decide them."""
    return all(
        one["type"] in _VALUE_WISE or one["type"] == _EITHER_OR and one["kwargs"]["column"] in _WHOLE
        for one in suite["expectations"]
    )


def extremes(rules: MatchRules, staged: DataFrame, events: DataFrame) -> pd.DataFrame | None:
    """Three rows per decision day: the least values, the largest, and null wherever a row of the day has one.

    Texts other than the day are only shown to be there. Three aggregations; nothing is cached.

    Args:
        rules: what is known of the pattern.
        staged: rows in the form of the match table, with all its columns.
        events: events of the read range, at least ``event_id``.

    Returns:
        columns as of :func:`chainlake.quality.matches.measures.measures`; ``None`` if a match is there twice or binds
        an unknown event, so that its rows must be looked at.
    """
    if _some_twice(staged) or _some_unknown(rules, staged, events):
        return None
    return extremes_of(measured_rows(rules, staged, copies="1").selectExpr("*", "cast(null AS string) unknown_event"))


def extremes_in_files(rules: MatchRules, columns: Sequence[str], files: MatchFiles) -> pd.DataFrame | None:
    """What :func:`extremes` gives, from files, without Spark.

    Args:
        rules: what is known of the pattern.
        columns: those of the match table.
        files: where the rows and the events are.
    """
    if files.staged and (some_twice(files) or some_unknown(rules, files)):
        return None
    return three_rows(*aggregated(rules, columns, files))


def extremes_of(measured: DataFrame) -> pd.DataFrame:
    """The three rows per day, of measured rows."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType, NumericType, TimestampType

    kinds = {f.name: f.dataType for f in measured.schema if f.name not in ("event_ids", _DAY)}
    ordered = {name: isinstance(kind, NumericType | TimestampType | BooleanType) for name, kind in kinds.items()}
    aggregates = [F.count("*").alias("rows")]
    for at, (name, both) in enumerate(ordered.items()):
        column = F.col(f"`{name}`")
        aggregates.append(F.count(column).alias(f"n{at}"))
        if both:
            aggregates += [F.min(column).alias(f"lo{at}"), F.max(column).alias(f"hi{at}")]
    return three_rows(measured.groupBy(_DAY).agg(*aggregates).toArrow(), ordered)


def three_rows(found: pa.Table, ordered: Mapping[str, bool]) -> pd.DataFrame:
    """The three rows per day from what :func:`chainlake.quality.matches.files.aggregated` gives."""
    rows = found["rows"].to_pylist()
    columns: dict[str, pa.Array] = {_DAY: pa.concat_arrays(3 * [found[_DAY].combine_chunks()])}
    for at, (name, both) in enumerate(ordered.items()):
        counts = found[f"n{at}"].to_pylist()
        if both:
            low, high = (found[f"{end}{at}"].combine_chunks() for end in ("lo", "hi"))
        else:
            low = high = pa.array(["present" if n else None for n in counts], pa.string())
        lacking = pa.array([n < of for n, of in zip(counts, rows, strict=True)], pa.bool_())
        columns[name] = pa.concat_arrays([low, high, pa.compute.if_else(lacking, pa.scalar(None, low.type), high)])
    return nullable(pa.table(columns))


def _some_twice(staged: DataFrame) -> bool:
    """Whether two matches may have one key; equal hashes of different keys are looked at as well."""
    from pyspark.sql import functions as F

    counted = staged.groupBy(F.xxhash64("match_id", "decision_ts")).count()
    return counted.where("count > 1").count() > 0


def _some_unknown(rules: MatchRules, staged: DataFrame, events: DataFrame) -> bool:
    """Whether a bound event is not among ``events``, by 64-bit hashes of the ids: beside a billion ids that are there,
    one that is not has a chance of 1 in 18 billion to be taken for one of them."""
    from pyspark.sql import functions as F

    ids = bound_ids(rules, staged).where("event_id IS NOT NULL")
    bound = ids.select(F.xxhash64("event_id").alias("hash")).distinct()
    known = events.select(F.xxhash64("event_id").alias("hash"))
    # Counted, since to look for a first one goes partition by partition.
    return bound.join(known, "hash", "left_anti").count() > 0
