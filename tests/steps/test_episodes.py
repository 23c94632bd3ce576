"""Episodes in the lake: whatever happened on the way, they are those of one evaluation of all events."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import chainlake as cl
from chainlake.catalog.patterns import load_patterns
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.detect import step
from chainlake.detect.episodes import run as making
from chainlake.detect.episodes.published import PublishedMatches, episode_rows
from chainlake.detect.episodes.validated import validate_episodes
from chainlake.errors import AuditFailed, InputError
from chainlake.lake.delta import tables
from chainlake.lake.delta.reader import open_table
from chainlake.lake.records.staleness import status_rows
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.check import Scope
from chainlake.operations.maintain import maintain
from chainlake.operations.repair import repair
from chainlake.operations.retire import retire
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from chainlake.quality import Audit, AuditResult
from chainlake.quality import audit as auditing
from chainlake.quality.gates.episodes import audit_episodes
from tests.replay.light import light
from tests.replay.surroundings import quick, quiet
from tests.steps.history import day, deliver
from tests.steps.in_process import Row, backfill, of_lab, readings, run, states, with_files

pytestmark = pytest.mark.slow

#: Days with events; on two more an episode can be decided.
SPAN = 6
ALL = Days(day(0), day(SPAN + 2))
PATTERNS = {
    "rises": "SEQ(Reading p, Reading q) WHERE p.sensor = q.sensor AND q.x > p.x + 1 WITHIN 5 h "
    "MEASURES q.x - p.x AS severity EPISODES BY sensor PAUSE 3 h",
    "quiet": "SEQ(Reading p, NOT(Reading n)) WHERE p.sensor = n.sensor AND p.x < 1 WITHIN 4 h "
    "EPISODES BY p.sensor PAUSE 20 h",
    "pairs": "SEQ(Reading p, Reading q) WHERE q.x > p.x WITHIN 6 h CONTEXT chronicle MEASURES q.x AS severity "
    "EPISODES BY p.sensor PAUSE 5 h",
    "whole": "SEQ(Reading p, Reading q) WHERE q.x > p.x + 1 WITHIN 3 h EPISODES BY p.type PAUSE 12 h",
}


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    with quiet(), quick(), light(**getattr(request, "param", {})):
        yield


def made(home: Home, name: str, query: str) -> Home:
    """A home with the source and one pattern."""
    return with_files(home, {name: of_lab(query)})


def events_of(rng: random.Random, number: int) -> list[Row]:
    """Some readings of a day; none on some."""
    return readings(rng, number, [0, 6, 12, 12], 4)


def expected(query: str, contents: dict[int, list[Row]]) -> list[Row]:
    """What the library finds in all events."""
    events = [row for rows in contents.values() for row in rows]
    if not events:
        return []
    return [
        {"key": one["key"], "start_ts": one["start"], "end_ts": one["end"], "decision_ts": one["decided"],
         "matches": one["matches"], "severity": one.get("severity")}
        for one in cl.episodes(f"PATTERN {query}", pa.Table.from_pylist(events), key="sensor")
    ]  # fmt: skip


def published(home: Home, name: str) -> list[Row]:
    if not tables.exists(home, "episodes", name):
        return []
    rows = tables.arrow(home, "episodes", name).to_pylist()
    for row in rows:
        assert row["match_ids"][0] == row.pop("first_match")
        assert row.pop("top_match") in row["match_ids"] and len(row.pop("match_ids")) == min(row["matches"], 100)
    return sorted(rows, key=lambda row: (row["key"], row["start_ts"]))


@pytest.mark.parametrize("name", sorted(PATTERNS))
@pytest.mark.parametrize("seed", range(2))
def test_any_history_ends_with_the_episodes_of_all_events(home: Home, name: str, seed: int) -> None:
    rng, query = random.Random(f"{name} {seed}"), PATTERNS[name]
    lived = made(home, name, query)
    contents: dict[int, list[Row]] = {}
    coming = rng.sample(range(SPAN), SPAN)
    deliver(lived, {SPAN: [], SPAN + 1: []})
    for _ in range(4):
        new = (
            [coming.pop() for _ in range(min(len(coming), 2))]
            if coming and rng.random() < 0.6
            else [rng.randrange(SPAN)]
        )
        fresh = {number: events_of(rng, number) for number in new}
        contents |= fresh
        deliver(lived, fresh)
        try:
            if rng.random() < 0.7:
                first = rng.randrange(SPAN)
                run(
                    lived, Days(day(first), day(rng.randint(first + 1, SPAN + 2))), repair_horizon=rng.choice([0, 2, 7])
                )
            else:
                backfill(lived, rng.choice([ALL, None, Days(day(2), day(4))]), chunk=rng.choice([1, 2, 30]))
        except InputError:
            # A day before was never computed, or its events have not come.
            pass
    late = {number: events_of(rng, number) for number in coming}
    contents |= late
    deliver(lived, late)
    backfill(lived, ALL, chunk=rng.choice([1, 30]))
    assert {state for _, state in states(lived)} <= {"done"}
    wanted = expected(query, contents)
    assert published(lived, name) == wanted
    assert wanted
    assert backfill(lived, ALL)["applications"] == 0


def test_days_that_wait_for_one_before_them_are_done_by_the_backfill_that_does_it(home: Home) -> None:
    """A day that never came before has come, and a later one came anew: the chain could not be gone through."""
    rng = random.Random(7)
    lived = made(home, "pairs", PATTERNS["pairs"])
    days = {number: events_of(rng, number) or events_of(rng, number) for number in range(2, SPAN)}
    deliver(lived, days | {SPAN: [], SPAN + 1: []})
    backfill(lived, ALL)
    days |= {0: events_of(rng, 0), 1: [], 4: events_of(rng, 4)}
    deliver(lived, {number: days[number] for number in (0, 1, 4)})
    with pytest.raises(InputError):
        run(lived, Days(day(5), day(6)), repair_horizon=2)
    assert ("episodes", "waiting") in states(lived)
    backfill(lived, ALL)
    assert states(lived) == {("pattern", "done"), ("episodes", "done")}
    assert published(lived, "pairs") == expected(PATTERNS["pairs"], days)


def test_a_day_that_begins_empty_since_matches_have_gone_is_made_by_the_run_that_withdrew_them(home: Home) -> None:
    """What was open before it is no longer, and it lies behind the days that were asked for."""
    reading = {"sensor": "a", "x": 0.0, "y": 0.0, "type": "Reading", "seq": 0}

    def on(number: int, x: float) -> list[Row]:
        ts = datetime(2025, 3, 1, 10, tzinfo=UTC) + timedelta(days=number)
        return [{**reading, "event_id": f"{number:032d}", "ts": ts, "x": x, "event_date": day(number)}]

    lived, days = made(home, "quiet", PATTERNS["quiet"]), {0: on(0, 0.0), 1: on(1, 0.0), 2: [], 3: on(3, 0.0)}
    deliver(lived, days | {4: [], 5: []})
    backfill(lived, Days(day(0), day(6)))
    days[1] = on(1, 2.0)
    deliver(lived, {1: days[1]})
    run(lived, Days.one(day(1)), repair_horizon=0)
    assert {state for definition, state in states(lived) if definition == "episodes"} == {"done"}
    assert published(lived, "quiet") == expected(PATTERNS["quiet"], days)


def lived_in(home: Home, name: str = "rises", query: str | None = None) -> tuple[Home, dict[int, list[Row]]]:
    """A home whose days are all computed."""
    found = made(home, name, query or PATTERNS[name])
    contents = {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)}
    deliver(found, {**contents, SPAN: [], SPAN + 1: []})
    assert backfill(found, ALL)["days"] > SPAN
    return found, contents


def test_daily_runs_give_what_one_backfill_gives(home: Home) -> None:
    daily = made(home, "rises", PATTERNS["rises"])
    contents = {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)}
    for number in range(SPAN + 2):
        deliver(daily, {number: contents.get(number, [])})
        run(daily, Days.one(day(number)))
    assert published(daily, "rises") == expected(PATTERNS["rises"], contents)
    assert {state for _, state in states(daily)} == {"done"}
    version = tables.version(daily, "episodes", "rises")
    for number in range(SPAN + 2):
        assert run(daily, Days.one(day(number)))["days"] == 0
    assert tables.version(daily, "episodes", "rises") == version


def test_an_edit_of_the_clause_computes_no_match_again(home: Home) -> None:
    lived, contents = lived_in(home)
    version = tables.version(lived, "matches", "rises")
    query = PATTERNS["rises"].replace("PAUSE 3 h", "PAUSE 9 h")
    made(home, "rises", query)
    assert states(lived) == {("pattern", "done"), ("episodes", "stale")}
    plan = plan_range(lived, None)
    assert [[part.definition for part in one.parts] for one in plan.applications] == [["episodes/rises"]]
    assert plan.applications[0].definitions == ["rises"] and plan.applications[0].parts[0].states.keys() == {"stale"}
    backfill(lived, None, only_stale=True)
    assert published(lived, "rises") == expected(query, contents)
    assert tables.version(lived, "matches", "rises") == version
    assert states(lived) == {("pattern", "done"), ("episodes", "done")}


@pytest.mark.parametrize("chunk", [2, 30])
def test_days_whose_matches_come_back_are_announced_as_possible(
    home: Home, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """A correction is taken back before its matches had become episodes."""
    lived, contents = lived_in(home)
    deliver(lived, {number: [] for number in (2, 3)})
    with monkeypatch.context() as patched:
        patched.setattr(step, "run_episodes", killed)
        with pytest.raises(KeyboardInterrupt):
            backfill(lived, ALL)
    deliver(lived, {number: contents[number] for number in (2, 3)})
    assert states(lived) >= {("pattern", "stale"), ("episodes", "stale")}
    parts = [part for one in plan_range(lived, ALL).applications for part in one.parts]
    (some,) = [part for part in parts if part.definition == "episodes/rises"]
    assert some.days == () and some.states == {} and {day(2), day(3)} <= set(some.following)
    version = tables.version(lived, "episodes", "rises")
    backfill(lived, ALL, chunk=chunk)
    assert states(lived) == {("pattern", "done"), ("episodes", "done")}
    assert tables.version(lived, "episodes", "rises") == version
    assert published(lived, "rises") == expected(PATTERNS["rises"], contents)


def test_a_restate_does_not_announce_days_whose_matches_were_never_searched_for(home: Home) -> None:
    """An episode was decided on a day without events, which then come, along with a correction of an earlier day."""
    query = PATTERNS["pairs"].replace("PAUSE 5 h", "PAUSE 40 h")
    lived, contents = made(home, "pairs", query), {n: events_of(random.Random(f"d{n}"), n) for n in (0, 1, 3)}
    deliver(lived, {0: contents[0], 1: contents[1], **{number: [] for number in range(2, SPAN + 2)}})
    backfill(lived, ALL)
    contents[0] = contents[0][1:]
    deliver(lived, {number: contents[number] for number in (0, 3)})
    backfill(lived, None, only_stale=True)
    assert states(lived) >= {("pattern", "missing"), ("episodes", "stale")}
    backfill(lived, ALL)
    assert states(lived) == {("pattern", "done"), ("episodes", "done")}
    assert published(lived, "pairs") == expected(query, contents)


def test_a_backfill_makes_no_day_behind_its_own_that_was_never_made(home: Home) -> None:
    """The last episode is decided a day after the last events."""
    query = PATTERNS["pairs"].replace("PAUSE 5 h", "PAUSE 20 h")
    lived, contents = made(home, "pairs", query), {0: events_of(random.Random("d1"), 0)}
    deliver(lived, contents | {1: [], 2: []})
    backfill(lived, Days.one(day(0)))
    assert states(lived) == {("pattern", "done"), ("episodes", "done"), ("episodes", "missing")}
    backfill(lived, Days(day(1), day(3)))
    assert states(lived) == {("pattern", "done"), ("episodes", "done")}
    assert published(lived, "pairs") == expected(query, contents) != []


def killed(*_: Any) -> None:
    """A step that the machine ends."""
    raise KeyboardInterrupt


def test_a_new_version_of_the_match_table_is_followed_at_once(home: Home) -> None:
    lived, contents = lived_in(home)
    query = PATTERNS["rises"].replace("AS severity", "AS severity, q.y AS other").replace("> p.x + 1", "> p.x")
    made(home, "rises", query)
    backfill(lived, ALL)
    assert "other" in tables.arrow_schema(lived, "matches", "rises").names
    assert states(lived) == {("pattern", "done"), ("episodes", "done")}
    assert published(lived, "rises") == expected(query, contents)


def test_days_wait_for_their_matches_and_for_the_days_before(home: Home) -> None:
    found = made(home, "rises", PATTERNS["rises"])
    deliver(found, {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)})
    with pytest.raises(InputError, match="episodes/rises cannot continue to 2025-03-05"):
        run(found, Days.one(day(4)), repair_horizon=0)
    rows = {row.day: row for row in status_rows(found, all_definitions(found)[0]) if row.definition == "episodes/rises"}
    assert rows[day(4)].state == "waiting" and "its matches are not published yet" in rows[day(4)].why
    backfill(found, None)
    assert {row.state for row in status_rows(found, all_definitions(found)[0]) if row.ready} == {"done"}


@pytest.mark.parametrize("in_this_process", [{"ops_in_memory": False}], indirect=True)
def test_the_view_of_open_ones_and_where_rows_came_from(home: Home) -> None:
    found = made(home, "rises", PATTERNS["rises"])
    contents = {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)}
    for number in range(4):
        deliver(found, {number: contents[number]})
        run(found, Days.one(day(number)))
    lake = cl.Lake(found)
    assert "episodes.rises_open" in lake.tables() and "episodes.rises" in lake.tables()
    open_ = lake.sql("SELECT * FROM episodes.rises_open ORDER BY start_ts").to_pylist()
    known = {number: contents[number] for number in range(4)}
    whole = expected(PATTERNS["rises"], known)
    midnight = datetime(2025, 3, 5, tzinfo=UTC)
    assert [(row["key"], row["start_ts"], row["matches"]) for row in open_] == sorted(
        ((row["key"], row["start_ts"], row["matches"]) for row in whole if row["decision_ts"] >= midnight),
        key=lambda row: row[1],
    )
    assert open_ and {row["day"] for row in open_} == {day(3)}
    rows = lake.sql("SELECT DISTINCT day, published_by FROM episodes.rises_origin ORDER BY 1").to_pylist()
    assert rows and {row["published_by"] for row in rows} == {"r"}
    feed = lake.changes("episodes.rises", 0).rows
    assert set(feed["change"].to_pylist()) == {"added"}


def test_the_gate_sees_what_the_matches_do_not_give(home: Home) -> None:
    lived, _ = lived_in(home)
    (compiled,), _ = load_patterns(lived, load_sources(lived))
    matches = PublishedMatches(lived, compiled, day(0)).of(ALL.micros()[0], ALL.micros()[1])
    rows = tables.arrow(lived, "episodes", "rises")
    episodes = compiled.episodes
    assert episodes is not None and len(rows) > 3

    def verdict(staged: pa.Table) -> list[bool]:
        frames: list[Any] = []
        audit = Audit(lived)
        audit.run = lambda template, df, *_, **__: frames.append(df) or AuditResult("", True)  # type: ignore[method-assign]
        audit_episodes(audit, episodes.table, staged, matches, ALL, episodes.timing)
        return list(map(bool, frames[0]["as_found"]))

    assert verdict(rows) == [True] * len(rows)
    assert verdict(rows.slice(1)).count(False) == 1
    for name, value in (("matches", 99), ("key", "z"), ("severity", 0.5), ("top_match", "0" * 32)):
        column = rows[name].to_pylist()
        changed = pa.array([value, *column[1:]], rows.schema.field(name).type)
        at = rows.schema.get_field_index(name)
        assert verdict(rows.set_column(at, rows.schema.field(name), changed)).count(False) == 1, name


@pytest.mark.parametrize("in_this_process", [{"audits": True}], indirect=True)
def test_an_episode_that_the_matches_do_not_give_is_not_published(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(home, "rises", PATTERNS["rises"])
    deliver(found, {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)})
    whole = episode_rows

    def wrong(episodes: Any, decided: pa.Table) -> pa.Table:
        rows = whole(episodes, decided)
        at = rows.schema.get_field_index("matches")
        return rows.set_column(at, rows.schema.field("matches"), pa.compute.add(rows["matches"], 1))

    monkeypatch.setattr(making, "episode_rows", wrong)
    with pytest.raises(AuditFailed, match="the published matches give this episode, and no other"):
        backfill(found, ALL)
    assert ("episodes", "audit_failed") in states(found)


#: What asks Great Expectations, and what starts it.
ASKED, STARTED = Audit.run, auditing.warm_up


def test_what_is_published_is_compared_with_its_matches(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    lived, _ = lived_in(home)
    monkeypatch.setattr(Audit, "run", ASKED)
    monkeypatch.setattr(auditing, "warm_up", STARTED)
    compiled, _ = load_patterns(lived, load_sources(lived))

    def validated(days: Days) -> tuple[int, dict[date, str]]:
        (found,) = validate_episodes(Audit(lived), compiled, days)
        assert found.what == "episodes/rises"
        return len(found.days), found.broken

    assert validated(ALL)[1] == {}
    assert validated(Days(day(2), day(4))) == (2, {})
    lost = {row["decision_ts"].date() for row in published(lived, "rises") if row["matches"] > 1}
    open_table(lived, "episodes", "rises", to_write=True).delete("matches > 1")
    _, broken = validated(ALL)
    assert lost and broken.keys() == lost
    assert all("the published matches give this episode" in why for why in broken.values())


def test_lost_rows_are_found_and_made_again_from_the_matches(home: Home) -> None:
    lived, contents = lived_in(home)
    whole = published(lived, "rises")
    open_table(lived, "episodes", "rises", to_write=True).delete("matches > 1")
    assert published(lived, "rises") != whole
    checked, repaired = repair(lived, run_id="c", scope=Scope(tables=("episodes.rises",)), say=lambda line: None)
    assert any("published" in one.what for one in checked.damage)
    assert any(line.startswith("episodes/rises: ") for line in repaired.done)
    assert repaired.commands == ["chainlake restate --source lab"]
    version = tables.version(lived, "matches", "rises")
    backfill(lived, None, only_stale=True)
    assert published(lived, "rises") == whole == expected(PATTERNS["rises"], contents)
    assert tables.version(lived, "matches", "rises") == version


def test_a_table_that_is_gone_is_made_again(home: Home) -> None:
    lived, contents = lived_in(home)
    shutil.rmtree(lived.table("episodes", "rises"))
    backfill(lived, None, only_stale=True)
    assert published(lived, "rises") == expected(PATTERNS["rises"], contents)


def test_they_are_retired_with_their_pattern_or_without(home: Home) -> None:
    lived, contents = lived_in(home)
    with pytest.raises(InputError, match="in use"):
        retire(lived, "episodes/rises", drop=True, run_id="x")
    made(home, "rises", PATTERNS["rises"].partition(" EPISODES")[0])
    assert states(lived) == {("pattern", "done")}
    assert retire(lived, "episodes/rises", drop=True, run_id="x")["dropped"] == ["episodes.rises"]
    assert not tables.exists(lived, "episodes", "rises") and tables.exists(lived, "matches", "rises")
    made(home, "rises", PATTERNS["rises"])
    backfill(lived, ALL)
    assert published(lived, "rises") == expected(PATTERNS["rises"], contents)
    (lived.config / "patterns" / "rises.sase").unlink()
    assert retire(lived, "rises", drop=True, run_id="y")["dropped"] == ["episodes.rises", "matches.rises"]


def test_tables_are_maintained(home: Home) -> None:
    lived, _ = lived_in(home)
    assert maintain(lived, run_id="m", only=["episodes.rises"])["tables"] == 1
