"""What a compiled pattern says of itself: front matter, hash, ownership, partition key, scan filter, order."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings

from chainlake.cep.language.formatter import format_query
from chainlake.cep.language.normal_form import normal_form
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.library import from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.plan.steps import make_plan
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from tests.cep.strategies import queries, text_of
from tests.cep.test_errors import COLUMNS

TEXT = """# a comment
---
source: stock
description: two rises
params: {least: 2, h: 30 min}
sets: {Banks: [JPM, GS]}
rates: {a: 5, b: 1}
output: [n, a.text]
limits: {kleene_members: 10}
---
PATTERN SEQ(Bar a, Bar b)  # another comment
WHERE a.key IN Banks AND b.x > a.x * least AND b.ts - a.ts <= 90 s
WITHIN h
"""
SECOND = 1_000_000


def test_front_matter_and_names() -> None:
    pattern = compile_pattern(TEXT, name="rises", columns=COLUMNS)
    assert (pattern.source, pattern.description, pattern.window_us) == ("stock", "two rises", 1800 * SECOND)
    others = {"set_members": 10_000, "matches_per_day": 10_000_000, "compared_events": 20_000_000}
    assert pattern.limits == {"kleene_members": 10, **others}
    assert [(n.name, n.type, n.kleene, n.attributes) for n in pattern.names] == [
        ("a", "Bar", False, ("key", "n", "text", "x")),
        ("b", "Bar", False, ("n", "x")),
    ]
    assert pattern.columns_needed == {"event_id", "type", "ts", "key", "x", "n", "text"}
    assert pickle.loads(pickle.dumps(pattern)).definition_hash == pattern.definition_hash


def test_hash_follows_what_changes_the_result_and_nothing_else() -> None:
    same = compile_pattern(TEXT).definition_hash
    for old, new in [
        ("# a comment", "# other words"),
        ("rates: {a: 5, b: 1}", "rates: {a: 1, b: 5}"),
        ("limits: {kleene_members: 10}", ""),
        ("description: two rises", "description: x"),
        ("SEQ(Bar a, Bar b)", "seq( Bar a,SEQ(Bar b))"),
        ("90 s", "1.5 minutes"),
    ]:
        assert old in TEXT and compile_pattern(TEXT.replace(old, new)).definition_hash == same, new
    for old, new in [
        ("least: 2", "least: 3"),
        ("[JPM, GS]", "[JPM]"),
        ("output: [n", "output: [x"),
        ("source: stock", "source: other"),
        ("h: 30 min", "h: 31 min"),
        ("b.x >", "b.x >="),
        ("90 s", "91 s"),
    ]:
        assert old in TEXT and compile_pattern(TEXT.replace(old, new)).definition_hash != same, new
    assert compile_pattern(TEXT, params={"least": 3}).definition_hash != same


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(queries())
def test_formatted_text_parses_to_the_same_query(query: tuple) -> None:
    parsed = parse(SourceText(text_of(query)))
    assert parse(SourceText(format_query(parsed))) == parsed


@pytest.mark.parametrize(
    ("structure", "decision", "windows"),
    [
        ("SEQ(A a, B b)", "end", 1),
        ("SEQ(A a, NOT(B b), C c)", "end", 1),
        ("SEQ(NOT(B b), A a, C c)", "end", 1),
        ("SEQ(A a, NOT(B b))", "start+W", 1),
        ("AND(A a, NOT(B b))", "start+W", 2),
        ("SEQ(NOT(B b), A a, C c, NOT(D d))", "start+W", 2),
        ("OR(SEQ(A a, B b), SEQ(A a, B b, NOT(C c)))", "start+W", 1),
        ("OR(SEQ(NOT(C c), A a), SEQ(A a, NOT(C c)))", "start+W", 2),
        ("AND(SEQ(A a, NOT(B b)), C c)", "start+W", 1),
    ],
)
def test_decision_time_and_read_range(structure: str, decision: str, windows: int) -> None:
    pattern = compile_pattern(f"PATTERN {structure} WITHIN 10 s")
    assert pattern.decision == decision
    assert pattern.read_range(0, 100 * SECOND) == (-windows * 10 * SECOND, 100 * SECOND)


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SEQ(A a, B b) WHERE a.k = b.k", "k"),
        ("SEQ(A a, B b, C c) WHERE a.k = b.k AND c.k = b.k", "k"),
        ("SEQ(A a, B b, C c) WHERE a.k = b.k", None),
        ("SEQ(A a, B b) WHERE a.k = b.j", None),
        ("SEQ(A a, B b) WHERE a.k = b.k OR a.x = 1", None),
        ("SEQ(A a, B b) WHERE NOT a.k != b.k", "k"),
        ("SEQ(A a, NOT(N n), B b) WHERE a.k = b.k", None),
        ("SEQ(A a, NOT(N n), B b) WHERE a.k = b.k AND n.k = a.k", "k"),
        ("SEQ(A a, B b) WHERE a.j = b.j AND a.k = b.k AND a.x > 1", "j"),
        ("OR(SEQ(A a, B b) WHERE a.k = b.k, SEQ(A a, C c) WHERE a.k = c.k AND a.j = c.j)", "k"),
        ("OR(SEQ(A a, B b) WHERE a.k = b.k, SEQ(A a, C c))", None),
        ("SEQ(A a, B b) WHERE a.ts = b.ts", None),
        ("SEQ(A a, NOT(N n)) WHERE a.k = n.k", "k"),
        # What rejects says nothing about a match: events of different k are one where nothing rejects it.
        ("SEQ(A a, NOT(N n), B b) WHERE a.k = n.k AND n.k = b.k", None),
        ("SEQ(NOT(N n), B+ b) WHERE n.k = b.k", None),
        ("OR(SEQ(A a, B b) WHERE a.k = b.k, C+ c)", None),
        ("SEQ(A a, B+ b) WHERE a.k = b.k", "k"),
    ],
)
def test_partition_key(query: str, key: str | None) -> None:
    assert compile_pattern(f"PATTERN {query} WITHIN 1 s").partition_key == key


def events(**counts: int) -> list[dict]:
    """So many events per type, interleaved."""
    rows = [(ts, kind) for kind, n in counts.items() for ts in range(n)]
    return [
        {"id": f"{kind}{ts}", "type": kind, "ts": ts, "attrs": {"x": ts % 3, "k": ts % 5}} for ts, kind in sorted(rows)
    ]


@pytest.mark.parametrize(
    ("query", "counts", "order"),
    [
        ("SEQ(A a, B b, C c)", {"A": 30, "B": 20, "C": 10}, "cba"),
        ("SEQ(A a, B b, C c)", {"A": 10, "B": 10, "C": 10}, "abc"),
        ("SEQ(A* a, B b, C c)", {"A": 1, "B": 20, "C": 10}, "cba"),
        # after c, b shares no clause with it; a does and is not ten times as frequent
        ("SEQ(A a, B b, C c) WHERE a.k = c.k AND a.x = b.x", {"A": 30, "B": 20, "C": 10}, "cab"),
        ("SEQ(A a, B b, C c) WHERE a.k = c.k AND a.x = b.x", {"A": 300, "B": 20, "C": 10}, "cba"),
        # names are counted after their own conditions
        ("SEQ(A a, B b) WHERE a.x = 0 AND a.k = 0", {"A": 30, "B": 20}, "ab"),
    ],
)
def test_order_from_counts(query: str, counts: dict[str, int], order: str) -> None:
    statistics = Statistics()
    pattern = compile_pattern(f"PATTERN {query} WITHIN 0", strict_units=False)
    options = SearchOptions(by="frequency")
    list(find(pattern, from_dicts(events(**counts))[0], statistics=statistics, options=options))
    assert (statistics.order, statistics.how) == ([tuple(order)], "measured")


def test_declared_rates_and_given_order_win() -> None:
    text = "---\nrates: {a: 3, b: 2, c: 1}\n---\nPATTERN SEQ(A a, B b, C* c) WITHIN 1"
    statistics = Statistics()
    list(match(text, events(A=1, B=2, C=3), statistics=statistics))
    assert (statistics.order, statistics.how) == ([("b", "a", "c")], "declared")
    list(match(text, events(A=1, B=2, C=3), order=["c", "a", "b"], statistics=statistics))
    assert (statistics.order[1], statistics.how) == (("a", "b", "c"), "given")
    assert compile_pattern(text, strict_units=False).declared_order() == ("b", "a", "c")
    assert compile_pattern("PATTERN SEQ(A a) WITHIN 1 s").declared_order() is None


@pytest.mark.parametrize(
    ("order", "scopes"),
    [
        ("abc", [((), ()), (("a",), ()), (("a", "b"), ())]),
        ("acb", [((), ()), (("a",), ()), (("a",), ("c",))]),
        ("bac", [((), ()), ((), ("b",)), (("b", "a"), ())]),
        ("bca", [((), ()), (("b",), ()), ((), ("b", "c"))]),
        ("cab", [((), ()), ((), ("c",)), (("a",), ("c",))]),
        ("cba", [((), ()), ((), ("c",)), ((), ("c", "b"))]),
    ],
)
def test_scopes(order: str, scopes: list) -> None:
    """Spec 3.5: the nearest bound neighbour is among the names of each side, and the tightest ts wins."""
    source = SourceText("PATTERN SEQ(A a, B b, C c) WITHIN 1 s")
    (branch,) = normal_form(source, Resolver(source, {}, True).query(parse(source)))
    assert [(s.scope.after, s.scope.before) for s in make_plan(branch, tuple(order)).steps] == scopes


def test_times_are_exact_microseconds() -> None:
    base = 1_700_000_000_000_000
    table = pa.table(
        {
            "event_id": ["1", "2", "3"],
            "type": ["A", "B", "B"],
            "ts": pa.array([base, base + 2 * SECOND, base + 2 * SECOND + 1], pa.timestamp("us", tz="UTC")),
        }
    )
    for query in ("WITHIN 2 s", "WHERE b.ts - a.ts <= 2 s WITHIN 1 h", "WHERE b.ts <= a.ts + 2000 ms WITHIN 1 h",
                  "WHERE (b.ts - a.ts) / 2 s <= 1 WITHIN 1 h", "WHERE NOT b.ts - 2 s > a.ts WITHIN 1 h"):  # fmt: skip
        assert list(match(f"PATTERN SEQ(A a, B b) {query}", table)) == [{"a": "1", "b": "2"}], query
    pattern = compile_pattern("PATTERN SEQ(A* a, B b) WHERE b.ts - MAX(a.ts) <= 2 s WITHIN 1 h")
    assert sum(batch.n for batch in find(pattern, table)) == 1


@pytest.mark.parametrize(
    ("words", "microseconds"),
    [
        ("ms millisecond milliseconds", 1_000),
        ("s sec secs second seconds S Sec", 1_000_000),
        ("m min mins minute minutes MIN", 60_000_000),
        ("h hr hrs hour hours", 3_600_000_000),
        ("d day days", 86_400_000_000),
        ("w week weeks", 604_800_000_000),
    ],
)
def test_every_spelling_of_a_unit(words: str, microseconds: int) -> None:
    for word in words.split():
        assert compile_pattern(f"pattern Seq(A a) Within 1.5 {word}").window_us == 1.5 * microseconds, word
        assert compile_pattern(f"PATTERN SEQ(A a) WITHIN h {word}", params={"h": 3}).window_us == 3 * microseconds
        clause = f"PATTERN SEQ(A a, B b) WHERE b.ts - a.ts <= 2 {word} WITHIN 9 w"
        (literal,) = compile_pattern(clause).branches[0].clauses[0].literals
        assert literal.right.seconds * 1_000_000 == 2 * microseconds  # type: ignore[attr-defined]


def test_values_of_different_kinds_are_never_equal() -> None:
    events = [{"id": 1, "type": "A", "ts": 1, "attrs": {"x": 1.0, "k": "1", "t": True}}]
    for condition, found in (
        ("a.x = a.k", 0), ("a.x != a.k", 1), ("a.x = '1'", 0), ("a.k = 1", 0), ("a.t = 1", 0), ("a.x = TRUE", 0),
        ("a.k IN {1, '1'}", 1), ("a.k IN {1}", 0), ("a.x NOT IN {'1'}", 1), ("a.none != 'x'", 0), ("a.t = TRUE", 1),
    ):  # fmt: skip
        assert len(list(match(f"PATTERN A a WHERE {condition} WITHIN 1", events))) == found, condition
