"""Measures of matches: plain columns beside a match, such as its span in microseconds, that a suite can test.

They are computed by Spark whatever engine tests them, so that both engines judge the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.quality.frames import nullable
from chainlake.quality.matches.sql import SPARK, MatchRules, bound_column, event_ids, measured
from chainlake.schemas.matches import FIXED_COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


def apart(staged: DataFrame) -> DataFrame:
    """``staged`` with its columns named so that no measure can be called like one of them."""
    return staged.toDF(*(c if c in FIXED_COLUMNS else bound_column(c) for c in staged.columns))


def bound_ids(rules: MatchRules, staged: DataFrame) -> DataFrame:
    """The column ``event_id``: every event of every match, null where one has no id."""
    ids = SPARK.concat([event_ids(SPARK, SPARK.quoted(name), kleene) for name, kleene in rules.names.items()])
    return staged.selectExpr(f"explode({ids}) AS event_id")


def measured_rows(
    rules: MatchRules, staged: DataFrame, *, copies: str = "count(*) OVER (PARTITION BY match_id, decision_ts)"
) -> DataFrame:
    """All measures but ``unknown_event``, the ``event_ids`` of a match, and of a name only how many events it binds.

    Args:
        rules: what is known of the pattern.
        staged: rows in the form of the match table, with all its columns.
        copies: Spark SQL for how many rows have the key of a row.
    """
    staged = apart(staged)
    return staged.selectExpr(
        *(f"{sql} AS {SPARK.quoted(name)}" for name, sql in measured(rules, staged.columns, SPARK, copies).items())
    )


@contextmanager
def measures(rules: MatchRules, staged: DataFrame, events: DataFrame) -> Iterator[DataFrame]:
    """``staged`` with what the suite tests, for outputs of any size; cached within the context.

    Args:
        rules: what is known of the pattern.
        staged: rows in the form of the match table, with all its columns.
        events: events of the read range, at least ``event_id``.
    """
    from pyspark.sql import functions as F

    # Cached, so that the numbers of the rows are the same wherever they are used.
    measured = measured_rows(rules, staged).withColumn("_row", F.monotonically_increasing_id()).persist()
    bound = measured.select("_row", F.explode("event_ids").alias("event_id")).where("event_id IS NOT NULL")
    unknown = bound.join(events.select("event_id"), "event_id", "left_anti")
    least = unknown.groupBy("_row").agg(F.min("event_id").alias("unknown_event"))
    complete = measured.join(least, "_row", "left").drop("_row", "event_ids").persist()
    try:
        yield complete
    finally:
        complete.unpersist()
        measured.unpersist()


def small_measures(rules: MatchRules, staged: DataFrame, events: DataFrame, limit: int) -> pd.DataFrame | None:
    """What :func:`measures` gives, as a pandas frame, with two or three Spark jobs.

    Args:
        rules: what is known of the pattern.
        staged: rows in the form of the match table, with all its columns.
        events: events of the read range, at least ``event_id``.
        limit: rows that are few enough.

    Returns:
        the frame, whose columns can all be null and whose times are UTC; ``None`` if there are more rows than that.
    """
    # In one partition neither the limit nor the count of copies needs a shuffle, each of which is a job of its own.
    found = measured_rows(rules, staged.coalesce(1).limit(limit + 1)).toArrow()
    if found.num_rows > limit:
        return None
    lists = found["event_ids"].combine_chunks()
    unknown = _unknown(pc.drop_null(pc.unique(pc.list_flatten(lists))), events)
    least = [min(unknown.intersection(ids), default=None) for ids in lists.to_pylist()] if unknown else None
    column = pa.array(least or [None] * len(lists), pa.string())
    return nullable(found.drop_columns("event_ids").append_column("unknown_event", column))


def _unknown(ids: pa.Array, events: DataFrame) -> set[str]:
    """Those of the distinct ``ids`` that ``events`` lacks; the only pass over the events."""
    if not len(ids):
        return set()
    from pyspark.sql import functions as F

    asked = events.sparkSession.createDataFrame(pa.table({"event_id": ids}))
    known = events.select("event_id").join(F.broadcast(asked), "event_id", "left_semi").toArrow()
    return set(ids.to_pylist()).difference(known["event_id"].to_pylist())
