"""Audits of matches with sets of COLLECT: they bound no match, may be empty, and may share events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from chainlake.cep.library import from_dicts
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.quality.matches.measures import column_of, measures
from chainlake.quality.matches.rules import rules_of

T0 = datetime(2025, 1, 1, tzinfo=UTC)
EVENTS = [("A", 0), ("B", 1), ("B", 2), ("C", 3), ("B", 4), ("B", 5), ("A", 6), ("C", 7)]
GOOD = {"start_off_us": 0, "end_off_us": 0, "decision_off_us": 0, "repeated_events": 0, "null_event_ids": 0}
PATTERNS = [
    "SEQ(A a, COLLECT(B b), C c)",
    "SEQ(A a, COLLECT?(B b), C c)",
    "SEQ(COLLECT(B b), A a, COLLECT?(B d))",
    "AND(A a, COLLECT(B b), COLLECT(B d))",
    "OR(SEQ(A a, COLLECT(B b)), SEQ(A a, B+ b))",
    "OR(SEQ(C c, COLLECT(B b)), SEQ(A a, B? b))",
]


def measured(text: str, change: Any = None) -> list[dict[str, Any]]:
    """The measures of the matches, after ``change`` of their rows."""
    pattern = compile_pattern(text)
    rows = [{"id": f"e{n}", "type": t, "ts": T0 + timedelta(seconds=s), "attrs": {}} for n, (t, s) in enumerate(EVENTS)]
    table, _ = from_dicts(rows)
    found = pa.concat_tables([match_rows(pattern, table, batch) for batch in find(pattern, table)])
    if change is not None:
        found = pa.Table.from_pylist([change(row) for row in found.to_pylist()], found.schema)
    rules = rules_of(pattern)
    columns = [name for name in found.column_names if name in rules.columns]
    matches = found.select(columns).rename_columns([column_of(name) for name in columns])
    asked = ", ".join(f'{sql} AS "{name}"' for name, sql in measures(rules, columns).items())
    with duckdb.connect() as con:
        con.register("matches", matches)
        result: list[dict[str, Any]] = con.sql(f"SELECT {asked} FROM matches").to_arrow_table().to_pylist()
    return result


@pytest.mark.few(2)
@pytest.mark.parametrize("structure", PATTERNS)
@pytest.mark.parametrize("output", ["", "---\noutput: [COUNT(b)]\n---\n"])
def test_what_is_found_is_not_accused(structure: str, output: str) -> None:
    if output and "B? b" in structure:
        structure = structure.replace("B? b", "B+ b")
    rows = measured(f"{output}PATTERN {structure} WITHIN 4 s")
    assert rows
    for row in rows:
        assert {name: row[name] for name in GOOD} == GOOD, row
        assert row["names_fit"] and (row["order_gap_us"] is None or row["order_gap_us"] >= 1)


@pytest.mark.slow
def test_what_is_wrong_is_seen() -> None:
    text = "PATTERN SEQ(A a, COLLECT(B b), COLLECT?(B d), C c) WITHIN 9 s"

    def with_(**changed: Any) -> list[dict[str, Any]]:
        return measured(text, lambda row: row | {name: make(row) for name, make in changed.items()})

    assert all(row["names_fit"] for row in with_(d=lambda row: []))
    assert not any(row["names_fit"] for row in with_(b=lambda row: []))
    assert all(row["order_gap_us"] < 1 for row in with_(b=lambda row: [row["a"]]))
    assert all(row["repeated_events"] == 1 for row in with_(d=lambda row: [row["c"]]))
    assert all(row["repeated_events"] == 1 for row in with_(b=lambda row: [row["b"][0], row["b"][0]]))
    assert all(row["start_off_us"] > 0 for row in with_(start_ts=lambda row: row["b"][0]["ts"]))


def test_a_set_of_one_branch_is_bound_by_another() -> None:
    text = "PATTERN OR(SEQ(C c, COLLECT(B b)), SEQ(A a, B+ b)) WITHIN 4 s"
    late = measured(text, lambda row: row | {"end_ts": row["end_ts"] + timedelta(seconds=1)})
    assert late and all(row["end_off_us"] == 1_000_000 for row in late)


def test_ends_beyond_what_is_known_are_no_faults_and_ends_within_are() -> None:
    """Of the repeated event only the number is kept; it may lie after all that is known."""
    text = "---\noutput: [COUNT(b)]\n---\nPATTERN SEQ(A a, B+ b) WITHIN 4 s"
    assert all(row["end_off_us"] == row["start_off_us"] == 0 for row in measured(text))
    early = measured(text, lambda row: row | {"end_ts": row["start_ts"] - timedelta(seconds=2)})
    assert early and all(row["end_off_us"] == -2_000_000 for row in early)
