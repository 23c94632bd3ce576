"""What is said of functions of pairs, and what the shipped ones compute."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import numpy as np
import pytest

import chainlake as cl
from chainlake.cep.automata.simulate import simulate, unfit_for
from chainlake.cep.explain.report import chosen_orders, explain
from chainlake.cep.language.declared.function import Code
from chainlake.cep.library import from_dicts, match
from chainlake.cep.lint.report import lint
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.values.pairs import RADIUS, distance, similar
from tests.cep.test_heavy import CODES, FRONT, all_of, compiled, drawn, many

LINTED = """---
source: doors
description: d
functions:
  near: {call: 'numbers:near'}
---
PATTERN SEQ(A a, B b)
WHERE near(a.x, b.x) <= 3
  AND b.x > 1
WITHIN 6 s
"""


def told(text: str) -> list[str]:
    report = lint(text, file="p.sase")
    return [f"{one.line}:{one.column} {one.what}" for one in (*report.errors, *report.warnings)]


def test_lint_tells_of_calls_for_every_pair_and_of_functions_that_nobody_calls() -> None:
    every = (
        "near is called for every pair of events that lie within the window, since no cheaper condition relates a and b"
    )
    assert told(LINTED) == [f"8:7 {every}"]
    assert told(LINTED.replace("b.x > 1", "a.k = b.k")) == []
    assert "5:3 near is never called" in told(LINTED.replace("near(a.x, b.x) <= 3", "a.x = b.x"))
    linked = "SEQ(A a, C c, B b)", "a.k = c.k AND c.k = b.k AND near(a.x, c.x) < 1"
    found = told(LINTED.replace("SEQ(A a, B b)", linked[0]).replace("b.x > 1", linked[1]))
    assert found == [f"8:7 {every}"]


def test_lint_tells_every_mistake_of_a_declaration_and_of_the_query() -> None:
    wrong = LINTED.replace("'numbers:near'}", "'numbers:near', cost: dear}").replace("b.x > 1", "c.x > 1")
    assert told(wrong) == [
        "5:32 dear is not a valid cost for near",
        "8:7 there is no function near",
        "9:7 there is no event named c here",
    ]


def test_explain_says_how_calls_are_searched() -> None:
    pattern = compiled("PATTERN SEQ(A a, B b) WHERE near(a.x, b.x) <= 3 AND a.k = b.k WITHIN 6")
    table, _ = from_dicts(many(20))
    lines = list(explain(pattern, chosen_orders(pattern, None, table)))
    said = "where all cheaper conditions of the step hold, once for each pair"
    assert f"  calls     near of a and b, about 1000 ms for 1,000: by NumPy, {said}" in lines
    assert "  backend   numpy: near is called between the steps, with many pairs at a time" in lines
    assert any("where a.k = b.k AND near(a.x, b.x) <= 3" in line for line in lines)
    assert not any(line.startswith("  calls") for line in explain(*_plain(table)))


def test_explain_says_for_about_how_many_pairs() -> None:
    events = many(200)
    pattern = compiled("PATTERN AND(A a, A b) WHERE near(a.x, b.x) <= 3 AND a.k = b.k WITHIN 12")
    lines = list(explain(pattern, chosen_orders(pattern, None, from_dicts(events)[0])))
    (told,) = (line for line in lines if line.startswith("            for about "))
    said = re.fullmatch(r" +for about ([\d,]+) pairs of events, up to 4,096 at a time", told)
    pairs = sum(
        one["attrs"]["k"] == other["attrs"]["k"] and 0 < abs(one["ts"] - other["ts"]) <= 12
        for one in events for other in events
    )  # fmt: skip
    assert said is not None and 0.5 < int(said[1].replace(",", "")) / pairs < 2
    assert not any(" for about " in line for line in explain(pattern, chosen_orders(pattern)))


def _plain(table: Any) -> tuple[cl.Pattern, Any]:
    pattern = compiled("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 6")
    return pattern, chosen_orders(pattern, None, table)


def test_the_declared_cost_decides_the_order() -> None:
    """The cheap call is made for all pairs of a and b, the dear one for few."""
    pick = random.Random(1)
    events = [
        {"id": i, "type": "AABBCCC"[i % 7], "ts": i, "attrs": {"x": pick.random(), "k": pick.randrange(9)}}
        for i in range(700)
    ]
    text = "PATTERN AND(A a, B b, C c) WHERE near(a.x, b.x) < 0.1 AND a.k = c.k AND b.k = c.k WITHIN 60"
    orders = []
    for cost in ("0.001", "100000"):
        pattern = compile_pattern(
            FRONT.replace("cost: heavy", f"cost: {cost}") + text,
            params={name: Code(code) for name, code in CODES.items()}, strict_units=False,
        )  # fmt: skip
        counted = Statistics()
        all_of(pattern, events, statistics=counted)
        orders.append((counted.order[0], counted.pair_evals))
    assert orders[0][0][-1] == "c" and orders[1][0][-1] in "ab"
    assert orders[1][1] < orders[0][1]


def test_values_of_the_shipped_functions() -> None:
    ones, others = np.array([52.5200, 0.0, 90.0, 10.0]), np.array([48.8566, 0.0, -90.0, 10.0])
    east, west = np.array([13.4050, 0.0, 5.0, 179.9]), np.array([2.3522, 180.0, 7.0, -179.9])
    found = distance(ones, east, others, west)
    # Berlin to Paris by the haversine formula on a sphere; half, and half of a circumference; a fifth of a degree.
    half = math.pi * RADIUS
    assert found == pytest.approx(
        [877_464, half, half, math.radians(0.2) * RADIUS * math.cos(math.radians(10))], rel=1e-5
    )
    texts = [("kitten", "sitting", 8 / 13), ("", "", 1.0), ("a", "", 0.0), ("same", "same", 1.0), ("ab", "cd", 0.0)]
    alike = similar(np.array([t[0] for t in texts], object), np.array([t[1] for t in texts], object))
    assert alike.tolist() == pytest.approx([t[2] for t in texts])


def common(one: str, other: str) -> int:
    """The length of the longest sequence of characters that both have in the same order, by its recursion."""
    row = [0] * (len(other) + 1)
    for a in one:
        row, before = [0], row
        for n, b in enumerate(other):
            row.append(before[n] + 1 if a == b else max(before[n + 1], row[n]))
    return row[-1]


def test_texts_are_as_alike_as_their_longest_common_sequence() -> None:
    rng = random.Random(5)
    texts = [("".join(rng.choices("ab\u00e9\U0001f600", k=rng.randrange(9))), "".join(rng.choices("ab\u00e9c", k=6)))
             for _ in range(200)]  # fmt: skip
    alike = similar(*(np.array(side, object) for side in zip(*texts, strict=True)))
    assert alike.tolist() == pytest.approx([2 * common(*both) / len("".join(both)) for both in texts])
    assert len(similar(np.empty(0, object), np.empty(0, object))) == 0


def test_a_place_that_is_none_is_at_no_distance() -> None:
    events = [
        {"id": 1, "type": "A", "ts": 0, "attrs": {"x": math.inf}},
        {"id": 2, "type": "B", "ts": 1, "attrs": {"x": 1.0}},
    ]
    assert list(match("PATTERN SEQ(A a, B b) WHERE Distance(a.x, 0, b.x, 0) >= 0 WITHIN 5", events)) == []


@pytest.mark.parametrize("tail", ["TOP 3 PER ALL", "TOP 2 PER BUCKET 5 s FOR EACH a.k"])
def test_matches_are_ranked_by_what_a_function_gives(tail: str) -> None:
    found = []
    for far, order in (("near(a.x, b.x)", None), ("near(b.x, a.x)", ["b", "a"]), ("Abs(a.x - b.x)", None)):
        text = f"PATTERN SEQ(A a, A b) WHERE a.k = b.k AND {far} < 4 WITHIN 12 s RANK BY MAX({far}) {tail}"
        found.append(list(match(FRONT + text, many(60), order=order, functions=CODES)))
    assert found[0] == found[1] == found[2] and found[0]


def test_the_run_in_the_order_of_events_finds_the_same() -> None:
    ran = 0
    for seed in range(60):
        text, plain, events = drawn(seed)
        if unfit_for("chain", compiled(text)) is not None:
            continue
        ran += 1
        table, _ = from_dicts(events)
        outcomes = [simulate(one, table) for one in (compiled(text), compile_pattern(plain, strict_units=False))]
        assert sorted(map(repr, outcomes[0].bindings)) == sorted(map(repr, outcomes[1].bindings)), text
    assert ran > 10
