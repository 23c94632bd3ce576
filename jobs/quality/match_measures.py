"""Measures of matches: plain columns beside a match, such as its span in microseconds, that a suite can test.

They are computed by Spark whatever engine tests them, so that both engines judge the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.quality.frames import nullable
from schemas.matches import FIXED_COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

#: What is added to a match.
MEASURES = (
    "decision_day", "span_us", "start_off_us", "end_off_us", "decision_off_us", "null_event_ids", "repeated_events",
    "names_fit", "order_gap_us", "copies", "unknown_event",
)  # fmt: skip


@dataclass(frozen=True)
class MatchRules:
    """What the gate knows of a pattern.

    Args:
        pattern: its name.
        window_us: W in microseconds.
        waits: matches decide at ``min(ts) + W`` (an open-right negation), else at ``max(ts)``.
        names: positive name → whether its column is an array (Kleene in any branch).
        branches: per branch its positive names, and the pairs (earlier, later) of them that the pattern orders.
    """

    pattern: str
    window_us: int
    waits: bool
    names: Mapping[str, bool]
    branches: tuple[tuple[frozenset[str], frozenset[tuple[str, str]]], ...]


def rules_of(pattern: Any) -> MatchRules:
    """The rules of a compiled pattern (``jobs.cep.pattern.Pattern``)."""
    branches = []
    for branch in pattern.branches:
        bound = frozenset(branch.positive)
        order = frozenset((earlier, later) for later in bound for earlier in branch.before[later] & bound)
        branches.append((bound, order))
    return MatchRules(
        pattern=pattern.name,
        window_us=pattern.window_us,
        waits=pattern.decision == "start+W",
        names={name.name: name.kleene for name in pattern.names},
        branches=tuple(branches),
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _values(name: str, kleene: bool, field: str) -> str:
    """Spark SQL: that field of all events bound to ``name``, an empty array if the name is unbound."""
    column = f"{_quoted(name)}.{field}"
    kind = "string" if field == "event_id" else "timestamp"
    empty = f"cast(array() AS array<{kind}>)"
    if kleene:
        return f"coalesce({column}, {empty})"
    return f"CASE WHEN {_quoted(name)} IS NULL THEN {empty} ELSE array({column}) END"


def bound_column(name: str) -> str:
    """What a column of a positive name is called beside the measures, one of which may be called like the name."""
    return f"{name} bound"


def apart(staged: DataFrame) -> DataFrame:
    """``staged`` with its columns named so that no measure can be called like one of them."""
    return staged.toDF(*(c if c in FIXED_COLUMNS else bound_column(c) for c in staged.columns))


def has_columns(rules: MatchRules, staged: DataFrame) -> bool:
    """Whether all columns are there that the measures need."""
    return {*FIXED_COLUMNS, *rules.names} <= set(staged.columns)


def bound_ids(rules: MatchRules, staged: DataFrame) -> DataFrame:
    """The column ``event_id``: every event of every match, null where one has no id."""
    ids = (_values(name, kleene, "event_id") for name, kleene in rules.names.items())
    return staged.selectExpr(f"explode(concat({', '.join(ids)})) AS event_id")


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
    ids = {name: _values(bound_column(name), kleene, "event_id") for name, kleene in rules.names.items()}
    times = {name: _values(bound_column(name), kleene, "ts") for name, kleene in rules.names.items()}
    columns = {bound_column(name): name for name in rules.names}
    fits, gaps = [], []
    for bound, order in rules.branches:
        fit = " AND ".join(f"size({ids[n]}) {'>' if n in bound else '='} 0" for n in rules.names)
        fits.append(f"({fit})")
        between = [
            f"unix_micros(array_min({times[later]})) - unix_micros(array_max({times[earlier]}))"
            for earlier, later in sorted(order)
        ]
        if between:
            least = between[0] if len(between) == 1 else f"least({', '.join(between)})"
            gaps.append(f"CASE WHEN {fit} THEN {least} END")
        else:
            gaps.append(f"CASE WHEN {fit} THEN {rules.window_us + 1} END")
    gap = gaps[0] if len(gaps) == 1 else f"greatest({', '.join(gaps)})"
    decided = f"unix_micros(start_ts) + {rules.window_us}" if rules.waits else "unix_micros(end_ts)"

    def bound_count(column: str) -> str:
        # Great Expectations would list every field of a struct as a column of its own.
        return f"size({ids[columns[column]]}) AS {_quoted(column)}"

    first = staged.selectExpr(
        "*",
        f"concat({', '.join(ids.values())}) AS event_ids",
        f"concat({', '.join(times.values())}) AS event_times",
        f"({' OR '.join(fits)}) AS names_fit",
        f"{gap} AS order_gap_us",
    )
    return first.selectExpr(
        *(bound_count(column) if column in columns else _quoted(column) for column in staged.columns),
        "event_ids",
        "names_fit",
        "order_gap_us",
        "cast(to_date(decision_ts) AS string) AS decision_day",
        "unix_micros(end_ts) - unix_micros(start_ts) AS span_us",
        "unix_micros(start_ts) - unix_micros(array_min(event_times)) AS start_off_us",
        "unix_micros(end_ts) - unix_micros(array_max(event_times)) AS end_off_us",
        f"unix_micros(decision_ts) - ({decided}) AS decision_off_us",
        "size(filter(event_ids, id -> id IS NULL)) AS null_event_ids",
        "size(event_ids) - size(array_distinct(event_ids)) AS repeated_events",
        f"{copies} AS copies",
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
