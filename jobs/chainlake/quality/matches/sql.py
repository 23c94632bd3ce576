"""The measures of matches as SQL, for the two engines that compute them: Spark anywhere, DuckDB on files at hand.

What a measure is stands here once; an engine's words for it are a :class:`Dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from chainlake.lake.sql.scan import quoted
from chainlake.schemas.matches import FIXED_COLUMNS

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
    """The rules of a compiled pattern (``chainlake.cep.pattern.Pattern``)."""
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


@dataclass(frozen=True)
class Dialect:
    """How an engine says what the measures need; arguments and results are SQL.

    Args:
        quoted: a name.
        micros: microseconds of a time since 1970.
        day: ISO text of a time's UTC day.
        each: that field of all structs of an array; null for a null array.
        array: of a value.
        no_texts: an empty array of texts; no_times: of times.
        concat: arrays, one after another.
        size: elements of an array, nulls included.
        least: value of an array that is not null; most: the largest.
        nulls: how many elements of an array are null.
        distinct: how many different elements an array has; null is one of them.
    """

    quoted: Callable[[str], str]
    micros: Callable[[str], str]
    day: Callable[[str], str]
    each: Callable[[str, str], str]
    array: Callable[[str], str]
    no_texts: str
    no_times: str
    concat: Callable[[Sequence[str]], str]
    size: Callable[[str], str]
    least: Callable[[str], str]
    most: Callable[[str], str]
    nulls: Callable[[str], str]
    distinct: Callable[[str], str]


SPARK = Dialect(
    quoted=lambda name: "`" + name.replace("`", "``") + "`",
    micros=lambda time: f"unix_micros({time})",
    day=lambda time: f"cast(to_date({time}) AS string)",
    each=lambda array, field: f"{array}.{field}",
    array=lambda value: f"array({value})",
    no_texts="cast(array() AS array<string>)",
    no_times="cast(array() AS array<timestamp>)",
    concat=lambda arrays: f"concat({', '.join(arrays)})",
    size=lambda array: f"size({array})",
    least=lambda array: f"array_min({array})",
    most=lambda array: f"array_max({array})",
    nulls=lambda array: f"size(filter({array}, x -> x IS NULL))",
    distinct=lambda array: f"size(array_distinct({array}))",
)

DUCKDB = Dialect(
    quoted=quoted,
    micros=lambda time: f"epoch_us({time})",
    # Without a zone: to look one up for every row takes long.
    day=lambda time: f"cast(cast(make_timestamp(epoch_us({time})) AS DATE) AS VARCHAR)",
    each=lambda array, field: f"list_transform({array}, lambda x: x.{field})",
    array=lambda value: f"[{value}]",
    no_texts="cast([] AS VARCHAR[])",
    no_times="cast([] AS TIMESTAMPTZ[])",
    concat=lambda arrays: " || ".join(arrays),
    size=lambda array: f"len({array})",
    least=lambda array: f"list_min({array})",
    most=lambda array: f"list_max({array})",
    nulls=lambda array: f"(len({array}) - list_count({array}))",
    distinct=lambda array: f"(len(list_distinct({array})) + cast(list_count({array}) < len({array}) AS BIGINT))",
)


@dataclass(frozen=True)
class _Name:
    """SQL on the events bound to a name, none of it null where the name is unbound but ``first`` and ``last``."""

    ids: str
    size: str
    nulls: str
    first: str
    last: str


def bound_column(name: str) -> str:
    """What a column of a positive name is called beside the measures, one of which may be called like the name."""
    return f"{name} bound"


def event_ids(sql: Dialect, column: str, kleene: bool) -> str:
    """The ids of all events bound in a column, an empty array if its name is unbound."""
    if kleene:
        return f"coalesce({sql.each(column, 'event_id')}, {sql.no_texts})"
    return f"CASE WHEN {column} IS NULL THEN {sql.no_texts} ELSE {sql.array(f'{column}.event_id')} END"


def _name(sql: Dialect, name: str, kleene: bool) -> _Name:
    column = sql.quoted(bound_column(name))
    ids = event_ids(sql, column, kleene)
    if kleene:
        times = f"coalesce({sql.each(column, 'ts')}, {sql.no_times})"
        return _Name(ids, sql.size(ids), sql.nulls(ids), sql.least(times), sql.most(times))
    # Without an array, which costs more than all the rest.
    size = f"CASE WHEN {column} IS NULL THEN 0 ELSE 1 END"
    nulls = f"CASE WHEN {column} IS NOT NULL AND {column}.event_id IS NULL THEN 1 ELSE 0 END"
    return _Name(ids, size, nulls, f"{column}.ts", f"{column}.ts")


def measured(rules: MatchRules, columns: Sequence[str], sql: Dialect, copies: str) -> dict[str, str]:
    """All measures but ``unknown_event``, and ``event_ids``, the ids of all events of a match.

    Args:
        rules: what is known of the pattern.
        columns: those of the rows, each name's as :func:`bound_column`.
        sql: the engine's.
        copies: SQL for how many rows have the key of a row.

    Returns:
        name of a column → SQL on the rows: the columns as they are, of a name only how many events it binds, and
        the measures.
    """
    of = {name: _name(sql, name, kleene) for name, kleene in rules.names.items()}
    bound_to = {bound_column(name): name for name in rules.names}
    decided = f"{sql.micros('start_ts')} + {rules.window_us}" if rules.waits else sql.micros("end_ts")
    fits, gaps = _order(rules, of, sql)
    ids = sql.concat([name.ids for name in of.values()])
    firsts, lasts = (name.first for name in of.values()), (name.last for name in of.values())
    return {
        # Great Expectations would list every field of a struct as a column of its own.
        **{column: of[bound_to[column]].size if column in bound_to else sql.quoted(column) for column in columns},
        "event_ids": ids,
        "names_fit": " OR ".join(f"({fit})" for fit in fits),
        "order_gap_us": _one_of("greatest", gaps),
        "decision_day": sql.day("decision_ts"),
        "span_us": f"{sql.micros('end_ts')} - {sql.micros('start_ts')}",
        "start_off_us": f"{sql.micros('start_ts')} - {sql.micros(_one_of('least', firsts))}",
        "end_off_us": f"{sql.micros('end_ts')} - {sql.micros(_one_of('greatest', lasts))}",
        "decision_off_us": f"{sql.micros('decision_ts')} - ({decided})",
        "null_event_ids": " + ".join(name.nulls for name in of.values()),
        "repeated_events": _repeated(rules, sql, ids),
        "copies": copies,
    }


def _order(rules: MatchRules, of: Mapping[str, _Name], sql: Dialect) -> tuple[list[str], list[str]]:
    """Per branch whether exactly its names are bound, and the smallest gap between two that it orders."""
    fits, gaps = [], []
    for bound, order in rules.branches:
        fit = " AND ".join(f"({of[n].size}) {'>' if n in bound else '='} 0" for n in rules.names)
        between = [
            f"({sql.micros(of[later].first)} - {sql.micros(of[earlier].last)})" for earlier, later in sorted(order)
        ]
        least = _one_of("least", between) if between else str(rules.window_us + 1)
        fits.append(fit)
        gaps.append(f"CASE WHEN {fit} THEN {least} END")
    return fits, gaps


def _repeated(rules: MatchRules, sql: Dialect, ids: str) -> str:
    """How many bound events are there more than once."""
    counted = f"{sql.size(ids)} - {sql.distinct(ids)}"
    if any(rules.names.values()):
        return counted
    columns = [sql.quoted(bound_column(name)) for name in rules.names]
    different = " AND ".join(f"{a}.event_id <> {b}.event_id" for a, b in combinations(columns, 2))
    # To compare is a hundred times faster than to make an array and its set, which only odd rows need.
    return f"CASE WHEN {different or 'true'} THEN 0 ELSE {counted} END"


def _one_of(function: str, values: Sequence[str] | Any) -> str:
    """``least`` or ``greatest``, which Spark does not take of one value; nulls do not count."""
    listed = list(values)
    return listed[0] if len(listed) == 1 else f"{function}({', '.join(listed)})"


def has_columns(rules: MatchRules, columns: Sequence[str]) -> bool:
    """Whether all columns are there that the measures need."""
    return {*FIXED_COLUMNS, *rules.names} <= set(columns)
