"""The files of some days of a table, for readers of Parquet."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from chainlake.days import Days
from chainlake.lake.delta.reader import UnreadableTable
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home


def test_the_files_hold_the_rows_of_the_days_at_the_version(home: Home) -> None:
    home = replace(home, lake=f"{home.lake} ü")
    path = home.table("events", "s")
    for number in range(2):
        days = [date(2025, 1, day) for day in (1, 2, 3)]
        rows = pa.table({"n": [10 * number + day.day for day in days], "event_date": days})
        write_deltalake(path, rows, partition_by=["event_date"], mode="append")

    def found(first: int, end: int, version: int) -> list[int]:
        files = FilesLake(home).day_files("events", "s", Days(date(2025, 1, first), date(2025, 1, end)), version)
        return sorted(n for path in files.paths for n in pq.ParquetFile(path).read()["n"].to_pylist())

    assert found(1, 3, 0) == [1, 2]
    assert found(2, 4, 1) == [2, 3, 12, 13]
    assert found(5, 6, 1) == []


def test_files_that_are_not_plain_are_not_read(home: Home) -> None:
    days = Days(date(2025, 1, 1), date(2025, 1, 2))
    fields = pa.schema([pa.field("n", pa.int64()), pa.field("event_date", pa.date32())])
    marked = {"delta.enableDeletionVectors": "true"}
    DeltaTable.create(home.table("events", "s"), fields, partition_by=["event_date"], configuration=marked)
    with pytest.raises(UnreadableTable, match=r"events\.s uses the Delta feature 'deletionVectors'"):
        FilesLake(home).day_files("events", "s", days, 0)
