"""What tasks see of the events: each once, by time, with the histories that all events would give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.cep.events.history import add_histories
from chainlake.cep.pattern import compile_pattern
from chainlake.days import US_PER_DAY
from chainlake.definitions.derived import History
from chainlake.detect.feed import Feed, merged, with_keys
from tests.cep.memory_events import MemoryEvents
from tests.cep.series_rows import DAY, table_of_series
from tests.cep.test_cut import DAYS, events
from tests.cep.test_history import histories, plain

COLUMNS = frozenset(["event_id", "type", "ts", "key", "h"])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(1, 4), st.lists(st.integers(DAY - 4, DAY + 7), min_size=2, max_size=4))
def test_neither_chunks_nor_spans_show_in_histories(
    drawn: tuple[list[dict[str, Any]], History], chunk_rows: int, bounds: list[int]
) -> None:
    """Also where a span begins behind events that a history reaches back to."""
    rows, one = drawn
    spans = list(zip(sorted(bounds), sorted(bounds)[1:], strict=False))[::2]
    feed = Feed(MemoryEvents(table_of_series(rows, pa.float64())), "key", COLUMNS, frozenset("A"), (one,), chunk_rows)
    found = [row for chunk in feed.chunks(spans) for row in chunk.to_pylist()]
    inside = [row for row in rows if any(lo <= row["ts"] < hi for lo, hi in spans)]
    wanted = plain(rows, one)
    assert [row["ts"] for row in found] == sorted(row["ts"] for row in found)
    assert sorted(row["event_id"] for row in found) == sorted(row["event_id"] for row in inside)
    assert {row["event_id"]: row["h"] for row in found} == {row["event_id"]: wanted[row["event_id"]] for row in inside}


def test_a_large_day_is_read_in_parts_and_other_times_are_not() -> None:
    table = events(3, 2_000)
    source = MemoryEvents(table)
    lo, hi = DAYS.micros()
    feed = Feed(source, "k", frozenset(["event_id", "type", "ts"]), frozenset("AB"), (), 300)
    chunks = list(feed.chunks([(lo, hi)]))
    assert sum(map(len, chunks)) == 2_000 and max(map(len, chunks)) < 400 and len(source.opened) == 7
    assert pa.concat_tables(chunks)["ts"].to_pylist() == table["ts"].to_pylist()
    source.opened.clear()
    third = (hi - lo) // 3
    chunks = list(feed.chunks([(lo, lo + third), (lo + third // 2, lo + 2 * third)]))
    ts = table["ts"].cast(pa.int64()).to_numpy()
    assert sum(map(len, chunks)) == int((ts < lo + 2 * third).sum()) == sum(rows for _, rows in source.opened)


def test_spans_that_meet_are_one() -> None:
    assert merged([(5, 7), (0, 3), (2, 5), (9, 9)]) == [(0, 7), (9, 9)]
    assert merged([]) == []


def test_a_history_over_midnight_needs_what_it_reaches() -> None:
    one = History("last", "x", 3, 1_800_000_000)
    table = events(3, 700, hot=0.4).append_column("seq", pa.array([0] * 700, pa.int64()))
    shift = US_PER_DAY // 2  # so that noon is a midnight
    ts = table["ts"].cast(pa.int64()).to_numpy() + shift
    table = table.set_column(table.column_names.index("ts"), "ts", pa.array(ts).cast(table["ts"].type))
    border = DAYS.micros()[0] + US_PER_DAY
    every = add_histories(table, ["k"], [one])
    wanted = dict(zip(every["event_id"].to_pylist(), every["last"].to_pylist(), strict=True))
    feed = Feed(MemoryEvents(table), "k", frozenset(["event_id", "ts", "last"]), frozenset("AB"), (one,), 50)
    found = pa.concat_tables(feed.chunks([(border, border + US_PER_DAY)]))
    own = table["event_id"].filter(pa.array(ts >= border)).to_pylist()
    got = dict(zip(found["event_id"].to_pylist(), found["last"].to_pylist(), strict=True))
    assert got == {i: wanted[i] for i in own} and None in got.values()
    alone = add_histories(table.filter(pa.array(ts >= border)), ["k"], [one])
    assert alone["last"].to_pylist() != [wanted[i] for i in own]


@pytest.mark.parametrize(
    ("query", "kept"), [("SEQ(A a, B b) WHERE a.z = b.z", 3), ("SEQ(A a, NOT(B n)) WHERE a.z = n.z", 5)]
)
def test_zeros_of_either_sign_are_one_key_and_nan_is_none(query: str, kept: int) -> None:
    """An event without a key is in no match of two, but may be a match alone."""
    columns = {"type": pa.string(), "z": pa.float64()}
    pattern = compile_pattern(f"PATTERN {query} WITHIN 1 h", columns=columns)
    assert pattern.partition_key == "z"
    found = with_keys(pattern, pa.table({"z": pa.array([0.0, -0.0, np.nan, None, 1.0], from_pandas=False)}))
    assert len(found) == kept
    assert len(found["z"].drop_null().combine_chunks().dictionary_encode().dictionary) == 2
