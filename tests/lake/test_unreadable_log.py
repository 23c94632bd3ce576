"""Log entries and data files that cannot be read are named, wherever something goes on without them."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from chainlake.lake.delta.log import TableLog, marked
from chainlake.lake.records import ops
from chainlake.lake.records.suspects import moved
from chainlake.lake.upkeep.ops_rebuild import rebuild
from chainlake.paths import Home


def entry(home: Home, schema: str, name: str, version: int) -> Path:
    return Path(home.table(schema, name), "_delta_log", f"{version:020}.json")


def written(home: Home, versions: int) -> None:
    for number in range(versions):
        write_deltalake(
            home.table("events", "lab"), pa.table({"n": [number]}), mode="append", commit_properties=marked("test")
        )


def test_an_unreadable_entry_before_the_last_makes_a_table_suspect(home: Home) -> None:
    """A later checkpoint lets the table be read, and nobody can tell who wrote that entry."""
    written(home, 5)
    assert moved(home, "events", "lab", 1) is None
    DeltaTable(home.table("events", "lab")).create_checkpoint()
    os.truncate(entry(home, "events", "lab", 3), 30)
    said = moved(home, "events", "lab", 1)
    assert said is not None and said.startswith("entry 3 of its log cannot be read (")
    assert "check --repair'" in said
    assert list(TableLog(home, "events", "lab").foreign().unreadable) == [3]
    assert moved(home, "events", "lab", 3) is None, "it was looked at before"


def test_an_unreadable_last_entry_makes_a_table_suspect(home: Home) -> None:
    written(home, 2)
    os.truncate(entry(home, "events", "lab", 1), 30)
    for known in (None, 0):
        said = moved(home, "events", "lab", known)
        assert said is not None and said.startswith("the last entry of its log cannot be read (")


def test_a_rebuilt_log_names_the_files_and_entries_that_it_lacks(home: Home) -> None:
    for n in range(3):
        row = {"source": "s", "path": f"{n}.csv", "file_id": f"f{n}", "load_id": "l", "file_date": date(2025, 1, 1)}
        ops.append(home, "files", [row], "r")
    folder = Path(home.table("ops", "files"))
    files = sorted(folder.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    assert len(files) == 3
    os.truncate(files[1], 40)
    last = max(TableLog(home, "ops", "files").versions)
    os.truncate(entry(home, "ops", "files", last), 30)
    rebuilt = rebuild(home, "files")
    assert (rebuilt.rows, rebuilt.files_lost, rebuilt.entries_lost) == (2, (files[1].name,), (last,))
    assert str(rebuilt) == (
        f"2 rows; left out, because they cannot be read: {files[1].name}; log entries that cannot be read, so that "
        f"anybody may have written their rows: {last}"
    )
    assert {row["path"] for row in ops.current(home, "files")} == {"0.csv", "2.csv"}
