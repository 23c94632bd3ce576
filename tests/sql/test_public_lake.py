"""The public ``Lake``: reads by SQL, tells states and changes, of the installation that was asked for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import chainlake as cl
from chainlake.days import Days
from chainlake.errors import UsageError
from chainlake.lake.records.runs import phase
from chainlake.paths import Home


def test_a_lake_of_a_folder_is_not_that_of_the_environment(home: Home, tmp_path: Path) -> None:
    with phase(home, "here", source="stock", step="ingest", phase="ingest", days=Days.one(date(2025, 10, 1))):
        pass
    here, other = cl.Lake.open(), cl.Lake.open(tmp_path / "other")
    assert here.sql("SELECT run_id FROM ops.runs").to_pylist() == [{"run_id": "here"}]
    assert "ops.runs" in here.tables()
    with pytest.raises(UsageError, match="is empty"):
        other.sql("SELECT * FROM ops.runs")
    assert other.tables() == []
    assert other.home.root == tmp_path / "other"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("statement", ["SELECT run_id FROM ops.runs", "SHOW TABLES", "EXPLAIN SELECT * FROM ops.runs"])
def test_nothing_is_warned_of(home: Home, statement: str) -> None:
    with phase(home, "here", source="stock", step="ingest", phase="ingest", days=Days.one(date(2025, 10, 1))):
        pass
    assert cl.Lake.open().sql(statement).num_rows


def test_an_error_while_rows_come_is_explained(home: Home) -> None:
    with pytest.raises(UsageError):
        cl.Lake.open().sql("SELECT CAST(range::VARCHAR || 'x' AS INT) FROM range(9)")


def test_status_is_the_view(home: Home) -> None:
    lake = cl.Lake.open()
    assert lake.status().schema.names == lake.sql("SELECT * FROM ops.status").schema.names


def test_a_statement_that_writes_is_refused(home: Home, tmp_path: Path) -> None:
    lake, file = cl.Lake.open(), tmp_path / "rows.csv"
    with pytest.raises(UsageError):
        lake.sql("CREATE TABLE t AS SELECT 1")
    with pytest.raises(UsageError):
        lake.sql(f"COPY (SELECT 1) TO '{file}'", safe=True)
    assert not file.exists()


def test_changes_of_a_table_without_a_feed_are_refused(home: Home) -> None:
    with pytest.raises(UsageError, match="there is no table"):
        cl.Lake.open().changes("matches.nothing", 0)
