"""Retiring a definition: refused while its file is there; rows kept or dropped; to do again when it is back."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from chainlake.cli.main import main
from chainlake.errors import InputError, UsageError
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.upkeep.recorded import recorded_days
from chainlake.operations import retire as retiring
from chainlake.operations.retire import retire
from chainlake.paths import Home
from chainlake.schemas.models import CHANGES
from chainlake.schemas.table import Table
from tests.lake.appending import append_arrow
from tests.lake.test_publish import D1, D2, TABLE, change_row, definition, match

pytestmark = pytest.mark.slow


@pytest.fixture
def published(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Pattern p with two table versions, and models m and n."""
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(home.root / "config"))
    (home.root / "config").mkdir(exist_ok=True)
    fill(home, TABLE, [match(1, D1), match(2, D2)])
    fill(home, replace(TABLE, name="p/v2"), [match(1, D1)])
    fill(home, CHANGES, [change_row(D1, 1.0), {**change_row(D1, 2.0), "model": "n"}])
    for name, table in (("pattern/p", "matches.p"), ("model/m", "models.changes"), ("model/n", "models.changes")):
        ops.append(home, "intervals", [interval(name, table, day) for day in (D1, D2)], "r")
    return replace(home, config=home.root / "config")


def fill(home: Home, table: Table, rows: list[dict[str, Any]]) -> None:
    tables.ensure_table(home, table)
    append_arrow(home, table, pa.Table.from_pylist(rows, schema=table.arrow()), app="a", base_version=0, mark="m")


def interval(name: str, table: str, day: date) -> dict[str, Any]:
    return {"definition": name, "day": day, "table_name": table, "definition_hash": "h", "engine_version": 1,
            "input_fingerprint": "f", "status": "done", "rows": 1, "published_version": 1}  # fmt: skip


def marked(home: Home, name: str) -> list[tuple[str, int, str]]:
    return [(r["status"], r["rows"], r["reason"]) for r in ops.current(home, "intervals", definition=name)]


def test_refused_while_the_file_is_there(published: Home) -> None:
    file = published.config / "patterns" / "p.sase"
    file.parent.mkdir(parents=True)
    file.write_text("PATTERN")
    with pytest.raises(InputError, match="file is still there"):
        retire(published, "p", drop=True, run_id="r")
    assert [status for status, _, _ in marked(published, "pattern/p")] == ["done", "done"]
    assert tables.exists(published, "matches", "p")
    file.unlink()
    assert retire(published, "p", drop=False, run_id="r")["days"] == 2
    assert marked(published, "pattern/p") == [("retired", 1, "retired, rows kept")] * 2
    assert len(tables.arrow(published, "matches", "p")) == 2


def test_dropping_a_pattern_and_a_model(published: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retire", "pattern/p", "--drop"]) == 0
    assert "2 days marked, matches.p/v2, matches.p removed" in capsys.readouterr().out
    assert not Path(published.table("matches", "p")).exists()
    assert marked(published, "pattern/p") == [("retired", 0, "retired, rows dropped")] * 2
    found = retire(published, "model/m", drop=True, run_id="r")
    assert found["dropped"] == ["1 rows of models.changes"]
    assert tables.arrow(published, "models", "changes")["model"].to_pylist() == ["n"]
    assert [status for status, _, _ in marked(published, "model/n")] == ["done", "done"]
    # Stopped halfway, it can be called again.
    assert retire(published, "model/m", drop=True, run_id="r") == {"definition": "model/m", "days": 0, "dropped": []}


def test_killed_before_the_rows_are_gone_the_rows_are_noted(published: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day whose publishing was on its way has no number of rows yet; its rows may have come."""
    ops.append(published, "intervals", [{**interval("pattern/p", "p", D2), "status": "publishing", "rows": None}], "r")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(retiring, "_drop", killed)
        with pytest.raises(KeyboardInterrupt):
            retire(published, "p", drop=True, run_id="r")
    assert {reason for _, _, reason in marked(published, "pattern/p")} == {"retired, rows kept"}
    assert ("pattern/p", D2) in recorded_days(published)["p"]
    assert retire(published, "p", drop=True, run_id="r")["dropped"] == ["matches.p/v2", "matches.p"]
    assert marked(published, "pattern/p") == [("retired", 0, "retired, rows dropped")] * 2
    assert not recorded_days(published)["p"]


def test_what_was_never_published_or_is_not_unique(published: Home) -> None:
    with pytest.raises(UsageError, match="nothing was ever published as 'q'") as caught:
        retire(published, "q", drop=False, run_id="r")
    assert "model/m, model/n, pattern/p" in str(caught.value.hint)
    ops.append(published, "intervals", [interval("pattern/m", "matches.m", D1)], "r")
    with pytest.raises(UsageError, match="'m' is model/m and pattern/m"):
        retire(published, "m", drop=False, run_id="r")


def test_a_definition_that_is_back_is_to_do(published: Home) -> None:
    retire(published, "p", drop=False, run_id="r")
    rows = status_rows(published, [definition()])
    assert [(row.day, row.state) for row in rows] == [(D1, "stale"), (D2, "stale")]
