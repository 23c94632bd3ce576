"""Measures of matches as DuckDB's SQL: plain columns beside a match, such as its span in microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from chainlake.lake.sql.scan import quoted
from chainlake.quality.matches.rules import MatchRules
from chainlake.schemas.matches import FIXED_COLUMNS

#: The measures that are added to a match.
MEASURES = (
    "decision_day", "span_us", "start_off_us", "end_off_us", "decision_off_us", "null_event_ids", "repeated_events",
    "names_fit", "order_gap_us", "copies", "used_up_events", "unknown_event",
)  # fmt: skip


def column_of(name: str) -> str:
    """The name of a match table's column next to measures, since a measure may have the name of an event."""
    return name if name in FIXED_COLUMNS else f"{name} bound"


def measures(rules: MatchRules, columns: Sequence[str]) -> dict[str, str]:
    """All measures of a match except ``copies``, ``used_up_events`` and ``unknown_event``, which depend on other rows.

    Args:
        rules: the pattern's rules.
        columns: the rows' columns, under their names in the match table.

    Returns:
        name of a column → SQL on rows whose columns are named by :func:`column_of`: the measures and the columns
        themselves, but for a positive name only the number of events that it binds.
    """
    of = {name: _name(name, kleene) for name, kleene in rules.names.items()}
    fits, gaps = _order(rules, of)
    return {
        # A struct becomes a count, since Great Expectations would list every field as its own column.
        **{column_of(c): of[c].size if c in of else quoted(column_of(c)) for c in columns},
        "names_fit": " OR ".join(f"({fit})" for fit in fits),
        "order_gap_us": _one_of("greatest", gaps),
        # Without a zone, since looking one up for every row takes long.
        "decision_day": "cast(cast(make_timestamp(epoch_us(decision_ts)) AS DATE) AS VARCHAR)",
        "span_us": f"{_micros('end_ts')} - {_micros('start_ts')}",
        "start_off_us": _off(rules, fits, "start_ts", {n: name.first for n, name in of.items()}),
        "end_off_us": _off(rules, fits, "end_ts", {n: name.last for n, name in of.items()}),
        "decision_off_us": _decision_off(rules),
        "null_event_ids": " + ".join(name.nulls for name in of.values()),
        "repeated_events": _repeated(rules),
    }


def _decision_off(rules: MatchRules) -> str:
    """SQL for how far ``decision_ts`` is from where it must be, microseconds."""
    start, end, decided = map(_micros, ("start_ts", "end_ts", "decision_ts"))
    window = f"{start} + {rules.window_us}"
    if rules.pause_us is None:
        return f"{decided} - ({window if rules.waits else end})"
    # The stretch that the pause ends may extend beyond the match.
    least = f"least({window}, {end} + {rules.pause_us})" if rules.waits else f"({end} + {rules.pause_us})"
    most = window if rules.waits else f"{window} + {rules.pause_us}"
    inside = f"WHEN {decided} < {least} THEN {decided} - {least} WHEN {decided} > {most} THEN {decided} - ({most})"
    return f"CASE {inside} ELSE {decided} - {decided} END"


def event_ids(column: str, kleene: bool) -> str:
    """SQL for the ids of all events bound in a column; an empty array if its name is unbound."""
    if kleene:
        return f"coalesce(list_transform({column}, lambda x: x.event_id), cast([] AS VARCHAR[]))"
    return f"CASE WHEN {column} IS NULL THEN cast([] AS VARCHAR[]) ELSE [{column}.event_id] END"


def all_ids(rules: MatchRules) -> str:
    """SQL for the ids of all events of a match whose columns are named by :func:`column_of`."""
    return _ids(rules, rules.names)


def _ids(rules: MatchRules, names: Iterable[str]) -> str:
    """SQL for the ids of all events of some names."""
    each = (f"({event_ids(quoted(column_of(name)), rules.names[name])})" for name in names)
    return " || ".join(each) or "cast([] AS VARCHAR[])"


@dataclass(frozen=True)
class _Name:
    """SQL on the events bound to a name; if the name is unbound, only ``first`` and ``last`` are null."""

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
    # Written without an array, which would cost more than all the rest.
    size = f"CASE WHEN {column} IS NULL THEN 0 ELSE 1 END"
    nulls = f"CASE WHEN {column} IS NOT NULL AND {column}.event_id IS NULL THEN 1 ELSE 0 END"
    return _Name(size, nulls, f"{column}.ts", f"{column}.ts")


def _micros(time: str) -> str:
    return f"epoch_us({time})"


def _order(rules: MatchRules, of: Mapping[str, _Name]) -> tuple[list[str], list[str]]:
    """For each branch, SQL for whether exactly its names are bound, and for the smallest gap between ordered names."""
    fits, gaps = [], []
    for number, (bound, order) in enumerate(rules.branches):
        collected, may_be_empty = rules.collected_by(number)
        some = (bound | collected) - may_be_empty
        every = (f"({of[n].size}) {'>' if n in some else '='} 0" for n in rules.names if n not in may_be_empty)
        fit = " AND ".join(every) or "true"
        between = [
            # Neighbours may share a time, but not with events of sets: NOT and COLLECT go by time.
            f"({_micros(of[later].first)} - {_micros(of[earlier].last)}"
            f"{' + 1' if number in rules.neighbours and {earlier, later} <= bound else ''})"
            for earlier, later in sorted(order)
        ]
        least = _one_of("least", between) if between else str(rules.window_us + 1)
        fits.append(fit)
        gaps.append(f"CASE WHEN {fit} THEN {least} END")
    return fits, gaps


def _off(rules: MatchRules, fits: list[str], column: str, times: Mapping[str, str]) -> str:
    """SQL for how far ``start_ts`` or ``end_ts`` is from the first or last event of an ordinary name.

    Args:
        rules: the pattern's rules.
        fits: for each branch, SQL for whether a match has its names.
        column: ``start_ts`` or ``end_ts``.
        times: name → SQL for its first or last time.
    """
    function = "least" if column == "start_ts" else "greatest"
    if not any(bound & rules.sets for bound, _ in rules.branches):
        return _distance(rules, column, function, [times[n] for n in rules.names if n not in rules.sets])
    # A name that one branch collects and another does not is a bound only for matches of the other branch.
    of_branch = (_distance(rules, column, function, [times[n] for n in sorted(bound)]) for bound, _ in rules.branches)
    cases = [f"CASE WHEN {fit} THEN abs({one}) END" for fit, one in zip(fits, of_branch, strict=True)]
    return _one_of("least", cases)


def _distance(rules: MatchRules, column: str, function: str, times: list[str]) -> str:
    if not times:
        return "0"
    off = f"{_micros(column)} - {_micros(_one_of(function, times))}"
    if not rules.counts_bound:
        return off
    # Events of which only the number is kept may be beyond those that are known.
    return f"{'greatest' if function == 'least' else 'least'}(0, {off})"


def _repeated(rules: MatchRules) -> str:
    """SQL for how many events a match has more than once; null counts as an event.

    Sets of COLLECT may share events with one another, so each set is compared only with the ordinary names.
    """
    others = [name for name in rules.names if name not in rules.sets]
    if not rules.sets:
        return _twice(rules, others)
    return " + ".join(_twice(rules, [*others, name]) for name in rules.names if name in rules.sets)


def _twice(rules: MatchRules, names: list[str]) -> str:
    """SQL for how many events of some names occur more than once."""
    ids = _ids(rules, names)
    distinct = f"(len(list_distinct({ids})) + cast(list_count({ids}) < len({ids}) AS BIGINT))"
    counted = f"len({ids}) - {distinct}"
    if any(rules.names[name] for name in names):
        return counted
    columns = [quoted(column_of(name)) for name in names]
    different = " AND ".join(f"{a}.event_id <> {b}.event_id" for a, b in combinations(columns, 2))
    # Comparing is a hundred times faster than making an array and its set, which only wrong rows need.
    return f"CASE WHEN {different or 'true'} THEN 0 ELSE {counted} END"


def _one_of(function: str, values: Iterable[str]) -> str:
    """SQL for ``least`` or ``greatest`` of values, which ignores nulls."""
    return f"{function}({', '.join(values)})"
