"""How the best matches are found: what is allowed, that all ways give the same rows, and what they save."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.library import match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.ranking.rule import Period
from chainlake.cep.search.bounding import cut, lists
from chainlake.cep.search.bounding.score import Bound
from chainlake.cep.search.bounding.strategy import strategies
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import UsageError
from tests.cep import ranking_cases as cases
from tests.cep import ranking_queries as queries
from tests.cep.test_ranking import CASES


@pytest.fixture
def at_once() -> Iterator[None]:
    """Within it, thresholds are looked at after every match, and kernels are interpreted."""
    with cases.at_once():
        cases.used.clear()
        yield


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_cases_by_kernels_that_cut(case: dict[str, Any], at_once: None) -> None:
    found, draw = [], random.Random(case["id"])
    text, events, options = cases.text_of(case["query"]), cases.events_of(case), cases.options_of(case["query"])
    for how, got in cases.runs(text, events, options, "compiled", draw, few=True):
        found += [(how, one) for one in cases.differences(cases.expected_of(case), got)]
    assert found == []


@pytest.mark.parametrize(
    ("kind", "backend", "first", "count"),
    [
        ("sum_query", "numpy", 0, 10),
        ("query", "compiled", 0, 10),
        pytest.param("sum_query", "compiled", 10, 60, marks=pytest.mark.slow),
        pytest.param("query", "compiled", 10, 60, marks=pytest.mark.slow),
    ],
)
def test_strategies_agree_with_the_definition(kind: str, backend: str, first: int, count: int, at_once: None) -> None:
    for seed in range(first, first + count):
        draw = random.Random(seed)
        query, events = cases.random_query(draw, kind)
        assert list(cases.differences_of(seed, query, events, backend)) == []
    assert cases.used["A"] >= count
    assert cases.used["C"] >= count // 2
    assert cases.used["C cut"] >= count // 10
    assert kind == "query" or cases.used["B"] >= 0.9 * count
    assert kind == "query" or cases.used["part B"] >= count // 4
    assert cases.used["part C cut"] >= count // 20


@pytest.mark.parametrize("ts", [[-1], [2, 3], [-5, 12], [0, 11, 12, 21]])
def test_events_between_two_windows_are_in_no_list_of_any_day(ts: list[int]) -> None:
    hop, times = Period("hop", size=2, step=10, second=1), np.array(ts)
    found = lists.Periods(hop, 5, times, lists.DayCompetition(None)).of(times)
    assert [low <= high for low, high in zip(found.low, found.high, strict=True)] == [one % 10 < 2 for one in ts]


@pytest.mark.slow
def test_matches_of_all_days_that_compete_show(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, shown = lists.Periods.__init__, set()
    monkeypatch.setattr(lists.Periods, "__init__", lambda self, *given: begin(self, *given[:3]))
    for seed in range(12):
        query, events = cases.random_query(random.Random(seed), "sum_query")
        try:
            list(cases.differences_of(seed, query, events, "numpy"))
        except AssertionError as difference:
            shown.add(difference.args[0][0])
    assert shown == {"B", "C"}


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_bound_that_is_too_low_shows(backend: str, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Bound.score

    def lower(found: Any) -> Any:
        """Of a number, or of the expression that the machine code has for it."""
        return f"({found} - 2.0)" if isinstance(found, str) else found - 2.0

    monkeypatch.setattr(Bound, "score", lambda self, *args: lower(right(self, *args)))
    if backend == "compiled":
        monkeypatch.setattr(cut.Cutter, "_bounds", _without_bounds)
    for seed in range(40):
        draw = random.Random(seed)
        query, events = queries.sum_query(draw), queries.events(draw)
        if any(", C" in how for _, how, _, _ in cases.differences_of(seed, query, events, backend)):
            return
    raise AssertionError("no query shows it")


def _without_bounds(self: cut.Cutter, singles: Any, start: np.ndarray, end: np.ndarray) -> Any:
    return np.full(len(start), np.inf), np.arange(len(start))


SEQUENCE = "PATTERN SEQ(A a, B b) {where} WITHIN 9 RANK BY {score} TOP 3 {rest}"


@pytest.mark.parametrize(
    ("where", "score", "rest", "allowed"),
    [
        ("", "MAX(a.x + b.x)", "PER ALL", "BCA"),
        ("", "MAX(b.x - a.x) NORM 0 .. 4", "PER ALL", "CA"),
        ("", "MAX(a.x), MIN(b.x) NORM 0 .. 3 COMBINE avg", "PER BUCKET 5 BY LAST", "BCA"),
        ("", "MAX(a.x + b.x)", "PER BUCKET 5 BY FIRST", "CA"),
        ("", "MAX(a.x + b.x)", "PER HOP 5 STEP 2", "BCA"),
        ("", "MAX(a.x * b.x)", "PER ALL", "CA"),
        ("", "MAX(a.x), MAX(b.x) COMBINE min", "PER ALL", "CA"),
        ("", "MAX(a.x), MAX(b.x) COMBINE product", "PER ALL", "A"),
        ("", "MAX(a.x) NORM 0 .. 1, MAX(b.x) NORM 0 .. 1 COMBINE product", "PER ALL", "CA"),
        ("", "MAX(Coalesce(a.x, b.x))", "PER ALL", "A"),
        ("", "MAX(Coalesce(a.x, 0) + Round(b.x))", "PER ALL", "BCA"),
        ("WHERE a.k = b.k", "MAX(a.x + b.x)", "PER ALL FOR EACH b.k", "BCA"),
        ("", "MAX(a.x + b.x)", "PER ALL FOR EACH b.k", "CA"),
        ("", "MAX(a.x + b.x)", "PER ALL FOR EACH a.k, b.k", "A"),
        ("WHERE a.x < b.x", "MAX(a.x + b.x)", "PER ALL", "CA"),
        ("", "MAX(a.x + b.x)", "PER ALL NON OVERLAPPING", "A"),
        ("", "MAX(a.x + b.x)", "PER ALL DISTINCT ON a.k", "CA"),
        ("", "MAX(a.x + b.x)", "PER ALL QUANTUM 2", "CA"),
    ],
)
def test_what_is_allowed(where: str, score: str, rest: str, allowed: str) -> None:
    text = SEQUENCE.format(where=where, score=score, rest=rest)
    assert "".join(strategies(compile_pattern(text, strict_units=False)).allowed) == allowed


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B+ b) WITHIN 9 RANK BY MAX(a.x) TOP 3 PER ALL",
        "PATTERN SEQ STRICT (A a, B b) WITHIN 9 RANK BY MAX(a.x) TOP 3 PER ALL",
        "PATTERN SEQ(A a, B b) WITHIN 9 CONTEXT recent RANK BY MAX(a.x) TOP 3 PER ALL",
    ],
)
def test_what_is_not_allowed_is_an_error_with_a_reason(text: str) -> None:
    for strategy in "BC":
        with pytest.raises(UsageError, match=f"strategy {strategy} is not allowed: .+"):
            list(match(text, [{"id": 1, "type": "A", "ts": 0}], strategy=strategy))


def test_a_window_shorter_than_the_events_reach_takes_no_pass() -> None:
    text = SEQUENCE.format(where="", score="MAX(a.x + b.x)", rest="PER ALL")
    events = [{"id": i, "type": "AB"[i % 2], "ts": 3 * i, "attrs": {"x": i}} for i in range(9)]
    with pytest.raises(UsageError, match="the window is shorter than the span of the events"):
        list(match(text, events, strategy="B"))
    statistics = Statistics()
    assert len(list(match(text, events, statistics=statistics))) == 3
    assert statistics.best is not None and statistics.best.strategy == "C"
    assert "no B: the window is shorter" in statistics.best.why


def test_large_whole_numbers_are_not_bounded() -> None:
    events = [{"id": i, "type": "AB"[i % 2], "ts": i, "attrs": {"x": 2**60 + i}} for i in range(9)]
    statistics = Statistics()
    text = SEQUENCE.format(where="", score="MAX(a.x * b.x)", rest="PER ALL")
    assert len(list(match(text, events, statistics=statistics))) == 3
    assert statistics.best is not None and statistics.best.strategy == "A"


# ---- what they save


def _comparable(zeros: float | None = None) -> pa.Table:
    """Scores at random, or of 1 but for a share of zeros."""
    draw, n = np.random.default_rng(1), 12_000
    return pa.table({
        "event_id": [f"{i:05}" for i in range(n)],
        "type": draw.choice(list("ABCD"), n, p=[0.45, 0.35, 0.15, 0.05]),
        "ts": pa.array(np.arange(n) * 1_000_000, pa.timestamp("us", tz="UTC")),
        "x": draw.random(n) if zeros is None else (np.arange(n) >= zeros * n).astype(float),
        "y": draw.random(n),
    })  # fmt: skip


CHAIN = "WHERE b.y > a.y AND c.y > b.y AND d.y > c.y WITHIN 60 s"
#: Partial matches of a search that lists all: those of the last one, two and three names.
LISTED = ["PATTERN D d WITHIN 60 s", "PATTERN SEQ(C c, D d) WHERE d.y > c.y WITHIN 60 s",
          "PATTERN SEQ(B b, C c, D d) WHERE c.y > b.y AND d.y > c.y WITHIN 60 s"]  # fmt: skip


@pytest.mark.parametrize(("period", "share"), [("ALL", 0.10), ("BUCKET 1000 s BY LAST", 0.35)])
def test_few_partial_matches_are_made(period: str, share: float) -> None:
    events = _comparable()
    listed = sum(batch.n for text in LISTED for batch in find(compile_pattern(text), events))
    pattern = compile_pattern(
        f"PATTERN SEQ(A a, B b, C c, D d) {CHAIN} RANK BY MAX(a.x + b.x + c.x + d.x) TOP 10 PER {period}"
    )
    statistics = Statistics()
    assert sum(one.n for one in find(pattern, events, order="dcba", backend="numpy", statistics=statistics)) >= 10
    assert statistics.best is not None and statistics.best.strategy == "C" and not statistics.best.switched_off
    assert statistics.best.partial <= share * listed


@pytest.mark.parametrize(
    ("zeros", "score", "rest", "off", "tried"),
    [
        (0.01, "MAX(a.x + d.x)", "", True, True),
        (0, "MAX(a.x + d.x)", "", True, False),
        (1, "MAX(a.x - d.x), MIN(b.x * 2) COMBINE wsum", "", True, False),
        (0, "MAX(a.x + d.x), MAX(b.y) COMBINE lex", "", True, False),
        (0, "MAX(a.x), MAX(b.y) COMBINE sum", "", False, True),
        (0, "MAX(a.x + d.x)", "AT LEAST 3", False, True),
    ],
)
def test_bounds_that_cut_nothing_are_switched_off(zeros: float, score: str, rest: str, off: bool, tried: bool) -> None:
    pattern = compile_pattern(f"PATTERN SEQ(A a, B b, C c, D d) {CHAIN} RANK BY {score} TOP 10 PER ALL {rest}")
    rows, found = {}, {}
    for strategy in "AC":
        statistics = Statistics()
        options = SearchOptions(strategy=strategy)
        events = _comparable(zeros).slice(0, 6_000)
        batches = list(find(pattern, events, backend="numpy", statistics=statistics, options=options))
        rows[strategy] = [{name: at.tolist() for name, at in one.single.items()} for one in batches]
        found[strategy] = statistics.best
    assert (found["C"].switched_off, found["C"].tried > 0) == (off, tried)
    assert rows["A"] == rows["C"] and bool(rows["A"]) == (not rest)
    # Without a bound no partial match is left out.
    assert tried or found["C"].complete == found["A"].complete


def test_a_pass_costs_the_same_however_many_matches_there_are() -> None:
    made = {}
    for share in (0.001, 0.5):
        draw, n = np.random.default_rng(2), 3_000
        events = pa.table({
            "event_id": [f"{i:05}" for i in range(n)], "type": np.where(draw.random(n) < share, "A", "B"),
            "ts": pa.array(np.arange(n)), "x": draw.integers(0, 1000, n),
        })  # fmt: skip
        pattern = compile_pattern("PATTERN SEQ(A a, B b) RANK BY MAX(a.x + b.x) TOP 3 PER ALL", strict_units=False)
        statistics = Statistics()
        assert sum(one.n for one in find(pattern, events, backend="numpy", statistics=statistics)) == 3
        assert statistics.best is not None and statistics.best.strategy == "B"
        made[share] = statistics.best.partial
    assert max(made.values()) < 6 * 3_000
