"""Parquet files say the same whoever wrote them, and files of one name are told apart."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainlake.cep.library import match
from chainlake.cep.plain_files.read import Asked, read_events
from chainlake.cli.main import main
from chainlake.errors import InputError

#: One that a double does not tell from its neighbour.
BIG = 2**53 + 1
TIMES = [datetime(2025, 1, 1, 10, minute, tzinfo=UTC) for minute in range(3)]


def table(**columns: Any) -> pa.Table:
    """Three events, of types A, B and B."""
    plain = {"type": pa.array(["A", "B", "B"]), "ts": pa.array(TIMES, pa.timestamp("us", "UTC"))}
    return pa.table(plain | columns)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("kind", [pa.decimal128(38, 0), pa.decimal256(60, 0), pa.decimal128(20, 0), pa.int64()])
def test_whole_numbers_that_a_database_writes_as_decimals_are_compared_exactly(backend: str, kind: pa.DataType) -> None:
    orders = table(event_id=["1", "2", "3"], order=pa.array([BIG, BIG - 1, BIG], kind))
    query = "PATTERN SEQ(A a, B b) WHERE a.order = b.order WITHIN 1 h MEASURES b.order AS order"
    assert list(match(query, orders, backend=backend)) == [{"a": "1", "b": "3", "order": BIG}]


def test_whole_numbers_beyond_64_bits_are_refused_in_decimals_too() -> None:
    orders = table(event_id=["1", "2", "3"], order=pa.array([Decimal(2**64)] * 3, pa.decimal128(38, 0)))
    with pytest.raises(InputError, match="order holds a number beyond 64 bits"):
        list(match("PATTERN SEQ(A a, B b) WHERE a.order = b.order WITHIN 1 h", orders))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_texts_of_all_writers_are_texts(tmp_path: Path, kind: pa.DataType) -> None:
    file = tmp_path / "x.parquet"
    texts = {"state": ["NA", "on", None], "size": ["1", "2", "NA"], "when": ["2025-01-01T10:00:00"] * 3}
    pq.write_table(table(**{name: pa.array(values, pa.string()).cast(kind) for name, values in texts.items()}), file)
    found = read_events([file], Asked(kinds={"size": "number", "when": "time"}, missing=["NA"])).table
    assert found["state"].to_pylist() == [None, "on", None]
    assert found["size"].to_pylist() == [1, 2, None]
    assert found["when"].to_pylist() == TIMES[:1] * 3
    # As the time of the event as well.
    assert read_events([file], Asked(ts_column="when")).table["ts"].to_pylist() == TIMES[:1] * 3


def test_times_of_96_bits_reach_as_far_as_others(tmp_path: Path) -> None:
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(2300, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
    file = tmp_path / "x.parquet"
    columns = {"ts": pa.array(times, pa.timestamp("us", "UTC")), "of": pa.array(times, pa.timestamp("us", "UTC"))}
    pq.write_table(table(**columns), file, use_deprecated_int96_timestamps=True, store_schema=False)
    found = read_events([file]).table
    assert found["ts"].to_pylist() == times
    assert [at.replace(tzinfo=UTC) for at in found["of"].to_pylist()] == times


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_digits_finer_than_microseconds_are_cut_off_before_1970_too(tmp_path: Path, zone: str | None) -> None:
    file = tmp_path / "x.parquet"
    ticks = pa.array([-1, -1001, 1_999], pa.int64())
    pq.write_table(table(ts=ticks.cast(pa.timestamp("ns", zone)), of=pa.array([-1, None, 1], pa.timestamp("ns"))), file)
    found = read_events([file]).table
    assert found["ts"].cast(pa.int64()).to_pylist() == [-1, -2, 1]
    assert found["of"].cast(pa.int64()).to_pylist() == [-1, None, 0]
    pq.write_table(table(ts=ticks), file)
    counted = read_events([file], Asked(ts_unit="ns")).table
    assert counted["ts"].cast(pa.int64()).to_pylist() == [-1, -2, 1]


def test_events_of_files_of_one_name_are_not_taken_for_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / folder / "x.csv" for folder in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text("type,ts,x\nA,2025-01-01T10:00:00,1\nB,2025-01-01T10:01:00,1\n")
    query = "PATTERN SEQ(A a, B b) WITHIN 1 h"
    assert main(["match", query, *map(str, files)]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((one["a"], one["b"]) for one in told) == [
        (f"{a}:1", f"{b}:2") for a in map(os.path.realpath, files) for b in map(os.path.realpath, files)
    ]
    # One file that is named twice is one.
    assert main(["match", query, str(files[0]), str(tmp_path / "two" / ".." / "one" / "x.csv")]) == 0
    assert capsys.readouterr().out == '{"a": "x.csv:1", "b": "x.csv:2"}\n'


def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    with open(name, "wb") as stream:
        stream.write(b"type,ts\nA,2025-01-01T10:00:00\nB,2025-01-01T10:01:00\n")
    assert main(["match", "PATTERN SEQ(A a, B b) WITHIN 1 h", os.fsdecode(name)]) == 0
    assert json.loads(capfdbinary.readouterr().out) == {"a": "caf\\xe9.csv:1", "b": "caf\\xe9.csv:2"}
