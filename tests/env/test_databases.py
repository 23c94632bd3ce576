"""Databases that a process keeps open: nothing of one use shows in the next, and nobody shares what spills."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from chainlake.env.databases import bounded, cursor

ROWS = pa.table({"x": [1, 2, 3]})
LEFT = ("SELECT * FROM rows", "SELECT * FROM made", "SELECT twice(1)")


def used(con: duckdb.DuckDBPyConnection) -> None:
    """Leave behind what a connection can leave behind."""
    con.register("rows", ROWS)
    con.execute("CREATE TEMP TABLE made AS SELECT * FROM rows")
    con.execute("CREATE TEMP MACRO twice(x) AS 2 * x")
    con.execute("SET TimeZone = 'Asia/Tokyo'")
    assert con.sql("SELECT twice(count(*)) FROM made").fetchall() == [(6,)]


def nothing_of_it(con: duckdb.DuckDBPyConnection, zone: str | None) -> None:
    for query in LEFT:
        with pytest.raises(duckdb.CatalogException):
            con.sql(query)
    assert con.sql("SELECT current_setting('TimeZone')").fetchall() != [("Asia/Tokyo",)]
    if zone is not None:
        assert con.sql("SELECT current_setting('TimeZone')").fetchall() == [(zone,)]


def test_nothing_of_one_cursor_shows_in_another() -> None:
    with cursor() as first, cursor() as second:
        used(first)
        nothing_of_it(second, None)
    with cursor() as third:
        nothing_of_it(third, None)
        third.register("rows", ROWS.slice(1))
        assert third.sql("SELECT * FROM rows").fetchall() == [(2,), (3,)]


def test_a_database_is_used_again_by_one_at_a_time(tmp_path: Path) -> None:
    seen = []
    for number in range(3):
        # A quote and a space, as in the path of a user.
        with bounded(2, tmp_path / f"it's {number}") as con:
            nothing_of_it(con, "UTC")
            seen.append(con.sql("SELECT current_setting('temp_directory')").fetchall()[0][0])
            with bounded(2, tmp_path / "beside") as other:
                used(other)
                nothing_of_it(con, "UTC")
    assert seen == [str(tmp_path / f"it's {number}") for number in range(3)]
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_goes_to_the_folder_and_that_database_is_not_used_again(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with bounded(1, tmp_path / name) as con:
            con.execute("SET memory_limit = '12MB'")
            con.execute("CREATE TEMP TABLE wide AS SELECT range::VARCHAR || repeat('x', 90) AS s FROM range(150000)")
            assert con.sql("SELECT count(DISTINCT s) FROM wide").fetchall() == [(150_000,)]
            assert (tmp_path / name).is_dir()
        with bounded(1, tmp_path / "after") as con:
            assert con.sql("SELECT current_setting('memory_limit')").fetchall() == [("953.6 MiB",)]


def test_a_database_in_which_something_failed_is_not_used_again(tmp_path: Path) -> None:
    def limit() -> str:
        with bounded(1, tmp_path / "asked") as con:
            return str(con.sql("SELECT current_setting('memory_limit')").fetchall()[0][0])

    usual = limit()
    with pytest.raises(duckdb.Error), bounded(1, tmp_path / "failed") as con:
        con.execute("SET memory_limit = '30MB'")
        con.sql("SELECT error('broken')").fetchall()
    assert limit() == usual
