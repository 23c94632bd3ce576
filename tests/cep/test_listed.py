"""Lists of passing candidates: in every order and however often the output is emptied, what NumPy finds and counts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from tests.cep.interpreted import always_by_value, always_limited, no_compiler
from tests.cep.test_compiled import both

pytestmark = pytest.mark.slow

PATTERNS = {
    "lists of both ends": "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 9",
    "a negation between a bound event and the list": (
        "SEQ(A a, B b, NOT(D n), C c) WHERE a.x < b.x AND b.x < c.x AND n.x > 2 WITHIN 9"
    ),
    "events of one type": "AND(A a, A b, A c) WHERE a.x <= b.x AND b.x < c.x WITHIN 6",
    "an event that is in its own list": "AND(A a, A b, C c) WHERE a.x <= b.x AND b.x < c.x WITHIN 6",
    "an event in the scope of an empty list": "AND(A a, A b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 6",
    "two lists of one event": "SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x AND b.x != d.x WITHIN 9",
    "a condition that takes statements": (
        "SEQ(A a, B b, C c) WHERE a.x + b.x IN {3, 4, 5} AND b.x < c.x AND a.x / b.x < 2 WITHIN 9"
    ),
    "a bound value that can be null": "SEQ(A a, B b, C c) WHERE a.z < b.k AND b.x <= c.x WITHIN 9",
    "sets behind": "SEQ(A a, B b, C+ c) WHERE a.x < b.x AND b.x < c.x WITHIN 6",
}


def stream(seed: int) -> pa.Table:
    """Some 50 events in 40 ticks, with ties and nulls."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(40, 60))
    x = [None if draw.random() < 0.1 else float(draw.integers(0, 6)) for _ in range(n)]
    return pa.table({
        "event_id": [f"e{i}" for i in range(n)],
        "type": draw.choice(list("AABBCD"), n).tolist(),
        "ts": np.sort(draw.integers(0, 40, n)),
        "x": pa.array(x, pa.float64()),
        "z": draw.integers(0, 6, n),
        "k": pa.array([None if draw.random() < 0.3 else int(draw.integers(0, 6)) for _ in range(n)], pa.int64()),
    })  # fmt: skip


@pytest.mark.parametrize("query", PATTERNS.values(), ids=PATTERNS)
def test_every_order_in_blocks_of_any_size(query: str) -> None:
    names = [name for name in "abcd" if f" {name}" in query.partition("WHERE")[0]]
    singles = [name for name in names if f"+ {name}" not in query]
    with_matches = 0
    for seed in range(4):
        events = stream(seed)
        for order in permutations(singles):
            order += tuple(name for name in names if name not in singles)
            with no_compiler():
                with_matches += bool(both(f"PATTERN {query}", events, order=order))
                # Each order meets blocks of each size.
                with always_by_value():
                    both(f"PATTERN {query}", events, order=order, block_rows=(1, 3, 1 << 17)[seed % 3])
                with always_limited():
                    both(f"PATTERN {query}", events, order=order, block_rows=(1, 1 << 17)[seed % 2])
    assert with_matches > 4
