"""Rows, times and columns of candidates, gathered in one call: those that NumPy gathers name by name."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.compiled.lists.gathered import gather
from chainlake.cep.search.find import candidates_of, dataset
from tests.cep.interpreted import no_compiler

PATTERN = compile_pattern(
    "PATTERN SEQ(A a, B b, A other, C c) WHERE a.x < b.x AND b.whole < c.whole AND c.x > 0 AND other.x < c.x WITHIN 9",
    strict_units=False,
)


def scan_of(n: int, rare: float) -> Scan:
    """Events in time order, of which few are B."""
    draw = np.random.default_rng(n)
    nulls = draw.random(n) < 0.1
    events = pa.table({
        "event_id": np.arange(n),
        "type": draw.choice(["A", "B", "C"], n, p=[0.7 - rare, rare, 0.3]).tolist(),
        "ts": np.cumsum(draw.integers(0, 3, n)),
        "x": pa.array(draw.normal(size=n), mask=nulls),
        "whole": draw.integers(-(2**62), 2**62, n),
    })  # fmt: skip
    data = dataset(PATTERN, events)
    (branch,) = PATTERN.branches
    return Scan(data, candidates_of(PATTERN, branch, data), PATTERN.window_us)


@pytest.mark.parametrize("rare", [0.01, 0.3])
@pytest.mark.parametrize("interpreted", [True, False])
def test_what_is_gathered_at_a_time_is_what_is_gathered_name_by_name(interpreted: bool, rare: float) -> None:
    for n in (0, 1, 7, 8, 9, 100, 4095, 4096, 4097, 9001):
        one, other = scan_of(n, rare), scan_of(n, rare)
        assert one.candidates["a"] is one.candidates["other"]
        with no_compiler() if interpreted else nullcontext():
            gather(one, {"a": ["x"], "b": ["whole", "x"], "other": ["whole"], "c": ["x"]})
        for name in ("a", "b", "other", "c"):
            found, wanted = one.candidates[name], other.candidates[name]
            assert len(found.rows) == len(found) == len(wanted)
            assert found.rows.tolist() == wanted.rows.tolist()
            assert found.ts.tolist() == wanted.ts.tolist()
            for attr in ("x", "whole"):
                mine, theirs = found.column(attr), wanted.column(attr)
                assert (mine.kind, mine.valid, mine.values.dtype) == (theirs.kind, theirs.valid, theirs.values.dtype)
                assert mine.values.tobytes() == theirs.values.tobytes()


def test_what_is_known_already_is_left_as_it_is() -> None:
    scan = scan_of(50, 0.3)
    # By its own condition, c is known by rows.
    before = {name: scan.candidates[name].rows for name in ("b", "c")}
    with no_compiler():
        gather(scan, {"b": ["x"], "c": ["x"]})
    assert all(scan.candidates[name].rows is rows for name, rows in before.items())
