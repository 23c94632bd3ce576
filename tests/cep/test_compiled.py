"""The compiled backend against the NumPy backend and the definition: random pairs, edges, limits, fallback, cache."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.conditions.scan import BLOCK_ROWS
from chainlake.cep.explain.report import chosen_orders, explain
from chainlake.cep.language import functions
from chainlake.cep.library import as_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.values.values import absolute
from chainlake.errors import LimitExceeded, UsageError
from tests import fuzz
from tests.cep.interpreted import no_compiler
from tests.cep.test_cases import CASES
from tests.run_cases import pattern_case

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("by_value", [False, True])
def test_random_pairs_have_equal_matches_and_counts(by_value: bool) -> None:
    total = fuzz.Outcome()
    for seed in range(60):
        found = fuzz.run(seed, by_value=by_value)
        assert found.difference is None, found.difference
        total.pairs += found.pairs
        total.with_matches += found.with_matches
    assert total.pairs > 200 and total.with_matches > 30


def test_random_pairs_as_machine_code() -> None:
    found = fuzz.run(2, machine_code=True, by_value=True)
    assert found.difference is None, found.difference


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_handed_case(case: dict) -> None:
    with no_compiler():
        assert pattern_case(case, engine="compiled", all_orders=True).differences == []
    assert pattern_case(case, engine="compiled").differences == []


# ---- edges


def table(rows: list[tuple[str, int, Any]], kind: pa.DataType) -> pa.Table:
    """Events ``(type, ts, x)`` with ids ``e0``, ``e1``…"""
    types, ts, x = zip(*rows, strict=True) if rows else ((), (), ())
    ids = [f"e{i}" for i in range(len(rows))]
    return pa.table({
        "event_id": pa.array(ids, pa.string()), "type": pa.array(types, pa.string()), "ts": pa.array(ts, pa.int64()),
        "x": pa.array(x, kind),
    })  # fmt: skip


def both(query: str, events: pa.Table, block_rows: int = BLOCK_ROWS, **how: Any) -> list[str]:
    """The matches of both backends as texts such as ``e0 e1``, after both were found equal, counts included."""
    columns = {field.name: field.type for field in events.schema if field.name not in ("event_id", "type", "ts")}
    pattern = compile_pattern(query, columns=columns, strict_units=False)
    ids = events["event_id"].to_pylist()
    found = []
    orders = None
    for backend in ("numpy", "compiled"):
        statistics = Statistics()
        options = SearchOptions(orders=orders, block_rows=block_rows)
        batches = find(pattern, events, backend=backend, statistics=statistics, options=options, **how)
        matches = sorted(
            " ".join(value if isinstance(value, str) else "+".join(value) for value in m.values())
            for batch in batches for m in as_dicts(pattern, batch, ids)
        )  # fmt: skip
        assert [name for name, _ in statistics.backends] == [backend] * len(pattern.branches)
        orders = statistics.order  # each backend would choose its own, and counts belong to an order
        found.append((matches, statistics.evaluations, statistics.evaluations_neg, statistics.evaluations_pre))
    assert found[0] == found[1]
    return found[0][0]


RISING = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9"


@pytest.mark.parametrize("by_value", [False, True])
def test_null_nan_and_infinities(by_value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_value:
        monkeypatch.setattr("chainlake.cep.search.compiled.lists.skip.TEST", 1e9)
    inf, nan = float("inf"), float("nan")
    values = [None, nan, -inf, 0.0, inf]
    events = table([("A", 0, v) for v in values] + [("B", 1, v) for v in values], pa.float64())
    assert both(RISING, events) == ["e2 e8", "e2 e9", "e3 e9"]
    falling = "PATTERN SEQ(A a, B b) WHERE b.x <= a.x WITHIN 9"
    assert both(falling, events) == ["e2 e7", "e3 e7", "e3 e8", "e4 e7", "e4 e8", "e4 e9"]


@pytest.mark.parametrize("by_value", [False, True])
def test_negative_zero_equals_zero(by_value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_value:
        monkeypatch.setattr("chainlake.cep.search.compiled.lists.skip.TEST", 1e9)
    events = table([("A", 0, 0.0), ("A", 0, -0.0), ("B", 1, -0.0), ("B", 1, 0.0), ("B", 1, None)], pa.float64())
    equal = ["e0 e2", "e0 e3", "e1 e2", "e1 e3"]
    assert both("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 9", events) == equal
    assert both(RISING, events) == []
    assert both("PATTERN SEQ(A a, B b) WHERE 1 / (a.x * b.x) > 0 WITHIN 9", events) == []


@pytest.mark.parametrize("by_value", [False, True])
def test_whole_numbers_beyond_two_to_the_53(by_value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_value:
        monkeypatch.setattr("chainlake.cep.search.compiled.lists.skip.TEST", 1e9)
    big = 2**53
    events = table([("A", 0, big), ("B", 1, big + 1), ("B", 1, big), ("B", 1, -(2**63))], pa.int64())
    assert both(RISING, events) == ["e0 e1"]
    assert both("PATTERN SEQ(A a, B b) WHERE a.x > b.x WITHIN 9", events) == ["e0 e3"]


@pytest.mark.parametrize("by_value", [False, True])
def test_arrays_of_truth_beside_a_search_by_value(by_value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_value:
        monkeypatch.setattr("chainlake.cep.search.compiled.lists.skip.TEST", 1e9)
    rows = [
        ("A", 0, 5),
        ("A", 0, 8),
        ("B", 1, 7),
        ("B", 1, 4),
        ("B", 1, 5),
        ("C", 2, 9),
        ("C", 2, 1),
        ("C", 2, 7),
    ]
    events = table(rows, pa.float64())
    lanes = pa.array([1, 2, 3, None, 1, 2, 2, None], pa.int64())
    events = events.append_column("lane", lanes).append_column("ok", pa.array([True, None, False] * 2 + [True, True]))
    pattern = (
        "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x AND a.lane != b.lane AND b.lane != c.lane "
        "AND c.ok = TRUE AND a.ok = TRUE WITHIN 9"
    )
    # a is e0, b with x above 5 is e2 (lane 3), c with x above 7 is e5, whose ok is false.
    assert both(pattern, events) == []
    assert both(pattern.replace("c.ok = TRUE", "c.ok = FALSE"), events) == ["e0 e2 e5"]


def test_null_whole_numbers() -> None:
    events = table([("A", 0, 1), ("A", 0, None), ("B", 1, 2), ("B", 1, None)], pa.int64())
    assert both(RISING, events) == ["e0 e2"]
    assert both("PATTERN SEQ(A a, B b) WHERE NOT (a.x < b.x) WITHIN 9", events) == []


GUARDED = "PATTERN SEQ(A a, B* b, NOT(C f), A d) WHERE f.x > a.x AND b.x >= a.x WITHIN 9"


@pytest.mark.parametrize("absent", ["ABC", "A", "B", "C"])
def test_empty_candidate_lists(absent: str) -> None:
    rows = [(kind, i, 1.0 + (kind == "C")) for i, kind in enumerate("ABCBA") if kind not in absent]
    # e0 b e4 with the C between them left out; the second B lies behind that C.
    matches = ["e0 e1 e3", "e0 e1+e2 e3", "e0 e2 e3"] if absent == "C" else []
    assert both(GUARDED, table(rows, pa.float64())) == matches
    assert both(RISING, table([row for row in rows if row[0] != absent], pa.float64())) == []


def test_a_stream_of_one_event() -> None:
    one = table([("A", 7, 1.0)], pa.float64())
    assert both(RISING, one) == [] and both(GUARDED, one) == []
    assert both("PATTERN A a WITHIN 9", one) == ["e0"]
    assert both("PATTERN SEQ(NOT(B f), A a, NOT(B g)) WHERE f.x = a.x AND g.x = a.x WITHIN 9", one) == ["e0"]


def test_all_events_at_one_time() -> None:
    tied = table([(kind, 5, value) for kind in "AAB" for value in (1.0, 2.0)], pa.float64())
    assert both(RISING, tied) == []
    pairs = [f"e{i} e{j}" for i in range(4) for j in range(4) if i != j]
    assert both("PATTERN AND(A a, A b) WITHIN 9", tied) == pairs
    # What lies at the time of a bound event lies neither between two of them nor outside.
    assert both("PATTERN SEQ(NOT(B f), A a, NOT(B g)) WHERE f.x = a.x AND g.x = a.x WITHIN 9", tied) == [
        "e0", "e1", "e2", "e3",
    ]  # fmt: skip


def test_a_window_of_zero() -> None:
    rows = [("A", 1, 1.0), ("B", 1, 2.0), ("A", 2, 1.0), ("B", 2, 0.0), ("B", 2, 3.0), ("B", 3, 9.0)]
    events = table(rows, pa.float64())
    assert both(RISING.replace("WITHIN 9", "WITHIN 0"), events) == []
    assert both("PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 0", events) == ["e0 e1", "e2 e4"]
    assert both("PATTERN AND(A a, B* b) WITHIN 0", events) == ["e0 e1", "e2 e3", "e2 e3+e4", "e2 e4"]
    assert both("PATTERN A a WITHIN 0", events) == ["e0", "e2"]


@pytest.mark.parametrize("own", [None, (8, 12), (100, 200)])
def test_blocks_of_one_match_and_owned_stretches(own: tuple[int, int] | None) -> None:
    rows = [("AB"[i % 2], i, float(i % 5)) for i in range(16)]
    query = "PATTERN SEQ(A a, B* b, NOT(A n)) WHERE n.x < a.x AND COUNT(b) < 3 WITHIN 6"
    with no_compiler():
        found = [both(query, table(rows, pa.float64()), block_rows=size, own=own) for size in (1, 7, 1 << 17)]
    assert found[0] == found[1] == found[2]
    assert bool(found[0]) == (own != (100, 200))


# ---- limits, fallback, choice


def test_the_limit_of_sets_names_the_same_fact() -> None:
    events = [{"id": f"b{i}", "type": "B", "ts": i, "attrs": {}} for i in range(25)]
    said = set()
    for backend in ("numpy", "compiled"):
        with pytest.raises(LimitExceeded) as error, no_compiler():
            list(match("PATTERN SEQ(A a, B* b) WITHIN 60", [{"id": "a", "type": "A", "ts": -1}, *events],
                       backend=backend))  # fmt: skip
        said.add(str(error.value))
    assert len(said) == 1 and "25 events of one window" in said.pop()


def test_large_sets_of_several_repeated_names_run_on_numpy() -> None:
    events = [
        {"id": f"{kind}{i}", "type": kind, "ts": i + 9 * (kind == "B"), "attrs": {}} for i in range(4) for kind in "AB"
    ]
    statistics = Statistics()
    text = "---\nlimits: {kleene_members: 3}\n---\nPATTERN SEQ(A* a, B* b) WITHIN 20"
    with pytest.raises(LimitExceeded):
        list(match(text, events, backend="compiled", statistics=statistics))
    assert statistics.backends[0][0] == "numpy" and "kleene_members" in statistics.backends[0][1]


def test_functions_without_code_fall_back_visibly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_REGISTRY", dict(functions._REGISTRY))
    functions.register("Size", functions.Function(1, lambda kinds: "number", lambda args: absolute(args[0])))
    events = table([("A", 0, -3.0), ("A", 0, 1.0), ("B", 1, 2.0)], pa.float64())
    assert both("PATTERN SEQ(A a, B b) WHERE Size(a.x) > b.x WITHIN 9", events) == ["e0 e2"]
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE Size(a.x + b.x) > 2 WITHIN 9", strict_units=False)
    statistics = Statistics()
    assert sum(b.n for b in find(pattern, events, backend="compiled", statistics=statistics)) == 1
    assert statistics.backends == [("numpy", "no machine code for size of several events")]


def test_small_inputs_are_left_to_numpy_and_large_ones_are_not() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 900", strict_units=False)
    chosen = []
    for n in (30, 9000):
        events = table([("ABC"[i % 3], i, float(i * 7919 % 101)) for i in range(n)], pa.float64())
        statistics = Statistics()
        with no_compiler():
            next(iter(find(pattern, events, statistics=statistics)))
        chosen.append(statistics.backends[0][0])
    assert chosen == ["numpy", "compiled"]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UsageError, match="not gpu"):
        list(match("PATTERN A a WITHIN 1", [], backend="gpu"))


def test_few_tests_where_values_rule_candidates_out() -> None:
    draw = np.random.default_rng(1)
    rows = [("AB"[i % 2], i, float(draw.normal() - (i % 2))) for i in range(4000)]
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE a.x + 3 < b.x WITHIN 900", strict_units=False)
    statistics = Statistics()
    with no_compiler():
        found = sum(b.n for b in find(pattern, table(rows, pa.float64()), backend="compiled", statistics=statistics))
    assert found == statistics.matches > 0
    assert statistics.tests * 5 < statistics.evaluations


# ---- cache


def test_constants_and_windows_share_one_kernel() -> None:
    shapes = set()
    for query in ("a.x + 1 < b.x WITHIN 9", "a.x + 2.5 < b.x WITHIN 99", "c.x * 7 < d.x WITHIN 1"):
        one, other = query[0], query[query.index("<") + 2]
        pattern = compile_pattern(f"PATTERN SEQ(Q{one} {one}, R {other}) WHERE {query}", strict_units=False)
        events = table([(f"Q{one}", 0, 1.0), ("R", 1, 9.0)], pa.float64())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machine, "load", lambda source: shapes.add(source) or (lambda *arguments: 0))
            list(find(pattern, events, backend="compiled"))
    assert len([source for source in shapes if "wanted" not in source]) == 1


def test_two_processes_that_compile_one_shape_at_once_agree(tmp_path: Path) -> None:
    program = (
        "from chainlake import match\n"
        "events = [{'id': str(i), 'type': 'AB'[i % 2], 'ts': i, 'attrs': {'x': i}} for i in range(6)]\n"
        "print(len(list(match('PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9', events, backend='compiled'))))\n"
    )
    environment = {"CHAINLAKE_CACHE": str(tmp_path / "a cache"), "PATH": ""}
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["6", "6"]
    kept = sorted(path.name for path in (tmp_path / "a cache").rglob("*.nbc"))
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "a cache").rglob("*.nb?")}
    assert len(kept) == 2 and stamps
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, text=True, check=True)
    assert again.stdout.strip() == "6"
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "a cache").rglob("*.nb?")} == stamps


@pytest.mark.parametrize("names, backend", [(20, "compiled"), (21, "numpy")])
def test_more_loops_than_python_can_nest_are_left_to_numpy(names: int, backend: str) -> None:
    events = table([("A", i, float(i)) for i in range(names + 1)], pa.float64())
    query = f"PATTERN SEQ({', '.join(f'A a{i}' for i in range(names))}) WITHIN {names}"
    pattern, statistics = compile_pattern(query, strict_units=False), Statistics()
    with no_compiler():
        found = list(find(pattern, events, backend="compiled", statistics=statistics))
    assert sum(batch.n for batch in found) == names + 1
    assert statistics.backends[0][0] == backend


@pytest.mark.parametrize("spoilt", ["*.py", "*/*.nbi", "*/*.nbc"])
@pytest.mark.parametrize("length", [0, 35])
def test_a_file_of_the_cache_that_was_cut_short_is_made_anew(
    spoilt: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINLAKE_CACHE", str(tmp_path))
    # Of the source the first 35 bytes are a function as well, but another one.
    source = "def kernel(F, I, B, J, kf, ki, st):\n    return 7\n"
    for _ in range(2):
        monkeypatch.setattr(machine, "_loaded", {})
        kernel = machine.load(source)
        assert kernel([], [], [], [], np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64)) == 7
        (path,) = machine.folder().glob(spoilt)
        assert path.stat().st_size > length
        path.write_bytes(path.read_bytes()[:length])


def test_without_a_cache_that_can_be_written_kernels_are_compiled_for_the_process_and_one_warning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CHAINLAKE_CACHE", str(tmp_path / "file"))
    found = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for number in (7, 8):
            kernel = machine.load(f"def kernel(F, I, B, J, kf, ki, st):\n    return {number}\n")
            found.append(kernel([], [], [], [], np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64)))
    texts = [str(one.message) for one in said if one.category is RuntimeWarning]
    assert found == [7, 8]
    assert len(texts) == 1 and "cannot be kept" in texts[0] and "CHAINLAKE_CACHE" in texts[0]
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_matching_a_small_file_does_not_import_numba() -> None:
    program = (
        "import sys\nfrom chainlake import match\n"
        "list(match('PATTERN SEQ(A a, B b) WITHIN 9', [{'id': 'a', 'type': 'A', 'ts': 1}]))\n"
        "print('numba' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert json.loads(found.stdout.lower()) is False


def test_explain_says_which_backend_and_why() -> None:
    events = table([("A", 0, 1.0), ("B", 1, 2.0)], pa.float64())
    pattern = compile_pattern(RISING, strict_units=False)
    lines = list(explain(pattern, chosen_orders(pattern, events=events)))
    assert [line for line in lines if line.startswith("  backend")] == [
        "  backend   numpy: about 2 evaluations would be done before machine code is ready"
    ]
    assert not any("backend" in line for line in explain(pattern, chosen_orders(pattern)))
