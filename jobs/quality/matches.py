"""Gate of ``matches.<pattern>``: what must be true of staged matches before they are published (design §7).

The truths are stated over measures: plain columns computed beside the match, such as the span in microseconds, that
Great Expectations can test together in one pass over the data.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from jobs.quality.audit import Audit, AuditResult
from jobs.quality.days import per_day, span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = ("match_id", "decision_ts")
FIXED = ("match_id", "decision_ts", "start_ts", "end_ts")
#: What ``measures`` adds.
MEASURES = (
    "event_ids", "decision_day", "span_us", "start_off_us", "end_off_us", "decision_off_us", "null_event_ids",
    "repeated_events", "names_fit", "order_gap_us", "copies",
)  # fmt: skip
#: A failure of these means rows that belong to no day of the run.
_UNDATED = ("decision_day", "decision_ts")


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


def measures(rules: MatchRules, staged: DataFrame) -> DataFrame:
    """The measures that the suite tests, and of each name only how many events it binds.

    ``staged`` itself if a column that they need is missing: the suite will say so.
    """
    if not {*FIXED, *rules.names} <= set(staged.columns):
        return staged
    ids = {name: _values(name, kleene, "event_id") for name, kleene in rules.names.items()}
    times = {name: _values(name, kleene, "ts") for name, kleene in rules.names.items()}
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

    def bound_count(name: str) -> str:
        # Great Expectations would list every field of a struct as a column of its own.
        return f"size({ids[name]}) AS {_quoted(name)}"

    first = staged.selectExpr(
        "*",
        f"concat({', '.join(ids.values())}) AS event_ids",
        f"concat({', '.join(times.values())}) AS event_times",
        f"({' OR '.join(fits)}) AS names_fit",
        f"{gap} AS order_gap_us",
    )
    return first.selectExpr(
        *(bound_count(column) if column in ids else _quoted(column) for column in staged.columns),
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
        "count(*) OVER (PARTITION BY match_id, decision_ts) AS copies",
    )


@contextmanager
def _unknown(measured: DataFrame, events: DataFrame) -> Iterator[str]:
    """Name of a temporary view of the bound event ids that ``events`` lacks; the only pass over the events."""
    name = f"audit_unknown_{uuid.uuid4().hex[:12]}"
    bound = measured.sparkSession.createDataFrame([], "event_id string")
    if "event_ids" in measured.columns:
        bound = measured.selectExpr("explode(event_ids) AS event_id").distinct()
    unknown = bound.where("event_id IS NOT NULL").join(events.select("event_id"), "event_id", "left_anti").persist()
    unknown.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        measured.sparkSession.catalog.dropTempView(name)
        unknown.unpersist()


def audit_matches(
    audit: Audit, pattern: Any, staged: DataFrame, days: Iterable[date], events: DataFrame
) -> dict[date, str | None]:
    """Which days of staged matches may be published.

    Args:
        audit: the application's audit.
        pattern: a compiled pattern, or its :class:`MatchRules`.
        staged: rows in the form of the pattern's match table; all should decide on ``days``.
        days: the UTC days that the run owns.
        events: events of the read range, at least ``event_id``.

    Returns:
        day → ``None`` if it passed, else one line naming the broken expectation with an example row.
    """
    rules = pattern if isinstance(pattern, MatchRules) else rules_of(pattern)
    owned = sorted(days)
    measured = measures(rules, staged).persist()
    params = {
        "pattern": rules.pattern,
        "columns": [*FIXED, *rules.names, *MEASURES],
        "window_us": rules.window_us,
        "decision": "start_ts + W" if rules.waits else "end_ts",
        "days": [day.isoformat() for day in owned],
    }
    try:
        with _unknown(measured, events) as view:

            def run(day: date | None, details: bool) -> AuditResult:
                rows = measured if day is None else measured.where(f"decision_day = '{day}'")
                label = f"matches.{rules.pattern} of {day or span(owned)}"
                filled = {**params, "unknown_view": view}
                return audit.run("matches", rows, filled, label, key=KEY, details=details)

            return per_day(owned, run, _UNDATED)
    finally:
        measured.unpersist()
