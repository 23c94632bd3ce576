"""Conditions one binding at a time mean what they mean in the kernel: all kinds of values, times, functions."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from chainlake.cep.automata.simulate import simulate
from chainlake.cep.language import functions
from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.values.values import Value
from tests.cep.test_differential import canonical

START = datetime(2025, 3, 30, tzinfo=UTC)


def events() -> list[dict]:
    draw = random.Random(3)
    rows = []
    for i in range(60):
        attrs = {
            "x": draw.choice([None, 1.5, 2.0, 1.5, -3.0, float("nan")]),
            "n": draw.choice([None, 1, 2, 2**60, 2**60 + 1]),
            "flag": draw.choice([True, False, None]),
            "s": draw.choice(["ab", "b", None]),
            "h": draw.choice([[1.0, 2.0, 4.0], [3.0, 2.0, 1.5], [1.0, 1.0, 1.0], [1.0, 2.0], None]),
            "at": START + timedelta(milliseconds=draw.randrange(2000)),
            "none": None,
        }
        ts = START + timedelta(milliseconds=250 * i + draw.randrange(200))
        rows.append({"id": f"e{i:02}", "type": draw.choice("AB"), "ts": ts, "attrs": attrs})
    return rows


@pytest.mark.parametrize(
    ("structure", "condition"),
    [
        (structure, condition)
        for structure, conditions in {
            "SEQ(A a, B b)": [
                "b.ts - a.ts <= 700 ms", "Abs(a.at - b.at) < 1 s AND (b.ts - a.ts) / 2 > 100 ms",
                "a.at + 1 s < b.at OR a.at = b.at", "(b.ts - a.ts) / (b.at - a.at) > 0.5", "-(a.ts - b.ts) > 1 s",
                "a.n = b.n", "a.n != b.n", "a.n < b.x", "a.n IN {1, 1152921504606846977}", "a.n / (b.n - 1) = 2",
                "a.flag = b.flag", "a.flag != TRUE", "a.s < b.s", "a.s NOT IN {'b'}", "a.s != b.n",
                "a.s = b.n OR b.n = 2",
                "Corr(a.h, b.h) > 0.1", "NOT Corr(a.h, b.h) > 0.1", "Abs(a.x) > b.x", "a.none = 1 OR a.x < b.x",
                "Abs(a.none) < 1 OR b.x > 0", "a.x * b.x + 1 >= a.x", "a.id < b.id AND b.type = B AND a.x > 1",
                "half(a.n) < b.n", "half(b.none) = 1 OR a.x = 2",
            ],
            "SEQ(A a, B* b)": [
                "SUM(b.n) > 3", "AVG(b.x) < 1.6 AND COUNT(b) > 1", "MIN(b.n) < MAX(b.n)", "MAX(b.at) - a.at > 1 s",
                "COUNT(b.none) = 0 AND COUNT(b.x) = 2", "b.s = 'b' AND COUNT(b) = 2", "b.x > a.x",
                "SUM(b.none) = 1 OR MIN(b.x) < 0", "Corr(a.h, b.h) > 0", "MIN(b.ts) - a.ts > 400 ms AND AVG(b.n) >= 1",
            ],
        }.items()
        for condition in conditions
    ],
)  # fmt: skip
def test_same_as_the_kernel(structure: str, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    half = functions.Function(
        1, lambda kinds: "number", lambda args: Value(args[0].values / 2, args[0].valid, args[0].kind)
    )
    monkeypatch.setitem(functions._REGISTRY, "half", half)
    table, ids = from_dicts(events())

    def compiled(where: str):  # type: ignore[no-untyped-def]
        return compile_pattern(
            f"PATTERN {structure} WHERE {where} WITHIN 1500 ms", columns={f.name: f.type for f in table.schema}
        )

    pattern = compiled(condition)
    statistics = Statistics()
    found = [m for b in find(pattern, table, statistics=statistics) for m in as_dicts(pattern, b, ids)]
    run = simulate(pattern, table)
    assert canonical(list(run.matches(pattern, ids))) == canonical(found)
    assert run.costs.evaluations == statistics.evaluations
    assert 0 < len(found) < len(simulate(compiled("TRUE"), table).bindings)
