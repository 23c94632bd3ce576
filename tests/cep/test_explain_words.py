"""``explain`` and near misses of runs, sets, measures and selections."""

from __future__ import annotations

import pytest

from chainlake.cep.explain.near_misses import near_misses
from chainlake.cep.explain.report import chosen_orders, explain, mermaid
from chainlake.cep.library import from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.definitions.derived import Series


def lines(query: str) -> list[str]:
    """What ``explain`` says."""
    pattern = compile_pattern(query, series=Series("k"))
    return list(explain(pattern, chosen_orders(pattern)))


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("PATTERN SEQ(A a, COLLECT(B b), C c) WHERE b.x > a.x AND COUNT(b) >= 3 WITHIN 5 min", [
            "  collects  b B: all that fit where b.x > a.x", "  sets      COUNT(b) >= 3",
            "decision  at the last event"]),
        ("PATTERN SEQ(A a, COLLECT?(B b)) WITHIN 5 min", [
            "  collects  b B: all that fit, which may be none",
            "decision  5 min after the first event: until then an event that it collects may still come"]),
        ("PATTERN SEQ(A a, B+ b, UNTIL(S s)) WHERE s.k = a.k WITHIN 5 min PAUSE 30 s", [
            "  until     s S: none inside a match where s.k = a.k",
            "pause     30 s: neighbouring events of a match are at most this far apart"]),
        ("PATTERN SEQ STRICT OF KEY (A a, B+ b) WHERE b.x > PREV(b.x, 1, 90 s) WITHIN 5 min MAXIMAL", [
            "keeps     no match whose events are all among those of another one, name by name",
            "decision  5 min after the first event: until then a larger one may come",
            "reads     for matches decided in [s, e): events with ts in [s - 10 min, e)",
            "  neighbours of the types A, B, each key separately", "  then      a",
            "  then      one or more b where b.x > PREV(b.x, 1, 90 s)"]),
        ("---\nlimits: {longest: 12 h}\n---\nPATTERN SEQ STRICT OF KEY (A+ a) PAUSE 5 min OUTERMOST", [
            "longest   12 h: a longer stretch of neighbours gives no match, and is counted",
            "decision  5 min after the end of its stretch of neighbours: until then a larger one may come"]),
        ("PATTERN SEQ(A a, B b) WHERE a.s NOT LIKE 'x%' WITHIN 1 h CONTEXT chronicle MEASURES b.x - a.x AS rise", [
            "  accepts   a: a.s NOT LIKE 'x%'", "measure   rise: b.x - a.x",
            "selects   of the matches with the same last event the first; it uses up all of its events"]),
        ("PATTERN SEQ(A a, B b) WITHIN 1 h PICK first a, last b", [
            "selects   of the matches with the same last event those with the first a, then those with the last b; "
            "no event is used up"]),
    ],
)  # fmt: skip
def test_what_is_bound_kept_and_decided_is_said(query: str, wanted: list[str]) -> None:
    found = lines(query)
    assert [line for line in wanted if line not in found] == [], found


def test_the_picture_of_neighbours_is_a_row() -> None:
    pattern = compile_pattern("PATTERN SEQ STRICT (A a, B+ b, C c) WITHIN 1 min")
    assert list(mermaid(chosen_orders(pattern)))[1:] == [
        '  q1((q1)) -- "take a" --> q2((q2))',
        '  q2((q2)) -- "next b" --> q3((q3))',
        '  q3((q3)) -- "next b" --> q3((q3))',
        '  q3((q3)) -- "next c" --> F(((F)))',
    ]


def table(text: str) -> object:
    """Events, one per word: type, seconds, x."""
    events = []
    for word in text.split():
        kind, ts, x = word.split(",")
        events.append({"id": word, "type": kind, "ts": int(ts), "attrs": {"x": int(x), "k": "u"}})
    return from_dicts(events)[0]


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, COLLECT(B b), C c) WHERE b.x > a.x AND COUNT(b) >= 2 WITHIN 10",
        "SEQ(A a, C c, UNTIL(B s)) WHERE s.x > 4 WITHIN 10",
        "AND(A a, B b, C c) WITHIN 10 PAUSE 2",
        "SEQ STRICT (A a, B+ b, C c) WHERE b.x > 1 WITHIN 10",
        "OR(SEQ STRICT (A a, B b), SEQ(A a, C c)) WITHIN 10",
    ],
)
def test_near_misses_end_with_the_matches_of_the_search(query: str) -> None:
    pattern = compile_pattern(f"PATTERN {query}", strict_units=False)
    events = table("A,0,1 B,1,2 B,2,5 C,3,0 A,4,9 B,5,4 C,6,1 C,7,1")
    reports = near_misses(pattern, events, [one.plan for one in chosen_orders(pattern)], (0, 100))
    wanted = [0] * len(pattern.branches)
    for batch in find(pattern, events, own=(0, 100)):
        wanted[batch.branch] += batch.n
    assert [report.matches for report in reports] == wanted and sum(wanted) > 0
    for report in reports:
        for stage in report.stages:
            ended = sum(miss.count for miss in stage.misses.values() if not miss.reason.startswith("no "))
            assert stage.entered - ended <= stage.left <= stage.entered


def test_what_ended_a_match_in_the_end_is_named() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, C c, UNTIL(B s)) WHERE s.x > 3 WITHIN 10", strict_units=False)
    events = table("A,0,1 B,1,9 C,3,0 A,4,9 C,6,1")
    (report,) = near_misses(pattern, events, [one.plan for one in chosen_orders(pattern)], (0, 100))
    last = report.stages[-1]
    assert (last.what, last.entered, last.left) == ("complete", 3, 1)
    assert [(miss.reason, miss.count) for miss in last.misses.values()] == [("a forbidden s inside it", 2)]
    assert "B s, forbidden" in [stage.what for stage in report.stages]
