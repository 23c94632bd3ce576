"""The five queries that splitters were built for, with their content conditions as functions of pairs."""

from __future__ import annotations

import json
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainlake.cep.language.declared.function import Code
from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from tests.cep.context_cases import events_of, text_of

CASES = {
    one["id"]: one
    for one in json.loads((Path(__file__).parents[1] / "cases" / "context-cases.json").read_text(encoding="utf-8"))[
        "cases"
    ]
}
FRONT = """---
functions:
  same: {call: 'content:same', cost: heavy, symmetric: true, result: bool}
  near: {call: 'content:near', cost: 5500, symmetric: true}
  speed: {call: 'content:speed', cost: heavy}
  above: {call: 'content:above', cost: 29000, result: bool}
---
"""
CODES = {
    "same": lambda one, other: one == other,
    "near": lambda one, other: np.abs(one - other),
    "speed": lambda from_, to, ago, now: (to - from_) / (now - ago),
    "above": lambda price: price > 85,
}
#: Condition of a case to the same with a call.
CALLS = {
    "C28": {
        "e1.obj = e2.obj": "same(e1.obj, e2.obj) = TRUE",
        "(e2.pos - e1.pos) / (e2.ts - e1.ts) > 5": "speed(e1.pos, e2.pos, e1.ts, e2.ts) > 5",
    },
    "C29": {
        f"abs({x}.v - {y}.v) <= 2": f"near({x}.v, {y}.v) <= 2" for x, y in (("e1", "e2"), ("e1", "e3"), ("e2", "e3"))
    },
    "C30": {f"e1.{a} = {y}.{a}": f"same(e1.{a}, {y}.{a}) = TRUE" for a in ("acc", "rcv") for y in ("e2", "e3")},
    "C31": {f"{x}.car = {y}.car": f"same({x}.car, {y}.car) = TRUE" for x, y in (("e1", "e4"), ("e2", "e3"))},
    "C32": {"e.px > 85": "above(e.px) = TRUE"},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("number", CALLS)
def test_the_query_finds_what_is_written_in_the_case(number: str) -> None:
    case, calls = CASES[number], CALLS[number]
    conditions = case["query"]["where"]
    assert calls.keys() <= set(conditions)
    query = {**case["query"], "where": [calls.get(one, one) for one in conditions]}
    params = {name: Code(code) for name, code in CODES.items()}
    pattern = compile_pattern(FRONT + text_of(query), params=params, strict_units=False)
    events, wanted = events_of(case), [fired["match"] for fired in case["expect"]["fired"]]
    shuffled = random.Random(number).sample(events, len(events))
    names = [one.name for one in pattern.names]
    for rows, order in [(events, None), *((shuffled, list(one)) for one in permutations(names))]:
        for block_rows in (1, 1 << 17):
            table, ids = from_dicts(rows)
            counted = Statistics()
            batches = find(
                pattern, table, order=order, statistics=counted, options=SearchOptions(block_rows=block_rows)
            )
            found = [one for batch in batches for one in as_dicts(pattern, batch, ids)]
            assert found == wanted, (order, rows)
            assert 0 < counted.pair_evals <= most_pairs(events) * len(calls)


def most_pairs(events: list[dict[str, Any]]) -> int:
    return len(events) * (len(events) + 1) // 2
