"""The order of events, against Python's sort of tuples."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.events.order import moved_order, total_order
from chainlake.cep.events.previous import places
from chainlake.errors import InputError


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seq", [None, "whole", "null", "some"])
@pytest.mark.parametrize("by_type", [False, True])
def test_order_is_that_of_tuples(grouped: bool, seq: str | None, by_type: bool) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        n = rng.randrange(0, 30)
        ts = [rng.randrange(10) for _ in range(n)]
        if seed % 3 == 0:
            ts.sort()
        groups = [rng.randrange(3) for _ in range(n)]
        ids = [f"e{number}" for number in rng.sample(range(100), n)]
        types = [rng.choice("AB") for _ in range(n)]
        numbers = [None if seq == "null" or seq == "some" and rng.random() < 0.3 else rng.randrange(3) for _ in ts]
        columns = {"event_id": pa.array(ids, pa.string()), "type": pa.array(types, pa.string()).dictionary_encode()}
        if seq is not None:
            columns["seq"] = pa.array(numbers, pa.null() if seq == "null" else pa.int32())

        places = [numbers[i] or 0 if seq is not None else 0 for i in range(n)]
        rows = zip(
            groups if grouped else [0] * n, ts, types if by_type else [""] * n, places, ids, range(n), strict=True
        )
        found = total_order(
            pa.table(columns), np.array(ts, np.int64), np.array(groups, np.int64) if grouped else None, by_type=by_type
        )
        assert found.tolist() == [row[-1] for row in sorted(rows)], seed


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_that_lie_in_order_are_not_moved(grouped: bool) -> None:
    events = pa.table({"event_id": list("dcba")})
    group = np.array([0, 0, 1, 1], np.int64) if grouped else None
    ordered, tied = ([1, 2, 0, 5], [1, 1, 0, 5]) if grouped else ([1, 2, 3, 5], [1, 1, 3, 5])
    assert moved_order(events, np.array(ordered, np.int64), group) is None
    moved = moved_order(events, np.array(tied, np.int64), group)
    assert moved is not None and moved.tolist() == [1, 0, 2, 3]


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("ordered", [False, True])
def test_places_are_those_of_a_plain_count(key: str | None, ordered: bool) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        n = rng.randrange(0, 20)
        keys = [rng.choice(["p", "q", None]) for _ in range(n)]
        ts = list(range(n)) if ordered else [rng.randrange(6) for _ in range(n)]
        columns = {
            "event_id": pa.array([f"{at:02d}" for at in range(n)], pa.string()),
            "type": pa.array(["A"] * n, pa.string()),
            "ts": pa.array(ts, pa.int64()),
            "k": pa.array(keys, pa.string()),
        }
        # The ids are in the order of the rows.
        rows = list(zip(ts, range(n), keys if key else [""] * n, strict=True))
        wanted = [
            None if one[2] is None else sum(other[2] == one[2] and other[:2] < one[:2] for other in rows)
            for one in rows
        ]
        assert places(pa.table(columns), key).to_pylist() == wanted, seed


def test_a_seq_that_is_no_whole_number_is_told() -> None:
    events = pa.table({"event_id": ["a", "b"], "type": ["A", "A"], "seq": ["x", "y"]})
    with pytest.raises(InputError, match="seq holds string"):
        total_order(events, np.array([1, 1], np.int64))
