"""``sql --safe``: the tables of the lake and nothing else, the same rows, in bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.errors import ChainlakeError, InfrastructureError, UsageError
from chainlake.lake.sql import safe
from chainlake.lake.sql.query import SqlConnection
from chainlake.paths import PROJECT, Home

pytestmark = pytest.mark.slow

T0 = datetime(2024, 3, 1, tzinfo=UTC)


@pytest.fixture
def filled(home: Home) -> Home:
    """A partitioned table with a null day, an odd day's folder, a struct, and a column that older files lack."""
    days = [date(2024, 3, 1), date(2024, 3, 2), None]
    first = pa.table(
        {
            "event_id": ["a", "b", "c"],
            "ts": pa.array([T0 + timedelta(microseconds=n) for n in range(3)], pa.timestamp("us", tz="UTC")),
            "event_date": pa.array(days, pa.date32()),
            "down": [{"price": 1.5, "names": ["x"]}, None, {"price": None, "names": []}],
        }
    )
    write_deltalake(home.table("events", "s"), first, partition_by=["event_date"])
    second = pa.table({"event_id": ["d"], "event_date": [days[0]], "volume": [7]})
    write_deltalake(home.table("events", "s"), second, mode="append", schema_mode="merge")
    write_deltalake(home.table("quarantine", "s"), pa.table({"k": ["one two"], "n": [1]}), partition_by=["k"])
    return home


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM events.s ORDER BY event_id",
        "SELECT event_id, down.price FROM events.s WHERE event_date = DATE '2024-03-01' ORDER BY ALL",
        "SELECT event_id FROM events.s WHERE event_date IS NULL",
        "SELECT event_date, count(*), sum(volume) FROM events.s GROUP BY ALL ORDER BY ALL",
        "SELECT event_id FROM events.s WHERE ts >= TIMESTAMPTZ '2024-03-01 00:00:00.000001+00' ORDER BY ALL",
        "SELECT * FROM quarantine.s WHERE k = 'one two'",
        "DESCRIBE events.s",
        "SUMMARIZE quarantine.s",
        "SHOW ALL TABLES",
        "WITH e AS (FROM events.s) SELECT count(*) FROM e JOIN e AS f USING (event_id)",
        "SELECT count(*) FROM ops.current_runs",
    ],
)
def test_a_safe_statement_finds_the_same_rows(sql: str, filled: Home) -> None:
    def rows(lake: SqlConnection) -> list[tuple[Any, ...]]:
        return [row for row in lake.query(sql).fetchall() if "SHOW" not in sql or row[1] in ("events", "quarantine")]

    assert rows(SqlConnection(filled, safe=True)) == rows(SqlConnection(filled)) != []


def test_times_that_a_log_cuts_to_milliseconds_are_found(filled: Home) -> None:
    log = Path(filled.table("events", "s")) / "_delta_log" / f"{0:020}.json"
    cut = []
    for line in log.read_text().splitlines():
        action = json.loads(line)
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            for bound in ("minValues", "maxValues"):
                stats[bound]["ts"] = "2024-03-01T00:00:00.000Z"
            action["add"]["stats"] = json.dumps(stats)
        cut.append(json.dumps(action))
    log.write_text("\n".join(cut) + "\n")
    sql = "SELECT event_id FROM events.s WHERE ts > TIMESTAMPTZ '2024-03-01 00:00:00+00' ORDER BY ALL"
    assert SqlConnection(filled, safe=True).query(sql).fetchall() == [("b",), ("c",)]


secret_of_python = "not for statements"

ESCAPES = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_csv_auto(['{file}'], all_varchar = true)",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_ndjson_objects('{file}')",
    "SELECT * FROM read_parquet('{parquet}')",
    "SELECT * FROM parquet_metadata('{parquet}')",
    "SELECT * FROM parquet_schema('{parquet}')",
    "SELECT * FROM '{parquet}'",
    "FROM '{file}'",
    'FROM "{file}"',
    "SELECT * FROM '{folder}/*.csv'",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM read_duckdb('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM query('FROM read_text(''{file}'')')",
    "SELECT * FROM query_table('{file}')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{file}'')'))",
    "WITH t AS (SELECT * FROM read_text('{file}')) SELECT * FROM t",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "SELECT * FROM events.s WHERE event_id IN (SELECT content FROM read_text('{file}'))",
    "SELECT event_id FROM events.s UNION ALL FROM read_text('{file}')",
    "SELECT * FROM 'https://127.0.0.1:9/x.parquet'",
    "SELECT * FROM read_csv('s3://bucket/x.csv')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://bucket', 's3')",
    "SELECT getenv('HOME')",
    "SELECT * FROM secret_of_python",
    "SELECT * FROM os",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM enable_logging(storage = 'file', storage_path = '{folder}/made')",
    "SELECT * FROM enable_profiling(save_location = '{folder}/made')",
    "COPY (SELECT 1) TO '{folder}/made'",
    "COPY events.s TO '{folder}/made' (FORMAT parquet)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/made'",
    "EXPLAIN SELECT 1",
    "EXPORT DATABASE '{folder}/made'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/made' AS other",
    "ATTACH '{file}' (TYPE sqlite)",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}'",
    "FORCE INSTALL spatial FROM community",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET GLOBAL memory_limit = '100GB'",
    "SET VARIABLE x = 1",
    "RESET lock_configuration",
    "SET allowed_directories = ['/']",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW events.s AS SELECT 1",
    "CREATE MACRO f() AS TABLE FROM read_text('{file}')",
    "CREATE SECRET s (TYPE s3)",
    "CREATE TEMP TABLE t AS FROM events.s",
    "INSERT INTO events.s SELECT * FROM events.s",
    "DELETE FROM events.s",
    "UPDATE events.s SET event_id = 'x'",
    "DROP VIEW events.s",
    "CALL pragma_version()",
    "CALL enable_logging(storage = 'file', storage_path = '{folder}/made')",
    "PREPARE p AS SELECT * FROM read_text('{file}')",
    "EXECUTE p",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "SELECT 1; COPY (SELECT 1) TO '{folder}/made'",
    "SELECT 1;; SET lock_configuration = false; SELECT 2",
    "/* ; */ SELECT 1 -- ;\n; ATTACH '{folder}/made'",
    "",
    ";",
]


@pytest.mark.parametrize("sql", ESCAPES)
def test_nothing_but_tables_is_reached(sql: str, filled: Home) -> None:
    folder = filled.root / "elsewhere"
    folder.mkdir()
    file = folder / "secret.csv"
    file.write_text("word\nchainlake-secret\n")
    parquet = next(Path(filled.table("events", "s")).rglob("*.parquet"))
    before = sorted(filled.root.rglob("*"))
    lake = SqlConnection(filled, safe=True)
    with pytest.raises(ChainlakeError) as refused:
        found = lake.query(sql.format(file=file, folder=folder, parquet=parquet)).fetchall()
        pytest.fail(f"it gave {found}")
    assert "chainlake-secret" not in str(refused.value)
    assert sorted(filled.root.rglob("*")) == before
    assert lake.query("SELECT count(*) FROM events.s").fetchall() == [(4,)]
    with pytest.raises(duckdb.Error):
        lake.con.execute("SET enable_external_access = true")


def test_without_safe_a_statement_has_the_users_rights(filled: Home) -> None:
    """The control: what is refused above is there to be had."""
    file = filled.root / "mine.csv"
    file.write_text("word\nmine\n")
    assert SqlConnection(filled).query(f"SELECT * FROM read_csv('{file}')").fetchall() == [("mine",)]
    SqlConnection(filled).query(f"COPY (SELECT 1) TO '{filled.root}/made'")
    assert (filled.root / "made").exists()


def test_a_table_that_arrow_would_read_wrongly_is_refused(home: Home) -> None:
    """Deletion vectors: Arrow would show rows that were deleted."""
    write_deltalake(home.table("events", "s"), pa.table({"n": [1]}))
    log = Path(home.table("events", "s")) / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            features = ["deletionVectors"]
            line["protocol"] = {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
            }  # fmt: skip
    log.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    with pytest.raises(InfrastructureError, match="deletionVectors"):
        SqlConnection(home, safe=True).query("SELECT * FROM events.s").fetchall()


def test_a_long_statement_is_refused_before_it_is_parsed(filled: Home) -> None:
    begin = time.monotonic()
    with pytest.raises(UsageError, match="more than the 100000 characters"):
        SqlConnection(filled, safe=True).query("SELECT " + "/*" * 200_000)
    assert time.monotonic() - begin < 5


def test_a_statement_is_interrupted(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe, "SECONDS", 1.0)
    lake = SqlConnection(filled, safe=True)
    with pytest.raises(UsageError, match="took longer than the 1 s"):
        lake.query("WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t").fetchall()
    assert lake.query("SELECT count(*) FROM events.s").fetchall() == [(4,)]


def command(home: Home, sql: str, *, seconds: float | None = None) -> Iterator[Any]:
    """Exit code, output and errors of ``sql --safe`` as a program, with another time limit if given."""
    code = "import sys; from chainlake.lake.sql import safe; from chainlake.cli.main import main\n"
    if seconds is not None:
        code += f"safe.SECONDS, safe._GRACE_S = {seconds}, 1.0\n"
    code += "sys.exit(main(sys.argv[1:]))"
    call = [sys.executable, "-c", code, "sql", "--safe", "--format", "csv", sql]
    done = subprocess.run(call, cwd=PROJECT, capture_output=True, text=True, env=os.environ, timeout=120)
    return iter((done.returncode, done.stdout, done.stderr))


def test_the_command_prints_rows_and_refusals(filled: Home) -> None:
    assert tuple(command(filled, "SELECT event_id FROM events.s ORDER BY ALL")) == (0, "event_id\na\nb\nc\nd\n", "")
    code, said, error = command(filled, "SELECT * FROM read_text('/etc/passwd')")
    assert (code, said) == (2, "") and "file system operations are disabled" in error and "Traceback" not in error
    code, said, error = command(filled, "COPY (SELECT 1) TO '/tmp/made'")
    assert code == 2 and "with --safe only tables can be read" in error


def test_one_call_that_nothing_interrupts_is_ended(filled: Home) -> None:
    begin = time.monotonic()
    # It takes minutes, and hardly any memory, so that no other limit comes first.
    texts = "repeat('xz', 3000000), repeat('xy', 3000000)"
    code, _, error = command(filled, f"SELECT jaro_winkler_similarity({texts})", seconds=3.0)
    assert code == 2 and "took longer than the 3 s" in error
    assert time.monotonic() - begin < 60


def test_memory_is_bounded(filled: Home) -> None:
    for sql in ("SELECT list(i) FROM range(1000000000) t(i)", "SELECT length(repeat('x', 4200000000))"):
        code, _, error = command(filled, sql)
        assert code == 2 and "Traceback" not in error and "emory" in error, error


def test_the_process_of_its_own_needs_no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """``jobs`` is a module of a checkout's folder only; an installed package has none."""
    started: list[list[str]] = []

    def popen(command: list[str], **_: Any) -> subprocess.Popen[bytes]:
        started.append(command)
        raise OSError("not in a test")

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(OSError, match="not in a test"):
        safe.run_confined(["sql", "SELECT 1"])
    assert started == [[sys.executable, "-m", "chainlake", "sql", "SELECT 1"]]
