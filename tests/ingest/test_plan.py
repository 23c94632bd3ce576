"""Which files a run takes, and which days it leaves in which state; no Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from chainlake.days import Days
from chainlake.definitions.source import load_source
from chainlake.errors import InputError
from chainlake.ingest.checksum import EMPTY_CHECKSUM
from chainlake.ingest.landing.completeness import Arrived, day_rows, passed_to, status_of
from chainlake.ingest.landing.discovery import Landed, Landing
from chainlake.ingest.landing.plan import effective, make_plan
from chainlake.ingest.parser_version import parser_version

BARS = load_source(Path(__file__).parent / "sources" / "bars.yaml")
TICKS = load_source(Path(__file__).parent / "sources" / "ticks.yaml")
NOW = datetime(2025, 1, 10, tzinfo=UTC)


def landed(path, day=None, file_id=None, problem=""):
    return Landed(path, f"/x/{path}", None, 1, "c", file_id or f"id of {path}", {}, day, 0, problem)


def row(path, file_id=None, day=None, definition=None, load="L", source=BARS, fields=()):
    return {
        "path": path,
        "file_id": file_id or f"id of {path}",
        "load_id": load,
        "file_date": day,
        "revision": 0,
        "path_fields": list(fields),
        "definition_hash": definition or source.definition_hash,
        "parser_version": parser_version(source),
    }


def plan(files, rows=(), event_days=(), days=("2025-01-05", "2025-01-06"), source=BARS, waiting=()):
    landing = Landing({f.path: f for f in files}, dict(waiting))
    return make_plan(source, Days.parse(*days), landing, list(rows), list(event_days))


def test_takes_the_backlog_and_the_undated_but_not_the_future():
    files = [
        landed("a", date(2025, 1, 1)),
        landed("b", date(2025, 1, 5)),
        landed("c", date(2025, 1, 6)),
        landed("d"),
        landed("known"),
        landed("changed", date(2025, 1, 9), "new"),
    ]
    found = plan(files, [row("known"), row("changed", "old")])
    assert [f.path for f in found.taken] == ["a", "b", "changed", "d"]


def test_local_dates_begin_in_their_zone_and_expected_files_are_due():
    # 6 January in New York begins at 05:00 UTC: after the end of the interval, and not expected for the 5th.
    assert plan([landed("20250106_spy_ticks", date(2025, 1, 6))], source=TICKS).taken == ()
    assert len(plan([landed("20250105_spy_ticks", date(2025, 1, 5))], source=TICKS).taken) == 1


def test_edited_definition_takes_all_or_stops():
    rows = [row("a", definition="old"), row("b", definition="old", day=date(2030, 1, 1))]
    found = plan([landed("a"), landed("b", date(2030, 1, 1))], rows)
    assert found.redefined and [f.path for f in found.taken] == ["a", "b"]
    with pytest.raises(InputError, match="1 are gone from landing: b"):
        plan([landed("a")], rows)


def test_dead_attempts_are_work():
    found = plan([], event_days=[{"day": date(2025, 1, 1), "status": "changing"}])
    assert not found.idle and found.changing == {date(2025, 1, 1)}


def test_same_content_is_parsed_once_and_named_by_its_smallest_path():
    rows = [row("z", "same", load="1"), row("b", "same", load="1"), row("c", definition="old")]
    assert [(f.name, f.load_id) for f in effective(BARS, rows)] == [("b", "1")]
    assert plan([landed("y", None, "same")], rows[:2]).reusable()["same"]["load_id"] == "1"


def test_touched_loads_are_of_the_same_path_content_or_scope():
    rows = [
        row("a", day=date(2025, 1, 1), load="scope"),
        row("b", "old", load="path"),
        row("c", "same", load="content"),
        row("d", day=date(2025, 1, 2), load="none"),
    ]
    found = plan([landed("x", date(2025, 1, 1)), landed("b", None, "new"), landed("y", None, "same")], rows)
    assert {row["load_id"] for row in found.rows_touched()} == {"scope", "path", "content"}


def test_key_of_the_path_is_written_as_events_write_it():
    (found,) = effective(TICKS, [row("20250101_spy_ticks", source=TICKS, fields=[("key", "spy")])])
    assert found.key == "SPY"


@pytest.mark.parametrize(
    ("day", "paths", "status"),
    [
        (date(2025, 1, 5), {"bars_20250105.csv"}, "complete"),
        (date(2025, 1, 5), set(), "provisional"),
        (date(2025, 1, 9), set(), "open"),
        (date(2025, 1, 12), {"bars_20250112.csv"}, "open"),
    ],
)
def test_status(day, paths, status):
    assert status_of(BARS, day, Arrived(paths), date(2025, 1, 12), NOW) == status


def test_every_day_from_the_first_event_day_on_has_a_row():
    counts = {"rows": 2, "duplicates": 0, "conflicts": 0, "superseded": 0, "rows_raw": 2, "checksum": "x"}
    current = {date(2025, 1, 3): {**counts, "status": "provisional", "events_version": 4}}
    rows = day_rows(BARS, current, {date(2025, 1, 5): counts}, Arrived({"bars_20250103.csv"}), date(2025, 1, 7), NOW, 9)
    assert {r["day"].day: (r["status"], r["rows"], r["events_version"]) for r in rows} == {
        3: ("complete", 2, 4),
        4: ("provisional", 0, 9),
        5: ("provisional", 2, 9),
        6: ("provisional", 0, 9),
    }
    assert next(r for r in rows if r["day"].day == 4)["checksum"] == EMPTY_CHECKSUM
    # Nothing to say about days before the first event, nor where there never was one.
    assert day_rows(BARS, {}, {}, Arrived(()), date(2025, 1, 7), NOW, None) == []


def test_backfills_in_any_order_have_passed_the_same_days():
    runs = [
        {"step": "ingest", "phase": "ingest", "status": "ok", "day_to": date(2025, 1, 9)},
        {"step": "ingest", "phase": "ingest", "status": "failed", "day_to": date(2025, 2, 1)},
        {"step": "ingest", "phase": "parse", "status": "ok", "day_to": date(2025, 3, 1)},
    ]
    assert passed_to(Days.parse("2025-01-01", "2025-01-02"), runs) == date(2025, 1, 9)


@pytest.mark.parametrize(
    ("form", "rule", "again"),
    [
        ("iso", "", False),
        ("'%d.%m.%Y %H:%M'", "", False),
        ("epoch_ms", "", False),
        ("'%a %d.%m.%Y'", "", True),
        ("'%Y%m%d %H:%M'", "", True),
        ("iso", "path: {pattern: '(?P<date>.*)', date_format: '%a %d.%m.%Y'}\n", True),
    ],
)
def test_only_files_whose_times_are_read_otherwise_are_read_again(tmp_path, form, rule, again):
    text = (
        f"key: k\ntype: A\nattributes: {{v: {{type: double}}}}\n{rule}formats: [time: {{column: ts, format: {form}}}]\n"
    )
    (tmp_path / "x.yaml").write_text(text)
    source = load_source(tmp_path / "x.yaml")
    old = row("a", source=source) | {"parser_version": 4}
    assert [f.path for f in plan([landed("a")], [old], source=source).taken] == ["a"] * again
    assert plan([landed("a")], [row("a", source=source)], source=source).idle
