"""Rows of the match table: identity, times, structs, lists, branches without a name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.schemas.matches import matches_table

COLUMNS = {
    "type": pa.string(),
    "ticker": pa.string(),
    "ts": pa.timestamp("us", tz="UTC"),
    "close": pa.float64(),
    "volume": pa.int64(),
}
START = datetime(2025, 1, 1, tzinfo=UTC)
EVENTS = pa.table(
    {
        "event_id": ["e3", "e1", "e2", "e4"],
        "type": ["B", "A", "B", "C"],
        "ts": pa.array([START + timedelta(seconds=s) for s in (2, 0, 1, 3)], pa.timestamp("us", tz="UTC")),
        "ticker": ["x"] * 4,
        "close": [3.0, 1.0, 2.0, None],
        "volume": [30, 10, 20, 40],
    }
)


def rows(query: str, name: str = "p", output: str = "[volume]") -> list[dict]:
    text = f"---\nsource: stock\noutput: {output}\n---\n{query}"
    pattern = compile_pattern(text, name=name, columns=COLUMNS)
    schema = matches_table(match_shape(pattern, key="ticker")).arrow()
    found = [match_rows(pattern, EVENTS, batch, schema) for batch in find(pattern, EVENTS)]
    assert all(table.schema == schema for table in found)
    return [row for table in found for row in table.to_pylist()]


def test_structs_lists_and_times() -> None:
    query = "PATTERN SEQ(A a, B* b, NOT(C c)) WHERE b.close > a.close AND COUNT(b) = 2 WITHIN 2 s"
    (row,) = rows(query)
    assert row["start_ts"] == START and row["end_ts"] == row["decision_ts"] == START + timedelta(seconds=2)
    assert row["a"] == {
        "event_id": "e1", "ts": START, "type": "A", "ticker": "x", "close": 1.0, "volume": 10,
    }  # fmt: skip
    assert [b["event_id"] for b in row["b"]] == ["e2", "e3"] and [b["volume"] for b in row["b"]] == [20, 30]
    assert len(row["match_id"]) == 32


def test_a_name_that_a_branch_lacks_is_null_and_a_name_repeated_anywhere_is_a_list() -> None:
    found = rows("PATTERN OR(SEQ(A a, B b), SEQ(B* b, C c) WHERE COUNT(b) = 1) WITHIN 1 min")
    assert [(r["a"] and r["a"]["event_id"], [b["event_id"] for b in r["b"]], r["c"] and r["c"]["event_id"])
            for r in sorted(found, key=lambda r: (r["a"] is None, r["end_ts"], r["start_ts"]))] == [
        ("e1", ["e2"], None), ("e1", ["e3"], None), (None, ["e2"], "e4"), (None, ["e3"], "e4"),
    ]  # fmt: skip


def test_match_id_is_the_name_and_the_events_and_nothing_else() -> None:
    def ids(query: str, name: str = "p", output: str = "[volume]") -> set[str]:
        return {row["match_id"] for row in rows(query, name, output)}

    base = ids("PATTERN SEQ(A a, B b) WITHIN 1 min")
    assert len(base) == 2
    assert ids("PATTERN AND(B b, A a) WHERE b.close > 0 WITHIN 9 h", output="[]") == base
    assert ids("PATTERN SEQ(A a, B* b) WHERE COUNT(b) = 1 WITHIN 1 min") == base
    assert ids("PATTERN SEQ(A a, B b) WITHIN 1 min", name="q").isdisjoint(base)
    assert ids("PATTERN SEQ(A a, B z) WITHIN 1 min").isdisjoint(base)


def test_default_schema_has_the_columns_of_the_events() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE a.close < b.close WITHIN 1 s")
    (batch,) = find(pattern, EVENTS)
    table = match_rows(pattern, EVENTS, batch)
    assert table.column_names == ["match_id", "decision_ts", "start_ts", "end_ts", "a", "b"]
    assert table["b"].to_pylist() == [{"event_id": "e2", "ts": START + timedelta(seconds=1), "type": "B", "close": 2.0}]
