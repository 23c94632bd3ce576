"""The gate of rankings: what the matches give passes, and each kind of damage is seen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from chainlake.cep.matches.best import ranked_rows, thinned
from chainlake.cep.matches.candidates import find_candidates, keeps_all
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.paths import Home
from chainlake.quality import Audit, AuditResult
from chainlake.quality.gates.rankings import audit_rankings
from chainlake.schemas.matches import matches_table
from tests.steps.in_process import Row
from tests.steps.test_rankings import PATTERNS, RISES, SPAN, events_of, rows_of

#: What the gate measures of a row.
FLAGS = ("rank_fits", "score_falls", "score_fits", "match_fits", "events_fit", "in_period", "apart", "whole_list")


@dataclass(frozen=True)
class Made:
    """A pattern, its matches, and the best of them."""

    pattern: Pattern
    matches: pa.Table
    ranked: pa.Table


def made(query: str) -> Made:
    rng = random.Random(query)
    events = rows_of({number: events_of(rng, number) for number in range(SPAN)})
    events = events.sort_by([("ts", "ascending"), ("event_id", "ascending")])
    kinds = {one.name: one.type for one in events.schema}
    pattern = compile_pattern(f"---\nsource: lab\n---\nPATTERN {query}", name="lab", columns=kinds)
    schema = matches_table(match_shape(pattern, key="sensor", types=kinds)).arrow()
    found = [match_rows(pattern, events, some, schema) for some in find_candidates(pattern, events)]
    matches = pa.concat_tables([schema.empty_table(), *found])
    matches = matches if keeps_all(pattern) else thinned(pattern, matches)
    return Made(pattern, matches, ranked_rows(pattern, matches, -(1 << 62), 1 << 62))


@pytest.fixture
def broken(home: Home) -> Iterator[Callable[[Made, pa.Table], set[str]]]:
    """What the gate sees in some rows."""

    def found(one: Made, staged: pa.Table) -> set[str]:
        frames: list[Any] = []
        audit = Audit(home)
        audit.run = lambda template, df, *_, **__: frames.append(df) or AuditResult("", True)  # type: ignore[method-assign]
        days = sorted({at.date() for at in one.ranked["scope_start"].to_pylist()})
        audit_rankings(audit, one.pattern, staged, one.matches, days)
        wrong = {name for name in FLAGS if not all(bool(value) for value in frames[0][name])}
        return wrong | ({"rank_gap"} if any(frames[0]["rank_gap"]) else set())

    yield found


@pytest.mark.few(3)
@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_what_the_matches_give_passes(name: str, broken: Callable[[Made, pa.Table], set[str]]) -> None:
    one = made(PATTERNS[name])
    assert len(one.ranked) and broken(one, one.ranked) == set()


def with_values(table: pa.Table, name: str, change: Callable[[list[Any]], list[Any]]) -> pa.Table:
    """The table with other values in a column."""
    at = table.schema.get_field_index(name)
    values = pa.array(change(table[name].to_pylist()), table.schema.field(name).type)
    return table.set_column(at, table.schema.field(name), values)


def first_is(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


def all_are(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value] * len(values)


def without_first_event(values: list[list[Row]]) -> list[list[Row]]:
    return [values[0][1:], *values[1:]]


DAMAGE: dict[str, tuple[str, Any, set[str]]] = {
    "a rank that is left out": ("rank", lambda ranks: [ranks[0] + 1, *ranks[1:]], {"rank_gap"}),
    "a rank beyond those that are kept": ("rank", first_is(9), {"rank_fits"}),
    "a score that the criteria do not give": ("scores", first_is([9.5]), {"score_fits", "match_fits"}),
    "a score below the next one": ("scores", first_is([-9.0]), {"score_falls"}),
    "criteria that the match does not have": ("criteria", first_is([9.5]), {"match_fits"}),
    "a match that is not published": ("match_id", first_is("0" * 32), {"match_fits", "events_fit"}),
    "an event that the match does not bind": ("events", without_first_event, {"match_fits"}),
    "a time outside the period": ("end_ts", all_are(datetime(2031, 1, 1)), {"in_period", "match_fits"}),
    "values of FOR EACH of another list": ("per", first_is('["c"]'), {"match_fits"}),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("what", DAMAGE)
def test_damage_of_a_row_is_seen(what: str, broken: Callable[[Made, pa.Table], set[str]]) -> None:
    one = made(PATTERNS["weeks"].replace("WITH TIES ", ""))
    name, change, seen = DAMAGE[what]
    assert seen <= broken(one, with_values(one.ranked, name, change))


def test_rows_that_lack_are_seen(broken: Callable[[Made, pa.Table], set[str]]) -> None:
    one = made(PATTERNS["weeks"])
    assert broken(one, one.ranked.slice(0, 0)) == {"whole_list"}
    assert broken(one, one.ranked.slice(0, len(one.ranked) - 1)) == {"whole_list"}
    assert "rank_gap" in broken(one, one.ranked.slice(1))


def test_criteria_that_the_bound_events_do_not_give_are_seen(broken: Callable[[Made, pa.Table], set[str]]) -> None:
    one = made(PATTERNS["weeks"].replace("WITH TIES ", ""))
    top = one.ranked["match_id"][0].as_py()

    def edited(columns: dict[str, Callable[[Any], Any]]) -> Made:
        rows = one.matches.to_pylist()
        for row in rows:
            for name, change in columns.items():
                row[name] = change(row[name]) if row["match_id"] == top else row[name]
        return Made(one.pattern, pa.Table.from_pylist(rows, one.matches.schema), one.ranked)

    # The row, its criteria and its score agree, and none of them with the events.
    wrong = edited({"criterion_1": lambda x: x + 1, "score_1": lambda x: x + 1})
    staged = with_values(one.ranked, "criteria", lambda v: [[v[0][0] + 1], *v[1:]])
    staged = with_values(staged, "scores", lambda v: [[v[0][0] + 1], *v[1:]])
    staged = with_values(staged, "score", lambda v: [v[0] + 1, *v[1:]])
    assert broken(wrong, staged) == {"events_fit"}
    # An event whose attribute is another one.
    assert broken(edited({"q": lambda event: {**event, "x": event["x"] + 1}}), one.ranked) == {"events_fit"}
    # What is ranked by is carried although no condition mentions it.
    plain = made("SEQ(Reading p, Reading q) WITHIN 5 h RANK BY MAX(q.y + q.x) TOP 2 PER DAY")
    fields = plain.matches.schema.field("q").type
    assert {"x", "y"} <= {fields.field(i).name for i in range(fields.num_fields)}


@pytest.mark.parametrize(("column", "wrong"), [("per", '["other"]'), ("distinct_on", "[-7]")])
def test_values_of_lists_that_the_bound_events_do_not_give_are_seen(
    column: str, wrong: str, broken: Callable[[Made, pa.Table], set[str]]
) -> None:
    one = made("SEQ(Reading p, Reading q) WITHIN 5 h RANK BY MAX(q.x) TOP 2 PER DAY FOR EACH p.sensor DISTINCT ON p.x")
    assert broken(one, one.ranked) == set()
    # The matches and the lists that are made of them agree: only the events tell.
    changed = with_values(one.matches, column, lambda values: [wrong] * len(values))
    lists = ranked_rows(one.pattern, changed, -(1 << 62), 1 << 62)
    assert "events_fit" in broken(Made(one.pattern, changed, lists), lists)


def replaced(one: Made, leave_out: Callable[[Row], bool], query: str) -> pa.Table:
    """The best of the matches without some, by another rule."""
    rows = [row for row in one.matches.to_pylist() if not leave_out(row)]
    kinds = one.pattern.types
    other = compile_pattern(f"---\nsource: lab\n---\nPATTERN {query}", name="lab", columns=kinds)
    return ranked_rows(other, pa.Table.from_pylist(rows, one.matches.schema), -(1 << 62), 1 << 62)


EXCLUSIVE = {
    "distinct": f"{RISES} RANK BY MAX(q.x - p.x) TOP 3 PER ALL DISTINCT ON p.sensor AT MOST 1",
    "distinct with ties": f"{RISES} RANK BY MAX(q.x - p.x) TOP 1 WITH TIES PER ALL DISTINCT ON p.sensor AT MOST 2",
    "apart": f"{RISES} RANK BY MAX(q.x - p.x) TOP 3 PER WEEK NON OVERLAPPING",
}


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_a_better_match_that_nothing_excludes_is_missed(
    name: str, broken: Callable[[Made, pa.Table], set[str]]
) -> None:
    one = made(EXCLUSIVE[name])
    best = one.ranked.filter(pc.equal(one.ranked["rank"], 1))["match_id"].to_pylist()
    assert broken(one, one.ranked) == set()
    worse = replaced(one, lambda row: row["match_id"] in best, EXCLUSIVE[name])
    assert "whole_list" in broken(one, worse)


@pytest.mark.parametrize("name", ["distinct", "apart"])
def test_kept_matches_that_exclude_one_another_are_seen(
    name: str, broken: Callable[[Made, pa.Table], set[str]]
) -> None:
    one = made(EXCLUSIVE[name])
    loose = EXCLUSIVE[name].replace("AT MOST 1", "AT MOST 2").replace(" NON OVERLAPPING", "")
    # All matches, since those that are kept of a day are already apart.
    every = Made(one.pattern, made(EXCLUSIVE["apart"]).matches, one.ranked)
    rows = replaced(every, lambda row: False, loose) if name == "apart" else replaced(one, lambda row: False, loose)
    assert "apart" in broken(every if name == "apart" else one, rows)


def test_a_period_of_another_day_is_seen(home: Home) -> None:
    one = made(PATTERNS["weeks"])
    frames: list[Any] = []
    audit = Audit(home)
    audit.run = lambda template, df, *_, **__: frames.append(df) or AuditResult("", True)  # type: ignore[method-assign]
    audit_rankings(audit, one.pattern, one.ranked, one.matches, [date(2025, 2, 24) + timedelta(days=1)])
    assert set(frames[0]["owned_day"]) == {str(at.date()) for at in one.ranked["scope_start"].to_pylist()}
