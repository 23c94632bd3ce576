"""Data files that tasks write: Spark, delta-rs and DuckDB read them as if Spark had written them; rules hold."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from chainlake.definitions.source import load_sources
from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.delta import data_files, tables
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.delta.rules import Rules
from chainlake.lake.spark.types import frame_of
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Applied, Part, Staged, Turn
from chainlake.lake.store.spark import SparkLake
from chainlake.lake.upkeep.maintain import maintain_table
from chainlake.paths import Home
from chainlake.schemas import models
from chainlake.schemas.events import events_table
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.table import TIMESTAMP, Check, Column, Table
from tests.lake.appending import append_files
from tests.lake.things import DAY, THINGS, thing, things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = [date(2025, 10, 1), date(2025, 10, 2), date(1969, 12, 31)]
MIXED = Table(
    schema="events",
    name="mixed",
    comment="Every kind of column.",
    columns=(
        Column("id", pa.int64(), "Which.", False),
        Column("text", pa.string(), "Text."),
        Column("number", pa.float64(), "Number."),
        Column("whole", pa.int64(), "Whole number."),
        Column("flag", pa.bool_(), "Yes or no."),
        Column("ts", TIMESTAMP, "When.", False),
        Column("event_date", pa.date32(), "UTC day of ts.", False),
        Column("many", pa.list_(pa.field("element", pa.struct([pa.field("n", pa.int64())]))), "Nested."),
    ),
    key=("id",),
    checks=(Check("event_date_is_day_of_ts", "event_date = to_date(ts)"),),
    partition_by=("event_date",),
)
TEXTS = [None, "", "a", "é" * 40, "\U0001f600" * 33, "z" * 32, "\U0010ffff" * 40, "a" * 32 + "\U0010ffff", "q'\"\\"]
NUMBERS = [None, 0.0, -0.0, 1.5, -1e300, 5e-324, math.inf, -math.inf, math.nan]


def mixed(n: int, seed: int = 0, days: int = 3, **columns: Any) -> pa.Table:
    """Random rows, in no order, of a few days."""
    rng = random.Random(seed)
    rows = []
    for number in range(n):
        day = rng.choice(DAYS[:days])
        ts = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(microseconds=rng.randrange(86_400_000_000))
        row = {"id": number, "text": rng.choice(TEXTS), "number": rng.choice(NUMBERS), "ts": ts, "event_date": day}
        row |= {"whole": rng.choice([None, 0, -(2**63), 2**63 - 1]), "flag": rng.choice([None, True, False])}
        row |= {"many": rng.choice([None, [], [{"n": None}], [{"n": 1}, None]])}
        rows.append(row | columns)
    return pa.Table.from_pylist(rows, schema=MIXED.arrow())


def write(home: Home, table: Table, *parts: pa.Table) -> list[DataFile]:
    with DataFiles(home.table(table.schema, table.name), table) as files:
        for part in parts:
            files.write(part)
        return files.close()


@pytest.mark.slow
def test_every_reader_sees_the_rows_as_they_were(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    published(home, monkeypatch)


def published(home: Home, monkeypatch: pytest.MonkeyPatch) -> str:
    """Publish files of every kind of column, look at them without Spark, and return what all readers have to see."""
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", 70)
    monkeypatch.setattr(data_files, "_ROWS_PER_GROUP", 70)
    rows = mixed(500)
    tables.ensure_table(home, MIXED)
    files = write(home, MIXED, rows.slice(0, 130), rows.slice(130))
    assert [file.partition["event_date"] for file in files] == sorted(str(day) for day in DAYS)
    assert FilesLake(home).commit(FilesLake(home).additions(MIXED, files), Turn("test")) == Applied(500, 0, 0, 1)
    expected = str(rows.sort_by("id").to_pylist())
    assert str(tables.arrow(home, "events", "mixed").select(MIXED.column_names).sort_by("id").to_pylist()) == expected
    by_duckdb = SqlConnection(home).query("SELECT * FROM events.mixed ORDER BY id").to_arrow_table()
    assert str(by_duckdb.cast(MIXED.arrow()).to_pylist()) == expected
    return expected


@pytest.mark.on_spark()
def test_spark_sees_the_rows_as_they_were_and_writes_the_same_types(
    spark: SparkSession, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = published(home, monkeypatch)
    by_spark = tables.read(spark, home, "events", "mixed").toArrow().sort_by("id")
    assert str(by_spark.cast(MIXED.arrow()).to_pylist()) == expected
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    changes = feed.load(home.table("events", "mixed")).groupBy("_change_type").count().collect()
    assert [tuple(row) for row in changes] == [("insert", 500)]
    # What Spark itself writes: the same physical types.
    lake = SparkLake(home, lambda: spark)
    lake.commit(lake.change(MIXED, Staged(rows=mixed(500, 1, id=501)), Part([[("id", ">", 500)]])), Turn("test"))
    names = ("name", "physical_type", "logical_type", "converted_type")
    kinds = []
    for file in Path(home.table("events", "mixed")).rglob("part-*.parquet"):
        columns = pq.ParquetFile(file).schema
        kinds.append({str({name: str(getattr(columns.column(i), name)) for name in names}) for i in range(7)})
    assert all(kind == kinds[0] for kind in kinds)


@pytest.mark.slow
@pytest.mark.on_spark()
@pytest.mark.parametrize("seed", range(2))
def test_bounds_hold_for_every_value_and_prune_without_losing_a_row(
    session: SparkSession | None, home: Home, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", 5)
    monkeypatch.setattr(data_files, "_ROWS_PER_GROUP", 5)
    tables.ensure_table(home, MIXED)
    parts = [mixed(12, 10 * seed + number, days=1) for number in range(6)]
    files = [file for part in parts for file in write(home, MIXED, part)]
    for part, file in zip(parts, files, strict=True):
        stats = json.loads(file.stats)
        assert stats["numRecords"] == file.rows == 12
        for name in ("id", "text", "number", "whole", "flag", "ts"):
            column = part[name]
            assert stats["nullCount"][name] == column.null_count
            low, high = stats["minValues"].get(name), stats["maxValues"].get(name)
            values = pc.drop_null(column).to_pylist()
            if name == "ts":
                values = [value.isoformat(timespec="microseconds").replace("+00:00", "Z") for value in values]
                low, high = low[:-1] + "000Z", high[:-1] + "000Z"
            if name == "number" and any(map(math.isnan, values)) or not values or name == "flag":
                assert low is None and high is None
            for value in values:
                assert (low is None or low <= value) and (high is None or value <= high)
        assert set(stats["minValues"]) >= {"id", "ts"} and "many" not in stats["nullCount"]
    append_files(home, MIXED, files, app="test", base_version=0, mark="m")
    whole = pa.concat_tables(parts)
    values = {name: pc.unique(pc.drop_null(whole[name])).to_pylist() for name in ("text", "number", "whole", "ts")}
    values = {name: random.Random(seed).choice(known) for name, known in values.items()}
    if session is None:
        chosen = [pc.field("flag"), ~pc.field("flag")]
        for name, value in values.items():
            chosen += [pc.field(name) >= value, pc.field(name) <= value, pc.field(name) == value]
        # The second is read as a store is.
        for place in (home, replace(home, lake=f"file://{home.lake}")):
            for one in chosen:
                assert len(tables.arrow(place, "events", "mixed", filters=one)) == len(whole.filter(one)), one
        return
    tests = [
        test
        for name, value in values.items()
        for test in (F.col(name) >= value, F.col(name) <= value, F.col(name) == value)
    ]
    wanted = frame_of(session, whole).select(*(F.count(F.when(test, 1)) for test in tests)).collect()[0]
    for test, count in zip(tests, wanted, strict=True):
        assert tables.read(session, home, "events", "mixed").where(test).count() == count, test


def test_the_last_millisecond_has_no_upper_bound(home: Home) -> None:
    tables.ensure_table(home, MIXED)
    (file,) = write(home, MIXED, mixed(1, ts=datetime.max.replace(tzinfo=UTC), event_date=date.max))
    stats = json.loads(file.stats)
    assert "ts" not in stats["maxValues"] and stats["minValues"]["ts"] == "9999-12-31T23:59:59.999Z"


def test_a_commit_takes_the_turn_and_only_the_next_version(home: Home) -> None:
    tables.ensure_table(home, THINGS)
    first = write(home, THINGS, things([thing("a")]))
    assert append_files(home, THINGS, first, app="test", base_version=0, mark="mark") == 1
    delta = DeltaTable(home.table("matches", "things"))
    assert (delta.version(), delta.transaction_version("test")) == (1, 1)
    assert delta.history(1)[0]["userMetadata"] == "mark"
    late = write(home, THINGS, things([thing("late")]))
    with pytest.raises(InfrastructureError, match="another writer"):
        append_files(home, THINGS, late, app="test", base_version=0, mark="late")
    assert tables.arrow(home, "matches", "things")["id"].to_pylist() == ["a"]
    assert append_files(home, THINGS, late, app="test", base_version=1, mark="m") == 2


def test_spark_refuses_the_late_commit_of_an_attempt_before(spark: SparkSession, home: Home) -> None:
    tables.ensure_table(home, THINGS)
    append_files(home, THINGS, write(home, THINGS, things([thing("a")])), app="test", base_version=0, mark="m")
    late = frame_of(spark, things([thing("z")]), THINGS.arrow())
    writer = late.write.format("delta").mode("append").option("txnAppId", "test").option("txnVersion", 1)
    writer.save(home.table("matches", "things"))
    assert tables.version(home, "matches", "things") == 1


@pytest.mark.on_spark("broken0")
@pytest.mark.parametrize("broken", [{"price": -1.0}, {"id": "much too long", "price": None}, {"id": "ab", "ts": None}])
def test_a_broken_rule_is_refused_as_spark_refuses_it_and_leaves_no_file(
    spark: SparkSession, home: Home, broken: dict[str, Any]
) -> None:
    tables.ensure_table(home, THINGS)
    rows = things([thing("a"), {**thing("b"), **broken}, thing("c", price=None)])
    with pytest.raises(AuditFailed) as ours:
        write(home, THINGS, things([thing("d")]), rows)
    assert not list(Path(home.table("matches", "things")).glob("*.parquet"))
    lake = SparkLake(home, lambda: spark)
    with pytest.raises(AuditFailed) as sparks:
        lake.commit(lake.change(THINGS, Staged(rows=rows), Part([[]])), Turn("test"))
    # Spark writes a rule with brackets of its own.
    assert re.sub("[()]", "", ours.value.what) == re.sub("[()]", "", sparks.value.what)


def test_a_null_breaks_no_check(home: Home) -> None:
    tables.ensure_table(home, THINGS)
    assert [file.rows for file in write(home, THINGS, things([thing("a", price=None)]))] == [1]


def test_files_of_writers_that_died_are_invisible_and_go_with_maintenance(home: Home) -> None:
    tables.ensure_table(home, MIXED)
    kept = write(home, MIXED, mixed(10, days=1))
    write(home, MIXED, mixed(10, 1, days=1))
    append_files(home, MIXED, kept, app="test", base_version=0, mark="m")
    assert len(tables.arrow(home, "events", "mixed")) == 10
    folder = Path(home.table("events", "mixed"))
    assert len(list(folder.rglob("*.parquet"))) == 2
    assert maintain_table(home, "events", "mixed", keep=timedelta(0)).removed == 1
    assert [str(path.relative_to(folder)) for path in folder.rglob("part*.parquet")] == [kept[0].path]


@pytest.mark.parametrize(("rows", "groups"), [(9, [9]), (10, [10]), (11, [6, 5]), (23, [8, 8, 7]), (4, [4])])
def test_rows_are_written_in_groups_of_about_one_size(
    home: Home, monkeypatch: pytest.MonkeyPatch, rows: int, groups: list[int]
) -> None:
    """A group of few rows beside a large one would be read as often, and skip nothing."""
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", 5)
    monkeypatch.setattr(data_files, "_ROWS_PER_GROUP", 10)
    tables.ensure_table(home, MIXED)
    (file,) = write(home, MIXED, mixed(rows, days=1))
    footer = pq.ParquetFile(Path(home.table("events", "mixed"), file.path)).metadata
    assert [footer.row_group(at).num_rows for at in range(footer.num_row_groups)] == groups


@pytest.mark.parametrize(("days", "groups"), [(1, 12), (3, 5)])
def test_rows_of_many_partitions_are_gathered_for_longer(
    home: Home, monkeypatch: pytest.MonkeyPatch, days: int, groups: int
) -> None:
    """Twelve times ten rows: written each time, or after the first ten whenever there are thirty."""
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", 10)
    monkeypatch.setattr(data_files, "_MOST_GATHERED", 40)
    tables.ensure_table(home, MIXED)
    files = write(home, MIXED, *(mixed(10, number, days, number=1.5) for number in range(12)))
    folder = Path(home.table("events", "mixed"))
    assert len(files) == days and sum(file.rows for file in files) == 120
    assert {pq.ParquetFile(folder / file.path).metadata.num_row_groups for file in files} == {groups}


def test_many_partitions_are_not_all_open_and_an_error_leaves_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", 6)
    monkeypatch.setattr(data_files, "_MOST_OPEN", 2)
    tables.ensure_table(home, MIXED)
    parts = [mixed(6, number) for number in range(3)]
    most, begin = 0, DataFiles._begin

    def counted(writer: DataFiles, *place: Any) -> Any:
        nonlocal most
        found = begin(writer, *place)
        most = max(most, len(writer._open) + 1)
        return found

    monkeypatch.setattr(DataFiles, "_begin", counted)
    files = write(home, MIXED, *parts)
    assert most == 2
    assert len(files) > 3 and sum(file.rows for file in files) == 18
    before = set(Path(home.table("events", "mixed")).rglob("*.parquet"))
    with pytest.raises(KeyboardInterrupt), DataFiles(home.table("events", "mixed"), MIXED) as writer:
        writer.write(parts[0])
        raise KeyboardInterrupt
    assert set(Path(home.table("events", "mixed")).rglob("*.parquet")) == before


BROKEN: dict[str, dict[str, Any]] = {
    "event_id_is_hash": {"event_id": "short"},
    "match_id_is_hash": {"match_id": "short"},
    "seq_not_negative": {"seq": -1},
    "event_date_is_day_of_ts": {"ts": datetime(2025, 10, 1, 23, 59, 59, 999_999, UTC), "event_date": DAYS[1]},
    "stage_known": {"stage": "publish"},
    "start_not_after_end": {"start_ts": DAY, "end_ts": DAY - timedelta(microseconds=1)},
    "decided_not_before_end": {"decision_ts": DAY - timedelta(microseconds=1), "end_ts": DAY},
    "kind_known": {"kind": "unheard of"},
    "rounds_positive": {"rounds": 0},
    "skipped_not_negative": {"rounds_skipped": -1},
}


@pytest.mark.slow
def test_the_rules_of_all_tables_are_understood() -> None:
    """One that DuckDB took for something else would not hold for files of tasks."""
    source = load_sources(Home.from_env())["stock"]
    shape = MatchShape("p", 1, "s", (MatchName("a", False, (("event_id", pa.string()),)),))
    checked = set()
    of_source = (events_table(source), quarantine_table(source))
    for table in (*of_source, matches_table(shape), models.CHANGES, models.METRICS, models.ALERTS):
        table = replace(table, columns=tuple(replace(column, nullable=True) for column in table.columns))
        rules, schema = Rules(table), table.arrow()
        rules.check(pa.Table.from_pylist([{}], schema=schema))
        for check in table.checks:
            with pytest.raises(AuditFailed, match=f"{table.path_name}: CHECK constraint {check.name} "):
                rules.check(pa.Table.from_pylist([{}, BROKEN[check.name]], schema=schema))
            checked.add(check.name)
    assert checked == set(BROKEN)
