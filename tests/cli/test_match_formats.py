"""What ``match`` prints, what it says where nothing matches, and local times beside UTC."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from chainlake.cli.main import main
from chainlake.cli.tables import flat
from chainlake.cli.verbs.lake import changes
from chainlake.cli.verbs.lake.changes import _fields, _with_local
from chainlake.cli.zones import UnknownZone, shown_zone, source_of_table
from chainlake.paths import Home

EVENTS = """id,type,ts,door,temp
1,Open,2025-03-30T00:59:00Z,north,20
2,Heat,2025-03-30T01:00:00Z,north,41.5
3,Heat,2025-03-30T01:01:00Z,north,47
4,Heat,2025-03-30T01:02:00Z,south,60
"""
PAIR = "PATTERN SEQ(Open o, Heat h) WHERE o.door = h.door AND h.temp > 40 WITHIN 5 min MEASURES h.temp - o.temp AS rise"
SET = "PATTERN SEQ(Open o, Heat+ h) WHERE o.door = h.door WITHIN 5 min"


@pytest.fixture
def events(project: Path, tmp_path: Path) -> str:
    file = tmp_path / "doors.csv"
    file.write_text(EVENTS)
    return str(file)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert main(["match", *words]) == 0
    out, err = capsys.readouterr()
    return out, err


def test_a_table_has_times_and_what_the_pattern_mentions(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, PAIR, events, "--format", "table", "--zone", "Europe/Berlin")
    head, _, first, second, count = out.splitlines()
    assert head.split() == [
        "o.id",
        "o.ts",
        "o.local",
        "o.door",
        "h.id",
        "h.ts",
        "h.local",
        "h.door",
        "h.temp",
        "rise",
    ]
    # The clocks go forward between the two events.
    assert first.split() == [
        "1", "2025-03-30T00:59:00Z", "2025-03-30", "01:59:00+01:00", "north",
        "2", "2025-03-30T01:00:00Z", "2025-03-30", "03:00:00+02:00", "north", "41.5", "21.5",
    ]  # fmt: skip
    assert second.split()[-1] == "27.0" and count == "(2 rows)" and err == ""


RANKED = f"{PAIR} RANK BY MAX(h.temp) TOP 2 PER DAY"


@pytest.mark.parametrize("query", [PAIR, SET, RANKED], ids=["pair", "set", "ranked"])
@pytest.mark.parametrize("rows", [0, 1], ids=["no events", "no match"])
def test_the_header_is_the_same_whatever_is_found(
    query: str, rows: int, events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("".join(EVENTS.splitlines(keepends=True)[: rows + 1]))
    options = ("--format", "csv", "--zone", "Europe/Berlin")
    head, *found = said(capsys, query, events, *options)[0].splitlines()
    assert found and said(capsys, query, str(few), *options)[0].splitlines() == [head]
    assert ("rise,scope_start,scope_end,rank,score,criteria" in head) == (query == RANKED)


def test_csv_json_and_upright_say_the_same(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(said(capsys, PAIR, events, "--format", "csv")[0])))
    assert rows[1] == {
        "o.id": "1", "o.ts": "2025-03-30T00:59:00Z", "o.door": "north",
        "h.id": "3", "h.ts": "2025-03-30T01:01:00Z", "h.door": "north", "h.temp": "47.0", "rise": "27.0",
    }  # fmt: skip
    objects = json.loads(said(capsys, PAIR, events, "--format", "json")[0])
    assert objects[1] == {
        "o": {"id": 1, "ts": "2025-03-30T00:59:00Z", "door": "north"},
        "h": {"id": 3, "ts": "2025-03-30T01:01:00Z", "door": "north", "temp": 47.0},
        "rise": 27.0,
    }
    upright = said(capsys, PAIR, events, "--format", "vertical")[0].splitlines()
    assert upright[9:11] == ["-- row 2 --", "o.id    1"] and upright[-1] == "(2 rows)"
    assert said(capsys, PAIR, events)[0].splitlines()[1] == '{"o": 1, "h": 3, "rise": 27.0}'


def test_a_set_is_a_list_of_its_events(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, SET, events, "--format", "json")[0])
    assert [[one["id"] for one in match["h"]] for match in found] == [[2], [2, 3], [3]]
    rows = list(csv.DictReader(io.StringIO(said(capsys, SET, events, "--format", "csv")[0])))
    assert [one["door"] for one in json.loads(rows[1]["h"])] == ["north", "north"]


def test_a_branch_without_a_name_leaves_it_empty(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "PATTERN OR(SEQ(Open o), SEQ(Heat h) WHERE h.temp > 50) WITHIN 1 min"
    rows = list(csv.DictReader(io.StringIO(said(capsys, query, events, "--format", "csv")[0])))
    assert [(row["o.id"], row["h.id"]) for row in rows] in ([("1", ""), ("", "4")], [("", "4"), ("1", "")])


def test_where_nothing_matches_it_says_how_near_it_was(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "PATTERN SEQ(Open o, Heat h) WHERE o.door = h.door AND h.temp > 50 WITHIN 5 min"
    for form in ("lines", "table"):
        out, err = said(capsys, query, events, "--format", form)
        assert err == (
            "note: 0 matches in 4 events; events that fit on their own: 1 of 1 Open o; 1 of 3 Heat h. "
            "--near-misses shows what rejected them.\n"
        )
    assert out.endswith("(0 rows)\n")
    out, _ = said(capsys, query, events, "--near-misses")
    assert (
        "near misses in 4 events" in out
        and "1 rejected by: h.door = o.door" in out
        or "1 rejected by: o.door = h.door" in out
    )
    assert "matches decided in these files: 0" in out


def test_columns_are_the_same_where_nothing_matches(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    some, _ = said(capsys, PAIR, events, "--format", "csv")
    none, _ = said(capsys, PAIR.replace("> 40", "> 400"), events, "--format", "csv")
    assert none.splitlines() == some.splitlines()[:1] and none.endswith(",rise\n")


@pytest.mark.parametrize("more", [[], ["--episodes"]])
def test_a_zone_for_output_without_local_times_is_refused(
    more: list[str], events: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", PAIR, events, "--zone", "Europe/Berlin", *more]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "--zone is for output with local times" in told.err
    assert "2025-03-30T03:02:00+02:00" in said(capsys, PAIR, events, "--zone", "Europe/Berlin", "--near-misses")[0]


def test_near_misses_count_the_matches_that_there_are(events: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "files: 2" in said(capsys, PAIR, events, "--near-misses")[0]
    waiting = "PATTERN SEQ(Open o, Heat h, NOT(Heat x)) WHERE h.temp > 50 AND x.temp > 90 WITHIN 5 min"
    assert "files: 1" in said(capsys, waiting, events, "--near-misses")[0]


def test_the_zone_is_that_of_the_source(project: Path, home: Home) -> None:
    assert str(shown_zone(Home.from_env(), None, "stock")) == "America/New_York"
    assert shown_zone(Home.from_env(), "UTC", "stock") is None and shown_zone(Home.from_env(), None, None) is None
    assert shown_zone(Home.from_env(), None, "no_such_source") is None
    with pytest.raises(UnknownZone, match="no time zone 'America/New York'") as caught:
        shown_zone(Home.from_env(), "America/New York", None)
    assert caught.value.hint == "Did you mean America/New_York?"
    tables = {"matches.shakeout": "stock", "events.traffic": "traffic", "models.changes": None, "matches.none": None}
    assert {table: source_of_table(Home.from_env(), table) for table in tables} == tables


def test_changes_show_the_local_time_beside_ts() -> None:
    zone = shown_zone(Home.from_env(), "America/New_York", None)
    ts = datetime(2025, 7, 1, 12, tzinfo=UTC)
    event = {"event_id": "e", "ts": ts, "x": 1}
    shown = {"event_id": "e", "ts": ts, "local": "2025-07-01 08:00:00-04:00", "x": 1}
    assert _with_local(event, zone) == shown and _with_local([event], zone) == [shown]
    assert _with_local(event, None) == event and _with_local(ts, zone) == ts
    kind = pa.struct([("event_id", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("x", pa.int64())])
    assert _fields(kind, zone) == ["event_id", "ts", "local", "x"] and _fields(pa.int64(), zone) is None


def test_changes_show_the_local_time_beside_the_start_of_a_match() -> None:
    at, zone = datetime(2025, 7, 1, 2, tzinfo=UTC), ZoneInfo("America/New_York")
    table = pa.table({"match_id": ["m"], "start_ts": [at], "a": [{"ts": at}]})
    assert changes._named(table.column_names, zone) == ["match_id", "start_ts", "start_local", "a"]
    local = "2025-06-30 22:00:00-04:00"
    assert list(changes._rows(table, zone)) == [["m", at, local, {"ts": at, "local": local}]]
    assert list(changes._rows(table, None)) == [["m", at, {"ts": at}]]


def test_structs_become_columns() -> None:
    rows = iter([[1, {"x": 2, "y": 3}, [4]], [5, None, None]])
    columns, flattened = flat(["a", "b", "c"], [None, ["x", "y"], None], rows)
    assert columns == ["a", "b.x", "b.y", "c"] and list(flattened) == [[1, 2, 3, [4]], [5, None, None, None]]


@pytest.mark.slow
@pytest.mark.parametrize("safe", [[], ["--safe"]])
def test_sql_can_be_flat_and_upright(safe: list[str], home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    statement = "SELECT {'a': 1, 'b': 'x'} AS s, [1, 2] AS l, 3 AS n"
    assert main(["sql", *safe, "--flat", "--format", "csv", statement]) == 0
    assert capfd.readouterr().out == 's.a,s.b,l,n\n1,x,"[1, 2]",3\n'
    if not safe:
        assert main(["sql", "--format", "vertical", statement]) == 0
        assert capfd.readouterr().out == '-- row 1 --\ns  {"a": 1, "b": "x"}\nl  [1, 2]\nn  3\n(1 row)\n'


def test_sql_by_the_clock_of_a_zone(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """New York is 4 hours behind UTC in summer, 5 in winter."""
    statement = (
        "SELECT TIMESTAMPTZ '2025-07-01 02:00:00.5Z' AS a, {'ts': TIMESTAMPTZ '2025-12-01 02:00:00Z'} AS s, 3 AS n"
    )
    assert main(["sql", "--zone", "America/New_York", "--flat", "--format", "csv", statement]) == 0
    assert capsys.readouterr().out == "a,s.ts,n\n2025-06-30 22:00:00.500000,2025-11-30 21:00:00,3\n"
    assert main(["sql", "--zone", "UTC", "--format", "csv", statement]) == 0
    assert '2025-07-01 02:00:00.500000,"{""ts"": ""2025-12-01 02:00:00""}",3' in capsys.readouterr().out
    assert main(["sql", "--format", "csv", statement]) == 0
    assert "2025-07-01T02:00:00.500000Z" in capsys.readouterr().out
    assert main(["sql", "--zone", "Nowhere", statement]) == 2


def test_changes_of_a_table_with_times_of_its_own_have_local_ones() -> None:
    """As ``models.changes`` has, and tables of events; of two columns of one name, the table's own stays."""
    at, zone = datetime(2025, 7, 1, 2, tzinfo=UTC), ZoneInfo("America/New_York")
    table = pa.table({"model": ["m"], "ts": [at], "kind": ["change"]})
    assert changes._named(table.column_names, zone) == ["model", "ts", "local", "kind"]
    assert list(changes._rows(table, zone)) == [["m", at, "2025-06-30 22:00:00-04:00", "change"]]
    assert list(changes._rows(table, None)) == [["m", at, "change"]]
    own = table.append_column("local", pa.array(["mine"]))
    assert changes._named(own.column_names, zone) == own.column_names
    assert list(changes._rows(own, zone)) == [["m", at, "change", "mine"]]
