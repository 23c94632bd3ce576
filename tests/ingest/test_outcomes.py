"""What a run says of files that it did not read, for which days, and how it ends; no Spark."""

from __future__ import annotations

import argparse
import dataclasses
import pickle
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from chainlake.cli import step
from chainlake.days import Days
from chainlake.definitions.source import load_source
from chainlake.errors import InputError
from chainlake.ingest.events.corrections import superseded_loads
from chainlake.ingest.events.local import resolve_local
from chainlake.ingest.landing.completeness import Arrived, day_rows
from chainlake.ingest.landing.discovery import Landed, Landing
from chainlake.ingest.landing.outcomes import (
    FilesUnread,
    FilesWaiting,
    RereadFailed,
    copies,
    days_of,
    left_by,
    quarantined_rows,
    unread,
)
from chainlake.ingest.landing.plan import effective, make_plan
from chainlake.ingest.landing.waiting_log import EARLY, early, note_waiting
from chainlake.ingest.parser_version import parser_version
from chainlake.lake.records import ops
from chainlake.paths import Home

BARS = load_source(Path(__file__).parent / "sources" / "bars.yaml")
TICKS = load_source(Path(__file__).parent / "sources" / "ticks.yaml")
D = {n: date(2025, 1, n) for n in range(1, 11)}
NOW = datetime(2025, 2, 1, tzinfo=UTC)


def row(path, day=None, outcome="ok", revision=0, rows=5, definition=None, **more):
    return {
        "path": path, "file_id": f"id of {path}", "load_id": f"load of {path}", "file_date": day, "revision": revision,
        "outcome": outcome, "reason": None if outcome == "ok" else "why", "rows_raw": rows, "rows_read": rows,
        "definition_hash": definition or BARS.definition_hash, "parser_version": parser_version(BARS),
        "path_fields": [], **more,
    }  # fmt: skip


def landed(path, day=None, file_id=None):
    return Landed(path, f"/x/{path}", None, 1, "c", file_id or f"id of {path}", {}, day, 0)


def plan(files, rows=(), waiting=None, settling=()):
    landing = Landing({f.path: f for f in files}, dict(waiting or {}), frozenset(settling))
    return make_plan(BARS, Days(D[5], D[6]), landing, list(rows), [])


def test_a_file_is_of_the_days_that_expect_names_it_for_or_that_its_date_covers():
    assert days_of(BARS, "bars_20250105.csv", D[5]) == {D[5]}
    assert days_of(BARS, "other_20250105.csv", D[5]) == {D[5]}
    assert days_of(BARS, "note.txt", None) == set()
    # A day of New York lies on two UTC days, and no glob is in the way.
    new_york = dataclasses.replace(BARS, expect=(), file_date_zone="America/New_York")
    assert days_of(new_york, "bars_20250105.csv", D[5]) == {D[5], D[6]}
    both = dataclasses.replace(new_york, expect=("bars_{date:%Y%m%d}*", "bars_{date-1:%Y%m%d}*"))
    assert days_of(both, "bars_20250105.csv", D[5]) == {D[5], D[6]}
    assert days_of(dataclasses.replace(BARS, expect=("all.csv",)), "bars_10000101.csv", date(1000, 1, 1))


def test_files_not_read_are_told_until_a_whole_correction_replaces_them():
    bad = row("a", D[5], "no_format", rows=0)
    empty = row("b", outcome="empty", rows=0)
    assert unread(BARS.replaces, [row("ok"), empty, row("c", outcome=None), bad]) == [empty, bad]
    assert unread(BARS.replaces, [row("gone", outcome="removed"), bad, row("a_r2", D[5], revision=2)]) == []
    # Not by another date, nor one that cannot be read itself, nor where nothing replaces anything.
    for other in (row("x", D[6], revision=2), row("x", D[5], "damaged", revision=2)):
        assert bad in unread(BARS.replaces, [bad, other])
    assert unread((), [bad, row("a_r2", D[5], revision=2)]) == [bad]


def test_what_a_run_ends_with():
    rows = [row("bars_20250105.csv", D[5], "damaged"), row("readme", None, "no_format", rows=0)]
    waiting = {"bars_20250103.csv": "Permission denied", "bars_20250105_b.csv": "Stale file handle"}

    def error(day, taken=(), waits=(), due=()):
        left = left_by(BARS, rows, {path: waiting[path] for path in waits}, taken, Days.one(day), due)
        return left, left.failure(BARS, {"files": 1})

    left, failure = error(D[5])
    assert isinstance(failure, FilesUnread) and failure.exit_code == 4
    damaged = "bars_20250105.csv (damaged: why; 5 rows of it are ingested)"
    assert "Deliver a damaged file again" in (failure.hint or "") and "'chainlake lint bars'" in (failure.hint or "")
    assert failure.what == f"1 file of bars cannot be read as they are: {damaged}"
    assert left.text() == f"2 files not read: {damaged}, readme (no_format: why)"
    # An old day's file fails no other day, and one without a date only the run that finds it.
    left, failure = error(D[6])
    assert failure is None and left.result()["unread"] == 2
    assert isinstance(error(D[6], taken={"readme"})[1], FilesUnread)
    assert error(D[6], waits=["bars_20250103.csv"])[1] is None
    assert isinstance(error(D[6], waits=["bars_20250103.csv"], due=["bars_20250103.csv"])[1], FilesWaiting)
    # What can be tried again comes first.
    _, failure = error(D[5], waits=["bars_20250105_b.csv"])
    assert isinstance(failure, FilesWaiting) and failure.exit_code == 5
    back = pickle.loads(pickle.dumps(failure))
    assert (back.summary, back.result) == (failure.summary, {"files": 1})


def test_rows_in_quarantine_and_copies_are_said_by_file():
    def file(path, bad=0, checksum="x", **more):
        return row(path, rows_quarantined=bad, checksum=checksum, **more)

    rows = [file("a"), file("b", 1, "y"), file("c", 3, "z")]
    assert quarantined_rows("bars", rows) == (
        "4 rows of bars in quarantine: c (3 of 5), b (1 of 5); "
        'why: chainlake sql "SELECT line, reason, field, value, raw FROM quarantine.bars"'
    )
    assert quarantined_rows("bars", rows[:1]) == copies("bars", rows) == ""
    assert copies("bars", [file("b"), *rows[:1], file("d"), file("e", outcome="empty", rows=0)]) == (
        "files of bars that are copies: a (the same bytes as b, d); remove one if it landed under a wrong name"
    )


def test_a_file_that_waits_is_not_gone():
    old = [row("a", definition="old"), row("z.zip!m.csv", definition="old"), row("in/b", definition="old")]
    waiting = {"a": "Stale file handle", "z.zip": "Permission denied", "in": "the folder cannot be listed"}
    with pytest.raises(RereadFailed, match="3 cannot be read for now: a .Stale file handle.") as failed:
        plan([], old, waiting)
    assert failed.value.exit_code == 5 and pickle.loads(pickle.dumps(failed.value)).summary == failed.value.summary
    with pytest.raises(InputError, match="1 are gone from landing: a"):
        plan([], old, {"z.zip": "x", "in": "x"})
    # Nothing came of this one, so nobody has to put it back.
    found = plan([], [row("bad", outcome="no_format", rows=0, definition="old")])
    assert not found.redefined and [r["path"] for r in found.removed] == ["bad"] and found.current == {}
    assert plan([], [row("bad", outcome="no_format", rows=0)], {"bad": "x"}).removed == ()
    assert plan([landed("bad", file_id="id of bad")], [row("bad", outcome="removed", rows=0)]).taken


def test_young_files_are_due_as_others_are():
    waiting = {"bars_20250101.csv": "young", "bars_20250109.csv": "young", "x": "young", "y": "Permission denied"}
    assert plan([], [], waiting, [path for path in waiting if path != "y"]).due == ("bars_20250101.csv", "x")


def test_a_file_of_which_nothing_came_before_outcomes_were_noted_is_read_again():
    old = [row("lost", outcome=None, rows=0), row("held", outcome=None), row("bad", outcome="no_format", rows=0)]
    found = plan([landed(path) for path in ("lost", "held", "bad")], old)
    assert [one.path for one in found.taken] == ["lost"]
    assert {file_id: row["load_id"] for file_id, row in found.reusable().items()} == {"id of held": "load of held"}


def test_a_file_that_is_not_whole_replaces_nothing_and_nothing_stands_for_a_content_that_was_read():
    same = {"file_id": "same"}
    rows = [
        row("a", D[5], "no_format", rows=0, **same), row("b", D[5], **same), row("r2", D[5], "damaged", 2),
        row("r3", D[5], "damaged_archive", 3, rows=0), row("r1", D[5], "damaged", -1),
        row("r9", D[5], "bad_path_revision", 9),
    ]  # fmt: skip
    found = effective(BARS, rows)
    assert [(f.name, f.whole) for f in found] == [("b", True), ("r1", False), ("r2", False), ("r9", False)]
    assert superseded_loads(BARS, found) == {"load of r1"}
    whole = effective(BARS, [*rows, row("r4", D[5], revision=4)])
    assert superseded_loads(BARS, whole) == {"load of b", "load of r1", "load of r2"}


def test_the_same_without_a_lake():
    def table(*prices):
        columns = {
            "type": ["Bar"] * len(prices), "ticker": ["A"] * len(prices), "ts": [datetime(2025, 1, 5, tzinfo=UTC)],
            "price": list(prices), "volume": [1] * len(prices), "line": [2], "entry": [0],
        }  # fmt: skip
        return pa.table(columns)

    first, second = landed("a", D[5]), dataclasses.replace(landed("b", D[5]), revision=2)
    assert resolve_local(BARS, [first, second], [table(1.0), table(2.0)]).superseded == 1
    for problem in ("damaged", "bad_path_revision"):
        wrong = dataclasses.replace(second, problem=problem)
        found = resolve_local(BARS, [first, wrong], [table(1.0), table(2.0)])
        assert (found.superseded, found.conflicts, found.events["price"].to_pylist()) == (0, 1, [1.0])


def test_days_of_unread_and_waiting_files_are_not_complete():
    rows = [row("bars_20250103.csv", D[3], "no_format", rows=0), row("bars_20250104.csv", D[4])]
    rows += [row("bars_20250105.csv", D[5]), row("bars_20250106.csv", D[6])]
    arrived = Arrived.of(BARS, rows, ["bars_20250105_b.csv"])
    counts = {"rows": 2, "duplicates": 0, "conflicts": 0, "superseded": 0, "rows_raw": 2, "checksum": "x"}
    current = {D[n]: {**counts, "status": "complete", "events_version": 4} for n in (5, 6)}
    touched = {D[n]: counts for n in (3, 4)}
    found = day_rows(BARS, current, touched, arrived, D[7], NOW, 9)
    assert {r["day"].day: r["status"] for r in found} == {3: "provisional", 4: "complete", 5: "provisional"}
    # Also before their lag is over: a day that was complete is not closed again.
    soon = datetime(2025, 1, 6, 1, tzinfo=UTC)
    found = day_rows(BARS, current, touched, arrived, D[7], soon, 9)
    assert {r["day"].day: r["status"] for r in found} == {3: "provisional", 4: "complete", 5: "provisional"}
    current = {D[5]: {**current[D[5]], "status": "provisional"}}
    healed = day_rows(BARS, current, {}, Arrived.of(BARS, rows, []), D[6], NOW, 9)
    assert [(r["day"], r["status"]) for r in healed] == [(D[5], "complete")]


def test_the_log_of_waiting_files_has_a_row_for_each_change(home: Home):
    def waiting():
        return {r["path"]: (r["reason"], r["file_date"]) for r in ops.current(home, "waiting_files") if r["waits"]}

    stale, future = "bars_20250105.csv", "bars_29990101.csv"
    note_waiting(home, BARS, {stale: "Stale file handle", future: EARLY}, "r1")
    assert waiting() == {stale: ("Stale file handle", D[5]), future: (EARLY, date(2999, 1, 1))}
    note_waiting(home, BARS, {stale: "Stale file handle", future: EARLY}, "r2")
    note_waiting(home, BARS, {"x": "Permission denied"}, "r3", clear=False)
    note_waiting(home, TICKS, {}, "r4")
    assert set(waiting()) == {stale, future, "x"}
    note_waiting(home, BARS, {"x": "Permission denied"}, "r5")
    assert set(waiting()) == {"x"}
    assert len(ops.current_table(home, "waiting_files", as_log=True)) == 5
    assert early(date(2025, 2, 2), NOW) and not early(date(2025, 2, 1), NOW) and not early(None, NOW)


def test_the_last_line_names_what_was_left(tmp_path, capsys):
    out = tmp_path / "result.json"
    args = argparse.Namespace(source="sensor", start="2025-01-05", end="2025-01-06", run_id="r", result=out)
    nothing = {"files": 0, "days": [], "published": None}
    left = {"unread": 6, "waiting": 1, "left": [f"f{n}: no_format" for n in range(6)]}

    def last(result):
        assert step.call_step(args, "ingest", lambda *a, **k: result) == 0
        return capsys.readouterr().out.strip()

    assert last({**nothing, "unread": 0, "waiting": 0, "left": []}).endswith(": nothing to do")
    assert last(nothing).endswith(": nothing to do")
    assert last({**nothing, **left}).endswith(
        ": nothing to do, unread 6, waiting 1 "
        "(f0: no_format; f1: no_format; f2: no_format; f3: no_format; f4: no_format; …)"
    )
    assert last({**nothing, "files": 1, "unread": 1, "waiting": 0, "left": ["a: link"]}).endswith(
        ": files 1, days [], published None, unread 1 (a: link)"
    )
    march = [f"2025-03-{n:02}" for n in range(1, 22)]
    assert last({**nothing, "files": 1, "days": march}).endswith(
        ": files 1, days 21 from 2025-03-01 to 2025-03-21, published None"
    )
    assert last({**nothing, "files": 1, "days": march[::2]}).endswith(
        ": files 1, days 11 between 2025-03-01 and 2025-03-21, published None"
    )

    def failing(*args, **kwargs):
        raise FilesUnread(BARS, {"a\n\x1b[31m": "no_format"}, {"files": 1, "unread": 1, "waiting": 0, "left": ["a"]})

    with pytest.raises(FilesUnread, match=r"a\\n\\x1b\[31m \(no_format\)"):
        step.call_step(args, "ingest", failing)
    assert capsys.readouterr().out.strip().endswith(": files 1, unread 1 (a)")
    assert '"exit_code": 4' in out.read_text() and '"files": 1' in out.read_text()
