"""Measures of matches: plain columns beside a match, such as its span in microseconds, as DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from chainlake.lake.sql.scan import quoted
from chainlake.quality.matches.rules import MatchRules
from chainlake.schemas.matches import FIXED_COLUMNS

#: What is added to a match.
MEASURES = (
    "decision_day", "span_us", "start_off_us", "end_off_us", "decision_off_us", "null_event_ids", "repeated_events",
    "names_fit", "order_gap_us", "copies", "unknown_event",
)  # fmt: skip


def column_of(name: str) -> str:
    """What a column of the match table is called beside the measures, one of which may be called like a name."""
    return name if name in FIXED_COLUMNS else f"{name} bound"


def measures(rules: MatchRules, columns: Sequence[str]) -> dict[str, str]:
    """All measures of a match but ``copies`` and ``unknown_event``, for which other rows must be looked at.

    Args:
        rules: what is known of the pattern.
        columns: those of the rows, under their names in the match table.

    Returns:
        name of a column → SQL on rows whose columns are called as :func:`column_of` says: the columns as they are, of
        a positive name only how many events it binds, and the measures.
    """
    of = {name: _name(name, kleene) for name, kleene in rules.names.items()}
    decided = f"{_micros('start_ts')} + {rules.window_us}" if rules.waits else _micros("end_ts")
    fits, gaps = _order(rules, of)
    firsts, lasts = (name.first for name in of.values()), (name.last for name in of.values())
    return {
        # Great Expectations would list every field of a struct as a column of its own.
        **{column_of(c): of[c].size if c in of else quoted(column_of(c)) for c in columns},
        "names_fit": " OR ".join(f"({fit})" for fit in fits),
        "order_gap_us": _one_of("greatest", gaps),
        # Without a zone: to look one up for every row takes long.
        "decision_day": "cast(cast(make_timestamp(epoch_us(decision_ts)) AS DATE) AS VARCHAR)",
        "span_us": f"{_micros('end_ts')} - {_micros('start_ts')}",
        "start_off_us": f"{_micros('start_ts')} - {_micros(_one_of('least', firsts))}",
        "end_off_us": f"{_micros('end_ts')} - {_micros(_one_of('greatest', lasts))}",
        "decision_off_us": f"{_micros('decision_ts')} - ({decided})",
        "null_event_ids": " + ".join(name.nulls for name in of.values()),
        "repeated_events": _repeated(rules, all_ids(rules)),
    }


def event_ids(column: str, kleene: bool) -> str:
    """The ids of all events bound in a column, an empty array if its name is unbound."""
    if kleene:
        return f"coalesce(list_transform({column}, lambda x: x.event_id), cast([] AS VARCHAR[]))"
    return f"CASE WHEN {column} IS NULL THEN cast([] AS VARCHAR[]) ELSE [{column}.event_id] END"


def all_ids(rules: MatchRules) -> str:
    """The ids of all events of a match, whose columns are called as :func:`column_of` says."""
    return " || ".join(f"({event_ids(quoted(column_of(name)), kleene)})" for name, kleene in rules.names.items())


@dataclass(frozen=True)
class _Name:
    """SQL on the events bound to a name, none of it null where the name is unbound but ``first`` and ``last``."""

    size: str
    nulls: str
    first: str
    last: str


def _name(name: str, kleene: bool) -> _Name:
    column = quoted(column_of(name))
    if kleene:
        ids = event_ids(column, kleene)
        times = f"coalesce(list_transform({column}, lambda x: x.ts), cast([] AS TIMESTAMPTZ[]))"
        return _Name(f"len({ids})", f"(len({ids}) - list_count({ids}))", f"list_min({times})", f"list_max({times})")
    # Without an array, which costs more than all the rest.
    size = f"CASE WHEN {column} IS NULL THEN 0 ELSE 1 END"
    nulls = f"CASE WHEN {column} IS NOT NULL AND {column}.event_id IS NULL THEN 1 ELSE 0 END"
    return _Name(size, nulls, f"{column}.ts", f"{column}.ts")


def _micros(time: str) -> str:
    return f"epoch_us({time})"


def _order(rules: MatchRules, of: Mapping[str, _Name]) -> tuple[list[str], list[str]]:
    """Per branch whether exactly its names are bound, and the smallest gap between two that it orders."""
    fits, gaps = [], []
    for bound, order in rules.branches:
        fit = " AND ".join(f"({of[n].size}) {'>' if n in bound else '='} 0" for n in rules.names)
        between = [f"({_micros(of[later].first)} - {_micros(of[earlier].last)})" for earlier, later in sorted(order)]
        least = _one_of("least", between) if between else str(rules.window_us + 1)
        fits.append(fit)
        gaps.append(f"CASE WHEN {fit} THEN {least} END")
    return fits, gaps


def _repeated(rules: MatchRules, ids: str) -> str:
    """How many bound events are there more than once; null counts as one of them."""
    distinct = f"(len(list_distinct({ids})) + cast(list_count({ids}) < len({ids}) AS BIGINT))"
    counted = f"len({ids}) - {distinct}"
    if any(rules.names.values()):
        return counted
    columns = [quoted(column_of(name)) for name in rules.names]
    different = " AND ".join(f"{a}.event_id <> {b}.event_id" for a, b in combinations(columns, 2))
    # To compare is a hundred times faster than to make an array and its set, which only odd rows need.
    return f"CASE WHEN {different or 'true'} THEN 0 ELSE {counted} END"


def _one_of(function: str, values: Iterable[str]) -> str:
    """``least`` or ``greatest`` of values, of which nulls do not count."""
    return f"{function}({', '.join(values)})"
