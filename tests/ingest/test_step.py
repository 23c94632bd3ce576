"""The ingest step on real Delta tables: each test is a little history of landing files."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from datetime import date

import pytest

from chainlake.errors import InfrastructureError, InputError
from chainlake.ingest.checksum import EMPTY_CHECKSUM
from chainlake.ingest.landing.outcomes import FilesUnread
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.upkeep.same import same_tables
from chainlake.operations.check import Scope
from chainlake.operations.repair import repair

pytestmark = pytest.mark.slow

HEADER = "ts,ticker,price,volume\n"


def bars(day: str, *rows: tuple[str, str, float, int]) -> str:
    return HEADER + "".join(f"{day} {time},{key},{price},{volume}\n" for time, key, price, volume in rows)


A1 = ("10:00:00", "AIG", 10.5, 100)
B1 = ("10:00:00", "BAC", 20.5, 200)
A2 = ("11:00:00", "AIG", 11.5, 110)


def test_same_file_twice_and_overlap_give_each_event_once(lake):
    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1, B1))
    first = lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert (first["files"], first["rows"], first["added"]) == (1, 2, 2)
    version = lake.version("events", "bars")
    again = lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert (again["files"], again["published"]) == (0, None)
    # The same content under another name, compressed: nothing new, no new version of events.
    lake.land("bars", "more/bars_20250101.csv.gz", bars("2025-01-01", A1, B1))
    lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert lake.version("events", "bars") == version
    assert len({row["load_id"] for row in lake.files("bars").values()}) == 1
    # An overlapping file: one row known, one new.
    lake.land("bars", "bars_20250101_b.csv", bars("2025-01-01", B1, A2))
    third = lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert (third["added"], third["changed"], third["withdrawn"]) == (1, 0, 0)
    assert lake.events("bars", "ticker", "ts", "price", "seq") == [
        ("AIG", "2025-01-01 10:00:00", 10.5, 0),
        ("AIG", "2025-01-01 11:00:00", 11.5, 0),
        ("BAC", "2025-01-01 10:00:00", 20.5, 0),
    ]
    day = lake.days("bars")[date(2025, 1, 1)]
    assert (day["status"], day["rows"], day["duplicates"]) == ("complete", 3, 1)
    rates = ops.current(lake.home, "rates", source="bars")
    assert {(r["key"], r["events"]) for r in rates} == {("AIG", 2), ("BAC", 1)}


def test_conflict_goes_to_quarantine_and_a_correction_replaces_the_day(lake):
    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1, B1))
    lake.land("bars", "bars_20250101_b.csv", bars("2025-01-01", ("10:00:00", "AIG", 99.0, 1)))
    lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert lake.events("bars", "ticker", "price") == [("AIG", 10.5), ("BAC", 20.5)]
    assert [row[:3] for row in lake.quarantine("bars", "stage", "reason", "line")] == [("resolve", "conflict", 2)]
    day = lake.days("bars")[date(2025, 1, 1)]
    assert (day["rows"], day["conflicts"]) == (2, 1)
    # Revision 2 moves a row to the next day and drops BAC; the conflict is gone with the rows that made it.
    lake.land("bars", "bars_20250101_r2.csv", bars("2025-01-01", A2) + "2025-01-02 00:30:00,AIG,12.5,7\n")
    result = lake.ingest("bars", "2025-01-02", "2025-01-03")
    assert (result["added"], result["withdrawn"]) == (2, 2)
    assert lake.events("bars", "ticker", "ts") == [("AIG", "2025-01-01 11:00:00"), ("AIG", "2025-01-02 00:30:00")]
    assert lake.quarantine("bars", "stage") == []
    days = lake.days("bars")
    assert days[date(2025, 1, 1)]["superseded"] == 3
    assert days[date(2025, 1, 2)]["status"] == "provisional"
    gone = [r for r in ops.current(lake.home, "rates", source="bars") if r["key"] == "BAC"]
    assert [r["events"] for r in gone] == [0]


def test_overwritten_path_replaces_its_rows_and_empties_a_day(lake):
    lake.land("bars", "bars_20250103.csv", bars("2025-01-03", A1))
    lake.land("bars", "bars_20250105.csv", bars("2025-01-05", A1))
    lake.ingest("bars", "2025-01-05", "2025-01-06")
    # Every day from the first event day to the end has a row, also the empty one.
    assert {d.day: (r["status"], r["rows"]) for d, r in lake.days("bars").items()} == {
        3: ("complete", 1),
        4: ("provisional", 0),
        5: ("complete", 1),
    }
    assert lake.days("bars")[date(2025, 1, 4)]["checksum"] == EMPTY_CHECKSUM
    lake.land("bars", "bars_20250105.csv", HEADER + "bad line\n")
    with pytest.raises(FilesUnread, match="no_row: none of its rows can be used"):
        lake.ingest("bars", "2025-01-05", "2025-01-06")
    assert lake.events("bars", "ts") == [("2025-01-03 10:00:00",)]
    emptied = lake.days("bars")[date(2025, 1, 5)]
    assert (emptied["status"], emptied["rows"], emptied["checksum"]) == ("provisional", 0, EMPTY_CHECKSUM)
    assert lake.quarantine("bars", "reason", "line", "raw") == [("columns", 2, "bad line")]
    # The bad content is overwritten in turn: its quarantine row goes with it.
    lake.land("bars", "bars_20250105.csv", bars("2025-01-05", B1))
    lake.ingest("bars", "2025-01-05", "2025-01-06")
    assert lake.quarantine("bars", "reason") == []


def test_late_file_day_after_the_interval_and_waiting_for_a_neighbour(lake):
    rows = bars("2025-01-01", A1) + "2025-01-02 03:00:00,AIG,1.0,1\n"
    lake.land("bars", "bars_20250101.csv", rows)
    lake.land("bars", "bars_20250104.csv", bars("2025-01-04", A1))
    from datetime import UTC, datetime

    soon = datetime(2025, 1, 2, 12, tzinfo=UTC)
    lake.ingest("bars", "2025-01-01", "2025-01-02", now=soon)
    assert {d.day: r["status"] for d, r in lake.days("bars").items()} == {1: "complete", 2: "open"}
    # The interval has passed day 2, its file is missing, the lag is not over: still open. Nothing else changes.
    version = lake.version("events", "bars")
    lake.ingest("bars", "2025-01-02", "2025-01-03", now=datetime(2025, 1, 3, 12, tzinfo=UTC))
    assert lake.days("bars")[date(2025, 1, 2)]["status"] == "open"
    lake.ingest("bars", "2025-01-02", "2025-01-03", now=datetime(2025, 1, 4, 1, tzinfo=UTC))
    assert lake.days("bars")[date(2025, 1, 2)]["status"] == "provisional"
    assert lake.version("events", "bars") == version
    before = lake.days("bars")[date(2025, 1, 2)]["checksum"]
    lake.land("bars", "bars_20250102.csv", bars("2025-01-02", A2))
    lake.ingest("bars", "2025-01-03", "2025-01-04")
    late = lake.days("bars")[date(2025, 1, 2)]
    assert (late["status"], late["rows"]) == ("complete", 2)
    assert late["checksum"] != before
    assert date(2025, 1, 4) not in lake.days("bars")


def test_ticks_keep_equal_rows_apart_and_combine_copies(lake):
    row = "34200000,1669500,100,00,T\n"
    lake.land("ticks", "20250101_spy_ticks.csv", row + row + "34200000,1669600,5,01,Q\n")
    lake.ingest("ticks", "2025-01-01", "2025-01-02")
    assert lake.events("ticks", "type", "ticker", "ts", "seq", "price", "size") == [
        ("Quote", "SPY", "2025-01-01 14:30:00", 0, 166.96, 5),
        ("Trade", "SPY", "2025-01-01 14:30:00", 0, 166.95, 100),
        ("Trade", "SPY", "2025-01-01 14:30:00", 1, 166.95, 100),
    ]
    known = set(lake.events("ticks", "event_id"))
    assert len(known) == 3
    # An overlapping delivery with three copies: one of them is new.
    lake.land("ticks", "part2_20250101_spy_ticks.csv", row * 3)
    result = lake.ingest("ticks", "2025-01-01", "2025-01-02")
    assert (result["added"], result["changed"], result["withdrawn"]) == (1, 0, 0)
    assert known < set(lake.events("ticks", "event_id"))
    assert lake.days("ticks")[date(2025, 1, 1)]["duplicates"] == 2


def test_edit_of_the_definition_takes_all_files_again_or_none(lake):
    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1))
    kept = lake.land("bars", "bars_20250103.csv", bars("2025-01-03", A1))
    lake.ingest("bars", "2025-01-01", "2025-01-04")
    path = lake.home.config / "sources" / "bars.yaml"
    text = path.read_text()
    # What does not change rows takes nothing again.
    path.write_text(text.replace("lag: 1 d", "lag: 2 d").replace("Bars for tests", "Bars"))
    assert lake.ingest("bars", "2025-01-01", "2025-01-02")["files"] == 0
    path.write_text(text.replace("time:", "map: {price: {scale: 2}}\n    time:"))
    content = kept.read_bytes()
    kept.unlink()
    with pytest.raises(InputError, match="bars_20250103.csv"):
        lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert lake.events("bars", "price") == [(10.5,), (10.5,)]
    lake.land("bars", "bars_20250103.csv", content)
    assert lake.ingest("bars", "2025-01-01", "2025-01-02")["changed"] == 2
    assert lake.events("bars", "price") == [(21.0,), (21.0,)]


@pytest.mark.on_spark("files")
@pytest.mark.parametrize("engine", ["files", "spark"])
def test_tasks_of_spark_and_both_engines_come_to_the_tables_of_this_process(spark, lake, monkeypatch, engine):
    monkeypatch.setenv("CHAINLAKE_ENGINE", engine)
    other = lake.other("in Spark")
    for day in ("01", "02"):
        for at, ports in ((lake, {}), (other, {"ports": None})):
            at.land("bars", f"bars_202501{day}.csv", bars(f"2025-01-{day}", A1, B1) + "dirt\n")
            at.land("bars", "bars_20250101_b.csv", bars("2025-01-01", A2, ("10:00:00", "AIG", float(day), 1)))
            result = at.ingest("bars", "2025-01-01", "2025-01-03", **ports)
        assert (result["added"], result["withdrawn"]) == (3 if day == "01" else 2, 0)
    assert same_tables(lake.home, other.home) == []
    assert len(lake.quarantine("bars", "reason")) == len(other.quarantine("bars", "reason")) == 3


def test_missing_folder_garbage_empty_and_directory(lake):
    result = lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert result["files"] == 0 and lake.version("events", "bars") is None
    runs = ops.current(lake.home, "runs")
    assert [(r["phase"], r["status"]) for r in runs] == [("ingest", "nothing")]
    (lake.home.landing("bars") / "bars_20250101.csv").mkdir(parents=True)
    lake.land("bars", "bars_20250102.csv", b"")
    lake.land("bars", "bars_20250103.csv", bytes(range(256)) * 40)
    lake.land("bars", "bars_20250104.csv.zip", b"PK\x03\x04 no archive")
    lake.land("bars", "note.txt", "hello\n")
    lake.land("bars", "bars_20250105.csv", bars("2025-01-05", A1))
    with pytest.raises(FilesUnread) as failed:
        lake.ingest("bars", "2025-01-05", "2025-01-06")
    result = failed.value.result
    assert (result["files"], result["added"], result["unread"]) == (5, 1, 4)
    assert [r for (r,) in lake.quarantine("bars", "reason")] == ["damaged_archive", "empty", "no_format", "no_format"]
    for row in lake.files("bars").values():
        assert row["rows_read"] == row["rows_raw"] + row["rows_quarantined"]
    # All of it once more: nothing to do, but still to say.
    again = lake.ingest("bars", "2025-01-05", "2025-01-06")
    assert (again["files"], again["unread"]) == (0, 4)


def test_a_young_file_is_left_for_a_retry_after_the_others(lake):
    path = lake.home.config / "sources" / "bars.yaml"
    path.write_text(path.read_text() + "settle: 30 min\n")
    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1))
    young = lake.home.landing("bars") / "bars_20250102.csv"
    young.write_text(bars("2025-01-02", A1))
    from datetime import UTC, datetime

    with pytest.raises(InfrastructureError, match="bars_20250102.csv"):
        lake.ingest("bars", "2025-01-01", "2025-01-04", now=datetime.now(UTC))
    assert lake.events("bars", "ts") == [("2025-01-01 10:00:00",)]


def test_failed_accounting_leaves_the_days_changing(lake, monkeypatch):
    from chainlake.errors import AuditFailed
    from chainlake.ingest.events import resolution

    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1, B1))
    with monkeypatch.context() as patch:
        patch.setattr(resolution, "raw_counts", lambda *_: {date(2025, 1, 1): 3})
        with pytest.raises(AuditFailed, match="rows_unaccounted|raw rows"):
            lake.ingest("bars", "2025-01-01", "2025-01-02")
    day = lake.days("bars")[date(2025, 1, 1)]
    assert (day["status"], day["checksum"]) == ("changing", None)
    assert lake.files("bars") == {}
    lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert lake.days("bars")[date(2025, 1, 1)]["status"] == "complete"
    assert json.loads(json.dumps(lake.events("bars", "ticker"))) == [["AIG"], ["BAC"]]


def test_files_of_any_name_are_found_again_by_a_repair(lake):
    """A sign that stands before a member may be of a file, and a name need not be text."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in!bars_20250102.csv", bars("2025-01-02", A1))
    lake.land("bars", "bars_20250101!x.csv", bars("2025-01-01", A1))
    lake.land("bars", "bars_z!y.zip", packed.getvalue())
    name = os.fsencode(lake.home.landing("bars")) + b"/bars_20250103_\xe9.csv"
    with open(name, "wb") as stream:
        stream.write(bars("2025-01-03", A1).encode())
    assert lake.ingest("bars", "2025-01-03", "2025-01-04")["added"] == 3
    shutil.rmtree(lake.home.table("raw", "bars"))
    _, repaired = repair(lake.home, run_id="r", scope=Scope(), say=lambda line: None)
    assert repaired.left == [] and any("3 files to be read again" in line for line in repaired.done)
    assert lake.ingest("bars", "2025-01-03", "2025-01-04")["files"] == 3
    assert tables.arrow(lake.home, "raw", "bars").num_rows == 3
