"""``ops.status`` and the views that show which definition the rows of a day came from."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.cli.main import main
from chainlake.errors import UsageError
from chainlake.lake.records import ops
from chainlake.lake.sql.query import SqlConnection
from chainlake.paths import Home
from chainlake.schemas.models import METRICS
from tests.sql.test_sql import event, write_matches
from tests.steps.history import configured, day, deliver, pattern, readings

pytestmark = pytest.mark.slow

D0 = date(2013, 10, 7)


def note(home: Home, n: int, status: str, definition_hash: str, **more: Any) -> None:
    row = {"definition": "pattern/rise", "day": D0 + timedelta(days=n), "status": status, "table_name": "matches.rise"}
    known = {"definition_hash": definition_hash, "engine_version": 1, "input_fingerprint": "f"}
    ops.append(home, "intervals", [{**row, **known, **more}], "r")


@pytest.fixture
def edited(home: Home) -> Home:
    """Four days with a match each: done, done anew after an edit, failed after the edit, cut off while publishing."""
    write_matches(home, "rise", [{"a": event(n, 1.0)} for n in range(5)])
    for n in range(4):
        note(home, n, "done", "old", published_version=n)
    note(home, 1, "publishing", "new")
    note(home, 1, "done", "new", published_version=7)
    note(home, 2, "failed", "new")
    note(home, 3, "publishing", "new")
    return home


def test_rows_show_the_definition_their_day_came_from(edited: Home) -> None:
    found = SqlConnection(edited).query(
        "SELECT day, definition_hash, published_version, interrupted FROM matches.rise_origin ORDER BY day"
    )
    assert found.fetchall() == [
        (D0, "old", 0, False),
        (D0 + timedelta(days=1), "new", 7, False),
        (D0 + timedelta(days=2), "old", 2, False),  # what failed published nothing
        (D0 + timedelta(days=3), "old", 3, True),
        (D0 + timedelta(days=4), None, None, False),
    ]
    columns = [
        column[0] for column in SqlConnection(edited).query("SELECT * FROM matches.Rise_Origin").description or ()
    ]
    assert columns[:3] == ["match_id", "decision_ts", "start_ts"] and columns[-1] == "interrupted"


def test_days_of_another_version_of_the_table_do_not_count(edited: Home) -> None:
    note(edited, 0, "done", "wide", table_name="matches.rise/v2")
    found = SqlConnection(edited).query("SELECT definition_hash FROM matches.rise_origin WHERE day = DATE '2013-10-07'")
    assert found.fetchall() == [("old",)]


def test_models_have_it_too(home: Home) -> None:
    row = {"model": "m", "group_id": "", "day": D0, "rounds": 3, "rounds_skipped": 0}
    full = [{column.name: row.get(column.name) for column in METRICS.columns}]
    table = pa.Table.from_pylist(full, schema=METRICS.arrow())
    write_deltalake(home.table("models", "metrics"), table)
    note(home, 0, "done", "h", definition="model/m", table_name="models.changes")
    assert SqlConnection(home).query("SELECT model, day, definition_hash FROM models.metrics_origin").fetchall() == [
        ("m", D0, "h")
    ]


def test_there_is_no_origin_of_what_does_not_exist(edited: Home) -> None:
    for name in ("matches.fall_origin", "models.state_origin", "ops.intervals_origin"):
        with pytest.raises(UsageError, match=name):
            SqlConnection(edited).query(f"SELECT * FROM {name}")


def test_one_query_shows_what_status_does(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = configured(home, near=pattern())
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(made.config))
    deliver(made, {n: readings(n) for n in range(3)})
    note(made, 0, "done", "old", definition="pattern/near", day=day(1), table_name="matches.near", rows=2)
    assert main(["sql", "--format", "csv", "SELECT definition, day, state, rows FROM ops.status ORDER BY ALL"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "definition,day,state,rows",
        "model/slope,2025-03-02,missing,",
        "model/slope,2025-03-03,missing,",
        "pattern/near,2025-03-01,missing,",
        "pattern/near,2025-03-02,stale,2",
        "pattern/near,2025-03-03,missing,",
    ]
    assert main(["sql"]) == 0
    assert "ops.status" in capsys.readouterr().out
