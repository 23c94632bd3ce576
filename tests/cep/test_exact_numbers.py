"""Whole numbers are exact, in all three ways to run a pattern; NaN is null; times that cannot be added are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.automata.simulate import simulate
from chainlake.cep.library import from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import InputError
from tests.cep.interpreted import no_compiler

#: Nanoseconds of 2025: neighbours of this are one double.
NOW = 1_760_000_000_000_000_000
BIG = 2**53


def event(name: str, kind: str, ts: int, **attrs: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "ts": ts, "attrs": attrs}


def found(query: str, events: list[dict[str, Any]], backend: str = "numpy") -> list[dict[str, Any]]:
    """The matches, which must be as many as the run in event order has."""
    with no_compiler():
        matches = list(match(query, events, backend=backend))
    pattern = compile_pattern(query, strict_units=False)
    assert len(simulate(pattern, from_dicts(events)[0]).bindings) == len(matches)
    return matches


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize(
    "condition, holds",
    [
        ("b.ts - a.ts = 100", True),
        ("b.ts - a.ts = 101", False),
        ("b.ts - a.ts < 100", False),
        ("b.ts > a.ts + 50", True),
        ("b.ts > a.ts + 100", False),
        ("b.ts = a.ts + 100", True),
        ("b.ts - a.ts = 100.0", True),
        ("-b.ts + a.ts = -100", True),
        ("Abs(a.ts - b.ts) = 100", True),
        ("b.ts - a.ts > 99.5", True),
        ("b.ts - a.ts IN {100, 0.5}", True),
        ("b.ts - a.ts IN {101, 99.5}", False),
    ],
)
def test_differences_of_times_are_exact(condition: str, holds: bool, backend: str) -> None:
    events = [event("1", "A", NOW), event("2", "B", NOW + 100)]
    assert bool(found(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 1000", events, backend)) is holds


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_largest_time_of_a_set(backend: str) -> None:
    events = [event("1", "A", NOW), event("2", "B", NOW + 99), event("3", "B", NOW + 100)]
    query = "PATTERN SEQ(A a, B+ b) WHERE MAX(b.ts) - a.ts = 100 AND COUNT(b) + 1 = 3 WITHIN 1000"
    assert found(query, events, backend) == [{"a": "1", "b": ["2", "3"]}]


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize(
    "condition, matched",
    [
        ("a.x + b.x > 0", ["1", "3"]),
        ("a.x + b.x < 0", ["2"]),
        ("a.x + b.x = 2 + 9223372036854775807", ["3"]),
        ("a.x + b.x - b.x = a.x", ["1", "2", "3"]),
        ("a.x + b.x > 1e19", ["1"]),
    ],
)
def test_sums_beyond_64_bits(condition: str, matched: list[str], backend: str) -> None:
    values = {"1": (2**63 - 1, 2**63 - 1), "2": (-(2**63), -1), "3": (2**63 - 1, 2)}
    got = []
    for name, (x, y) in values.items():
        events = [event(name, "A", 0, x=x), event("b", "B", 0, x=y)]
        got += [one["a"] for one in found(f"PATTERN AND(A a, B b) WHERE {condition} WITHIN 1", events, backend)]
    assert got == matched


def test_sums_beyond_64_bits_beside_others_and_nulls() -> None:
    events = [event(str(i), "A", 0, x=x, y=y) for i, (x, y) in enumerate([(2**63 - 1, 1), (1, 2), (None, 3)])]
    query = "PATTERN A a WHERE a.x + a.y IN {3, 9223372036854775808} WITHIN 1"
    assert [one["a"] for one in found(query, events)] == ["0", "1"]
    assert found("PATTERN A a WHERE -a.x > 0 AND Abs(a.x) > 0 WITHIN 1", [event("1", "A", 0, x=-(2**63))])


def test_machine_code_refuses_what_may_not_fit() -> None:
    events = [event("1", "A", 0, x=2**62), event("2", "B", 0, x=2**62)]
    statistics = Statistics()
    query = "PATTERN AND(A a, B b) WHERE a.x + b.x > 0 WITHIN 1"
    with no_compiler():
        assert len(list(match(query, events, backend="compiled", statistics=statistics))) == 1
    assert statistics.backends == [("numpy", "no machine code for whole numbers that may exceed 64 bits")]


def test_machine_code_adds_whole_numbers() -> None:
    events = [event("1", "A", NOW), event("2", "B", NOW + 100)]
    statistics = Statistics()
    query = "PATTERN SEQ(A a, B b) WHERE b.ts - a.ts = 100 WITHIN 1000"
    with no_compiler():
        assert len(list(match(query, events, backend="compiled", statistics=statistics))) == 1
    assert [backend for backend, _ in statistics.backends] == ["compiled"]


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize(
    "value, items, inside",
    [
        (BIG + 1, f"{{{BIG}, 0.5}}", False),
        (BIG + 1, f"{{{BIG + 1}, 0.5}}", True),
        (BIG + 1, f"{{{BIG}.0, 0.5}}", True),  # as in a.x = …: against a double in double
        (float(BIG), f"{{{BIG + 1}, 0.5}}", True),
        (1, "{1.0, 2}", True),
        (0.5, "{1, 0.5}", True),
    ],
)
def test_sets_of_whole_numbers_and_doubles(value: float, items: str, inside: bool, backend: str) -> None:
    events = [event("1", "A", 0, x=value), event("2", "B", 0, x=0)]
    assert bool(found(f"PATTERN A a WHERE a.x IN {items} WITHIN 1", events, backend)) is inside
    for word, holds in (("IN", inside), ("NOT IN", not inside)):
        joined = f"PATTERN AND(A a, B b) WHERE a.x + b.x {word} {items} WITHIN 1"
        assert bool(found(joined, events, backend)) is holds


# ---- one event given twice


def _same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(match("PATTERN A a WITHIN 1", [one, other])) == [{"a": "1"}]


def test_nulls_of_one_event_given_twice_are_equal() -> None:
    nan = math.nan
    _same(event("1", "A", 0, x=float("nan"), y=1), event("1", "A", 0, x=float("nan"), y=1))
    _same(event("1", "A", 0, x=nan), event("1", "A", 0, x=None))
    _same(event("1", "A", 0, x=None), event("1", "A", 0))
    _same({"id": "1", "type": "A", "ts": 0}, event("1", "A", 0))
    _same(event("1", "A", 0, x=[1.0, float("nan")]), event("1", "A", 0, x=[1.0, None]))
    table = pa.table({"event_id": ["1", "1"], "type": ["A", "A"], "ts": [0, 0], "x": [np.nan, np.nan]})
    assert list(match("PATTERN A a WITHIN 1", table)) == [{"a": "1"}]


@pytest.mark.parametrize("one, other", [(1, True), (1.0, None), (0, False), ([1.0], [1.0, None])])
def test_different_values_under_one_id(one: Any, other: Any) -> None:
    with pytest.raises(InputError, match="two different events have the id 1"):
        list(match("PATTERN A a WITHIN 1", [event("1", "A", 0, x=one), event("1", "A", 0, x=other)]))


# ---- times


@pytest.mark.parametrize("run", [lambda q, e: list(match(q, e)), lambda q, e: found(q, e)])
@pytest.mark.parametrize("ts", [2**62, -(2**62), 2**63 - 5, -(2**63)])
def test_times_that_cannot_be_added_are_refused(ts: int, run: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match=r"timestamps must be within ±2\^62"):
        run("PATTERN SEQ(A a, B b) WITHIN 10", [event("1", "A", ts), event("2", "B", ts + 2)])


def test_times_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InputError, match="does not fit into 64 bits"):
        list(match("PATTERN A a WITHIN 1", [event("1", "A", 2**63)]))
    table = pa.table({"event_id": ["1"], "type": ["A"], "ts": pa.array([2**63], pa.uint64())})
    with pytest.raises(InputError, match="beyond 64 bits"):
        list(match("PATTERN A a WITHIN 1", table))


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_the_largest_times_and_window(backend: str) -> None:
    edge, window = 2**62 - 1, 2**61
    events = [event("1", "A", -edge), event("2", "B", window - edge), event("3", "B", edge - window - 1)]
    events += [event("4", "B", edge - window), event("5", "C", edge)]
    with no_compiler():
        got = list(match(f"PATTERN SEQ(A a, B b) WITHIN {window}", events, backend=backend))
        assert got == [{"a": "1", "b": "2"}]
        got = list(match(f"PATTERN SEQ(B b, C c) WITHIN {window}", events, backend=backend))
        assert got == [{"b": "4", "c": "5"}]


def test_parts_of_a_microsecond_are_rounded_down_before_1970_too() -> None:
    ts = pa.array([-500, 500], pa.timestamp("ns", "UTC"))
    table = pa.table({"event_id": ["1", "2"], "type": ["A", "B"], "ts": ts, "at": ts})
    assert list(match("PATTERN SEQ(A a, B b) WITHIN 1 ms", table)) == [{"a": "1", "b": "2"}]
    assert list(match("PATTERN AND(A a, B b) WHERE a.at < b.at WITHIN 1 ms", table)) == [{"a": "1", "b": "2"}]


def _pairs(values: pa.Array, backend: str) -> list[dict[str, Any]]:
    size = range(len(values))
    types = [*"AB"] * (len(values) // 2)
    table = pa.table({"event_id": [str(i) for i in size], "type": types, "ts": [*size], "x": values})
    with no_compiler():
        return list(match("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10", table, backend=backend))


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize(
    "shape",
    [lambda x: x.dictionary_encode(), lambda x: x.cast("uint64"), lambda x: x.cast("uint64").dictionary_encode()],
)
def test_whole_numbers_of_any_column_are_exact(shape: Callable[[pa.Array], pa.Array], backend: str) -> None:
    values = pa.array([BIG, BIG + 1, BIG + 1, BIG, None, BIG + 1])
    assert _pairs(shape(values), backend) == [{"a": "0", "b": "3"}, {"a": "2", "b": "5"}]


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_truths_and_nulls_in_a_dictionary(backend: str) -> None:
    truths = pa.DictionaryArray.from_arrays(pa.array([1, 1, None, 0]), pa.array([False, True]))
    assert _pairs(truths, backend) == [{"a": "0", "b": "1"}]
    nothing = pa.DictionaryArray.from_arrays(pa.array([1, 1, 0, 0]), pa.array([7, None]))
    assert _pairs(nothing, backend) == [{"a": "2", "b": "3"}]


@pytest.mark.parametrize("shape", [lambda x: x, lambda x: x.dictionary_encode()])
def test_whole_numbers_beyond_64_bits_are_refused(shape: Callable[[pa.Array], pa.Array]) -> None:
    with pytest.raises(InputError, match="x holds a number beyond 64 bits"):
        _pairs(shape(pa.array([1, 2**63], pa.uint64())), "numpy")
    with pytest.raises(InputError, match="x holds a number beyond 64 bits"):
        found("PATTERN A a WHERE a.x > 1 WITHIN 1", [event("1", "A", 1, x=2**63)])
