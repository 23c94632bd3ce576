"""Evaluation counts: reference values of docs/automata.md#costs, and what the order changes in them."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from chainlake.cep.library import match
from chainlake.cep.search.statistics import Statistics

RISING = "PATTERN SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 1000"
HUNDRED = [*(f"a{i}" for i in range(1, 101)), *(f"b{150 if i == 50 else 200 + i}" for i in range(1, 101)), "c160"]
ORDERS = ("abc", "acb", "bac", "bca", "cab", "cba")


def stream(*events: str) -> list[dict]:
    """``a3 b7`` as events of type A with price 3 and B with price 7, one per tick."""
    return [
        {"id": f"{text}@{ts}", "type": text[0].upper(), "ts": ts, "attrs": {"price": int(text[1:] or 0)}}
        for ts, text in enumerate(events)
    ]


def counted(pattern: str, events: list[dict], order: str | None = None) -> Statistics:
    statistics = Statistics()
    list(match(pattern, events, order=list(order) if order else None, statistics=statistics))
    return statistics


@pytest.mark.parametrize(
    ("events", "expected", "matches"),
    [
        (stream("a3", "b7", "c9"), (3, 3, 3, 3, 3, 3), 1),
        (stream("a3", "b13", "c9"), (3, 3, 3, 2, 3, 2), 0),
        (stream("a8", "b7", "c9"), (2, 3, 2, 3, 3, 3), 0),
        (stream("a3", "a5", "a8", "b7", "b13", "c9"), (14, 12, 13, 7, 10, 6), 2),
        (stream(*HUNDRED), (20100, 10200, 20100, 300, 10101, 201), 100),
        (stream(*HUNDRED[:99], *HUNDRED[100:]), (19899, 10098, 19900, 299, 10000, 200), 99),
    ],
)
def test_reference_values(events: list[dict], expected: tuple[int, ...], matches: int) -> None:
    found = [counted(RISING, events, order) for order in ORDERS]
    assert tuple(s.evaluations for s in found) == expected
    assert {s.matches for s in found} == {matches}


def test_trace_without_conditions_costs_nine_in_every_order() -> None:
    events = stream("a", "b", "c", "a", "b", "c")
    for order in ORDERS:
        assert counted("PATTERN SEQ(A a, B b, C c) WITHIN 100", events, order).evaluations == 9


@pytest.mark.parametrize("order", ["acb", "cab"])
def test_a_set_counts_once_per_subset(order: str) -> None:
    found = counted("PATTERN SEQ(A a, B* b, C c) WITHIN 100", stream("a", "b", "b", "b", "c"), order)
    assert (found.evaluations, found.evaluations_pre, found.matches) == (9, 0, 7)


def test_members_of_a_set_are_filtered_before_subsets_are_made() -> None:
    pattern = "PATTERN SEQ(A a, B* b, C c) WHERE b.price < c.price WITHIN 100"
    found = counted(pattern, stream("a", "b1", "b9", "b2", "c5"))
    assert (found.evaluations, found.evaluations_pre, found.matches) == (1 + 1 + 3, 3, 3)


def test_negated_events_count_up_to_the_first_that_rejects() -> None:
    events = stream("a5", *["b1"] * 9, "b7", *["b1"] * 9, "c1")
    pattern = "PATTERN SEQ(A a, NOT(B b), C c) WHERE b.price > a.price WITHIN 100"
    assert counted(pattern, events).evaluations_neg == 10
    assert counted(pattern, stream("a5", "b1", "b2", "c1")).evaluations_neg == 2
    assert counted("PATTERN SEQ(A a, NOT(B b), C c) WITHIN 100", events).evaluations_neg == 1


def test_bounded_negation_is_tested_as_soon_as_its_neighbours_are_bound() -> None:
    pattern = "PATTERN SEQ(A a, NOT(X x), B b, C c) WITHIN 1000"
    events = stream("a", "x", "b", *["c"] * 50)
    assert counted(pattern, events, "abc").evaluations == 2


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(5))
def test_orders_that_differ_in_their_first_two_names_differ_by_the_counts(seed: int) -> None:
    draw = random.Random(seed)
    events = stream(*(f"{draw.choice('aaabbc')}{draw.randrange(20)}" for _ in range(120)))
    number = {name: sum(e["type"] == name.upper() for e in events) for name in "abc"}
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.price < b.price AND Abs(b.price - c.price) < 5 WITHIN 30"
    for order in permutations("abc"):
        swapped = order[1] + order[0] + order[2]
        one, other = (counted(pattern, events, "".join(o)).evaluations for o in (order, swapped))
        assert one - other == number[order[0]] - number[order[1]]


def test_rare_last_type_makes_orders_that_start_with_it_ten_times_cheaper() -> None:
    draw = random.Random(1)
    events = [
        {
            "id": str(ts),
            "type": "C" if draw.random() < 0.005 else draw.choice("AB"),
            "ts": ts,
            "attrs": {"x": draw.random()},
        }
        for ts in range(2500)
    ]
    where = "WHERE Abs(a.x - b.x) < 0.2 AND Abs(b.x - c.x) < 0.2 WITHIN 40"
    pattern = f"PATTERN SEQ(A a, B b, C c) {where}"
    cost = {order: counted(pattern, events, order).evaluations for order in ORDERS}
    assert 10 * max(cost["cab"], cost["cba"]) < cost["abc"]
    chosen = counted(pattern, events)
    assert chosen.order == [("c", "b", "a")] and chosen.how == "estimated"
    reverse = f"PATTERN SEQ(C c, B b, A a) {where}"
    assert counted(reverse, events, "cba").evaluations == counted(reverse, events).evaluations
