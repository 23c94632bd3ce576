"""``chainlake sql`` on small Delta tables written by delta-rs, through the same entry as a user's."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.cli.main import main
from chainlake.errors import UsageError
from chainlake.lake.records.defined.registered import choose
from chainlake.lake.sql.query import SqlConnection
from chainlake.paths import PROJECT, Home
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.ops import ALL as OPS
from chainlake.schemas.table import TIMESTAMP

T0 = datetime(2013, 10, 7, 13, 30, tzinfo=UTC)
FIELDS = (
    ("event_id", pa.string()),
    ("ts", TIMESTAMP),
    ("type", pa.string()),
    ("ticker", pa.string()),
    ("price", pa.float64()),
)


def event(number: int, price: float) -> dict[str, Any]:
    return {
        "event_id": f"{number:032x}",
        "ts": T0 + timedelta(minutes=number),
        "type": "Bar",
        "ticker": "IBM",
        "price": price,
    }


def write_matches(home: Home, pattern: str, rows: list[dict[str, Any]], version: int = 1) -> None:
    """Rows of {a, b} (b may be None or a list) as the match table of ``pattern``: b is Kleene."""
    names = (MatchName("a", False, FIELDS), MatchName("b", True, FIELDS))
    table = matches_table(MatchShape(pattern, version, "stock", names))
    full = [
        {"match_id": f"{n:032x}", "decision_ts": T0 + timedelta(days=n), "start_ts": T0, "end_ts": T0, **row}
        for n, row in enumerate(rows)
    ]
    write_deltalake(home.table("matches", table.name), pa.Table.from_pylist(full, schema=table.arrow()))


def write_ops(home: Home, name: str, rows: list[dict[str, Any]]) -> None:
    table = OPS[name]
    tail = {"written_at": T0, "run_id": "r"}
    full = [{column: {**tail, **row}.get(column) for column in table.column_names} for row in rows]
    write_deltalake(home.table("ops", name), pa.Table.from_pylist(full, schema=table.arrow()), mode="append")


@pytest.fixture
def filled(home: Home) -> Home:
    write_matches(home, "rise", [{"a": event(1, 10.5), "b": [event(2, 11.0), event(3, 12.0)]}, {"a": event(4, 9.0)}])
    write_matches(home, "my-fall", [{"a": event(5, 8.0), "b": [event(6, 7.0)]}])
    day = {"source": "stock", "day": date(2013, 10, 7), "rows": 3}
    write_ops(home, "event_days", [{**day, "status": "changing", "seq": 1}, {**day, "status": "complete", "seq": 2}])
    return home


def rows(home: Home, sql: str) -> list[tuple[Any, ...]]:
    return SqlConnection(home).query(sql).fetchall()


def test_struct_fields_are_columns(filled: Home) -> None:
    found = rows(filled, "SELECT a.price, b[1].ts, len(b) FROM matches.rise WHERE b IS NOT NULL")
    assert found == [(10.5, T0 + timedelta(minutes=2), 2)]


def test_partitions_odd_folders_and_added_columns(home: Home, tmp_path: Any) -> None:
    """A partitioned table in a folder with wildcards and a quote in its name; newer files have one more column."""
    lake = dataclasses.replace(home, lake=str(tmp_path / "a*b 's"))
    days = [date(2013, 10, 7), date(2013, 10, 8)]
    old = pa.table({"event_id": ["x", "y"], "ts": pa.array([T0, None], TIMESTAMP), "event_date": [days[0], None]})
    write_deltalake(lake.table("events", "s"), old, partition_by=["event_date"])
    new = pa.table({"event_id": ["z"], "event_date": [days[1]], "price": [1.5]})
    write_deltalake(lake.table("events", "s"), new, mode="append", schema_mode="merge")
    found = rows(lake, "SELECT event_id, event_date, price FROM events.s ORDER BY event_id")
    assert found == [("x", days[0], None), ("y", None, None), ("z", days[1], 1.5)]
    assert rows(lake, "SELECT event_id FROM events.s WHERE event_date = DATE '2013-10-08'") == [("z",)]


def test_folders_above_a_table_are_no_values_of_its_columns(home: Home, tmp_path: Any) -> None:
    lake = dataclasses.replace(home, lake=str(tmp_path / "ticker=ZZ" / "event_date=2020-01-01"))
    day = date(2013, 10, 7)
    of = pa.table({"event_id": ["x", "y"], "ticker": ["A", "B"], "event_date": [day, day]})
    write_deltalake(lake.table("events", "s"), of, partition_by=["event_date"])
    found = rows(lake, "SELECT event_id, ticker, event_date FROM events.s ORDER BY event_id")
    assert found == [("x", "A", day), ("y", "B", day)]


def test_a_lake_by_uri_goes_through_arrow(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = Path(filled.lake).as_uri()
    monkeypatch.setenv("CHAINLAKE_LAKE", uri)
    lake = Home.from_env()
    assert "%20" in uri and lake.lake == f"file://{filled.lake}"
    assert rows(lake, "SELECT a.price, b[1].ts FROM matches.rise WHERE b IS NOT NULL") == [
        (10.5, T0 + timedelta(minutes=2))
    ]
    assert rows(lake, "SELECT count(*) FROM matches.all") == [(3,)]


def test_a_table_without_files_has_its_columns(home: Home) -> None:
    write_matches(home, "rise", [])
    found = SqlConnection(home).query("SELECT a.ts, b[1].price, match_id FROM matches.rise")
    assert found.fetchall() == [] and [str(column[1]) for column in found.description][:2] == [
        "TIMESTAMP WITH TIME ZONE",
        "DOUBLE",
    ]


def test_only_the_needed_fields_are_read(filled: Home) -> None:
    plan = rows(filled, "EXPLAIN SELECT a.price FROM matches.rise WHERE a.price < 10")[0][1]
    assert "a.price" in plan and "10" in plan and "decision_ts" not in plan


def test_all_matches_as_maps(filled: Home) -> None:
    found = rows(filled, "SELECT pattern, match_id, decision_ts, events FROM matches.all ORDER BY pattern, match_id")
    assert found == [
        ("my-fall", f"{0:032x}", T0, {"a": [f"{5:032x}"], "b": [f"{6:032x}"]}),
        ("rise", f"{0:032x}", T0, {"a": [f"{1:032x}"], "b": [f"{2:032x}", f"{3:032x}"]}),
        ("rise", f"{1:032x}", T0 + timedelta(days=1), {"a": [f"{4:032x}"]}),
    ]


def test_all_matches_are_none_before_the_first(home: Home) -> None:
    write_ops(home, "event_days", [{"source": "stock", "day": date(2013, 10, 7), "status": "open", "seq": 1}])
    assert rows(home, "SELECT count(*) FROM matches.all") == [(0,)]


def test_current_rows_are_those_of_the_highest_seq(filled: Home) -> None:
    assert rows(filled, "SELECT status, seq FROM ops.current_event_days") == [("complete", 2)]
    assert rows(filled, "SELECT count(*) FROM ops.event_days") == [(2,)]


def test_a_table_without_rows_yet_is_empty_not_unknown(filled: Home) -> None:
    assert rows(filled, "SELECT count(*) FROM ops.plans") == [(0,)]
    assert rows(filled, "SELECT count(*) FROM ops.current_plans") == [(0,)]
    assert rows(filled, "SELECT count(*) FROM models.changes") == [(0,)]


@pytest.mark.slow
def test_joins_ctes_and_odd_names(filled: Home) -> None:
    sql = (
        'WITH f AS (SELECT * FROM matches."my-fall") '
        "SELECT r.a.price - f.a.price FROM f JOIN matches.rise r USING (match_id)"
    )
    assert rows(filled, sql) == [(2.5,)]
    assert rows(filled, "SELECT count(*) FROM MATCHES.Rise") == [(2,)]
    assert "a" in [name for name, *_ in rows(filled, "DESCRIBE matches.rise")]
    shown = {(schema, name) for _, schema, name, *_ in rows(filled, "SHOW ALL TABLES")}
    assert {("matches", "rise"), ("matches", "my-fall"), ("matches", "all"), ("ops", "current_event_days")} <= shown


def test_only_the_mentioned_tables_are_opened(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    plain = SqlConnection._scan
    monkeypatch.setattr(SqlConnection, "_scan", lambda self, *name: opened.append(name) or plain(self, *name))
    rows(filled, "SELECT 'matches.my-fall' FROM matches.rise -- matches.all")
    assert opened == [("matches", "rise")]


@pytest.mark.slow
def test_a_new_table_version_takes_the_name_when_it_has_every_day(filled: Home) -> None:
    write_matches(filled, "rise", [{"a": event(7, 77.0)}], version=2)
    interval = {
        "definition": "pattern/rise", "day": date(2013, 10, 7), "definition_hash": "h", "engine_version": 1,
        "input_fingerprint": "f", "status": "done",
    }  # fmt: skip
    write_ops(filled, "intervals", [{**interval, "table_name": "rise", "seq": 1}])
    assert rows(filled, "SELECT count(*) FROM matches.rise") == [(2,)]
    assert rows(filled, 'SELECT count(*) FROM matches."rise/v2"') == [(1,)]
    write_ops(filled, "intervals", [{**interval, "table_name": "rise/v2", "seq": 2}])
    assert rows(filled, "SELECT a.price FROM matches.rise") == [(77.0,)]
    assert rows(filled, "SELECT count(*) FROM matches.all WHERE pattern = 'rise'") == [(1,)]


def test_registered_version() -> None:
    def row(table: str, day: int, status: str, seq: int) -> dict[str, Any]:
        return {"table_name": table, "day": date(2013, 10, day), "status": status, "seq": seq}

    old = [row("p", 7, "done", 1), row("p", 8, "done", 1)]
    assert choose("p", [1, 2], [*old, row("p/v2", 7, "done", 2)]) == "p"
    assert choose("p", [1, 2], [*old, row("p/v2", 7, "done", 2), row("p/v2", 8, "publishing", 2)]) == "p"
    assert choose("p", [1, 2], [*old, row("p/v2", 7, "done", 2), row("p/v2", 8, "done", 2)]) == "p/v2"
    assert choose("p", [1, 2], [*old, row("matches.p/v2", 7, "done", 2), row("p/v2", 8, "done", 2)]) == "p/v2"


def test_a_name_comes_back_to_a_table_only_when_its_days_are_done_anew() -> None:
    def row(table: str, day: int, status: str = "done") -> dict[str, Any]:
        return {"table_name": table, "day": date(2013, 10, day), "status": status}

    edited = [row("p", 7), row("p", 8), row("p/v2", 7), row("p/v2", 8)]
    assert choose("p", [1, 2], edited) == "p/v2"
    # The edit is taken back: what p held of day 8 before the edit does not count.
    assert choose("p", [1, 2], [*edited, row("p", 7)]) == "p/v2"
    assert choose("p", [1, 2], [*edited, row("p", 7), row("p", 8, "publishing")]) == "p/v2"
    assert choose("p", [1, 2], [*edited, row("p", 7), row("p", 8)]) == "p"
    # Half an edit, taken back, and made again: the first half is to be done again.
    half = [row("p", 7), row("p", 8), row("p/v2", 7), row("p", 7), row("p/v2", 8)]
    assert choose("p", [1, 2], half) == "p"
    assert choose("p", [1, 2], [*half, row("p/v2", 7)]) == "p/v2"
    assert choose("p", [2], []) == "p/v2" and choose("p", [], []) == "p"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM matches.rose", ["no table matches.rose", "Did you mean matches.rise?", "ops.event_days"]),
        ("SELECT * FROM rise", ["needs its schema", "matches.rise"]),
        ("SELECT * FROM nowhere", ["no table nowhere", "matches.rise"]),
        ("SELECT * FROM other.rise", ["no table other.rise", "matches.rise"]),
        ("SELECT * FROM ops.current_nothing", ["no table ops.current_nothing"]),
        ("SELECT * FROM matchs.rise", ["no table matchs.rise", "Did you mean matches.rise?"]),
        ("SELECT prize FROM matches.rise", ["no column prize", "a(event_id, ts, type, ticker, price)", "b[]("]),
        ("SELECT prize", ["no column prize"]),
        ("SELECT r.prize FROM matches.rise r", ["no column prize", "match_id"]),
        ("SELECT a.prize FROM matches.rise", ["no field prize", "price"]),
        ("SELECT b.price FROM matches.rise", ["b[1].price"]),
        ("SELEC 1", ["syntax error", "^"]),
        ("SELECT 1; SELECT 2", ["one statement"]),
        ("DROP VIEW matches.rise", ["only reads", "DROP"]),
        ("INSERT INTO matches.rise VALUES (1)", ["only reads", "INSERT"]),
        ("SELECT no_such_function(1)", ["error: Scalar Function with name no_such_function does not exist", "^"]),
        ("SELECT foo('x') FROM matches.rise", ["error: Scalar Function with name foo does not exist", "^"]),
        ("SELECT * FROM foo('x')", ["error: Table Function with name foo does not exist", "^"]),
        ("SELECT 'a'::footype", ["error: Type with name footype does not exist", "^"]),
        ("SELECT * FROM cat.other.rise", ["no table cat.other.rise"]),
        ("USE cat", ["only reads"]),
    ],
)
def test_mistakes_say_what_exists(filled: Home, sql: str, says: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", sql]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    for part in says:
        assert part in shown.err
    assert "hint: ." not in shown.err
    assert "Traceback" not in shown.err and len(shown.err.strip().splitlines()) <= 4


def test_an_empty_lake_says_so(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for table in ("matches.rise", "matches.all", "ops.runs"):
        assert main(["sql", f"SELECT * FROM {table}"]) == 2
        assert "is empty" in capsys.readouterr().err
    assert main(["sql", "SELECT 1 AS one", "--format", "csv"]) == 0


def test_a_damaged_table_is_infrastructure(filled: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (Path(filled.table("matches", "rise")) / "_delta_log").glob("*.json"):
        path.write_text("not a log")
    assert main(["sql", "SELECT * FROM matches.rise"]) == 5
    said = capsys.readouterr().err
    assert (
        "table matches.rise is damaged: _delta_log/" in said and "chainlake check --table matches.rise --repair" in said
    )


def test_damage_that_shows_when_rows_are_fetched_is_infrastructure(
    filled: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import duckdb

    class Half:
        """A result whose rows end in the middle."""

        description = (("a",),)

        def fetchmany(self, _: int) -> list[Any]:
            raise duckdb.InvalidInputException("No magic bytes found at end of file '/lake/matches/p/x.parquet'")

    monkeypatch.setattr(SqlConnection, "query", lambda self, sql: Half())
    assert main(["sql", "SELECT * FROM matches.p"]) == 5
    assert "a file of the query cannot be read: No magic bytes" in capsys.readouterr().err


def test_formats(filled: Home, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT decision_ts, a, NULL AS nothing FROM matches.rise WHERE a.price < 10"
    a = {"event_id": f"{4:032x}", "ts": "2013-10-07T13:34:00Z", "type": "Bar", "ticker": "IBM", "price": 9.0}
    assert main(["sql", sql, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"decision_ts": "2013-10-08T13:30:00Z", "a": a, "nothing": None}]
    assert main(["sql", "SELECT 'nan'::DOUBLE x, ['inf'::DOUBLE, 1] y", "--format", "json"]) == 0
    assert '{"x": null, "y": [null, 1.0]}' in capsys.readouterr().out
    assert main(["sql", sql, "--format", "csv"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header == "decision_ts,a,nothing"
    assert line.startswith("2013-10-08T13:30:00Z,") and line.endswith(",")
    assert main(["sql", sql]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("decision_ts           a") and lines[-1] == "(1 row)"
    assert "NULL" in lines[2]


def test_times_are_utc_whatever_the_zone(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        sql = "SELECT date_trunc('day', decision_ts), hour(decision_ts) FROM matches.rise WHERE a.price < 10"
        assert rows(filled, sql) == [(datetime(2013, 10, 8, tzinfo=UTC), 13)]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_no_statement_lists_the_tables(filled: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql"]) == 0
    listed = capsys.readouterr().out
    assert 'matches."my-fall"' in listed and "matches.all" in listed and "ops.current_event_days" in listed


@pytest.mark.slow
def test_starts_fast_and_without_spark(filled: Home) -> None:
    code = (
        "import sys; from chainlake.cli.main import main; "
        "rc = main(['sql', 'SELECT count(*) AS n FROM matches.rise', '--format', 'csv']); "
        "assert not {'pyspark', 'great_expectations', 'pandas', 'airflow'} & set(sys.modules), sorted(sys.modules); "
        "sys.exit(rc)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "n\n2\n", "")


def test_the_query_is_one_statement_of_reading(filled: Home, tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="CREATE"):
        SqlConnection(filled).query("CREATE TABLE matches.x AS SELECT 1")
    target = tmp_path / "out.csv"
    SqlConnection(filled).query(f"COPY (SELECT a.price FROM matches.rise ORDER BY 1) TO '{target}'")
    assert target.read_text().split() == ["price", "9.0", "10.5"]


def test_a_column_keeps_its_meaning_where_a_flat_name_is_like_it() -> None:
    import duckdb

    from chainlake.lake.sql.flat import flat_select

    event = pa.struct([("ts", pa.int64())])
    schema = pa.schema([("a", pa.list_(event)), ("a_first", event), ("A_count", pa.int64()), ("c", event)])
    rows = {"a": [{"ts": 1}, {"ts": 3}], "a_first": {"ts": 2}, "A_count": 7, "c": {"ts": 9}}
    with duckdb.connect() as con:
        con.register("t", pa.Table.from_pylist([rows], schema=schema))
        con.execute(f"CREATE VIEW v AS {flat_select('t', schema)}")
        found = con.execute("SELECT * FROM v")
        names = [column[0] for column in found.description or ()]
        assert dict(zip(names, found.fetchall()[0], strict=True)) == {
            "a_count_": 2, "a_first_ts": 1, "a_last_ts": 3, "a_first_ts_": 2, "A_count": 7, "c_ts": 9
        }  # fmt: skip


def test_a_flat_row_per_match(home: Home) -> None:
    rows = [{"a": event(0, 10.0), "b": [event(1, 9.0), event(2, 8.0)]}, {"a": event(3, 7.0), "b": None}]
    write_matches(home, "dip", rows)
    lake = SqlConnection(home)
    found = lake.query(
        "SELECT a_price, a_ticker, b_count, b_first_price, b_last_price, b_last_ts FROM matches.dip_flat ORDER BY a_ts"
    ).fetchall()
    assert [row[:5] for row in found] == [(10.0, "IBM", 2, 9.0, 8.0), (7.0, "IBM", None, None, None)]
    assert found[0][5] == T0 + timedelta(minutes=2)
    described = lake.query("SELECT * FROM matches.dip_flat").description or ()
    assert [column[0] for column in described][:4] == ["match_id", "decision_ts", "start_ts", "end_ts"]
    assert len(described) == 4 + 5 + 1 + 2 * 5
    with pytest.raises(UsageError, match="there is no table matches.dap_flat"):
        lake.query("SELECT * FROM matches.dap_flat")
