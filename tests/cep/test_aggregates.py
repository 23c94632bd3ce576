"""Aggregates over sets: against fractions, on numbers that are far from zero, and equal however the work is cut."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from chainlake.cep.values.aggregates import Function, Members, aggregate
from chainlake.cep.values.values import Value
from tests.cep import brute_force

FUNCTIONS = {
    "COUNT": Function("COUNT"), "SUM": Function("SUM"), "AVG": Function("AVG"), "MIN": Function("MIN"),
    "MAX": Function("MAX"), "FIRST": Function("FIRST"), "LAST": Function("LAST"), "STDDEV": Function("STDDEV"),
    "DISTINCT": Function("COUNT", distinct=True), "MEDIAN": Function("MEDIAN"),
    **{f"PERCENTILE {p}": Function("PERCENTILE", share=p) for p in (0.0, 0.29, 0.9, 1.0)},
}  # fmt: skip


def listed(value: Value) -> list[Any]:
    """The values, None for null."""
    valid = [True] * len(value.values) if value.valid is None else value.valid.tolist()
    return [None if not known or x != x else x for x, known in zip(value.values.tolist(), valid, strict=True)]


def draw(rng: random.Random) -> tuple[list[list[Any]], str]:
    """Some sets of values, small, far from zero, or whole, with nulls."""
    kind = rng.choice("fdi")
    value = {
        "f": lambda: rng.choice([0.0, -0.0, 1.5, -2.25, 3.0, rng.uniform(-9, 9)]),
        "d": lambda: 1e9 + rng.choice([0.0, 0.25, 0.5]),
        "i": lambda: rng.choice([0, 1, 5, -3, 2**53 + 1, 2**53 + 2]),
    }[kind]
    sets = [[None if rng.random() < 0.2 else value() for _ in range(rng.randrange(7))] for _ in range(rng.randrange(6))]
    return sets, kind


def columns(sets: list[list[Any]], kind: str) -> tuple[Value, Members, list[list[dict]]]:
    """Sets as columns, and the same sets as events whose places in the stream are not their order."""
    flat = [x for one in sets for x in one]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    places = np.random.default_rng(len(flat)).permutation(len(flat))
    if kind == "i":
        values = np.array([0 if x is None else x for x in flat], np.int64)
        column = Value(values, np.array([x is not None for x in flat], bool), "number")
    else:
        column = Value(np.array([math.nan if x is None else x for x in flat]), None, "number")
    events = [{"ts": 0, "seq": int(place), "id": str(place), "attrs": {"x": x}}
              for x, place in zip(flat, places, strict=True)]  # fmt: skip
    return column, Members(offsets, places), [events[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_fractions(name: str) -> None:
    rng, nulls, others = random.Random(name), 0, 0
    for _ in range(100):
        sets, kind = draw(rng)
        column, members, events = columns(sets, kind)
        found = listed(aggregate(FUNCTIONS[name], column, members))
        wanted = [brute_force.aggregate(name, tuple(one), "x") for one in events]
        for one, other in zip(found, wanted, strict=True):
            assert (one is None) == (other is None), (sets, found, wanted)
            assert one is None or math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12), (sets, one, other)
            nulls, others = nulls + (one is None), others + (one is not None)
    assert others > 100 and (nulls > 10 or name in ("COUNT", "DISTINCT"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_set_has_the_same_value_whatever_else_is_there(name: str) -> None:
    rng = random.Random(name)
    for _ in range(40):
        sets, kind = draw(rng)
        column, members, _ = columns(sets, kind)
        whole = listed(aggregate(FUNCTIONS[name], column, members))
        for number, (a, b) in enumerate(zip(members.offsets[:-1], members.offsets[1:], strict=True)):
            own = Value(column.values[a:b], None if column.valid is None else column.valid[a:b], "number")
            alone = aggregate(FUNCTIONS[name], own, Members(np.array([0, b - a]), members.places[a:b]))
            assert repr(listed(alone)) == repr([whole[number]])


def test_a_deviation_is_neither_lost_nor_beyond_all_doubles() -> None:
    def deviation(values: list[Any]) -> Any:
        column = Value(np.array(values), None, "number")
        return listed(aggregate(Function("STDDEV"), column, Members(np.array([0, len(values)]))))[0]

    assert deviation([1e15, 1e15 + 1, 1e15 + 2]) == 1.0
    assert deviation([2**62, 2**62 + 2, 2**62 + 4]) == 2.0
    assert deviation([0.1] * 3) == 0.0
    assert deviation([1e308, -1e308]) == pytest.approx(math.sqrt(2) * 1e308)
    assert deviation([1e-300, 3e-300]) == pytest.approx(math.sqrt(2) * 1e-300)
    assert deviation([-(2**63), 2**63 - 1]) == pytest.approx(2**64 / math.sqrt(2))


def test_between_two_values_that_are_far_apart() -> None:
    column, members = Value(np.array([-1.6e308, 1.7e308]), None, "number"), Members(np.array([0, 2]))
    every = Value(np.arange(101.0) ** 3, None, "number")
    exact = aggregate(Function("PERCENTILE", share=0.29), every, Members(np.array([0, 101])))
    assert listed(exact) == [29.0**3]  # 0.29 · 100 is not 29 in doubles
    assert listed(aggregate(Function("MEDIAN"), column, members)) == [pytest.approx(0.05e308)]
    assert listed(aggregate(Function("PERCENTILE", share=0.75), column, members)) == [pytest.approx(0.875e308)]
