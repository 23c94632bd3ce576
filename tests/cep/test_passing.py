"""Candidates left out before the search: none that a match or a count needs, and all of them where few can pass."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep import Statistics, compile_pattern, find
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.plan.steps import Plan, make_plan
from chainlake.cep.search.compiled.lists.passing import PreFilter, counted_before, only_passing, share_left
from chainlake.cep.search.compiled.lists.skip import choose_loops
from chainlake.cep.search.find import candidates_of, dataset
from tests.cep.interpreted import always_limited, no_compiler

WINDOW = 9
PASSES = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def stream(seed: int, n: int, kind: str) -> pa.Table:
    """Events in crowds and gaps, with ties, with few values; doubles have nulls."""
    draw = np.random.default_rng(seed)
    values = draw.integers(-9, 9, n)
    nulls = draw.random(n) < (0.1 if kind == "double" else 0.0)
    return pa.table({
        "event_id": np.arange(n),
        "type": draw.choice(["A", "B", "C"], n, p=[0.6, 0.35, 0.05]).tolist(),
        "ts": np.cumsum(np.where(draw.random(n) < 0.02, 40, draw.integers(0, 3, n))),
        "x": pa.array(values, mask=nulls).cast(pa.float64() if kind == "double" else pa.int64()),
    })  # fmt: skip


def scan_of(text: str, events: pa.Table, order: str) -> tuple[Scan, Plan]:
    """What is looked through, and the plan."""
    pattern = compile_pattern(f"PATTERN {text} WITHIN {WINDOW}", strict_units=False)
    data = dataset(pattern, events)
    (branch,) = pattern.branches
    scan = Scan(data, candidates_of(pattern, branch, data), pattern.window_us)
    return scan, make_plan(branch, tuple(order))


def check(scan: Scan, limited: Scan, prefilters: tuple[PreFilter, ...]) -> None:
    """What the definition needs is left, in order, and everything is counted."""
    ts, x = scan.data.ts, scan.data.columns["x"].values
    for name in dict.fromkeys(prefilter.name for prefilter in prefilters):
        every, left = (those[name].rows for those in (scan.candidates, limited.candidates))
        assert set(left) <= set(every) and (np.diff(left) > 0).all()
        needed = set(every)
        for prefilter in (prefilter for prefilter in prefilters if prefilter.name == name):
            bound = limited.candidates[prefilter.other].rows
            apart = ts[bound][None, :] - ts[every][:, None]
            near = (abs(apart) <= WINDOW) & ((apart <= 0) & prefilter.before | (apart >= 0) & prefilter.behind)
            if not (prefilter.before and prefilter.behind):
                near &= apart != 0
            passes = PASSES[prefilter.op](x[every][:, None], x[bound][None, :])
            needed &= set(every[(near & passes).any(axis=1)])
            assert set(left) <= set(every[passes.any(axis=1)])
        assert needed <= set(left)
        of = limited.candidates
        tables = [(one, name, shift) for one in of for shift in (-WINDOW, 0, 1, WINDOW + 1)]
        at = {(one, shift): np.searchsorted(ts, of[one].ts + shift).astype(np.int32) for one, _, shift in tables}
        for (one, _, shift), found in zip(tables, counted_before(limited, tables, at), strict=True):
            assert found.tolist() == np.searchsorted(ts[every], of[one].ts + shift).tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["double", "whole"])
@pytest.mark.parametrize("op", PASSES)
@pytest.mark.parametrize("shape", ["SEQ(A a, B b, C c)", "AND(A a, B b, C c)"])
def test_what_is_left_and_what_is_counted(shape: str, op: str, kind: str) -> None:
    fewer = 0
    for seed, n in enumerate((0, 1, 8, 127, 128, 129, 256, 500)):
        for order in ("cba", "abc"):
            events = stream(seed, n, kind)
            scan, plan = scan_of(f"{shape} WHERE a.x {op} b.x AND b.x {op} c.x", events, order)
            with no_compiler(), always_limited():
                prefilters = choose_loops(plan, scan).prefilters
                limited = only_passing(scan, prefilters)
                assert list(dict.fromkeys(prefilter.name for prefilter in prefilters)) == list(order[1:]) or n < 100
                check(scan, limited, prefilters)
            fewer += sum(map(len, scan.candidates.values())) - sum(map(len, limited.candidates.values()))
    assert fewer


@pytest.mark.few(1)
@pytest.mark.parametrize(("op", "kind"), [("<", "double"), (">=", "whole")])
def test_machine_code_leaves_the_same(op: str, kind: str) -> None:
    for seed in range(12):
        scan, plan = scan_of(f"SEQ(A a, B b, C c) WHERE a.x {op} b.x AND b.x {op} c.x", stream(seed, 900, kind), "cba")
        with always_limited():
            prefilters = choose_loops(plan, scan).prefilters
        limited = only_passing(scan, prefilters)
        check(scan, limited, prefilters)
        with no_compiler():
            again = only_passing(scan, prefilters)
        for name in "abc":
            assert again.candidates[name].rows.tolist() == limited.candidates[name].rows.tolist()


def test_far_from_what_would_let_them_pass_all_are_left_out() -> None:
    n = 20_000
    small = np.arange(n) >= n // 2
    events = pa.table({
        "event_id": np.arange(n), "type": pa.array(["C", *(n - 1) * ["A"]]), "ts": np.arange(n),
        "x": np.where(small, -1.0, 1.0),
    })  # fmt: skip
    scan, plan = scan_of("AND(A a, C c) WHERE a.x < c.x", events, "ca")
    with always_limited():
        prefilters = choose_loops(plan, scan).prefilters
    # Half of them are smaller, but none of these is near the one that is larger.
    assert len(prefilters) == 1 and share_left(scan, prefilters[0], ()) == 0.0
    assert len(only_passing(scan, prefilters).candidates["a"]) == 0


@pytest.mark.slow
def test_about_how_many_are_left_is_known_beforehand() -> None:
    for seed in range(6):
        for text, order in (
            ("SEQ(A a, B b, C c)", "cba"),
            ("AND(A a, B b, C c)", "bca"),
            ("SEQ(A a, B b, C c)", "abc"),
        ):
            scan, plan = scan_of(f"{text} WHERE a.x < b.x AND b.x < c.x", stream(seed, 1500, "whole"), order)
            with no_compiler(), always_limited():
                prefilters = choose_loops(plan, scan).prefilters
                for number, prefilter in enumerate(prefilters):
                    earlier = [one for one in prefilters[:number] if one.name != prefilter.name]
                    left = only_passing(scan, [*earlier, prefilter]).candidates[prefilter.name]
                    real = len(left) / len(scan.candidates[prefilter.name])
                    assert abs(share_left(scan, prefilter, earlier) - real) < 0.25


def test_what_may_not_be_left_out_is_not() -> None:
    events = stream(3, 300, "double")
    for text, order in (
        ("SEQ(A a, B b, C c) WHERE a.x = b.x AND b.x != c.x", "cba"),  # no order of values
        ("SEQ(A a, B b, C c) WHERE a.x < b.x + 1 AND b.x < c.x OR a.x < c.x", "cba"),  # not one comparison
        ("AND(A a, A b, C c) WHERE a.x < c.x AND b.x < c.x", "cba"),  # events of one type are apart; all but the first
        ("SEQ(A a, B+ b, C c) WHERE b.x < c.x", "acb"),  # sets
    ):
        scan, plan = scan_of(text, events, order)
        with no_compiler(), always_limited():
            named = {prefilter.name for prefilter in choose_loops(plan, scan).prefilters}
        assert named <= {"b"} if "A b" in text else not named


@pytest.mark.parametrize("order", permutations("abc"))
def test_many_events_with_their_counts(order: tuple[str, ...]) -> None:
    """As they are searched: of 20,000 events, 1 % the rarest, without a word to the engine."""
    draw = np.random.default_rng(7)
    n = 20_000
    kinds = draw.choice(3, n, p=[0.5, 0.49, 0.01])
    events = pa.table({
        "event_id": np.arange(n), "type": np.array(list("ABC"))[kinds].tolist(),
        "ts": np.cumsum(draw.integers(0, 3, n)), "x": draw.normal(size=n) - 1.8 * kinds,
    })  # fmt: skip
    pattern = compile_pattern("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 60", strict_units=False)
    found = []
    for backend in ("numpy", "compiled"):
        counts = Statistics()
        rows = sorted(
            match for batch in find(pattern, events, backend=backend, order=order, statistics=counts)
            for match in zip(*(batch.single[name].tolist() for name in "abc"), strict=True)
        )  # fmt: skip
        found.append((rows, counts.evaluations, counts.evaluations_neg))
        assert counts.backends[0][0] == backend
    assert found[0] == found[1] and found[0][0]
