"""Operations logs: numbering, current rows, concurrent writers, runs."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest

from chainlake.days import Days
from chainlake.errors import InputError
from chainlake.lake.records import ops, runs
from chainlake.paths import Home

pytestmark = pytest.mark.slow

DAY = date(2025, 10, 1)
NOW = datetime(2025, 10, 2, tzinfo=UTC)


def _day(source: str, day: date, **more: object) -> dict[str, object]:
    return {"source": source, "day": day, "status": "complete", "rows": 1, **more}


def test_current_row_is_the_one_with_the_highest_seq(home: Home) -> None:
    ops.append(home, "event_days", [_day("a", DAY), _day("b", DAY)], "r1")
    ops.append(home, "event_days", [_day("a", DAY, status="changing", rows=None), _day("a", DAY, rows=7)], "r2")
    rows = ops.current(home, "event_days", source="a")
    assert [(row["seq"], row["rows"], row["run_id"]) for row in rows] == [(3, 7, "r2")]
    assert [row["seq"] for row in ops.current(home, "event_days")] == [3, 1]


def test_no_table_and_no_rows(home: Home) -> None:
    assert ops.current(home, "intervals") == []
    ops.append(home, "intervals", [], "r")
    assert ops.current(home, "intervals") == []


def test_maps_and_dates_come_back(home: Home) -> None:
    row = {"source": "a", "path": "x.csv", "file_id": "f", "load_id": "l", "path_fields": {"date": "2025-10-01"}}
    ops.append(home, "files", [{**row, "file_date": DAY}], "r")
    (back,) = ops.current(home, "files", source="a")
    assert dict(back["path_fields"]) == {"date": "2025-10-01"} and back["file_date"] == DAY


def test_a_table_made_before_a_column_was_defined_is_read_and_extended(home: Home) -> None:
    from deltalake import DeltaTable, write_deltalake

    old = {"source": "a", "path": "old.csv", "file_id": "f", "load_id": "l", "seq": 1, "written_at": NOW, "run_id": "r"}
    wanted = ops.ALL["files"].arrow()
    before = pa.schema([field for field in wanted if field.name not in ("outcome", "reason")])
    write_deltalake(home.table("ops", "files"), pa.Table.from_pylist([old], schema=before))
    (row,) = ops.current(home, "files", source="a")
    assert (row["path"], row["outcome"], row["reason"]) == ("old.csv", None, None)
    assert ops.current_table(home, "files", columns=["reason"], encoded=True)["reason"].to_pylist() == [None]
    new = {**old, "path": "new.csv", "outcome": "no_format", "reason": "no header fits"}
    ops.append(home, "files", [new, {**old, "outcome": "ok"}], "r2")
    found = {row["path"]: (row["outcome"], row["reason"], row["seq"]) for row in ops.current(home, "files")}
    assert found == {"new.csv": ("no_format", "no header fits", 1), "old.csv": ("ok", None, 2)}
    assert DeltaTable(home.table("ops", "files")).version() == 2


def test_a_table_whose_columns_were_described_in_other_words_is_appended_to(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release may reword every comment; the lake was made by the one before."""
    ops.append(home, "event_days", [_day("a", DAY)], "r1")
    now = ops.ALL["event_days"]
    reworded = tuple(replace(column, comment=f"{column.comment} In other words.") for column in now.columns)
    monkeypatch.setitem(ops.ALL, "event_days", replace(now, columns=reworded, comment="In other words."))
    ops.append(home, "event_days", [_day("a", DAY, rows=7)], "r2")
    assert [(row["seq"], row["rows"]) for row in ops.current(home, "event_days")] == [(2, 7)]


def test_only_key_columns_select_current_rows(home: Home) -> None:
    with pytest.raises(KeyError, match="status is not a key column"):
        ops.current(home, "event_days", status="complete")


def test_concurrent_appends_number_every_row_once_and_files_are_merged(home: Home) -> None:
    def work(name: str) -> None:
        for _ in range(20):
            ops.append(home, "event_days", [_day("a", DAY)], name)

    threads = [threading.Thread(target=work, args=(f"r{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = ops.current_table(home, "event_days", as_log=True)
    assert sorted(log["seq"].to_pylist()) == list(range(1, 81))
    from deltalake import DeltaTable

    assert len(DeltaTable(home.table("ops", "event_days")).file_uris()) <= ops.COMPACT_ABOVE


def test_small_files_are_merged_and_a_large_one_is_left_alone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalake import DeltaTable

    ops.append(home, "event_days", [_day(f"s{number}", DAY) for number in range(2000)], "r1")
    (large,) = DeltaTable(home.table("ops", "event_days")).file_uris()
    monkeypatch.setattr(ops, "MERGED_BYTES", Path(unquote(urlsplit(large).path)).stat().st_size - 1)
    for number in range(ops.COMPACT_ABOVE + 1):
        ops.append(home, "event_days", [_day(f"t{number}", DAY)], "r2")
    files = DeltaTable(home.table("ops", "event_days")).file_uris()
    assert large in files and len(files) <= ops.COMPACT_ABOVE
    assert len(ops.current(home, "event_days")) == 2000 + ops.COMPACT_ABOVE + 1


@pytest.mark.parametrize(
    ("asked", "wanted"), [(None, "files"), ("auto", "files"), ("files", "files"), ("spark", "spark")]
)
def test_a_phase_says_which_back_end_worked(
    home: Home, monkeypatch: pytest.MonkeyPatch, asked: str | None, wanted: str
) -> None:
    # A table of before has no such column.
    old = replace(ops.ALL["runs"], columns=tuple(c for c in ops.ALL["runs"].columns if c.name != "engine"))
    with monkeypatch.context() as before:
        before.setitem(ops.ALL, "runs", old)
        row = {"source": "s", "step": "ingest", "phase": "parse", "definition": "", "status": "ok"}
        ops.append(home, "runs", [row], "old")
    if asked is not None:
        monkeypatch.setenv("CHAINLAKE_ENGINE", asked)
    with runs.phase(home, "new", source="s", step="ingest", phase="parse"):
        pass
    with runs.phase(home, "new", source="s", step="ingest", phase="ingest") as report:
        report.status = "nothing"
    with pytest.raises(InputError), runs.phase(home, "new", source="s", step="ingest", phase="resolve"):
        raise InputError("broken")
    found = {(row["run_id"], row["phase"]): row["engine"] for row in ops.current(home, "runs")}
    assert found == {
        ("old", "parse"): None, ("new", "parse"): wanted, ("new", "ingest"): None, ("new", "resolve"): wanted
    }  # fmt: skip


def test_phase_writes_its_row_also_when_it_fails(home: Home) -> None:
    run = runs.new_run_id("ingest")
    with runs.phase(home, run, source="s", step="ingest", phase="parse", days=Days.one(DAY)) as report:
        report.rows_in, report.rows_out = 5, 4
    with pytest.raises(InputError), runs.phase(home, run, source="s", step="ingest", phase="resolve"):
        raise InputError("the file is\nbroken", hint="Fix it.")
    good, bad = ops.current(home, "runs", run_id=run)
    assert (good["phase"], good["status"], good["rows_in"], good["day_to"]) == ("parse", "ok", 5, date(2025, 10, 2))
    assert (bad["status"], bad["reason"]) == ("failed", "the file is broken. Fix it.")
    assert good["spark_app_id"] == "" or good["spark_app_id"].startswith(("local-", "app-"))
