"""Machine code, not its interpretation, against the definition: few shapes, compiled once, on many streams.

A kernel's shape leaves out constants, windows and streams; so each pattern here has other numbers on every stream.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.find import find
from tests.cep.distributed import distributed
from tests.cep.interpreted import always_by_value, always_compiled
from tests.cep.shapes import PATTERNS, Pair, pair
from tests.cep.strategies import text_of
from tests.cep.test_differential import canonical
from tests.cep.test_matcher import slices

pytestmark = pytest.mark.slow

#: Streams per pattern and way.
STREAMS = 25


def pairs(name: str, nulls: bool = True, most: int = STREAMS) -> Iterator[Pair]:
    """A pattern with other numbers on other streams."""
    return (pair(name, f"{name} {number}", nulls) for number in range(most))


@pytest.fixture(autouse=True)
def shapes(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The patterns' sources that are loaded as machine code; lists that outlive an event depend on the stream, and are
    left to a test of theirs."""
    monkeypatch.setattr("chainlake.cep.search.compiled.lists.skip.LISTED", 1e9)
    found: set[str] = set()
    load = machine.load

    def recorded(source: str) -> machine.Kernel:
        if "resume" in source:
            found.add(source)
        return load(source)

    monkeypatch.setattr(machine, "load", recorded)
    return found


@pytest.mark.parametrize("name", PATTERNS)
def test_both_backends_give_the_matches_of_the_definition_and_equal_counts(name: str, shapes: set[str]) -> None:
    with_matches = 0
    for one in pairs(name):
        counts = []
        for backend in ("numpy", "compiled"):
            found, statistics = one.found(backend, order=one.names)
            assert found == one.wanted, (backend, text_of(one.query))
            assert {backend} == {ran for ran, _ in statistics.backends}
            counts.append((statistics.evaluations, statistics.evaluations_neg, statistics.evaluations_pre))
        assert counts[0] == counts[1], text_of(one.query)
        with_matches += bool(one.wanted)
    assert with_matches > 2
    assert len(shapes) <= 3


@pytest.mark.parametrize("name", ["sequence", "negation in the middle"])
def test_by_value_and_with_lists_in_the_other_order(name: str, shapes: set[str]) -> None:
    with always_by_value():
        for one in pairs(name):
            assert one.found("compiled", order=one.names[::-1])[0] == one.wanted, text_of(one.query)
    assert any("b1 << " in source for source in shapes) and len(shapes) <= 2


@pytest.mark.parametrize("name", PATTERNS)
def test_any_cut_of_history_gives_the_same_union(name: str) -> None:
    for one in pairs(name, nulls=False):
        bounds = [-100, *sorted(one.pick.one(range(-3, 60)) for _ in range(3)), 200]
        union = []
        for own in itertools.pairwise(bounds):
            for batch in find(one.pattern, one.table, own=own, order=one.names, backend="compiled"):
                assert ((batch.decision_us >= own[0]) & (batch.decision_us < own[1])).all()
                union += as_dicts(one.pattern, batch, one.ids)
        assert canonical(union) == one.wanted, (text_of(one.query), bounds)


@pytest.mark.parametrize("name", PATTERNS)
def test_slices_and_pieces_of_workers_run_as_machine_code(name: str) -> None:
    for one in pairs(name, nulls=False, most=5):
        orders = [one.names] * len(one.pattern.branches)
        plan = slices(one.pattern, [one.pick.one(range(-3, 60)) for _ in range(2)])
        with always_compiled():
            found, errors = distributed(
                one.pattern, one.table, plan,
                batch_rows=one.pick.one((2, 5)), piece_rows=one.pick.one((1, 6)), orders=orders,
            )  # fmt: skip
        assert found == one.wanted, (text_of(one.query), plan)
        assert not errors


def test_large_slices_of_a_search_by_value_give_the_whole() -> None:
    draw = np.random.default_rng(3)
    kinds = draw.integers(0, 3, 6000)
    events = [
        {"id": str(i), "type": "ABC"[k], "ts": i // 3, "attrs": {"x": float(draw.normal() - 1.5 * k)}}
        for i, k in enumerate(kinds)
    ]
    table, _ = from_dicts(events)
    pattern = compile_pattern("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 60", strict_units=False)

    def rows(backend: str, own: tuple[int, int] | None) -> list[tuple[int, ...]]:
        found = []
        for batch in find(pattern, table, order="bca", backend=backend, own=own):
            found += list(zip(*(batch.single[name].tolist() for name in "abc"), strict=True))
        return found

    whole = sorted(rows("numpy", None))
    cuts = [-1, 0, 77, 78, 500, 1999, 3000]
    assert sorted(row for own in itertools.pairwise(cuts) for row in rows("compiled", own)) == whole
    assert len(whole) > 3000
