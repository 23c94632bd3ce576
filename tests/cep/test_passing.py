"""Candidates left out before the search: none that a match or a count needs, and all of them where few can pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.plan.steps import Plan, make_plan
from chainlake.cep.search.compiled.lists.skip import choose_loops, choose_selecting
from chainlake.cep.search.compiled.passing.choice import in_passes, share_left
from chainlake.cep.search.compiled.passing.comparisons import all_prefilters
from chainlake.cep.search.compiled.passing.counted import counted_before
from chainlake.cep.search.compiled.passing.leave_out import Together, only_passing
from chainlake.cep.search.find import candidates_of, dataset, find
from chainlake.cep.search.statistics import Statistics
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


def check(scan: Scan, limited: Scan, passes: tuple[Together, ...]) -> None:
    """What the definition needs is left, in order, and everything is counted."""
    ts, x = scan.data.ts, scan.data.columns["x"].values
    prefilters = [prefilter for together in passes for prefilter in together]
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
            passed = PASSES[prefilter.op](x[every][:, None], x[bound][None, :])
            needed &= set(every[(near & passed).any(axis=1)])
            assert set(left) <= set(every[passed.any(axis=1)])
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
                passes = choose_loops(plan, scan).passes
                limited = only_passing(scan, passes)
                names = dict.fromkeys(prefilter.name for together in passes for prefilter in together)
                assert list(names) == list(order[1:]) or n < 100
                check(scan, limited, passes)
            fewer += sum(map(len, scan.candidates.values())) - sum(map(len, limited.candidates.values()))
    assert fewer


@pytest.mark.few(1)
@pytest.mark.parametrize(("op", "kind"), [("<", "double"), (">=", "whole")])
def test_machine_code_leaves_the_same(op: str, kind: str) -> None:
    for seed in range(12):
        scan, plan = scan_of(f"SEQ(A a, B b, C c) WHERE a.x {op} b.x AND b.x {op} c.x", stream(seed, 900, kind), "cba")
        with always_limited():
            passes = choose_loops(plan, scan).passes
        limited = only_passing(scan, passes)
        check(scan, limited, passes)
        with no_compiler():
            again = only_passing(scan, passes)
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
        passes = choose_loops(plan, scan).passes
    # Half of them are smaller, but none of these is near the one that is larger.
    ((prefilter,),) = passes
    assert share_left(scan, prefilter, ()) == 0.0
    assert len(only_passing(scan, passes).candidates["a"]) == 0


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
                passes = choose_loops(plan, scan).passes
                prefilters = [prefilter for together in passes for prefilter in together]
                for number, prefilter in enumerate(prefilters):
                    earlier = [one for one in prefilters[:number] if one.name != prefilter.name]
                    left = only_passing(scan, in_passes([*earlier, prefilter])).candidates[prefilter.name]
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
            named = choose_loops(plan, scan).limited
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


#: Conditions, as text and as a test of values; the order; and which names are compared with which.
CHOSEN: list[tuple[str, Callable[[Any], bool], str, dict[str, str]]] = [
    ("a.x < b.x AND b.x < c.x", lambda x: x[0] < x[1] < x[2], "cba", {"a": "bc", "b": "ac", "c": "ab"}),
    ("a.x >= b.x AND c.x <= b.x", lambda x: x[0] >= x[1] >= x[2], "bca", {"a": "bc", "b": "ac", "c": "ab"}),
    ("a.x < c.x AND b.x != c.x", lambda x: x[0] < x[2] != x[1] == x[1], "cab", {"a": "c", "c": "a"}),
    ("a.x < b.x AND b.x > c.x", lambda x: x[0] < x[1] > x[2], "abc", {"a": "b", "b": "ac", "c": "b"}),
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["double", "whole"])
@pytest.mark.parametrize(("text", "test", "order", "compared"), CHOSEN, ids=[one[0] for one in CHOSEN])
def test_a_search_that_chooses_leaves_out_only_what_is_in_no_match(
    text: str, test: Callable[[Any], bool], order: str, compared: dict[str, str], kind: str
) -> None:
    fewer, found = 0, dict[str, set[str]]()
    for seed, n in enumerate((0, 1, 8, 128, 129, 400)):
        scan, plan = scan_of(f"SEQ(A a, B b, C c) WHERE {text}", stream(seed, n, kind), order)
        with no_compiler(), always_limited():
            passes = choose_selecting(plan, scan, None).passes
            limited = only_passing(scan, passes)
        for prefilter in (prefilter for together in passes for prefilter in together):
            found.setdefault(prefilter.name, set()).add(prefilter.other)
        values = scan.data.columns["x"].values
        for rows in matches(scan, test):
            assert all(row in limited.candidates[name].rows for name, row in rows.items())
        for prefilter in (prefilter for together in passes for prefilter in together):
            left, other = limited.candidates[prefilter.name].rows, scan.candidates[prefilter.other].rows
            assert PASSES[prefilter.op](values[left][:, None], values[other][None, :]).any(axis=1).all()
        fewer += sum(map(len, scan.candidates.values())) - sum(map(len, limited.candidates.values()))
    # A comparison that leaves out no more than another one does is not among them.
    assert fewer and found["a"] == set(compared["a"]) and all(found[name] <= set(compared[name]) for name in found)


def matches(scan: Scan, test: Callable[[Any], bool]) -> Iterator[dict[str, int]]:
    """The rows of all combinations that the definition takes, one after another in time."""
    ts, x = scan.data.ts.tolist(), scan.data.columns["x"].values.tolist()
    of = {name: scan.candidates[name].rows.tolist() for name in "abc"}
    for a in of["a"]:
        for b in (b for b in of["b"] if ts[a] < ts[b] <= ts[a] + WINDOW):
            for c in (c for c in of["c"] if ts[b] < ts[c] <= ts[a] + WINDOW):
                if test((x[a], x[b], x[c])):
                    yield {"a": a, "b": b, "c": c}


@pytest.mark.parametrize("shape", ["SEQ(A a, B b)", "AND(A a, B b)"])
def test_events_of_neighbouring_blocks_fit_each_other(shape: str) -> None:
    for order in ("AB", "BA"):
        kinds, x = [*"A" * 127, *order, *"A" * 300], np.full(429, 9)
        x[127:129] = [int(kind == "B") for kind in order]
        events = pa.table({"event_id": np.arange(429), "type": kinds, "ts": np.arange(429), "x": x})
        scan, plan = scan_of(f"{shape} WHERE a.x < b.x", events, "ba")
        with no_compiler():
            left = only_passing(scan, (tuple(all_prefilters(plan, scan.data)),)).candidates
        fit = order == "AB" or shape.startswith("AND")
        assert (len(left["a"]), len(left["b"])) == (fit, fit)


@pytest.mark.parametrize("op", PASSES)
def test_zeros_infinities_and_ends_of_numbers_pass_as_they_compare(op: str) -> None:
    doubles = [0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), -float("nan")]
    wholes = [0, -1, 1, 2**62, -(2**62), 2**63 - 1, 2**63 - 2, -(2**63) + 1]
    for values in (doubles, wholes):
        for mine in values:
            for other in values:
                events = pa.table({"event_id": [0, 1], "type": ["A", "B"], "ts": [0, 1], "x": [mine, other]})
                scan, plan = scan_of(f"SEQ(A a, B b) WHERE a.x {op} b.x", events, "ba")
                passes = (tuple(all_prefilters(plan, scan.data)),)
                left = only_passing(scan, passes).candidates
                passed = bool(PASSES[op](np.array(mine), np.array(other)))
                # What no whole number can be beyond may stay: the search itself compares it again.
                assert len(left["a"]) >= passed and len(left["b"]) >= passed, (mine, other)
                assert (len(left["a"]), len(left["b"])) == (passed, passed) or 2**63 - 1 in (mine, other)
