"""The lake's port: which rows readers find, by conditions, days, bounds and the feed; alike for both back ends."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from chainlake.days import US_PER_DAY, day_start_us
from chainlake.lake.commits.changes import changes
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFiles
from chainlake.lake.delta.where import Where
from chainlake.lake.store.errors import RowsOutside
from chainlake.lake.store.event_files import EventFiles
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Applied, Lake, Part, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.table import Column
from chainlake.storage.parquet import parquet_file
from chainlake.storage.resolve import storage_of
from tests.lake.appending import append_files
from tests.lake.stored import (
    AFTER,
    BEFORE,
    COLUMNS,
    D1,
    D2,
    D3,
    DAILY,
    PLAIN,
    Row,
    part_of,
    put,
    row,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


WHERES: list[tuple[Where, str]] = [
    ([[("text", "not in", ["v"])]], "acd"),  # a null passes "not in" ...
    ([[("text", "in", ["v", None])]], "b"),
    ([[("text", "!=", "v")]], "ad"),  # ... and nothing else
    ([[("x", "<=", 2.0), ("owner", "=", "o")], [("event_date", "in", [D3])]], "abd"),
    ([[("owner", "not in", [])]], "abcd"),
    ([[("owner", "in", [])]], ""),
    ([[]], "abcd"),
    ([], ""),
    ([[("text", "=", 'it\'s \\ "so"')]], "d"),
    ([[("ts", ">", datetime(2025, 10, 2, 11, tzinfo=UTC))]], "d"),
]


EVERYTHING = [
    row("a", x=2.0, text=""), row("b", text="v"), row("c", x=None, text=None, owner="p"),
    row("d", D3, x=3.0, text="it's \\ \"so\""),
]  # fmt: skip


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of these rows, made once."""
    root = tmp_path_factory.mktemp("everything")
    home = replace(Home.from_env(), root=root, lake=str(root / "lake"))
    put(FilesLake(home), EVERYTHING, Part([[]]))
    return Path(home.table("matches", "rows"))


@pytest.mark.on_spark()
@pytest.mark.parametrize(("where", "wanted"), WHERES)
def test_a_part_is_what_its_conditions_say(lake: Lake, home: Home, everything: Path, where: Where, wanted: str) -> None:
    shutil.copytree(everything, home.table("matches", "rows").removeprefix("file://"))
    assert "".join(sorted(lake.rows("matches", "rows", where=where)["id"].to_pylist())) == wanted
    change = lake.change(PLAIN, Staged(rows=table_of([])), Part(where))
    gone = [name for path in change.moved for name in pq.read_table(path, columns=["id"])["id"].to_pylist()]
    assert "".join(sorted(gone)) == wanted and change.withdrawn == len(wanted)
    # A commit does what the change says, whatever the conditions were, and takes ten seconds on Spark.
    if lake.name == "files" or where == [[]]:
        lake.commit(change, Turn("test"))
        assert [one["id"] for one in EVERYTHING if one["id"] not in wanted] == sorted(
            tables.arrow(home, "matches", "rows")["id"].to_pylist()
        )
    with pytest.raises(RowsOutside) if len(wanted) < 4 else _nothing():
        put(lake, EVERYTHING, Part(where))


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.on_spark()
def test_files_of_days_hold_the_rows_of_these_days(lake: Lake) -> None:
    put(lake, BEFORE, part_of(D1, D2, D3), DAILY)
    put(lake, [row("g", D2)], part_of(D2), DAILY)
    for version, wanted in ((1, {D1: {"a", "b"}, D2: {"c", "d"}}), (None, {D1: {"a", "b"}, D2: {"g"}})):
        found = lake.day_files("matches", "rows", [D1, D2], version)
        ids: dict[date, set[str]] = {}
        for file in found.files:
            with parquet_file(file.path) as parquet:
                rows = parquet.read()
            assert file.size == storage_of(file.path).size(file.path)
            assert file.rows == len(rows) > 0
            ids.setdefault(file.day, set()).update(rows["id"].to_pylist())
        assert ids == wanted and len(found.paths) == len(found.files)
        assert [f.name for f in found.schema] == [name for name in DAILY.column_names if name != "event_date"]
    assert lake.day_files("matches", "rows", [date(2030, 1, 1)]).files == ()


@pytest.mark.on_spark("files")
def test_bounds_of_rewritten_files_hide_no_row(lake: Lake, home: Home, spark: SparkSession) -> None:
    """Spark passes over files by bounds: those of numbers with NaN among them, and of µs, must not be too tight."""
    rows = [row("a", us=999_999, x=2.0), row("b", us=5, x=float("nan")), row("c", x=1.0)]
    put(lake, rows, part_of(D1))
    put(lake, [*rows[:2], row("c", x=1.5)], part_of(D1))
    frame = tables.read(spark, home, "matches", "rows")
    assert frame.where("x > 100").count() == 1
    assert frame.where("a.f > 100").count() == 1
    assert frame.where(f"ts >= timestamp_micros({_us(rows[0])})").count() == 1
    assert frame.where(f"ts > timestamp_micros({_us(rows[0]) - 1})").count() == 1


def test_rows_are_found_in_files_whose_bounds_spark_has_cut(home: Home) -> None:
    """Spark keeps milliseconds of times: the largest of a file can lie above the bound that it tells."""
    tables.ensure_table(home, PLAIN)
    with DataFiles(home.table("matches", "rows"), PLAIN) as out:
        out.write(table_of([row("a"), row("b", us=6_001)]))
        (file,) = out.close()
    told = json.loads(file.stats)
    told["maxValues"]["ts"] = "2025-10-01T12:00:00.006Z"
    append_files(home, PLAIN, [replace(file, stats=json.dumps(told))], app="x", base_version=0, mark="m")
    assert put(FilesLake(home), [row("a"), row("b", us=6_001, x=2.0)], part_of(D1)) == Applied(0, 1, 0, 2)
    exact = Part([[("ts", ">", datetime(2025, 10, 1, 12, 0, 0, 6_000, UTC))]])
    assert put(FilesLake(home), [], exact).withdrawn == 1


def _us(one: Row) -> int:
    return round(one["ts"].timestamp() * 1_000_000)


@pytest.mark.on_spark("files")
def test_the_feed_is_read_alike_by_spark_and_without_it(lake: Lake, home: Home, spark: SparkSession) -> None:
    put(lake, BEFORE, part_of(D1, D2, D3))
    put(lake, AFTER[:-1], part_of(D1, D2, D3))
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    by_spark = reader.load(home.table("matches", "rows")).drop("_commit_timestamp").toArrow()
    kinds = ["insert", "delete", "update_postimage"]
    plain = pa.table(DeltaTable(home.table("matches", "rows")).load_cdf(1)).drop_columns("_commit_timestamp")

    def told(rows: pa.Table) -> list[str]:
        names = [*PLAIN.column_names, "_change_type", "_commit_version"]
        return sorted(str({name: one[name] for name in names}) for one in rows.to_pylist())

    assert told(by_spark) == told(plain)
    assert sum(one["_change_type"] in kinds for one in by_spark.to_pylist()) == len(
        changes(home, "matches.rows", 0).rows
    )
    assert tables.read(spark, home, "matches", "rows").toArrow().num_rows == 5


def test_tasks_read_events_of_files_that_a_merge_has_written_anew(home: Home) -> None:
    """Arrow finds string views in them, which it does not compare with strings."""
    columns = (*COLUMNS, Column("type", pa.string(), "Which kind.", False))
    table = replace(DAILY, schema="events", columns=columns)
    lake, schema = FilesLake(home), pa.schema([pa.field(f.name, f.type) for f in table.arrow()])

    def put_events(rows: list[Row]) -> Applied:
        staged = Staged(rows=pa.Table.from_pylist(rows, schema=schema))
        return lake.commit(lake.change(table, staged, part_of(D1, by="event_date")), Turn("test"))

    put_events([row("a", type="T"), row("b", us=1, type="U")])
    assert put_events([row("a", x=2.0, type="T"), row("b", us=1, type="U")]) == Applied(0, 1, 0, 2)
    files = EventFiles.of(lake.day_files("events", "rows", [D1]))
    start = day_start_us(D1)
    found = files.read(D1, ["id", "ts", "type", "x"], ["T"], start, start + US_PER_DAY)
    assert found.select(["id", "type", "x"]).to_pylist() == [{"id": "a", "type": "T", "x": 2.0}]
    assert lake.rows("events", "rows", columns=["id"], where=[[("type", "=", "U")]])["id"].to_pylist() == ["b"]


def test_pages_that_we_write_have_checksums(home: Home, tmp_path: Path) -> None:
    """Of what delta-rs writes anew, none: docs/maintenance.md says what that leaves."""
    lake = FilesLake(home)
    put(lake, [row(f"{n}", us=n, x=n + 0.5) for n in range(500)], part_of(D1))
    (path,) = Path(home.table("matches", "rows")).glob("*.parquet")
    footer = pq.read_metadata(path).row_group(0)
    (column,) = (footer.column(n) for n in range(footer.num_columns) if footer.column(n).path_in_schema == "x")
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        lake.rows("matches", "rows")
