"""The last two steps run the other way round: the matches and the counts of the order, whatever the events."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.plan.steps import make_plan
from chainlake.cep.search.compiled.lists.skip import choose_loops
from chainlake.cep.search.compiled.text.comparison import Pairing, pairing_of
from chainlake.cep.search.find import candidates_of, dataset, find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from tests.cep.interpreted import always_limited, always_paired, no_compiler

WINDOW = 9
PASSES = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def stream(seed: int, n: int, kind: str) -> pa.Table:
    """Events with ties of times and of values, in crowds and gaps; doubles have nulls."""
    draw = np.random.default_rng(seed)
    values, nulls = draw.integers(-9, 9, n), draw.random(n) < (0.1 if kind == "double" else 0.0)
    return pa.table({
        "event_id": np.arange(n),
        "type": draw.choice(["A", "B", "C"], n).tolist(),
        "ts": np.cumsum(np.where(draw.random(n) < 0.05, 40, draw.integers(0, 3, n))),
        "x": pa.array(values, mask=nulls).cast(pa.float64() if kind == "double" else pa.int64()),
    })  # fmt: skip


def searched(
    pattern: Pattern, events: pa.Table, order: str, backend: str, rows: int = 1 << 17
) -> tuple[list[tuple[int, ...]], int, int]:
    """The matches, and what was counted."""
    counted, found = Statistics(), list[tuple[int, ...]]()
    options = SearchOptions(block_rows=rows)
    for batch in find(pattern, events, order=tuple(order), backend=backend, statistics=counted, options=options):
        names = sorted(batch.single)
        found += zip(
            *(batch.single[name].tolist() for name in names),
            batch.start_us.tolist(),
            batch.end_us.tolist(),
            strict=True,
        )
    assert counted.backends[0][0] == backend
    return sorted(found), counted.evaluations, counted.matches


def triples(events: pa.Table, ops: tuple[str, str], *, in_order: bool) -> list[tuple[int, ...]]:
    """By definition: all triples, their first and last times."""
    types = np.array(events["type"].to_pylist())
    ts, x = events["ts"].to_numpy(), np.array(events["x"].to_pylist(), float)
    a, b, c = np.meshgrid(*(np.flatnonzero(types == name) for name in "ABC"), indexing="ij")
    times = np.stack([ts[a], ts[b], ts[c]])
    fits = (times.max(0) - times.min(0) <= WINDOW) & PASSES[ops[0]](x[a], x[b]) & PASSES[ops[1]](x[b], x[c])
    if in_order:
        fits &= (times[0] < times[1]) & (times[1] < times[2])
    found = (a[fits], b[fits], c[fits], times.min(0)[fits], times.max(0)[fits])
    return sorted(zip(*(one.tolist() for one in found), strict=True))


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["double", "whole"])
@pytest.mark.parametrize("ops", [("<", "<"), (">", ">="), ("<=", "<=")])
@pytest.mark.parametrize("shape", ["SEQ(A a, B b, C c)", "AND(A a, B b, C c)"])
@pytest.mark.parametrize("limited", [False, True])
def test_matches_and_evaluations(shape: str, ops: tuple[str, str], kind: str, limited: bool) -> None:
    text = f"PATTERN {shape} WHERE a.x {ops[0]} b.x AND b.x {ops[1]} c.x WITHIN {WINDOW}"
    pattern = compile_pattern(text, strict_units=False)
    with ExitStack() as stack:
        for way in (no_compiler, always_paired, *([always_limited] if limited else [])):
            stack.enter_context(way())
        for seed, n in enumerate((0, 3, 30, 80)):
            events = stream(seed, n, kind)
            wanted = triples(events, ops, in_order=shape.startswith("SEQ"))
            for order in ("cba", "abc"):
                expected = searched(pattern, events, order, "numpy")
                assert expected[0] == wanted
                # Outputs of seven matches are full in the middle of every loop.
                for rows in (7, 1 << 17):
                    assert searched(pattern, events, order, "compiled", rows) == expected


def paired(text: str, order: str, **columns: pa.Array) -> Pairing | None:
    """What the last two steps of an order would be run the other way round by."""
    n = len(next(iter(columns.values())))
    of_four = {"event_id": np.arange(n), "type": ["A", "B", "C", "D"] * (n // 4), "ts": np.arange(n)}
    pattern = compile_pattern(f"PATTERN {text} WITHIN 99", strict_units=False)
    data = dataset(pattern, pa.table(of_four | columns))
    (branch,) = pattern.branches
    scan = Scan(data, candidates_of(pattern, branch, data), pattern.window_us)
    with always_paired():
        return choose_loops(make_plan(branch, tuple(order)), scan).pairing


@pytest.mark.parametrize(
    ("text", "order", "follows"),
    [
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x", "cba", "a.x < c.x"),
        ("SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x >= b.x", "cba", "a.x < c.x"),
        ("SEQ(A a, B b, C c) WHERE a.x <= b.x AND b.x <= c.x", "abc", "c.x >= a.x"),
        ("SEQ(A a, B b, C c) WHERE a.x <= b.y AND b.y <= c.y", "cba", "a.x <= c.y"),
        ("SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x AND d.x > 0", "dcba", "a.x < c.x"),
        # nothing follows
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x > c.x", "cba", None),
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND b.y < c.x", "cba", None),
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x != c.x", "cba", None),
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x", "bca", None),
        # what is counted, or chosen, depends on the way
        ("SEQ(A a, NOT(D n), B b, C c) WHERE a.x < b.x AND b.x < c.x", "cba", None),
        ("SEQ(A a, B+ b, C c) WHERE a.x < b.x AND b.x < c.x", "cab", None),
        ("AND(A a, A b, C c) WHERE a.x < b.x AND b.x < c.x", "cba", None),
        # between doubles and whole numbers, what is rounded need not follow
        ("SEQ(A a, B b, C c) WHERE a.x < b.n AND b.n < c.n", "cba", None),
        ("SEQ(A a, B b, C c) WHERE a.n < b.n AND b.n < c.n", "cba", "a.n < c.n"),
    ],
)
def test_what_follows(text: str, order: str, follows: str | None) -> None:
    numbers = np.arange(40)
    found = paired(text, order, x=pa.array(numbers * 0.5), y=pa.array(numbers * 0.25), n=pa.array(numbers))
    if found is None:
        assert follows is None
        return
    match found.clause.literals:
        case (ast.Compare(op, ast.Ref(one, attr), ast.Ref(other, other_attr)),):
            assert f"{one}.{attr} {op} {other}.{other_attr}" == follows
        case literals:
            raise AssertionError(literals)


def test_values_with_nulls_beside_them_are_not_paired() -> None:
    holes = pa.array([None, 1, 2, 3] * 10, pa.int64())
    assert paired("SEQ(A a, B b, C c) WHERE a.n < b.n AND b.n < c.n", "cba", n=holes) is None


def test_what_follows_from_the_plan_alone() -> None:
    (branch,) = compile_pattern("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9", strict_units=False).branches
    assert pairing_of(make_plan(branch, ("b", "a"))) is None
