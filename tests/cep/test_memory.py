"""What a pattern remembers of its searches: never what they find, on whatever events come next."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.remembered import Remembered
from chainlake.cep.search.compiled import run as compiled_run
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from tests.cep.brute_force import brute_force
from tests.cep.interpreted import always_by_value, always_limited, no_compiler
from tests.cep.strategies import Random, query, stream
from tests.cep.test_differential import canonical, compiled

pytestmark = pytest.mark.slow

#: Random patterns, and streams that each of them is searched in one after another.
PATTERNS, STREAMS = 70, 10


def changed(pick: Random, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with columns of other kinds, nulls or none of them, types that are gone."""
    how = pick.one(("as they are", "whole", "no nulls", "halves", "no y", "some y", "texts", "no k", "one type"))
    found = []
    for number, one in enumerate(events):
        attrs = dict(one["attrs"])
        x, y = attrs.get("x"), attrs["y"]
        if how == "whole":
            attrs["x"] = None if x is None else int(x)
        elif how == "no nulls":
            attrs |= {"x": 1 if x is None else x, "k": attrs.get("k", "p")}
        elif how == "halves":
            attrs["y"] = y + 0.5
        elif how == "no y" or how == "some y" and number % 2:
            del attrs["y"]
        elif how == "texts":
            attrs["k"] = pick.one("abpqz")
        elif how == "no k":
            attrs.pop("k", None)
        if how != "one type" or one["type"] == "A":
            found.append({**one, "attrs": attrs})
    return found


def counts(statistics: Statistics) -> tuple[int, int, int]:
    return statistics.evaluations, statistics.evaluations_neg, statistics.evaluations_pre


def matches(pattern: Pattern, events: list[dict[str, Any]], **how: Any) -> tuple[list[str], Statistics]:
    table, ids = from_dicts(events)
    statistics = Statistics()
    batches = find(pattern, table, statistics=statistics, **how)
    return canonical([m for batch in batches for m in as_dicts(pattern, batch, ids)]), statistics


@pytest.mark.parametrize("way", [no_compiler, always_by_value, always_limited])
def test_thousands_of_changed_streams_whose_searches_are_all_taken_for_alike(
    way: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainlake.cep.search.branches.likeness", lambda scan: "all alike")
    made = []
    make = compiled_run.make_shape
    monkeypatch.setattr(compiled_run, "make_shape", lambda *given: made.append(given[0]) or make(*given))
    searched = with_matches = seed = 0
    with no_compiler(), way():
        while searched < PATTERNS * STREAMS:
            pick = Random(f"memory {way.__name__} {seed}")
            seed += 1
            asked = query(pick)
            pattern = compiled(asked)
            if pattern is None:
                continue
            for _ in range(STREAMS):
                events = changed(pick, stream(pick, 8))
                wanted = canonical(brute_force(asked, events))
                found, statistics = matches(pattern, events, backend="compiled")
                assert found == wanted, (seed - 1, events, statistics.backends)
                orders = SearchOptions(statistics.order)
                again, by_numpy = matches(pattern, events, backend="numpy", options=orders)
                assert again == wanted and counts(by_numpy) == counts(statistics), (seed - 1, events)
                searched += len(pattern.branches)
                with_matches += bool(wanted)
    assert with_matches > 64
    # Most searches take code that is there; many do not, since the columns are others.
    assert searched / 10 < len(made) < searched / 2


RISING = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9"
KINDS = [pa.float64(), pa.int64(), pa.int8(), pa.decimal128(30, 2), pa.null(), pa.float32()]


def table(kind: pa.DataType, nulls: bool, types: str = "ABABBA") -> pa.Table:
    """A few events whose x rises and falls."""
    x = pa.array([None if nulls and i % 3 == 2 else i * 5 % 7 for i in range(len(types))], pa.int64())
    return pa.table({
        "event_id": [f"e{i}" for i in range(len(types))], "type": list(types), "ts": list(range(len(types))),
        "x": pa.nulls(len(x)) if kind == pa.null() else x.cast(kind),
    })  # fmt: skip


def rows(pattern: Pattern, events: pa.Table, backend: str) -> list[tuple[int, ...]]:
    found = []
    for batch in find(pattern, events, backend=backend, order=("a", "b")):
        found += list(zip(*(rows.tolist() for rows in batch.single.values()), strict=True))
    return sorted(found)


def test_machine_code_of_one_kind_of_column_is_never_run_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainlake.cep.search.branches.likeness", lambda scan: "all alike")
    pattern = compile_pattern(RISING, strict_units=False)
    for _ in range(2):
        for types in ("ABABBA", "A", "BBB", "ABAAAB"):
            for kind in KINDS:
                for nulls in (False, True):
                    events = table(kind, nulls, types)
                    fresh = compile_pattern(RISING, strict_units=False)
                    wanted = rows(fresh, events, "numpy")
                    assert rows(pattern, events, "compiled") == wanted, (kind, nulls, types)
    assert rows(pattern, table(pa.float64(), False), "compiled") == [(0, 1), (0, 3), (0, 4), (2, 4)]


def test_nothing_of_the_events_is_kept() -> None:
    def alive() -> int:
        gc.collect()
        # By type: a proxy that a library keeps asks an object that may be gone for its class.
        return sum(type(one) in (Dataset, Candidates, Scan) for one in gc.get_objects())

    texts = [RISING, "PATTERN SEQ(A a, B* b, NOT(A c)) WHERE AVG(b.x) > a.x AND c.x + a.x > 1 WITHIN 9"]
    patterns = [compile_pattern(text, strict_units=False) for text in texts]
    before = alive()
    with no_compiler(), always_by_value():
        for pattern in patterns:
            for kind in KINDS:
                list(
                    find(pattern, table(kind, True), backend="compiled", options=SearchOptions(parts=np.arange(6) % 2))
                )
    # What earlier tests left may go meanwhile.
    assert alive() <= before


def test_a_pattern_that_was_searched_for_travels_to_another_process_without_its_memory() -> None:
    pattern = compile_pattern(RISING, strict_units=False)
    wanted = rows(pattern, table(pa.int64(), False), "compiled")
    arrived = pickle.loads(pickle.dumps(pattern))
    assert arrived == pattern and arrived.memory is not pattern.memory
    assert rows(arrived, table(pa.int64(), False), "compiled") == wanted != []


def test_the_values_used_last_are_kept_up_to_a_number_of_them() -> None:
    memory = Remembered(2)
    for key in "ab":
        memory.keep(key, key)
    assert memory.recall("a", str) == "a" and memory.recall("a", int) is None
    memory.keep("c", "c")
    assert [memory.recall(key, str) for key in "abc"] == ["a", None, "c"]
    memory.forget("a")
    memory.forget("never there")
    assert memory.recall("a", str) is None and memory.recall("c", str) == "c"
    assert pickle.loads(pickle.dumps(memory)).recall("c", str) is None


def test_threads_that_search_for_one_pattern_in_different_events() -> None:
    pattern = compile_pattern(RISING, strict_units=False)
    tables = [table(kind, nulls, types) for kind in KINDS for nulls in (False, True) for types in ("ABABBA", "AABB")]
    wanted = [rows(compile_pattern(RISING, strict_units=False), events, "numpy") for events in tables]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            found = list(threads.map(lambda events: rows(pattern, events, "compiled"), tables))
            assert found == wanted


def crowd(low: str, high: str) -> list[dict[str, Any]]:
    """A hundred of A, B and C each in every window; hardly a pair of ``low`` rises, and most of ``high`` do."""
    draw = np.random.default_rng(5)
    height = dict.fromkeys("ABC", 0.0)
    height[low[0]], height[high[1]] = 2.0, height[high[1]] + 2.0
    return [
        {"id": str(i), "type": "ABC"[i % 3], "ts": i, "attrs": {"x": float(draw.normal() + height["ABC"[i % 3]])}}
        for i in range(1500)
    ]


def test_an_order_is_chosen_anew_once_searches_take_other_efforts() -> None:
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 100"
    one, other = (
        crowd("AB", "BC"),
        [
            # times run backwards in values: what rose falls
            {**event, "attrs": {"x": -event["attrs"]["x"]}}
            for event in crowd("AB", "BC")
        ],
    )

    def order(pattern: Pattern, events: list[dict[str, Any]]) -> tuple[str, ...]:
        return matches(pattern, events, backend="numpy")[1].order[0]

    chosen = [order(compile_pattern(text, strict_units=False), events) for events in (one, other)]
    assert chosen[0] != chosen[1]
    pattern = compile_pattern(text, strict_units=False)
    assert [order(pattern, events) for events in (one, one, other, other, other)] == [
        chosen[0], chosen[0], chosen[0], chosen[1], chosen[1],
    ]  # fmt: skip


def test_a_search_takes_the_memory_again_that_the_one_before_has_freed() -> None:
    """Else each array of NumPy costs a page fault per 4 KB: more than half of a search."""
    program = (
        "import resource, sys; import numpy as np, pyarrow as pa; from chainlake import compile_pattern, find\n"
        "n = 20_000; rows = np.arange(n)\n"
        "events = pa.table({'event_id': rows, 'ts': rows, 'x': np.random.default_rng(1).random(n),\n"
        "                   'type': pa.array(np.array(['A', 'B'])[rows % 2])})\n"
        "pattern = compile_pattern('PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20', strict_units=False)\n"
        "def search():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    found = sum(batch.n for batch in find(pattern, events, backend='numpy'))\n"
        "    return found, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "print(*search(), *search(), *search(), 'numba' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    matches, faults = [int(one) for one in said[:6:2]], [int(one) for one in said[1:6:2]]
    assert matches[0] > 10_000 and len({*matches}) == 1 and said[6] == "False"
    assert faults[2] < 200, faults
