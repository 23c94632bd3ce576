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
    "names_fit", "order_gap_us", "copies", "used_up_events", "unknown_event",
)  # fmt: skip


def column_of(name: str) -> str:
    """What a column of the match table is called beside the measures, one of which may be called like a name."""
    return name if name in FIXED_COLUMNS else f"{name} bound"


def measures(rules: MatchRules, columns: Sequence[str]) -> dict[str, str]:
    """All measures of a match but ``copies``, ``used_up_events`` and ``unknown_event``, for which other rows must be
    looked at.

    Args:
        rules: what is known of the pattern.
        columns: those of the rows, under their names in the match table.

    Returns:
        name of a column → SQL on rows whose columns are called as :func:`column_of` says: the columns as they are, of
        a positive name only how many events it binds, and the measures.
    """
    of = {name: _name(name, kleene) for name, kleene in rules.names.items()}
    fits, gaps = _order(rules, of)
    return {
        # Great Expectations would list every field of a struct as a column of its own.
        **{column_of(c): of[c].size if c in of else quoted(column_of(c)) for c in columns},
        "names_fit": " OR ".join(f"({fit})" for fit in fits),
        "order_gap_us": _one_of("greatest", gaps),
        # Without a zone: to look one up for every row takes long.
        "decision_day": "cast(cast(make_timestamp(epoch_us(decision_ts)) AS DATE) AS VARCHAR)",
        "span_us": f"{_micros('end_ts')} - {_micros('start_ts')}",
        "start_off_us": _off(rules, fits, "start_ts", {n: name.first for n, name in of.items()}),
        "end_off_us": _off(rules, fits, "end_ts", {n: name.last for n, name in of.items()}),
        "decision_off_us": _decision_off(rules),
        "null_event_ids": " + ".join(name.nulls for name in of.values()),
        "repeated_events": _repeated(rules),
    }


def _decision_off(rules: MatchRules) -> str:
    """How far ``decision_ts`` is from where it must lie."""
    start, end, decided = map(_micros, ("start_ts", "end_ts", "decision_ts"))
    window = f"{start} + {rules.window_us}"
    if rules.pause_us is None:
        return f"{decided} - ({window if rules.waits else end})"
    # The stretch that the pause ends may go on behind the match.
    least = f"least({window}, {end} + {rules.pause_us})" if rules.waits else f"({end} + {rules.pause_us})"
    most = window if rules.waits else f"{window} + {rules.pause_us}"
    inside = f"WHEN {decided} < {least} THEN {decided} - {least} WHEN {decided} > {most} THEN {decided} - ({most})"
    return f"CASE {inside} ELSE {decided} - {decided} END"


def event_ids(column: str, kleene: bool) -> str:
    """The ids of all events bound in a column, an empty array if its name is unbound."""
    if kleene:
        return f"coalesce(list_transform({column}, lambda x: x.event_id), cast([] AS VARCHAR[]))"
    return f"CASE WHEN {column} IS NULL THEN cast([] AS VARCHAR[]) ELSE [{column}.event_id] END"


def all_ids(rules: MatchRules) -> str:
    """The ids of all events of a match, whose columns are called as :func:`column_of` says."""
    return _ids(rules, rules.names)


def _ids(rules: MatchRules, names: Iterable[str]) -> str:
    """The ids of all events of some names."""
    each = (f"({event_ids(quoted(column_of(name)), rules.names[name])})" for name in names)
    return " || ".join(each) or "cast([] AS VARCHAR[])"


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
    for number, (bound, order) in enumerate(rules.branches):
        collected, may_be_empty = rules.collected_by(number)
        some = (bound | collected) - may_be_empty
        every = (f"({of[n].size}) {'>' if n in some else '='} 0" for n in rules.names if n not in may_be_empty)
        fit = " AND ".join(every) or "true"
        between = [
            # Neighbours may share a time, and those of sets may not: NOT and COLLECT go by time.
            f"({_micros(of[later].first)} - {_micros(of[earlier].last)}"
            f"{' + 1' if number in rules.neighbours and {earlier, later} <= bound else ''})"
            for earlier, later in sorted(order)
        ]
        least = _one_of("least", between) if between else str(rules.window_us + 1)
        fits.append(fit)
        gaps.append(f"CASE WHEN {fit} THEN {least} END")
    return fits, gaps


def _off(rules: MatchRules, fits: list[str], column: str, times: Mapping[str, str]) -> str:
    """How far ``start_ts`` or ``end_ts`` is from the first or last event of an ordinary name.

    Args:
        rules: what is known of the pattern.
        fits: per branch whether a match has its names.
        column: ``start_ts`` or ``end_ts``.
        times: by name its first or last time.
    """
    function = "least" if column == "start_ts" else "greatest"
    if not any(bound & rules.sets for bound, _ in rules.branches):
        return _distance(rules, column, function, [times[n] for n in rules.names if n not in rules.sets])
    # A name that one branch collects and another does not bounds the matches of the other only.
    of_branch = (_distance(rules, column, function, [times[n] for n in sorted(bound)]) for bound, _ in rules.branches)
    cases = [f"CASE WHEN {fit} THEN abs({one}) END" for fit, one in zip(fits, of_branch, strict=True)]
    return _one_of("least", cases)


def _distance(rules: MatchRules, column: str, function: str, times: list[str]) -> str:
    if not times:
        return "0"
    off = f"{_micros(column)} - {_micros(_one_of(function, times))}"
    if not rules.counts_bound:
        return off
    # Events that only their number is left of may lie beyond those that are known.
    return f"{'greatest' if function == 'least' else 'least'}(0, {off})"


def _repeated(rules: MatchRules) -> str:
    """How many events a match has more than once; null counts as one of them.

    Sets of COLLECT may share events with one another: each is looked at beside the ordinary names.
    """
    others = [name for name in rules.names if name not in rules.sets]
    if not rules.sets:
        return _twice(rules, others)
    return " + ".join(_twice(rules, [*others, name]) for name in rules.names if name in rules.sets)


def _twice(rules: MatchRules, names: list[str]) -> str:
    """How many events of some names are there more than once."""
    ids = _ids(rules, names)
    distinct = f"(len(list_distinct({ids})) + cast(list_count({ids}) < len({ids}) AS BIGINT))"
    counted = f"len({ids}) - {distinct}"
    if any(rules.names[name] for name in names):
        return counted
    columns = [quoted(column_of(name)) for name in names]
    different = " AND ".join(f"{a}.event_id <> {b}.event_id" for a, b in combinations(columns, 2))
    # To compare is a hundred times faster than to make an array and its set, which only odd rows need.
    return f"CASE WHEN {different or 'true'} THEN 0 ELSE {counted} END"


def _one_of(function: str, values: Iterable[str]) -> str:
    """``least`` or ``greatest`` of values, of which nulls do not count."""
    return f"{function}({', '.join(values)})"
