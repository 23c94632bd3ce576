"""The choice of an order by seconds: each backend its own, the same in every process; and lists, where they pay."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.estimate.cost import Density, Model
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.choosing.seconds import best_order, compiled_seconds, numpy_seconds
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from tests.cep.interpreted import no_compiler

RISING = compile_pattern("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 200", strict_units=False)


def stream(n: int, share: float) -> pa.Table:
    """n events, one a tick; a ``share`` of them is of type C, and a pair of neighbours rises with probability 0.1."""
    draw = np.random.default_rng(7)
    kinds = np.where(draw.random(n) < share, 2, draw.integers(0, 2, n))
    return pa.table({
        "event_id": pa.array(np.arange(n)),
        "type": pa.DictionaryArray.from_arrays(kinds.astype(np.int8), ["A", "B", "C"]),
        "ts": pa.array(np.arange(n)),
        "x": pa.array(draw.normal(size=n) - 1.8 * kinds),
    })  # fmt: skip


def model(counts: dict[str, float], cells: int) -> Model:
    """A model with so many events of each name per window, and a tenth of the pairs with a condition passing."""
    totals = {name: count * cells for name, count in counts.items()}
    density = Density({name: np.full(cells, count) for name, count in counts.items()}, np.ones(cells), 1.0)
    rates = {frozenset("ab"): 0.1, frozenset("bc"): 0.1}
    return Model(RISING.branches[0], totals, density, rates)


def test_machine_code_shares_what_a_middle_event_finds_and_numpy_cannot() -> None:
    crowded = model({"a": 100.0, "b": 100.0, "c": 95.0}, 3000)
    costs = {order: crowded.cost(order) for order in permutations("abc")}
    assert best_order(crowded, "numpy") == ("c", "b", "a") == min(costs, key=costs.__getitem__)
    assert best_order(crowded, "compiled")[0] == "b"
    assert compiled_seconds(crowded, ("b", "c", "a")) < 0.9 * compiled_seconds(crowded, ("c", "b", "a"))
    for order in costs:
        assert compiled_seconds(crowded, order) < numpy_seconds(crowded, order)


def test_a_rare_name_comes_first_on_both() -> None:
    rare = model({"a": 100.0, "b": 100.0, "c": 1.0}, 3000)
    assert best_order(rare, "numpy") == best_order(rare, "compiled") == ("c", "b", "a")


@pytest.mark.parametrize("counts", [{"a": 5.0, "b": 5.0, "c": 1.0}, {"a": 300.0, "b": 300.0, "c": 290.0}])
def test_the_order_does_not_depend_on_what_the_process_did_before(
    counts: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = set()
    for loaded in (True, False):
        monkeypatch.setattr(machine, "loaded", lambda loaded=loaded: loaded)
        chosen.add(best_order(model(counts, 1000), "auto"))
    assert len(chosen) == 1


@pytest.mark.slow
def test_candidates_that_several_bindings_share_are_tested_once() -> None:
    events, found, tests = stream(1500, 0.33), [], {}
    for order in permutations("abc"):
        for backend in ("numpy", "compiled"):
            statistics = Statistics()
            with no_compiler():
                n = sum(b.n for b in find(RISING, events, order=order, backend=backend, statistics=statistics))
            found.append((n, statistics.evaluations if order == ("b", "c", "a") else 0))
            tests["".join(order), backend] = statistics.tests
    assert len({n for n, _ in found}) == 1 and found[0][0] > 500
    assert len({e for _, e in found}) == 2
    # After b and c, the a before b and below it are looked for once per b, not once per pair.
    assert tests["bca", "compiled"] * 2.5 < tests["bca", "numpy"]
