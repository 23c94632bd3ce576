"""Tables that are gone are noticed by whoever needs them next, and what cannot be made again is said, not lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date, timedelta
from functools import partial

import pytest
from deltalake import DeltaTable, write_deltalake

from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.errors import InfrastructureError
from chainlake.ingest.step import ingest
from chainlake.lake.records import ops
from chainlake.lake.remembered import Remembered
from chainlake.lake.store.files import FilesLake
from chainlake.lake.upkeep.same import same_tables
from chainlake.operations.backfills.backfill import run_here, run_plan
from chainlake.operations.backfills.plan import plan_range
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.ops import ALL as ALL_OPS
from tests.check import lakes
from tests.check.damages import ALL
from tests.check.lakes import NOW, SPAN

pytestmark = pytest.mark.slow

ACTS = {one.name: one.act for one in ALL}
LAST = Days(SPAN.end - timedelta(days=1), SPAN.end)


def statuses(home: Home, definition: str) -> dict[date, str]:
    return {row["day"]: row["status"] for row in ops.current(home, "intervals", definition=definition)}


def test_ingest_makes_a_lost_events_table_again(whole: Home, copy: Home) -> None:
    ACTS["events_table_dropped"](copy)
    result = ingest(copy, "lab", LAST, run_id="r", now=NOW)
    assert len(result["days"]) == 4 and result["added"] == 48
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []


def test_days_of_a_lost_match_table_stay_to_do_until_each_is_there(whole: Home, copy: Home) -> None:
    """The table that the first of them makes anew must not make the others look done."""
    ACTS["match_table_dropped"](copy)
    detect(copy, "lab", LAST, run_id="r", repair_horizon=0)
    assert statuses(copy, "pattern/many")[LAST.start] == "done"
    lost = [day for day, status in statuses(copy, "pattern/many").items() if status == "failed"]
    assert lost and LAST.start not in lost
    here = partial(run_here, ports=Ports(LocalTasks(), FilesLake(copy)))
    run_plan(copy, plan_range(copy, None, only_stale=True), run_id="s", launch=here, say=lambda line: None)
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []


def test_notes_that_are_gone_are_made_again(whole: Home, copy: Home) -> None:
    """Of one the table, of another only its log."""
    shutil.rmtree(copy.table("ops", "intervals"))
    shutil.rmtree(f"{copy.table('ops', 'event_days')}/_delta_log")
    said = [str(one) for one in lakes.checked(copy).damage]
    assert said == ["ops.event_days: its log is gone, but its files are there"]
    assert lakes.repaired(copy).left == []
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []


def test_a_history_of_runs_that_is_gone_is_said_once(copy: Home) -> None:
    shutil.rmtree(copy.table("ops", "runs"))
    found = lakes.checked(copy)
    assert found.damage == [] and [str(one) for one in found.findings] == [
        "ops.runs: the table is gone, and with it the history of runs; nothing else is made from it"
    ]
    assert lakes.checked(copy).findings == []


def test_a_source_of_whose_files_nothing_is_noted_is_read_again(
    whole: Home, copy: Home, named: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(copy.table("ops", "files"))
    shutil.rmtree(copy.table("events", "lab"))
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    assert "events.lab: the table is gone, but 48 rows were written to it; run 'chainlake check --repair'" in said
    assert "ops.files: no file of source lab is recorded, though its events are" in said
    (_,) = [one for one in lakes.checked(copy).damage if one.table == "ops.files"]
    assert lakes.repaired(copy).left == []
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []
    capsys.readouterr()
    assert main(["status"]) == 0
    assert "gone" not in (said := capsys.readouterr().out) and "no file" not in said


def test_ingest_without_its_raw_table_writes_nothing(copy: Home) -> None:
    """Resolving a day without its raw rows would withdraw its events."""
    ACTS["raw_table_dropped"](copy)
    lakes.land(copy, "lab_20250304_late.csv", ["2025-03-04T01:00:00,A,k1,1,1"])
    with pytest.raises(InfrastructureError, match=r"raw\.lab, .*5 files.* is gone") as refused:
        ingest(copy, "lab", LAST, run_id="r", now=NOW)
    assert "check --table raw.lab --repair" in str(refused.value)
    assert len(DeltaTable(copy.table("events", "lab")).to_pyarrow_table()) == 48


def test_raw_rows_whose_file_has_left_landing_are_asked_for(whole: Home, copy: Home) -> None:
    ACTS["raw_table_dropped"](copy)
    away = copy.landing("lab") / "lab_20250302.csv"
    kept = away.rename(copy.root / away.name)
    result = lakes.repaired(copy)
    (line,) = result.left
    assert "1 file of it is missing: lab_20250302.csv" in line and result.commands == []
    assert all(not row["file_id"].startswith("damaged") for row in ops.current(copy, "files"))

    shutil.move(kept, away)
    assert lakes.repaired(copy).left == []
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []


def test_days_of_a_definition_without_a_file_cannot_be_repaired(copy: Home) -> None:
    ACTS["matches_deleted"](copy)
    (copy.config / "patterns" / "rise.sase").unlink()
    (line,) = lakes.repaired(copy).left
    assert "pattern/rise no longer has a file" in line
    assert "failed" not in statuses(copy, "pattern/rise").values()


def test_a_lake_of_an_older_release_is_counted_and_extended(whole: Home, copy: Home) -> None:
    """Its ops tables lack columns, and its commits carry no mark."""
    old = [name for name in ALL_OPS["intervals"].column_names if name != "rows_checksum"]
    rows = DeltaTable(copy.table("ops", "intervals")).to_pyarrow_table().select(old)
    shutil.rmtree(copy.table("ops", "intervals"))
    for start in range(0, len(rows), 5):
        write_deltalake(copy.table("ops", "intervals"), rows.slice(start, 5), mode="append")
    found = lakes.checked(copy)
    assert found.damage == []
    assert {one.what.partition(":")[0] for one in found.findings} == {"pattern/many", "pattern/rise", "model/slope"}
    assert all("only counted" in one.what for one in found.findings)

    ACTS["matches_changed"](copy)
    assert lakes.checked(copy).damage == []
    ACTS["matches_deleted"](copy)
    assert [one.table for one in lakes.checked(copy).damage][:1] == ["matches.rise"]
    assert lakes.repaired(copy).left == []
    assert lakes.checked(copy).damage == []
    assert "rows_checksum" in DeltaTable(copy.table("ops", "intervals")).to_pyarrow_table().column_names


def test_a_check_while_a_table_is_being_written_waits_for_its_lock(copy: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a writer has half done is damage only to who does not wait."""
    from chainlake.lake.locks import file_lock
    from chainlake.operations import check as checking

    ACTS["matches_deleted"](copy)
    monkeypatch.setattr(checking, "_WAIT_S", 0.2)
    with file_lock(copy, "table-matches.rise"), pytest.raises(InfrastructureError, match="matches.rise"):
        lakes.checked(copy)
    assert [one.table for one in lakes.checked(copy).damage] == ["matches.rise"] * len(lakes.checked(copy).damage)


def test_nobody_loses_what_is_set_aside(copy: Home) -> None:
    ACTS["data_file_of_raw_truncated"](copy)
    lakes.repaired(copy)
    (path,) = (copy.root / "damaged").rglob("*.parquet")
    assert path.stat().st_size == 300 and path.is_relative_to(copy.root / "damaged" / "raw.lab")


@pytest.mark.parametrize("what", ["the lake", "ops"])
def test_a_lake_that_is_gone_is_no_new_one(
    whole: Home, copy: Home, named: Home, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """All notes lay in it, so without what the home remembers nothing would be damaged, and ingest would begin anew."""
    shutil.rmtree(copy.lake if what == "the lake" else f"{copy.lake}/ops")
    told = "there is no record of source lab, which was ingested up to 2025-03-04"
    assert main(["status"]) == 1
    assert told in capsys.readouterr().out
    for _ in range(2):
        # The first must not leave anything behind that makes the lake look new to the second.
        assert main(["check"]) == 1
        assert told in capsys.readouterr().out
    with pytest.raises(InfrastructureError, match="there is no record of source lab"):
        ingest(copy, "lab", LAST, run_id="r", now=NOW)

    if what == "ops":
        return
    result = lakes.repaired(copy)
    assert result.left == [] and result.commands[0].startswith("chainlake ingest lab 2025-03-04 2025-03-05")
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []
    assert main(["status"]) == 0


def test_a_lake_looked_for_in_the_wrong_place_is_said(
    copy: Home, named: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHAINLAKE_LAKE", str(copy.root / "elsewhere"))
    assert main(["status"]) == 1
    assert main(["check"]) == 1
    said = capsys.readouterr().out
    assert said.count(f"into the lake {copy.lake}: the lake") == 2 and "is empty" in said


def test_a_lake_in_a_store_is_named_as_it_is(copy: Home) -> None:
    known = Remembered("lab", "s3://bucket/lake", LAST.start, LAST.end, "2025-03-05")
    assert "into the lake s3://bucket/lake: the lake" in known.lost(replace(copy, lake="s3://bucket/new"))
