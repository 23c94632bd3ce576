"""Differences of two Arrow tables."""

from __future__ import annotations

import datetime

import pyarrow as pa

from chainlake.lake.store.difference import difference_arrow
from tests.lake.things import things

COMPARE = ["price", "a", "b"]


def test_arrow_difference_sees_nested_values_and_their_order() -> None:
    old = {"id": "a", "ts": datetime.datetime(2025, 10, 1, tzinfo=datetime.UTC), "price": None}
    one = {**old, "a": {"event_id": "e", "n": None}, "b": [{"event_id": "p"}, {"event_id": "q"}]}
    two = {**one, "b": [{"event_id": "q"}, {"event_id": "p"}]}
    assert difference_arrow(things([one]), things([one]), ["id"], COMPARE).num_rows == 0
    assert difference_arrow(things([one]), things([two]), ["id"], COMPARE)["_op"].to_pylist() == ["U"]
    assert difference_arrow(things([one]), things([{**one, "a": None}]), ["id"], COMPARE)["_op"].to_pylist() == ["U"]
    assert isinstance(difference_arrow(things([]), things([]), ["id"], COMPARE), pa.Table)
