"""Files that cannot be read, for now or ever: who says so, and what becomes of their days; real Delta tables."""

from __future__ import annotations

import io
import json
import os
import zipfile
from datetime import UTC, date, datetime

import pytest

from chainlake.cli.verbs.lake import status
from chainlake.ingest.landing.outcomes import FilesUnread, FilesWaiting
from chainlake.ingest.rows.groups import GroupWork
from chainlake.lake.delta.tables import arrow
from chainlake.lake.records import ops
from chainlake.run.tasks import LocalTasks
from tests.ingest.test_step import A1, A2, B1, bars

pytestmark = pytest.mark.slow

D1, D2, D3 = (date(2025, 1, day) for day in (1, 2, 3))


def notes(lake, monkeypatch, capsys) -> list[str]:
    """What ``status`` says of files."""
    monkeypatch.setenv("CHAINLAKE_HOME", str(lake.home.root))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(lake.home.config))
    import argparse

    assert status.run(argparse.Namespace(start=None, end=None, definition=None, state=None, json=True)) == 0
    every = json.loads(capsys.readouterr().out)["notes"]
    # No pattern is defined here, and nothing may be ingested yet: that is said, too, and is of no file.
    return [line for line in every if not line.startswith(("no pattern and no model is defined", "no day of "))]


def test_rows_in_quarantine_and_a_file_that_landed_twice_are_said(lake, monkeypatch, capsys, caplog):
    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1, B1) + "no row\n")
    lake.land("bars", "bars_20250102.csv", bars("2025-01-02", A1))
    lake.land("bars", "bars_20250103.csv", bars("2025-01-02", A1))
    with caplog.at_level("INFO"):
        lake.ingest("bars", "2025-01-01", "2025-01-04")
    said = notes(lake, monkeypatch, capsys)
    quarantine = (
        "1 row of bars in quarantine: bars_20250101.csv (1 of 3); "
        'why: chainlake sql "SELECT line, reason, field, value, raw FROM quarantine.bars"'
    )
    twice = (
        "files of bars that are copies: bars_20250102.csv (the same bytes as bars_20250103.csv); "
        "remove one if it landed under a wrong name"
    )
    assert [line for line in said if line in (quarantine, twice)] == [quarantine, twice], said
    logged = [record.getMessage() for record in caplog.records]
    assert f"ingest bars: {quarantine}" in logged and f"ingest bars: {twice}" in logged


def test_a_file_that_moves_or_changes_between_listing_and_reading_is_read_later(lake, monkeypatch, capsys):
    moved = lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1, B1))
    lake.land("bars", "bars_20250102.csv", bars("2025-01-02", A1))
    rewritten = lake.land("bars", "bars_20250103.csv", bars("2025-01-03", A1, B1))
    real, aside = LocalTasks.map, lake.home.root / "aside.csv"

    def late(tasks, work, items):
        # Both happen after the listing and before the tasks open the files.
        if isinstance(work, GroupWork):
            moved.rename(aside)
            rewritten.write_text(bars("2025-01-03", A2))
        return real(tasks, work, items)

    with monkeypatch.context() as patch:
        patch.setattr(LocalTasks, "map", late)
        with pytest.raises(FilesWaiting) as failed:
            lake.ingest("bars", "2025-01-01", "2025-01-04")
    assert failed.value.exit_code == 5 and (failed.value.result["files"], failed.value.result["waiting"]) == (1, 2)
    assert "bars_20250101.csv (No such file or directory (on " in failed.value.what
    assert "bars_20250103.csv (it changed while it was read)" in failed.value.what
    # The other file is ingested, nothing of these two is, and their days are not taken for complete.
    assert lake.events("bars", "ts") == [("2025-01-02 10:00:00",)]
    assert list(lake.files("bars")) == ["bars_20250102.csv"] and lake.quarantine("bars", "reason") == []
    assert arrow(lake.home, "raw", "bars")["ts"].to_pylist() == [datetime(2025, 1, 2, 10, tzinfo=UTC)]
    assert {day: row["status"] for day, row in lake.days("bars").items()} == {D2: "complete", D3: "provisional"}
    (run,) = [row for row in ops.current(lake.home, "runs") if row["phase"] == "ingest"]
    assert run["status"] == "incomplete" and "bars_20250101.csv" in run["reason"]
    said = notes(lake, monkeypatch, capsys)
    assert [line for line in said if "bars/bars_20250101.csv" in line][0].startswith("waiting (No such file")
    assert "waiting (it changed while it was read): bars/bars_20250103.csv" in said
    # Back in its place, all is as if nothing had happened.
    aside.rename(moved)
    result = lake.ingest("bars", "2025-01-01", "2025-01-04")
    assert (result["files"], result["added"], result["unread"], result["waiting"]) == (2, 3, 0, 0)
    assert {day: row["status"] for day, row in lake.days("bars").items()} == dict.fromkeys((D1, D2, D3), "complete")
    assert notes(lake, monkeypatch, capsys) == []


def test_files_that_no_format_takes_are_said_and_make_no_day_complete(lake, monkeypatch, capsys):
    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1))
    lake.land("bars", "bars_20250102.csv", b"PAR1\x15\x04\x15 no text at all PAR1")
    lake.land("bars", "bars_20250102_extra.csv", bars("2025-01-02", A1))
    lake.land("bars", "bars_29990101.csv", bars("2999-01-01", A1))
    with pytest.raises(FilesUnread, match="1 file of bars cannot be read as they are: bars_20250102.csv") as failed:
        lake.ingest("bars", "2025-01-01", "2025-01-03")
    assert failed.value.exit_code == 4 and failed.value.result["added"] == 2
    days = lake.days("bars")
    assert {day: row["status"] for day, row in days.items()} == {D1: "complete", D2: "provisional"}
    row = lake.files("bars")["bars_20250102.csv"]
    assert (row["outcome"], row["rows_read"]) == ("no_format", 0) and "a Parquet file" in row["reason"]
    assert lake.files("bars")["bars_20250101.csv"]["outcome"] == "ok"
    said = notes(lake, monkeypatch, capsys)
    assert [line.split(" (")[0] for line in said] == ["not read", "file dated in the future"]
    assert said[0].endswith(": bars/bars_20250102.csv") and said[1].endswith("(2999-01-01): bars/bars_29990101.csv")
    # Its own day keeps failing, a later day does not, and both say it.
    with pytest.raises(FilesUnread) as again:
        lake.ingest("bars", "2025-01-02", "2025-01-03")
    assert again.value.result["files"] == 0
    later = lake.ingest("bars", "2025-01-03", "2025-01-04")
    assert (later["unread"], later["waiting"]) == (1, 0) and later["left"][0].startswith("bars_20250102.csv: no_format")
    # Replaced by what can be read, it is forgotten; so is one that is taken away.
    lake.land("bars", "bars_20250102.csv", bars("2025-01-02", B1))
    junk = lake.land("bars", "bars_20250103.csv", "no,such,columns\n1,2,3\n")
    with pytest.raises(FilesUnread, match="bars_20250103.csv"):
        lake.ingest("bars", "2025-01-02", "2025-01-04")
    assert lake.days("bars")[D2]["status"] == "complete"
    junk.unlink()
    assert lake.ingest("bars", "2025-01-03", "2025-01-04")["unread"] == 0
    assert lake.files("bars")["bars_20250103.csv"]["outcome"] == "removed"
    assert [line.split(" (")[0] for line in notes(lake, monkeypatch, capsys)] == ["file dated in the future"]


def test_status_says_before_an_ingest_which_landed_files_no_format_takes(lake, monkeypatch, capsys):
    def packed(member: str) -> bytes:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as out:
            out.writestr(member, bars("2025-01-04", A1))
        return archive.getvalue()

    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1))
    lake.land("bars", "in/bars_20250102.csv", bars("2025-01-02", A1))
    lake.land("bars", "bar_20250103.csv", bars("2025-01-03", A1))
    lake.land("bars", "sent.zip", packed("in/bars_20250104.csv"))
    lake.land("bars", "notes.zip", packed("in/notes.txt"))
    lake.land("bars", "bar_20250105.csv.part", "")
    lake.land("tick", "ticks_20250101.csv", "")
    lake.land(".hidden", "ticks_20250101.csv", "")
    unfit = "landed (no format's glob fits its name): bars/"
    strange = "landed (no source has this name. Did you mean ticks?): tick"
    assert notes(lake, monkeypatch, capsys) == [f"{unfit}bar_20250103.csv", f"{unfit}notes.zip", strange]
    # Once an ingest has seen them, what became of them is told, and told once.
    with pytest.raises(FilesUnread):
        lake.ingest("bars", "2025-01-01", "2025-01-05")
    said = notes(lake, monkeypatch, capsys)
    assert [line.split(" (")[0] for line in said] == ["not read", "not read", "landed"] and said[2] == strange


def test_odd_names_doubled_paths_links_and_pipes_are_each_their_own_trouble(lake, tmp_path):
    lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1))
    folder = lake.home.landing("bars")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out, pytest.warns(UserWarning, match="Duplicate name"):
        out.writestr("bars_twice.csv", bars("2025-01-01", A2))
        out.writestr("bars_twice.csv", bars("2025-01-01", B1))
        out.writestr("bars_good.csv", bars("2025-01-01", ("12:00:00", "AIG", 1.0, 1)))
        out.writestr("bars_beside.csv", bars("2025-01-01", ("13:00:00", "AIG", 1.0, 1)))
    lake.land("bars", "bars_a.zip", archive.getvalue())
    lake.land("bars", "bars_a.zip!bars_beside.csv", bars("2025-01-01", ("14:00:00", "AIG", 1.0, 1)))
    lake.land("bars", "bars_20250101_r99999999999999999999.csv", bars("2025-01-01", ("15:00:00", "AIG", 1.0, 1)))
    name = os.fsencode(folder) + b"/bars_caf\xe9.csv"
    with open(name, "wb") as stream:
        stream.write(bars("2025-01-01", ("16:00:00", "AIG", 1.0, 1)).encode())
    outside = tmp_path / "outside.csv"
    outside.write_text(bars("2025-01-01", B1))
    (folder / "bars_link.csv").symlink_to(outside)
    os.mkfifo(folder / "bars_pipe.csv")
    for run in range(2):
        with pytest.raises(FilesUnread) as failed:
            lake.ingest("bars", "2025-01-01", "2025-01-02")
        assert failed.value.result["unread"] == 5, run
    outcomes = {path: row["outcome"] for path, row in lake.files("bars").items()}
    assert outcomes == {
        "bars_a.zip!bars_beside.csv": "doubled_path",
        "bars_a.zip!bars_good.csv": "ok",
        "bars_a.zip!bars_twice.csv": "doubled_path",
        "bars_20250101.csv": "ok",
        "bars_20250101_r99999999999999999999.csv": "bad_path_revision",
        "bars_caf\\xe9.csv": "ok",
        "bars_link.csv": "link",
        "bars_pipe.csv": "not_a_file",
    }
    # Of the file with the revision every row counts, but it replaces no other of its date.
    assert [ts[11:13] for (ts,) in lake.events("bars", "ts")] == ["10", "12", "15", "16"]
    assert lake.days("bars")[D1]["status"] == "provisional"
    assert len(arrow(lake.home, "raw", "bars")) == 4
    yaml = lake.home.config / "sources" / "bars.yaml"
    yaml.write_text(yaml.read_text() + "links: follow\n")
    with pytest.raises(FilesUnread):
        lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert lake.files("bars")["bars_link.csv"]["outcome"] == "ok"
    assert ("BAC", "2025-01-01 10:00:00") in lake.events("bars", "ticker", "ts")


def test_after_an_edit_nothing_is_written_while_a_file_cannot_be_read(lake, monkeypatch):
    held = lake.land("bars", "bars_20250101.csv", bars("2025-01-01", A1))
    lake.land("bars", "bars_20250102.csv", bars("2025-01-02", A1))
    lake.ingest("bars", "2025-01-01", "2025-01-03")
    path = lake.home.config / "sources" / "bars.yaml"
    path.write_text(path.read_text().replace("time:", "map: {price: {scale: 2}}\n    time:"))
    versions = [lake.version(schema, "bars") for schema in ("raw", "events")]
    real, aside = LocalTasks.map, lake.home.root / "aside.csv"

    def late(tasks, work, items):
        held.rename(aside)
        return real(tasks, work, items)

    monkeypatch.setattr(LocalTasks, "map", late)
    from chainlake.errors import InfrastructureError

    with pytest.raises(InfrastructureError, match="must be read again, but 1 cannot be read for now: bars_20250101"):
        lake.ingest("bars", "2025-01-01", "2025-01-03")
    assert [lake.version(schema, "bars") for schema in ("raw", "events")] == versions
    assert lake.events("bars", "price") == [(10.5,), (10.5,)]
    assert {row["status"] for row in lake.days("bars").values()} == {"complete"}
    aside.rename(held)
    monkeypatch.setattr(LocalTasks, "map", real)
    assert lake.ingest("bars", "2025-01-01", "2025-01-03")["changed"] == 2


def test_the_same_content_under_a_name_that_no_format_takes_is_still_read(lake):
    for name in ("a.csv", "bars_b.csv", "z.csv"):
        lake.land("bars", name, bars("2025-01-01", A1) + "bad\n")
    with pytest.raises(FilesUnread, match=r"2 files.*: a.csv .*, z.csv "):
        lake.ingest("bars", "2025-01-01", "2025-01-02")
    assert lake.events("bars", "ts") == [("2025-01-01 10:00:00",)]
    assert lake.quarantine("bars", "line", "reason") == [(0, "no_format"), (3, "columns")]
