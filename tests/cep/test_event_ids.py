"""Packed event ids are the same ids."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from chainlake.cep.events.event_ids import PACKED, packed, texts

LAKE = pa.array([hashlib.sha256(str(i).encode()).hexdigest()[:32] for i in range(40)])


def test_ids_of_the_lake_are_packed_and_come_back() -> None:
    for column in (LAKE, LAKE[7:], LAKE[3:9]):
        assert packed(column).type == PACKED
        assert texts(packed(column)).to_pylist() == column.to_pylist()
        assert texts(packed(LAKE)[5:8]).to_pylist() == LAKE[5:8].to_pylist()
        assert packed(column).to_pylist() == [bytes.fromhex(text) for text in column.to_pylist()]


@pytest.mark.parametrize("other", ["e1", "", None, "0" * 31, "0" * 33, "A" + "0" * 31, "g" + "0" * 31, "é" + "0" * 30])
def test_other_ids_stay_as_they_are(other: str | None) -> None:
    column = pa.array([*LAKE.to_pylist()[:2], other])
    assert packed(column).equals(column) and texts(column).equals(column)
    alone = pa.array([other], pa.string())
    assert packed(alone).equals(alone)
