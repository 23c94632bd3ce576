"""Tables whose files alone do not tell their rows are refused wherever they are read, by one function."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.catalog.patterns import load_patterns
from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.lake.commits.changes import changes
from chainlake.lake.delta import tables
from chainlake.lake.delta.reader import UnreadableTable, UnwritableTable, open_table
from chainlake.lake.records import ops
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.store.files import FilesLake
from chainlake.lake.upkeep.maintain import maintain_table
from chainlake.lake.upkeep.same import published_tables, same_tables
from chainlake.paths import PROJECT, Home
from tests.lake.appending import append_arrow, append_files
from tests.lake.things import THINGS, thing, things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: An events table of seven rows, one of which Spark has deleted by a deletion vector.
CASE = PROJECT / "tests" / "cases" / "faults" / "deletion_vectors"
DAYS = Days(date(2024, 11, 3), date(2024, 11, 5))


@pytest.fixture
def marked(home: Home) -> Home:
    """A lake with that table as ``events.brbars``."""
    shutil.copytree(CASE, home.table("events", "brbars"))
    return home


READERS: dict[str, Callable[[Home], Any]] = {
    "sql": lambda home: SqlConnection(home).query("SELECT count(*) FROM events.brbars").fetchall(),
    "show": lambda home: SqlConnection(home).query("SHOW ALL TABLES").fetchall(),
    "changes": lambda home: changes(home, "events.brbars", 0),
    "rows": lambda home: tables.arrow(home, "events", "brbars"),
    "files": lambda home: FilesLake(home).day_files("events", "brbars", DAYS, 3),
    "compaction": lambda home: maintain_table(home, "events", "brbars"),
    "comparison": lambda home: same_tables(home, home),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_deleted_rows_are_never_shown(marked: Home, name: str) -> None:
    assert published_tables(marked) == [("events", "brbars")]
    with pytest.raises(UnreadableTable) as raised:
        READERS[name](marked)
    text = str(raised.value)
    assert "events.brbars" in text and "'deletionVectors'" in text
    assert "DROP FEATURE deletionVectors" in text and "Spark" in text
    assert raised.value.exit_code == 5


def test_version_and_columns_are_right_whatever_the_files_hold(marked: Home) -> None:
    assert tables.version(marked, "events", "brbars") == 3
    assert "price" in tables.arrow_schema(marked, "events", "brbars").names


def test_one_table_that_cannot_be_understood_hides_no_other(home: Home) -> None:
    """Its pattern is shown as broken, by an error that names the table; the others are computed and shown."""
    folder = Path(home.table("matches", "shakeout"))
    write_deltalake(str(folder), pa.table({"n": [1]}))
    protocol(folder, 3, ["notYetThoughtOf"])
    compiled, broken = load_patterns(home, load_sources(home))
    assert [one.name for one in broken] == ["shakeout"] and len(compiled) > 3
    assert "matches.shakeout" in str(broken[0].error) and "notYetThoughtOf" in str(broken[0].error)
    assert main(["status"]) == 0


def test_the_command_says_so(marked: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT ticker, ts, price FROM events.brbars"]) == 5
    out, err = capsys.readouterr()
    assert out == "" and "events.brbars" in err and "deletionVectors" in err


def protocol(folder: Path, reader: int, features: list[str], configuration: dict[str, str] | None = None) -> None:
    """Give the table at version 1 this protocol by a second version."""
    both = {"readerFeatures": features, "writerFeatures": features} if reader == 3 else {}
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 1, "operation": "SET TBLPROPERTIES"}},
        {"protocol": {"minReaderVersion": reader, "minWriterVersion": 7 if reader == 3 else 5, **both}},
    ]
    if configuration is not None:
        first = [json.loads(line) for line in (folder / "_delta_log" / f"{0:020}.json").read_text().splitlines()]
        (metadata,) = (line["metaData"] for line in first if "metaData" in line)
        schema = json.loads(metadata["schemaString"])
        for number, field in enumerate(schema["fields"]):
            field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
        actions.append({"metaData": {**metadata, "configuration": configuration, "schemaString": json.dumps(schema)}})
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    ("reader", "features", "configuration", "said"),
    [
        (3, ["columnMapping"], None, "'columnMapping'"),
        (3, ["typeWidening"], None, "'typeWidening'"),
        (3, ["v2Checkpoint"], None, "'v2Checkpoint'"),
        (3, ["timestampNtz", "notYetThoughtOf"], None, "'notYetThoughtOf'"),
        (2, [], {"delta.columnMapping.mode": "name"}, "'columnMapping'"),
        (2, [], {"delta.columnMapping.mode": "id"}, "'columnMapping'"),
        (4, [], None, "version 4"),
        (3, ["timestampNtz"], None, None),
        (3, [], None, None),
        (2, [], {"delta.columnMapping.mode": "none"}, None),
        (2, [], {}, None),
    ],
)
def test_every_feature_that_is_not_known_is_refused(
    home: Home, reader: int, features: list[str], configuration: dict[str, str] | None, said: str | None
) -> None:
    write_deltalake(home.table("events", "s"), pa.table({"n": [1, 2]}))
    protocol(Path(home.table("events", "s")), reader, features, configuration)
    query = "SELECT sum(n) FROM events.s"
    if said is None:
        assert SqlConnection(home).query(query).fetchall() == [(3,)]
        return
    with pytest.raises(UnreadableTable, match=rf"events\.s .*{said}"):
        SqlConnection(home).query(query)


def test_files_outside_the_table_are_refused(home: Home) -> None:
    """As a shallow clone has them."""
    folder = Path(home.table("events", "s"))
    write_deltalake(str(folder), pa.table({"n": [1]}))
    log = folder / "_delta_log" / f"{0:020}.json"
    log.write_text(re.sub(r'"path":"', f'"path":"file://{folder}-of-another/', log.read_text()))
    with pytest.raises(UnreadableTable, match=r"events\.s is made of files outside its folder"):
        SqlConnection(home).query("SELECT * FROM events.s")


def test_status_and_steps_refuse_operations_tables_too(home: Home) -> None:
    row = {"source": "s", "day": date(2025, 1, 1), "status": "complete", "rows": 1, "checksum": "c"}
    ops.append(home, "event_days", [row], "r")
    folder = Path(home.table("ops", "event_days"))
    shutil.rmtree(folder)
    write_deltalake(str(folder), pa.Table.from_pylist([], schema=ops.ALL["event_days"].arrow()))
    protocol(folder, 3, ["deletionVectors"])
    for read in (lambda: ops.current(home, "event_days"), lambda: ops.append(home, "event_days", [row], "r")):
        with pytest.raises(UnreadableTable, match=r"ops\.event_days"):
            read()


@pytest.mark.few(1)
@pytest.mark.parametrize("feature", ["checkpointProtection", "rowTracking", "notYetThoughtOf"])
def test_a_table_that_asks_more_of_its_writers_is_read_and_not_written(home: Home, feature: str) -> None:
    tables.ensure_table(home, THINGS)
    folder = Path(home.table("matches", "things"))
    asked = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", feature]}
    actions = [{"commitInfo": {"timestamp": 1, "operation": "x"}}, {"protocol": asked}]
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))
    assert SqlConnection(home).query("SELECT count(*) FROM matches.things").fetchall() == [(0,)]
    writes: list[Callable[[], Any]] = [
        lambda: append_arrow(home, THINGS, things([thing("a")]), app="a", base_version=1, mark="m"),
        lambda: append_files(home, THINGS, [], app="a", base_version=1, mark="m"),
        lambda: maintain_table(home, "matches", "things"),
    ]
    for write in writes:
        with pytest.raises(UnwritableTable, match=rf"matches\.things .*'{feature}'"):
            write()
    assert tables.version(home, "matches", "things") == 1


def test_tables_are_opened_in_one_place() -> None:
    found = []
    for file in [*(PROJECT / "jobs").rglob("*.py"), *(PROJECT / "dags").rglob("*.py")]:
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "DeltaTable" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DeltaTable":
                found.append(file.relative_to(PROJECT).as_posix())
    assert found == ["jobs/chainlake/lake/delta/reader.py"]


@pytest.mark.on_spark()
def test_what_spark_deletes_is_refused_until_spark_has_taken_it_out(spark: SparkSession, home: Home) -> None:
    """The way out that the message names is the way out."""
    tables.ensure_table(home, THINGS)
    path = home.table("matches", "things")
    write_deltalake(path, things([thing(name) for name in "abc"]), mode="append")
    place = f"delta.`{path}`"
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {place} WHERE id = 'b'")
    assert list(Path(path).glob("deletion_vector_*.bin"))
    with pytest.raises(UnreadableTable) as raised:
        SqlConnection(home).query("SELECT id FROM matches.things")
    with pytest.raises(UnreadableTable):
        append_files(home, THINGS, [], app="a", base_version=3, mark="m")
    assert raised.value.hint is not None
    steps = raised.value.hint.split("with Spark: ")[1].rstrip(".").split("; ")
    assert len(steps) == 3
    for step in steps:
        spark.sql(step)
    assert open_table(home, "matches", "things").protocol().min_reader_version == 1
    assert SqlConnection(home).query("SELECT id FROM matches.things ORDER BY id").fetchall() == [("a",), ("c",)]
    assert tables.read(spark, home, "matches", "things").count() == 2
