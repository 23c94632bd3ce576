"""Publishing staged files as they are: what every reader sees is what publishing the same rows by Spark gives."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake import faults
from chainlake.lake.commits.changes import changes
from chainlake.lake.commits.publish import MatchOutput, Published, PublishingRun, publish_matches
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.delta import data_files, tables
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.parts import days_of
from chainlake.lake.store.port import Staged, Turn
from chainlake.lake.store.spark import SparkLake
from chainlake.paths import Home
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from tests.lake.test_publish import D1, D2, D3, FIELDS, POINTS, Killed, definition, intervals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A branch may lack any name; b is repeated.
NAMES = (
    MatchName("a", False, (*FIELDS, ("price", pa.float64()), ("size", pa.int64()), ("up", pa.bool_()))),
    MatchName("b", True, FIELDS),
    MatchName("c", False, FIELDS),
)
TABLE = matches_table(MatchShape("p", 1, "s", NAMES))


def match(n: int, day: date) -> dict[str, Any]:
    """Of every seventh of them a name, a list, or a field of an event is null, or the list is empty."""
    end = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(microseconds=1001 * n)
    event = {"event_id": f"{n:032x}", "ts": end, "type": "T", "key": None if n % 7 == 0 else "é"}
    a = {**event, "price": [float("nan"), -0.0, None, 1.5][n % 4], "size": 2**53 + n, "up": [True, False, None][n % 3]}
    return {
        "match_id": f"{n:032x}", "decision_ts": end, "start_ts": end - timedelta(seconds=n), "end_ts": end,
        "a": None if n % 7 == 1 else a,
        "b": [None, [], [event], [event, None, {**event, "ts": None}]][n % 4],
        "c": None if n % 7 == 2 else event,
    }  # fmt: skip


ROWS = [match(n, day) for day in (D1, D2) for n in range(1 + 20 * day.day, 15 + 20 * day.day)]


def staged(folder: Path, plain: list[dict[str, Any]], parts: int = 2) -> Staged:
    """The rows in files as tasks write them."""
    schema = pa.schema([pa.field(f.name, f.type) for f in TABLE.arrow()])
    folder.mkdir(parents=True)
    paths = [str(folder / f"part-{n}.parquet") for n in range(parts)]
    for n, path in enumerate(paths):
        rows = pa.Table.from_pylist(plain[n::parts], schema=schema)
        pq.write_table(rows, path, store_schema=False, write_page_checksum=True)
    return Staged(tuple(paths))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """The rows in files."""
    return staged(tmp_path_factory.mktemp("staged") / "rows", ROWS)


@pytest.fixture(autouse=True)
def no_file_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "_ROWS_OF_A_FILE", 1)


def publish(
    home: Home, found: Staged, days: list[date], left: dict[date, str] | None = None, lake: Any = None
) -> Published:
    prints = {day: f"f{day}" for day in days}
    now = left or prints
    run = PublishingRun(home, lake or FilesLake(home), "run")
    output = MatchOutput(definition(), TABLE, found, prints, dict.fromkeys(days))
    return publish_matches(run, output, lambda: DaysNow(now, lambda day: True))


def files_of(home: Home) -> list[Path]:
    return sorted(Path(home.table("matches", "p")).glob("*.parquet"))


def links(home: Home) -> list[int]:
    """How many names each data file of the table has."""
    return [path.stat().st_nlink for path in files_of(home)]


def seen(spark: SparkSession, home: Home) -> dict[str, Any]:
    """What Spark, delta-rs and DuckDB see, and the change feed."""
    order = [("match_id", "ascending")]
    frame = tables.read(spark, home, "matches", "p")
    by_duckdb = (
        SqlConnection(home).query("SELECT * FROM matches.p ORDER BY match_id").to_arrow_table().cast(TABLE.arrow())
    )
    feed = changes(home, "matches.p", 0).rows.sort_by(order)
    return {
        "spark": str(frame.toArrow().sort_by(order).to_pylist()),
        "types": frame.schema.jsonValue(),
        "delta-rs": str(tables.arrow(home, "matches", "p").sort_by(order).to_pylist()),
        "arrow types": tables.arrow_schema(home, "matches", "p"),
        "duckdb": str(by_duckdb.to_pylist()),
        "feed": str(feed.drop_columns("committed_at").to_pylist()),
    }


@pytest.mark.on_spark()
def test_readers_see_what_publishing_by_spark_gives(
    spark: SparkSession, home: Home, tmp_path: Path, good: Staged
) -> None:
    other = replace(home, root=tmp_path / "other", lake=str(tmp_path / "other" / "lake"))
    found = publish(home, good, [D1, D2, D3])
    assert links(home) == [2, 2]
    by_spark = SparkLake(other, lambda: spark)
    assert found == publish(other, good, [D1, D2, D3], lake=by_spark) == Published([D1, D2, D3], {}, len(ROWS), 0, 0, 1)
    here = seen(spark, home)
    assert here == seen(spark, other)
    assert here["delta-rs"] == str(pa.Table.from_pylist(ROWS, schema=TABLE.arrow()).to_pylist())
    names = ("day", "status", "rows", "added", "changed", "withdrawn", "published_version")
    assert intervals(home, *names) == intervals(other, *names)
    assert (D1, "done", 14, 14, 0, 0, 1) in intervals(home, *names)


def test_the_bounds_of_the_files_hold(spark: SparkSession, home: Home, good: Staged) -> None:
    """So that a reader that prunes by them loses no row, and reads only one file for one match."""
    publish(home, good, [D1, D2])
    delta = DeltaTable(home.table("matches", "p"))
    added = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    for line in added:
        found = pq.ParquetFile(Path(delta.table_uri) / line["path"]).read()
        assert line["num_records"] == len(found) > 0
        for name in ("match_id", "decision_ts", "start_ts", "end_ts"):
            values = found[name].to_pylist()
            assert line[f"min.{name}"] <= min(values) and max(values) <= line[f"max.{name}"]
            assert name == "match_id" or line[f"max.{name}"] - line[f"min.{name}"] <= timedelta(days=2)
            assert line[f"null_count.{name}"] == 0
    assert len(added) == 2
    last = max(ROWS, key=lambda row: row["decision_ts"])["decision_ts"].replace(tzinfo=None)
    assert tables.read(spark, home, "matches", "p").where(f"decision_ts >= '{last}'").count() == 1


def test_the_staged_files_may_go_and_another_file_system_gets_copies(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("Invalid cross-device link")

    found = staged(tmp_path / "rows", ROWS)
    monkeypatch.setattr("chainlake.storage.local.os.link", refuse)
    publish(home, found, [D1, D2])
    assert links(home) == [1, 1]
    for path in found.paths:
        Path(path).unlink()
    assert len(tables.arrow(home, "matches", "p")) == len(ROWS)


def test_small_files_are_put_together(home: Home, monkeypatch: pytest.MonkeyPatch, good: Staged) -> None:
    monkeypatch.setattr(data_files, "_ROWS_OF_A_FILE", 50_000)
    assert publish(home, good, [D1, D2]).added == len(ROWS)
    assert links(home) == [1]
    wanted = str(pa.Table.from_pylist(ROWS, schema=TABLE.arrow()).to_pylist())
    assert str(tables.arrow(home, "matches", "p").sort_by("match_id").to_pylist()) == wanted


@pytest.mark.slow
def test_files_are_not_taken_where_a_day_is_left_out_or_published_before(home: Home, good: Staged) -> None:
    found = publish(home, good, [D1, D2], left={D1: f"f{D1}"})
    assert (found.days_done, found.added) == ([D1], 14) and 2 not in links(home)
    again = publish(home, good, [D1, D2])
    assert (again.added, again.changed, again.withdrawn) == (14, 0, 0) and 2 not in links(home)
    assert len(tables.arrow(home, "matches", "p")) == len(ROWS)


@pytest.mark.few(1)
@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_the_retry_gives_the_same_table(
    home: Home, monkeypatch: pytest.MonkeyPatch, good: Staged, point: str
) -> None:
    def end(status: int) -> None:
        raise Killed(status)

    monkeypatch.setattr(faults.os, "_exit", end)
    faults._counts.clear()
    monkeypatch.setenv("CHAINLAKE_FAULT", point)
    with pytest.raises(Killed, match="137"):
        publish(home, good, [D1, D2])
    monkeypatch.delenv("CHAINLAKE_FAULT")
    interrupted = "publishing" in [status for (status,) in intervals(home, "status")]
    before = tables.version(home, "matches", "p") or 0
    again = publish(home, good, [D1, D2])
    assert sorted(tables.arrow(home, "matches", "p")["match_id"].to_pylist()) == sorted(r["match_id"] for r in ROWS)
    assert intervals(home, "day", "status", "rows") == [(D1, "done", 14), (D2, "done", 14)]
    assert interrupted == point.endswith(("publishing.after", "commit.after"))
    assert again.version == before + (1 if interrupted or again.added else 0)


def test_nothing_lands_after_another_writer_and_a_turn_is_taken(home: Home, good: Staged) -> None:
    lake = FilesLake(home)
    late = lake.change(TABLE, good, days_of(TABLE, [D1, D2], "decision_ts"))
    publish(home, good, [D1, D2])
    assert DeltaTable(home.table("matches", "p")).transaction_version("table-matches.p") == 1
    with pytest.raises(InfrastructureError, match="another writer"):
        lake.commit(late, Turn("table-matches.p", force=True))
    assert len(tables.arrow(home, "matches", "p")) == len(ROWS)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ({"match_id": "short"}, "match_id_is_hash"),
        ({"match_id": None}, "NOT NULL constraint violated for column: match_id"),
        ({"start_ts": ROWS[-1]["end_ts"] + timedelta(microseconds=1)}, "start_not_after_end"),
    ],
)
def test_a_row_that_breaks_a_rule_is_not_published(
    home: Home, tmp_path: Path, broken: dict[str, Any], rule: str
) -> None:
    found = staged(tmp_path / "rows", [*ROWS[:-1], {**ROWS[-1], **broken}], parts=1)
    with pytest.raises(AuditFailed, match=rule):
        publish(home, found, [D1, D2])
    assert files_of(home) == [] and tables.version(home, "matches", "p") == 0
    assert {status for (status,) in intervals(home, "status")} == {"publishing"}
