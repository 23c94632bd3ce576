"""Each word of ``on_conflict`` says which of several rows of one event gives it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from chainlake.definitions.source import load_source
from chainlake.definitions.source_keys import CONFLICTS
from chainlake.ingest.events.fates import codes, decide, nth, sorted_by

TEXT = """\
key: k
type: T
attributes: {v: {type: double}}
formats:
  - {glob: '*', time: {column: t}}
"""
#: Of rows at one place with the contents 5, 5 and 7: which give an event, and which conflict.
DECIDED = {
    "first": ([True, False, False], [False, False, True]),
    "latest": ([False, False, True], [True, True, False]),
    "quarantine_all": ([False, False, False], [True, True, True]),
}


@pytest.mark.parametrize("word", CONFLICTS)
def test_rows_of_one_event(word: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"{TEXT}on_conflict: {word}\n")
    place, content = np.zeros(3, np.int64), np.array([5, 5, 7])
    found = decide(load_source(file), place, content, np.arange(3))
    assert (found.event.tolist(), found.conflict.tolist()) == DECIDED[word]


@pytest.mark.parametrize("rows", [[], [(0, 1, 0)], [(0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 1, 0)]])
def test_rows_in_order_are_left_as_they_are(rows: list[tuple[int, int, int]]) -> None:
    table = pa.table([pa.array([row[at] for row in rows], pa.int64()) for at in range(3)], ["a", "b", "c"])
    assert sorted_by(table, ("a", "b", "c")) is table


@pytest.mark.parametrize("swapped", [(0, 1), (1, 2), (2, 3)])
def test_rows_out_of_order_are_sorted(swapped: tuple[int, int]) -> None:
    rows = [(0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 1, 0)]
    mixed = list(rows)
    mixed[swapped[0]], mixed[swapped[1]] = rows[swapped[1]], rows[swapped[0]]
    table = pa.table([pa.array([row[at] for row in mixed], pa.int64()) for at in range(3)], ["a", "b", "c"])
    assert [tuple(row.values()) for row in sorted_by(table, ("a", "b", "c")).to_pylist()] == rows


def test_keys_too_large_to_be_put_together_are_told_apart() -> None:
    """2^24 times 2^40 is 0 in 64 bits."""
    first, second = np.array([0, 2**24, 2**24, 5]), np.array([0, 0, 0, 2**40 - 1])
    assert nth(first, second).tolist() == [0, 0, 1, 0]
    assert nth(first, second, first).tolist() == [0, 0, 1, 0]


def test_codes_of_several_columns_are_equal_where_all_are() -> None:
    texts = pa.chunked_array([["a", "b", None], ["a", "b"]], pa.string())
    numbers = pa.chunked_array([[1.0, 0.0, 0.0], [1.0, -0.0]], pa.float64())
    found = codes([texts, numbers]).tolist()
    assert found[0] == found[3] and found[1] == found[4] and len(set(found)) == 3 and min(found) >= 0
