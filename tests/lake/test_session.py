"""Session, JARs, tables: settings that later parts rely on."""

from __future__ import annotations

import datetime
import json
import os
import py_compile
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from chainlake.env.own_folders import MARKER
from chainlake.errors import InfrastructureError
from chainlake.lake.delta import tables
from chainlake.lake.spark import cds, jars
from chainlake.lake.spark.session import code_archive
from chainlake.lake.spark.types import spark_schema
from chainlake.paths import Home
from chainlake.schemas.table import TIMESTAMP
from tests.lake.things import THINGS, thing, things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_has_comments_constraints_and_the_change_feed(spark: SparkSession, home: Home) -> None:
    tables.ensure_table(home, THINGS)
    tables.ensure_table(home, THINGS)
    assert tables.version(home, "matches", "things") == 0
    log = Path(home.table("matches", "things"), "_delta_log", "00000000000000000000.json").read_text().splitlines()
    actions = {key: value for line in log for key, value in json.loads(line).items()}
    assert actions["protocol"]["minReaderVersion"] == 1
    assert actions["metaData"]["description"] == "Things for tests."
    assert actions["metaData"]["configuration"] == {
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "false",
        "delta.constraints.price_positive": "coalesce(price > 0, true)",
        "delta.constraints.id_is_short": "coalesce(length(id) <= 6, true)",
    }
    described = spark.sql(f"DESCRIBE delta.`{home.table('matches', 'things')}`").collect()
    comments = {row.col_name: row.comment for row in described}
    assert comments["price"] == "How much, dollars."
    read = tables.read(spark, home, "matches", "things")
    assert [f.name for f in read.schema] == THINGS.column_names


def test_microseconds_survive_and_filters_without_a_jvm_miss_nothing(spark: SparkSession, home: Home) -> None:
    tables.ensure_table(home, THINGS)
    frame = spark.createDataFrame(things([thing("a", 123_456), thing("b", 123_999)]), spark_schema(THINGS.arrow()))
    frame.coalesce(1).write.format("delta").mode("append").save(home.table("matches", "things"))
    back = tables.arrow(home, "matches", "things", columns=["id", "ts"])
    assert back.schema.field("ts").type == TIMESTAMP
    cut = datetime.datetime(2025, 10, 1, 0, 0, 0, 123_500, tzinfo=datetime.UTC)
    found = tables.arrow(home, "matches", "things", columns=["id"], filters=[("ts", ">=", cut)])
    assert found["id"].to_pylist() == ["b"]
    assert tables.arrow(home, "matches", "things", filters=pc.field("ts") > cut).num_rows == 1


def test_the_ports_of_spark_take_nothing_without_its_secret(spark: SparkSession) -> None:
    """Another user of the machine can reach them, and objects that they send would be deserialised."""
    block_manager = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().blockManager().blockManagerId().port()
    body = b"\xac\xed\x00\x05"
    # A frame of Spark's transport: its length, the type of a request (3), its number, its body.
    frame = struct.pack(">qBqI", 21 + len(body), 3, 1, len(body)) + body
    for port in (block_manager, int(spark.sparkContext.getConf().get("spark.driver.port"))):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(frame)
            answer = connection.recv(4096)
        assert b"Expected SaslMessage" in answer, answer


def test_absent_tables(home: Home) -> None:
    assert not tables.exists(home, "events", "nothing")
    assert tables.version(home, "events", "nothing") is None


def test_worker_code_travels_and_time_zone_is_utc(spark: SparkSession) -> None:
    def work(batches):  # type: ignore[no-untyped-def]
        import chainlake.days

        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([chainlake.days.__file__] * len(batch))], names=["file"])

    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    files = {row.file for row in spark.range(2).mapInArrow(work, "file string").collect()}
    assert files and all("days" in name for name in files)


def test_workers_are_forked_from_a_process_that_has_imported_what_tasks_use(spark: SparkSession) -> None:
    def work(batches):  # type: ignore[no-untyped-def]
        import gc
        import sys

        # Only that process has put the objects away that were there before it forked.
        there = gc.get_freeze_count() > 0 and {"duckdb", "pandas", "pyarrow.dataset"} <= sys.modules.keys()
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([there] * len(batch))], names=["there"])

    assert {row.there for row in spark.range(2).mapInArrow(work, "there boolean").collect()} == {True}


@pytest.mark.slow
def test_the_code_archive_holds_jobs_and_schemas(tmp_path: Path) -> None:
    import zipfile

    archive = code_archive(tmp_path)
    names = zipfile.ZipFile(archive).namelist()
    assert "chainlake/lake/spark/session.py" in names and "chainlake/schemas/ops.py" in names
    assert code_archive(tmp_path) == archive


def test_of_two_who_make_the_code_archive_at_once_the_first_ones_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drivers that start at once both make it, and Spark refuses a file that is not what it was."""
    source = tmp_path / "package" / "one.py"
    source.parent.mkdir()
    source.write_text("ONE = 1\n")
    monkeypatch.setattr("chainlake.lake.spark.session.PACKAGE", source.parent)
    monkeypatch.setattr("chainlake.lake.spark.session.code_files", lambda: [source])
    late: list[Path] = []

    def first(work: str, target: Path) -> None:
        # The other one is done between our look for it and our end.
        late.append(Path(target))
        Path(target).write_bytes(b"of the other")
        monkeypatch.undo()
        os.link(work, target)

    monkeypatch.setattr(os, "link", first)
    archive = code_archive(tmp_path)
    assert late == [archive] and archive.read_bytes() == b"of the other"
    assert not list(tmp_path.glob(".code-*"))


def test_the_code_archive_is_named_by_the_sources_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "package" / "one.py"
    source.parent.mkdir()
    source.write_text("ONE = 1\n")
    monkeypatch.setattr("chainlake.lake.spark.session.PACKAGE", source.parent)
    monkeypatch.setattr("chainlake.lake.spark.session.code_files", lambda: [source])
    before = code_archive(tmp_path)
    held = before.read_bytes()
    py_compile.compile(str(source))
    os.utime(source, (1_700_000_000, 1_700_000_000))
    assert code_archive(tmp_path) == before and before.read_bytes() == held
    source.write_text("ONE = 2\n")
    assert code_archive(tmp_path) != before


def test_workers_need_not_compile_the_code_in_any_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "jobs" / "chainlake"
    package.mkdir(parents=True)
    (package / "one.py").write_text("NAME = 'one'\n")
    monkeypatch.setattr("chainlake.lake.spark.session.PACKAGE", package)
    monkeypatch.setattr("chainlake.lake.spark.session.code_files", lambda: sorted(package.glob("*.py")))
    archive = code_archive(tmp_path)
    program = (
        "import sys, zipimport; importer = zipimport.zipimporter(sys.argv[1]); scope = {};"
        "exec(importer.get_code('one'), scope); print(scope['NAME'], importer.get_filename('one'))"
    )
    for zone in ("UTC", "Asia/Kathmandu"):
        said = subprocess.run(
            [sys.executable, "-c", program, f"{archive}/chainlake"],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert said.split() == ["one", f"{archive}/chainlake/one.pyc"]


def test_nothing_is_written_beside_the_program(spark: SparkSession) -> None:
    spark.range(1).count()
    left = {"spark-warehouse", "metastore_db", "derby.log", "artifacts"}
    assert not [name for name in left if Path(name).exists()]


def test_jars_from_a_folder(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINLAKE_JARS", str(tmp_path / "jars"))
    with pytest.raises(InfrastructureError, match="is not in"):
        jars.delta_jars(home)
    (tmp_path / "jars").mkdir()
    for name in jars.ARTIFACTS:
        (tmp_path / "jars" / name).write_bytes(b"something else")
    with pytest.raises(InfrastructureError, match="not the expected file"):
        jars.delta_jars(home)


def test_no_network_is_one_sentence(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINLAKE_JARS", raising=False)
    monkeypatch.setattr(jars, "_resolve", lambda work: ":: UNRESOLVED DEPENDENCIES ::")
    elsewhere = Home(root=home.root, lake=home.lake, config=home.config, cache=tmp_path / "empty cache")
    with pytest.raises(InfrastructureError, match="could not be fetched") as caught:
        jars.delta_jars(elsewhere)
    assert "CHAINLAKE_JARS" in str(caught.value)
    assert [path.name for path in (tmp_path / "empty cache" / "jars").iterdir()] == [MARKER]


def test_a_damaged_jar_is_fetched_again(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINLAKE_JARS", raising=False)
    good = jars.delta_jars(home)
    cache = tmp_path / "cache"
    (cache / "jars").mkdir(parents=True)
    (cache / "jars" / good[0].name).write_bytes(b"half")

    def resolve(work: Path) -> str:
        (work / "ivy" / "jars").mkdir(parents=True)
        for path in good:
            shutil.copy(path, work / "ivy" / "jars" / f"io.delta_{path.name}")
        return ""

    monkeypatch.setattr(jars, "_resolve", resolve)
    found = jars.delta_jars(Home(root=home.root, lake=home.lake, config=home.config, cache=cache))
    assert [path.read_bytes() for path in found] == [path.read_bytes() for path in good]


def test_the_class_archive_is_used_where_it_is_and_not_needed(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Home(root=home.root, lake=home.lake, config=home.config, cache=tmp_path / "a cache")
    assert cds.java_options(elsewhere, []) == []
    path = cds.archive_path(elsewhere, [])
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert cds.java_options(elsewhere, [])[0] == f'-XX:SharedArchiveFile="{path}"'
    assert cds.archive_path(elsewhere, [Path("other.jar")]) != path
    monkeypatch.setenv("CHAINLAKE_CDS_DUMP", "/x y")
    assert cds.java_options(elsewhere, []) == ['-XX:ArchiveClassesAtExit="/x y"']
