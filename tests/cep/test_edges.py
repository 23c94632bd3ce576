"""The compiled automaton: scopes, edges, dependencies and intervals of docs/automata.md."""

from __future__ import annotations

from itertools import permutations

import pytest

from chainlake.cep.automata.edges import State, states_of
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.plan.order import given_order
from chainlake.cep.plan.steps import make_plan


def states(query: str, order: str | tuple[str, ...]) -> tuple[State, ...]:
    branch = compile_pattern(f"PATTERN {query} WITHIN 10", strict_units=False).branches[0]
    return states_of(make_plan(branch, given_order(branch, tuple(order))))


# per edge: name, s, f; the source is the stream too iff f is the finish
SCOPES = {
    "abc": "a start finish, b a finish, c b finish",
    "acb": "a start finish, c a finish, b a c",
    "bac": "b start finish, a start b, c b finish",
    "bca": "b start finish, c b finish, a start b",
    "cab": "c start finish, a start c, b a c",
    "cba": "c start finish, b start c, a start b",
}


@pytest.mark.parametrize("order", SCOPES)
def test_scope_table(order: str) -> None:
    found = states("SEQ(A a, B b, C c)", order)
    scopes = [f"{s.name} {' '.join(s.after) or 'start'} {' '.join(s.before) or 'finish'}" for s in found]
    assert ", ".join(scopes) == SCOPES[order]
    assert [s.from_stream for s in found] == ["finish" in scope for scope in scopes]


def test_a_partial_order_has_several_neighbours() -> None:
    by_name = {s.name: s for s in states("SEQ(A a, AND(B b, SEQ(C c, D d)), E e)", "eabdc")}
    assert (by_name["a"].before, by_name["b"].after, by_name["b"].before) == (("e",), ("a",), ("e",))
    assert (by_name["c"].after, by_name["c"].before) == (("a",), ("d",))
    last = {s.name: s for s in states("SEQ(A a, AND(B b, SEQ(C c, D d)), E e)", "abcde")}["e"]
    assert last.after == ("b", "d") and last.from_stream


def test_what_each_state_stores_and_ignores() -> None:
    found = states("SEQ(A a, NOT(X x), B b, C c)", "cab")
    assert [(s.store, s.ignore) for s in found] == [
        (("a", "b", "x"), ("c",)), (("b", "x"), ("c", "a")), (("x",), ("c", "a", "b"))
    ]  # fmt: skip


def test_a_condition_stands_on_the_edge_of_its_last_name() -> None:
    query = "SEQ(A a, B b, C c) WHERE a.x < b.x AND a.x + c.x > b.x AND c.x = 1"
    for order in permutations("abc"):
        found = {s.name: len(s.clauses) for s in states(query, order)}
        expected = dict.fromkeys("abc", 0)
        expected[max("ab", key=order.index)] += 1
        expected[order[-1]] += 1
        assert found == expected


# structure, DEP of the negated name, its interval as (after, before)
NEGATIONS = [
    ("SEQ(A a, NOT(B b), C c)", "ac", "a", "c"),
    ("SEQ(A a, NOT(B b), C c, D d)", "ac", "a", "c"),
    ("SEQ(NOT(B b), A a, C c, D d)", "ad", "", "a"),
    ("SEQ(A a, C c, D d, NOT(B b))", "ad", "d", ""),
    ("AND(A a, NOT(B b), C c)", "ac", "", ""),
    ("AND(SEQ(A a, NOT(B b), C c), D d)", "ac", "a", "c"),
    ("AND(SEQ(NOT(B b), A a, C c), D d)", "acd", "", "a"),
    ("AND(SEQ(A a, NOT(B b)), C c)", "ac", "a", ""),
    ("SEQ(A a, K* k, NOT(B b), C c)", "kc", "k", "c"),
    ("SEQ(A a, NOT(B b), C c, D d, E e, F f) WHERE b.x < d.y", "acd", "a", "c"),
]


@pytest.mark.parametrize(("query", "needs", "after", "before"), NEGATIONS)
def test_a_negated_name_is_tested_when_all_it_depends_on_is_bound(
    query: str, needs: str, after: str, before: str
) -> None:
    branch = compile_pattern(f"PATTERN {query} WITHIN 10", strict_units=False).branches[0]
    for order in permutations(branch.positive):
        found = states(query, order)
        bound = given_order(branch, order)
        tested = [s.number for s in found if s.tests]
        assert tested == [1 + max(bound.index(name) for name in needs)], bound
        test = found[tested[0] - 1].tests[0]
        assert ("".join(test.after), "".join(test.before), test.waits) == (after, before, not before)
