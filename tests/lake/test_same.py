"""The comparison of two lakes finds what was planted and nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.lake.records import ops
from chainlake.lake.upkeep.same import same_tables
from chainlake.paths import Home

DAY = date(2025, 10, 1)
TS = datetime(2025, 10, 1, 12, tzinfo=UTC)


def _home(base: Home, root: Path) -> Home:
    return Home(root=root, lake=str(root / "lake"), config=base.config, cache=base.cache)


@pytest.fixture
def two(home: Home, tmp_path: Path) -> tuple[Home, Home]:
    return _home(home, tmp_path / "a"), _home(home, tmp_path / "b")


def event(name: str, price: float = 1.5, file_id: str = "f") -> dict[str, Any]:
    return {"event_id": name, "ts": TS, "price": price, "file_id": file_id, "line": 1, "ingested_at": TS}


def put(home: Home, schema: str, name: str, rows: list[dict[str, Any]], mode: Any = "overwrite") -> None:
    write_deltalake(home.table(schema, name), pa.Table.from_pylist(rows), mode=mode)


def changes(beta: float) -> list[dict[str, Any]]:
    return [{"model": "m", "group_id": "", "ts": TS, "kind": "sync", "beta": [{"feature": "x", "value": beta}]}]


def interval(day: date, status: str = "done", rows: int = 1) -> dict[str, Any]:
    return {
        "definition": "pattern/p", "day": day, "table_name": "matches.p", "definition_hash": "h", "engine_version": 1,
        "input_fingerprint": "f", "status": status, "rows": rows,
    }  # fmt: skip


def fill(home: Home) -> None:
    put(home, "events", "s", [event("e1"), event("e2")])
    put(home, "matches", "p/v2", [{"match_id": "m", "decision_ts": TS, "a": {"price": 1.0}}])
    put(home, "models", "changes", changes(1.0))
    ops.append(home, "intervals", [interval(DAY)], "r")


def test_the_same_rows_in_another_order_with_other_volatile_columns_are_the_same(two: tuple[Home, Home]) -> None:
    a, b = two
    fill(a)
    put(b, "events", "s", [event("e2", 1.5 * (1 + 1e-12), "other file"), event("e1", file_id="another")])
    put(b, "matches", "p/v2", [{"match_id": "m", "decision_ts": TS, "a": {"price": 1.0}}])
    put(b, "models", "changes", changes(1.0 + 1e-11))
    nothing = pa.Table.from_pylist([{"file_id": "f", "line": 0, "entry": 0, "stage": "parse", "written_at": TS}])
    write_deltalake(b.table("quarantine", "s"), nothing.slice(0, 0))
    ops.append(b, "intervals", [interval(DAY, "publishing"), interval(DAY), interval(date(2025, 10, 9), rows=0)], "r")
    assert same_tables(a, b) == []


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("schema", "name", "rows", "said"),
    [
        ("events", "s", [event("e1")], "events.s: 1 rows only in the first, such as ('e2',)"),
        ("events", "s", [event("e1"), event("e2"), event("e2")], "events.s: keys repeat: 2 rows against 3"),
        ("events", "s", [event("e1"), event("e2", 1.5000001)], "price differs in 1 rows: ('e2',): 1.5 against"),
        ("matches", "p/v2", [{"match_id": "m", "decision_ts": TS, "a": {"price": 2.0}}], "matches.p: a differs"),
        ("models", "changes", changes(1.00001), "models.changes: beta differs"),
        ("matches", "other", [{"match_id": "m", "decision_ts": TS}], "matches.other: only one side has it"),
    ],
)
def test_planted_differences_are_found(
    two: tuple[Home, Home], schema: str, name: str, rows: list[dict[str, Any]], said: str
) -> None:
    for home in two:
        fill(home)
    assert same_tables(*two) == []
    put(two[1], schema, name, rows)
    (line,) = same_tables(*two)
    assert said in line


@pytest.mark.few(1)
@pytest.mark.parametrize("row", [interval(DAY, rows=2), interval(DAY, "failed"), interval(date(2025, 10, 2))])
def test_intervals_count(two: tuple[Home, Home], row: dict[str, Any]) -> None:
    for home in two:
        fill(home)
    ops.append(two[1], "intervals", [row], "r")
    assert len(same_tables(*two)) == 1 and same_tables(*two)[0].startswith("intervals: pattern/p 2025-10-0")


def test_columns_may_stand_in_another_order_but_none_may_be_missing(two: tuple[Home, Home]) -> None:
    a, b = two
    put(a, "events", "s", [event("e1")])
    put(b, "events", "s", [dict(reversed(event("e1").items()))])
    assert same_tables(a, b) == []
    write_deltalake(
        b.table("events", "s"), pa.Table.from_pylist([event("e1") | {"extra": 1}]), mode="overwrite",
        schema_mode="overwrite",
    )  # fmt: skip
    assert same_tables(a, b) == ["events.s: columns differ: ['extra']"]
