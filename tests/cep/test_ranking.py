"""Rankings: worked cases, random queries against an evaluation by definition, and what the language refuses."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from chainlake.cep.language.formatter import format_query
from chainlake.cep.language.layout import format_text
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.library import from_dicts, match
from chainlake.cep.lint.report import lint
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.ranking.best import UNBOUND
from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Period
from chainlake.cep.search import ranked
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import DefinitionError, InputError, UsageError
from tests.cep import ranking_by_definition as definition
from tests.cep import ranking_queries as queries
from tests.cep.interpreted import no_compiler
from tests.cep.ranking_cases import (
    case_differences,
    differences,
    events_of,
    from_lake,
    options_of,
    published,
    random_query,
    runs,
    text_of,
)

CASES = json.loads((Path(__file__).parents[1] / "cases" / "topk-cases.json").read_text())["cases"]
#: So many random queries in each test, and so many tests.
QUERIES, TESTS = 50, 10


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_case_in_any_order_of_rows_and_days_one_by_one(case: dict[str, Any]) -> None:
    assert case_differences(case, "numpy")[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("case", [one for one in CASES if one["id"] in ("T02", "T05", "T11", "T29", "T31", "T33")],
                         ids=lambda case: case["id"])  # fmt: skip
def test_worked_case_in_machine_code(case: dict[str, Any]) -> None:
    assert case_differences(case, "compiled")[1] == []


@pytest.mark.few(1)
@pytest.mark.parametrize("room", [1, 5, 1 << 17])
def test_how_many_entries_wait_never_shows(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "_ROOM", room)
    for seed in range(20):
        draw = random.Random(seed)
        query, events = queries.query(draw), queries.events(draw)
        text = text_of(queries.as_case(query))
        wanted = definition.Evaluation(query, events).result()
        options = options_of(query)
        for _, found in runs(text, events_of({"events": events}), options, "numpy", draw, few=True):
            assert differences(wanted, found) == [], (seed, text, events)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "first", [pytest.param(QUERIES * n, marks=pytest.mark.slow if n > 2 else ()) for n in range(TESTS)]
)
def test_random_queries_give_what_an_evaluation_by_definition_does(first: int) -> None:
    rows = 0
    for seed in range(first, first + QUERIES):
        draw = random.Random(seed)
        query, events = random_query(draw, "query")
        case = queries.as_case(query)
        wanted = definition.Evaluation(query, events).result()
        rows += len(wanted[0])
        text = text_of(case)
        events = draw.sample(events, len(events))
        for how, found in runs(text, events_of({"events": events}), options_of(case), "numpy", draw, few=True):
            assert differences(wanted, found) == [], (seed, how, text, events)
    assert rows > QUERIES


def _events(*rows: tuple[str, int, int, int]) -> list[dict[str, Any]]:
    """Events by id (whose first letter is the type), ts, seq and x."""
    return [{"id": name, "type": name[0].upper(), "ts": ts, "seq": seq, "attrs": {"x": x}} for name, ts, seq, x in rows]


def test_rows_as_good_as_those_kept_already_are_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "_ROOM", 1)
    events = _events(*((f"a{i}", i, 0, 7) for i in range(5)))
    found = [one["a"] for one in match("PATTERN A a RANK BY MAX(a.x) TOP 1 WITH TIES PER ALL", events)]
    assert found == ["a0", "a1", "a2", "a3", "a4"]


@pytest.mark.parametrize(
    ("text", "rows", "cuts", "wanted"),
    [
        # Of equal times, seq says what comes first, and not the id.
        (
            "PATTERN A a RANK BY MAX(a.x) TOP 2 PER ALL",
            [("a1", 1, 2, 5), ("a2", 1, 1, 5)],
            [],
            [{"a": "a2"}, {"a": "a1"}],
        ),
        # A row of a later part takes an event from a row that is better than another one of its own part.
        (
            "PATTERN SEQ(A a, B b) RANK BY MAX(a.x + b.x) TOP 2 PER ALL NON OVERLAPPING",
            [("a1", 1, 0, 5), ("a2", 2, 0, 1), ("b1", 3, 0, 3), ("b2", 9, 0, 9)],
            [5],
            [{"a": "a1", "b": "b2"}, {"a": "a2", "b": "b1"}],
        ),
    ],
)
def test_parts_hold_what_can_be_among_the_best(text: str, rows: list, cuts: list[int], wanted: list) -> None:
    pattern, events = compile_pattern(text, strict_units=False), _events(*rows)
    kept = published(pattern, events, cuts, random.Random(0))
    found, _ = from_lake(pattern, kept, {event["id"]: event["id"] for event in events})
    assert [row["match"] for row in found] == wanted


# ---- what only lists of the engine's own matches can say

SETS = [
    "PATTERN SEQ(A a, B* b) WITHIN 6 MEASURES a.x + SUM(b.x) AS m",
    "PATTERN SEQ(A a, COLLECT?(B b), A c) WITHIN 9 MEASURES COUNT(b) - a.x AS m",
    "PATTERN SEQ STRICT (A a, *+ b) WITHIN 7 MEASURES MAX(b.x) - a.x AS m",
    "PATTERN SEQ(A a, OR(B b, A c)) WITHIN 8 CONTEXT recent MEASURES a.x AS m",
    "PATTERN SEQ(A a, B? b, A c) WITHIN 8 MEASURES Coalesce(b.x, c.x) AS m",
    "PATTERN SEQ STRICT (A a, B+ b) PAUSE 4 MAXIMAL MEASURES COUNT(b) AS m",
]


@pytest.mark.few(1)
@pytest.mark.parametrize("text", SETS)
def test_sets_neighbours_and_selected_matches_are_ranked(text: str) -> None:
    query, value = text.split(" MEASURES ")
    value = value.removesuffix(" AS m")
    some = 0
    for seed in range(8):
        events = events_of({"events": queries.events(random.Random(seed))})
        place = {one["id"]: i for i, one in enumerate(sorted(events, key=lambda e: (e["ts"], e["seq"])))}
        names = [name.name for name in compile_pattern(text, strict_units=False).names]

        def order(one: dict[str, Any], names: list[str] = names, place: dict[str, int] = place) -> Any:
            bound = [one.get(name, [UNBOUND]) for name in names]
            return [sorted(place.get(i, i) for i in (ids if isinstance(ids, list) else [ids])) for ids in bound]

        listed = [one for one in match(text, events) if one["m"] is not None]
        wanted = sorted(listed, key=lambda one: (-one["m"], order(one)))[:4]
        found = list(match(f"{query} RANK BY MAX({value}) TOP 4 PER ALL", events))
        assert [{n: one[n] for n in names if n in one} for one in found] == [
            {n: one[n] for n in names if n in one} for one in wanted
        ], (seed, events)
        assert [one["score"] for one in found] == [one["m"] for one in wanted]
        some += len(found)
    assert some > 4


@pytest.mark.slow
def test_memory_does_not_grow_with_the_matches() -> None:
    peaks = []
    for half in (600, 1200):
        events = [
            {"id": f"{kind}{i:04}", "type": kind, "ts": i + half * (kind == "B"), "attrs": {"x": i * 7919 % 1009}}
            for i in range(half)
            for kind in "AB"
        ]
        statistics, table = Statistics(), from_dicts(events)[0]
        pattern = compile_pattern("PATTERN SEQ(A a, B b) RANK BY MAX(a.x + b.x) TOP 3 PER ALL", strict_units=False)
        tracemalloc.start()
        batches = find(pattern, table, statistics=statistics, options=SearchOptions(strategy="A"))
        found = [x for batch in batches for x in batch.measures["score"].to_pylist()]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        values = [i * 7919 % 1009 for i in range(half)]
        assert found == sorted((a + b for a in values for b in values), reverse=True)[:3]
        assert statistics.lists[0].candidates == half * half
    assert peaks[1] < 1.5 * peaks[0]


# ---- periods

ZONES = ["UTC", "America/New_York", "America/Sao_Paulo", "America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", ["day", "week", "month"])
def test_calendar_periods_are_those_of_the_clock_of_the_zone(kind: str, zone: str) -> None:
    draw = random.Random(zone + kind)
    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2017, 2019))
    seconds = np.array([draw.randrange(begin, end) for _ in range(300)] + [begin, end, -1, 0])
    rows, starts, ends = periods(Period(kind, zone=zone, second=1), seconds - 5, seconds)
    assert rows.tolist() == list(range(len(seconds)))

    def first_day(tick: int) -> date:
        day = datetime.fromtimestamp(tick, ZoneInfo(zone)).date()
        back = {"day": 0, "week": day.weekday(), "month": day.day - 1}[kind]
        return day - timedelta(days=back)

    for at, lo, hi in zip(seconds.tolist(), starts.tolist(), ends.tolist(), strict=True):
        assert lo <= at < hi
        assert first_day(lo) == first_day(at) == first_day(hi - 1) != first_day(hi)
        assert first_day(lo - 1) < first_day(at)


def test_a_clock_that_goes_back_over_midnight_begins_no_day_twice() -> None:
    # At 00:01 it goes back to 23:01 of the day before.
    midnight = int(datetime.fromisoformat("2010-11-07T02:30Z").timestamp())
    at = midnight + np.array([-1, 0, 59, 60, 3599, 3660])
    _, starts, ends = periods(Period("day", zone="America/St_Johns", second=1), at, at)
    assert starts.tolist() == [midnight - 86_400] + 5 * [midnight]
    assert ends.tolist() == [midnight] + 5 * [midnight + 25 * 3600]


def test_days_of_a_zone_as_times() -> None:
    events = [
        {"id": str(i), "type": "A", "ts": datetime.fromisoformat(at), "attrs": {"x": i}}
        for i, at in enumerate(["2024-03-10T04:59:59Z", "2024-03-10T05:00:00Z", "2024-03-11T03:59:59Z"])
    ]
    text = "PATTERN A a WITHIN 1 s RANK BY MAX(a.x) TOP 1 PER DAY IN 'America/New_York'"
    found = [(one["a"], one["scope_start"].isoformat(), one["scope_end"].isoformat()) for one in match(text, events)]
    assert found == [
        ("0", "2024-03-09T05:00:00+00:00", "2024-03-10T05:00:00+00:00"),
        ("2", "2024-03-10T05:00:00+00:00", "2024-03-11T04:00:00+00:00"),
    ]


# ---- what is refused

AB = "PATTERN SEQ(A a, B b) WITHIN 5 s "
OR = "PATTERN OR(SEQ(A a, B b) RANK BY MAX(a.x), SEQ(C c, D d)"
REFUSED = [
    (f"{AB}RANK BY MAX(a.x), MIN(b.y) TOP 3 PER DAY", 52, "several criteria need COMBINE"),
    (f"{AB}RANK BY MAX(a.x) WEIGHT 2 TOP 3 PER DAY", 58, "WEIGHT is only for COMBINE wsum"),
    (f"{AB}RANK BY MAX(a.x), MAX(b.x) WEIGHT 2 COMBINE sum TOP 3 PER DAY", 68, "WEIGHT is only for COMBINE wsum"),
    (f"{AB}RANK BY MAX(a.x) NORM 5 .. 1 TOP 3 PER DAY", 56, "the ends of NORM are in the wrong order"),
    (f"{AB}RANK BY MAX(a.x) NORM 5 .. 5 TOP 3 PER DAY", 56, "the ends of NORM are in the wrong order"),
    (f"{AB}RANK BY MAX(a.x) NORM 5 TOP 3 PER DAY", 58, "'..' is expected between the ends of NORM"),
    (f"{AB}RANK BY MIN(b.ts - a.ts) NORM 0 .. 60 TOP 3 PER DAY", 64, "an end of NORM is a number"),
    (f"{AB}RANK BY MAX(a.x)", 50, "TOP is expected after RANK BY"),
    (f"{AB}RANK BY AVG(a.x) TOP 3 PER DAY", 42, "MAX or MIN is expected"),
    (f"{AB}RANK BY MAX(a.x) COMBINE most TOP 3 PER DAY", 59, "how criteria are combined is expected"),
    (f"{AB}TOP 3 PER DAY", 34, "TOP needs RANK BY"),
    (f"{AB}RANK BY MAX(a.x) TOP 0 PER DAY", 55, "TOP takes a whole number of at least 1"),
    (f"{AB}RANK BY MAX(a.x) TOP 2.5 PER DAY", 55, "TOP takes a whole number of at least 1"),
    (f"{AB}RANK BY MAX(a.x) TOP k PER DAY", 55, "there is no parameter k"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 DAY", 60, "PER is expected after the number of matches"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER YEAR", 61, "a period is expected after PER"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY IN 'Mars'", 61, "there is no time zone 'Mars'"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY IN Mars", 68, "a time zone in single quotes is expected"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER HOP 1 h STEP 1 s", 74, "more than 1000 windows"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER HOP 1 h", 68, "STEP is expected after the length of a window"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER HOP 1 h STEP 0 s", 74, "STEP is too short"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER BUCKET 4", 68, "BUCKET takes a duration with its unit"),
    (f"{AB}RANK BY MAX(c.x) TOP 3 PER DAY", 46, "there is no event named c here"),
    (f"{AB}RANK BY MAX(a.ts) TOP 3 PER DAY", 46, "matches are ranked by numbers, but this is a time"),
    (f"{AB}RANK BY MAX('x') TOP 3 PER DAY", 46, "matches are ranked by numbers, but this is a string"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY FOR a.x", 69, "EACH is expected after FOR"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY DISTINCT ON a.x AT MOST 0", 89, "AT MOST takes a whole number"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY AT MOST 3", 68, "LEAST is expected after AT"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY AT LEAST b", 74, "there is no parameter b"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY QUANTUM 0", 73, "QUANTUM must be a number above 0"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY QUANTUM 1 AT LEAST 3", 75, "AT does not belong here"),
    (f"{AB}RANK BY MAX(a.x), MIN(b.x) COMBINE lex TOP 3 PER DAY AT LEAST 4", 96, "the score has several"),
    (f"{AB}RANK BY MAX(a.x), MIN(b.x) COMBINE lex TOP 3 PER DAY QUANTUM 4", 95, "the score has several"),
    (f"{AB}MEASURES a.x AS score RANK BY MAX(a.x) TOP 3 PER DAY", 43, "score is a column of every ranked pattern"),
    (f"{AB}CONTEXT cumulative RANK BY MAX(a.x) TOP 3 PER DAY", 34, "CONTEXT cumulative cannot be combined"),
    (f"{AB}RANK BY MAX(a.x) TOP 3 PER DAY MEASURES a.x AS y", 65, "MEASURES does not belong here"),
    (f"{OR}) WITHIN 5 s TOP 3 PER DAY", 26, "branch 2 has no RANK BY"),
    (f"{OR} RANK BY MAX(c.x)) WITHIN 5 s", 26, "RANK BY of a branch needs TOP"),
    (f"{OR}) WITHIN 5 s RANK BY MAX(a.x) TOP 3 PER DAY", 26, "RANK BY appears both in a branch and after the window"),
    (f"{OR} RANK BY MAX(c.x), MAX(d.x) COMBINE lex) WITHIN 5 s TOP 3 PER DAY", 58, "scores of different lengths"),
    (f"{OR} RANK BY MAX(a.x)) WITHIN 5 s TOP 3 PER DAY", 70, "there is no event named a here"),
    ("PATTERN SEQ(A a, B rank) WITHIN 5 s RANK BY MAX(a.x) TOP 3 PER DAY", 18, "rank is a column of every ranked"),
    ("PATTERN SEQ(A a, B* b) WITHIN 5 s RANK BY MAX(b.x) TOP 3 PER DAY", 47, "b is a set"),
    ("PATTERN SEQ(A a, NOT(C n), B b) WITHIN 5 s RANK BY MAX(n.x) TOP 3 PER DAY", 56, "no event named n here"),
    ("PATTERN SEQ(A a, NOT(B b)) RANK BY MAX(a.x) TOP 2 PER ALL", 9, "without WITHIN, b must be between"),
    ("PATTERN SEQ(A a, OR(B b, C c) WITHIN 3 s) WITHIN 5 s", 31, "OR cannot have its own window"),
]


@pytest.mark.parametrize(("text", "column", "what"), REFUSED, ids=lambda value: str(value)[-40:])
def test_what_does_not_go_together_is_refused_where_it_stands(text: str, column: int, what: str) -> None:
    with pytest.raises(DefinitionError) as error:
        compile_pattern(text)
    assert what in error.value.what and (error.value.line, error.value.column) == (1, column), str(error.value)
    found = [(one.what, one.line, one.column) for one in lint(text).errors]
    assert (error.value.what, 1, column) in found


def test_numbers_of_a_product_lie_between_0_and_1() -> None:
    events = [{"id": "1", "type": "A", "ts": 1, "attrs": {"x": 3.5}}]
    with pytest.raises(InputError, match="from 0 to 1, but criterion 1 is 3.5"):
        list(match("PATTERN A a RANK BY MAX(a.x), MAX(a.x) NORM 0 .. 9 COMBINE product TOP 1 PER ALL", events))


def test_numbers_may_be_parameters() -> None:
    text = f"{AB}RANK BY MAX(a.x) NORM 0 .. most WEIGHT w COMBINE wsum TOP n PER BUCKET size AT LEAST least QUANTUM w"
    params = {"most": 8, "w": 0.5, "n": 3, "size": "2 h", "least": -1}
    rule = compile_pattern(text, params=params).extras.ranking.rule
    (criterion,) = rule.scores[0].criteria
    assert (criterion.norm, criterion.weight, rule.count, rule.period.size) == ((0, 8), 0.5, 3, 7_200_000_000)
    assert (rule.least, rule.quantum) == (-1, 0.5)
    for name, value in {"most": "far", "least": True, "size": 5, "n": "2 h"}.items():
        with pytest.raises(DefinitionError) as error:
            compile_pattern(text, params={**params, name: value})
        assert text[error.value.column - 1 :].startswith(name), name


def test_criteria_are_numbers_also_where_columns_are_known_late() -> None:
    events = [{"id": "1", "type": "A", "ts": 1, "attrs": {"x": "high"}}]
    with pytest.raises(DefinitionError, match="matches are ranked by numbers, but this is a string"):
        list(match("PATTERN A a RANK BY MAX(a.x) TOP 1 PER ALL", events))
    times = [{"id": "1", "type": "A", "ts": datetime(2025, 1, 1, tzinfo=UTC), "attrs": {"x": 1}}]
    with pytest.raises(DefinitionError, match="the criterion is a number, but an end of NORM is a duration"):
        list(match("PATTERN A a RANK BY MAX(a.x) NORM 0 s .. 1 s TOP 1 PER ALL", times))


@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, B* b) WITHIN 5", "PATTERN SEQ(A a, B b) WITHIN 5"])
def test_what_only_a_caller_can_ask_for_fits_the_pattern(text: str) -> None:
    with pytest.raises(UsageError):
        list(match(text, [], trailing=True))
    if "*" in text:
        with pytest.raises(UsageError):
            list(match(text, [], shared_events=True))


# ---- texts

TEXTS = [
    f"{AB}RANK BY max((b.x - a.x)/a.x) norm 0 .. 0.1 weight 2, min(b.ts-a.ts) norm 0 s .. 60 s combine wsum top 10 "
    "with ties per day in 'America/New_York' for each a.t, a.x distinct on a.t at most 2 non overlapping at least -0.5 "
    "quantum 0.01",
    "pattern or(seq(A a, and(B b, C c) within 5 s) where a.x = b.x rank by max(a.x), min(b.x) combine lex, "
    "seq(C c, D top) rank by min(top.rank - -1), max(c.x) combine lex) within 5 min\ntop 3 hop 1 h step 15 min "
    "offset -5 min for each a.each",
    "pattern seq(A a, B b) where a.top = rank rank by max(a.by) top 3 per bucket 4 h by first\n"
    "offset 2 h distinct on b.on",
    "pattern seq(A a, any(1, B b, C c) within 2 s) rank by max(day(a.by)) top 3 week",
    "pattern seq(A a, B b) pause 5 s rank by max(a.x) top 3 per month at least 5",
]


@pytest.mark.parametrize("text", TEXTS)
def test_layout_and_normal_text_keep_the_query(text: str) -> None:
    text = text.replace("top 3 week", "top 3 per week")
    query = parse(SourceText(text))
    laid = format_text(text, 0)
    assert parse(SourceText(laid)) == query and format_text(laid, 0) == laid
    assert parse(SourceText(format_query(query))) == query
    assert {"RANK BY", "TOP"} <= set(re.findall(r"RANK BY|TOP", laid))


def test_every_clause_is_part_of_the_hash() -> None:
    base = f"{AB}RANK BY MAX(a.x), MIN(b.x) NORM 0 .. 2 COMBINE sum TOP 3 PER DAY FOR EACH a.k AT LEAST 1"
    changes = [("MAX(a.x)", "MAX(a.y)"), ("MIN", "MAX"), ("0 .. 2", "0 .. 3"), ("sum", "avg"), ("TOP 3", "TOP 4"),
               ("DAY", "WEEK"), ("a.k", "b.k"), ("LEAST 1", "LEAST 2"), ("TOP 3 ", "TOP 3 WITH TIES "),
               ("AT LEAST", "NON OVERLAPPING AT LEAST"), ("AT LEAST", "DISTINCT ON a.k AT LEAST")]  # fmt: skip
    hashes = [compile_pattern(base.replace(old, new)).definition_hash for old, new in [("", ""), *changes]]
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_of_equal_scores_an_empty_set_comes_last_as_an_event_that_is_missing_does(backend: str) -> None:
    events = [
        {"id": "a1", "type": "A", "ts": 0},
        {"id": "b", "type": "B", "ts": 1},
        {"id": "a2", "type": "A", "ts": 2},
    ]
    ranked = "WITHIN 5 RANK BY MAX(1) TOP 9 PER ALL"
    for first in ("COLLECT?(B b)", "B? b"):
        with no_compiler():
            found = list(match(f"PATTERN SEQ({first}, A a) {ranked}", events, backend=backend))
        bound = [(one["a"], bool(one.get("b"))) for one in found]
        assert bound[0] == ("a2", True) and not any(has for _, has in bound[1:])
