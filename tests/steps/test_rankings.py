"""Rankings in the lake: whatever happened on the way, they are those of one evaluation of all events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import chainlake as cl
from chainlake.cep.matches.best import ranked_rows, thinned
from chainlake.cep.matches.candidates import find_candidates, keeps_all
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.days import Days
from chainlake.detect import step
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.staleness import status_rows
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.retire import retire
from chainlake.operations.searched import last_search
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from chainlake.schemas.matches import matches_table
from tests.replay.light import light
from tests.replay.surroundings import quick, quiet
from tests.steps.history import day, deliver
from tests.steps.in_process import Row, backfill, of_lab, readings, run, states, with_files

pytestmark = pytest.mark.slow

#: Days with events, from a Saturday on, over the end of two weeks; on one more a match can be decided.
SPAN = 7
ALL = Days(day(0), day(SPAN + 1))
RISES = "SEQ(Reading p, Reading q) WHERE p.sensor = q.sensor AND q.x > p.x WITHIN 5 h "
PATTERNS = {
    "days": f"{RISES} RANK BY MAX(q.x - p.x) TOP 2 PER DAY FOR EACH p.sensor",
    "weeks": f"{RISES} MEASURES q.x - p.x AS rise RANK BY MAX(q.x - p.x) TOP 3 WITH TIES PER WEEK",
    "month": f"{RISES} RANK BY MAX(q.x) NORM 0 .. 5, MIN(q.ts - p.ts) NORM 0 s .. 18000 s COMBINE avg TOP 3 PER MONTH",
    "ever": f"{RISES} RANK BY MAX(q.x), MIN(p.x) COMBINE lex TOP 4 PER ALL DISTINCT ON p.sensor AT MOST 2",
    "zoned": f"{RISES} RANK BY MAX(q.x - p.x) TOP 2 PER DAY IN 'America/New_York' AT LEAST 1.5",
    "first": f"{RISES} RANK BY MAX(q.x + p.x) TOP 2 PER BUCKET 40 h BY FIRST QUANTUM 2",
    "hops": f"{RISES} RANK BY MAX(q.x - p.x) TOP 1 PER HOP 30 h STEP 10 h OFFSET 3 h",
    "apart": f"{RISES} RANK BY MAX(q.x - p.x) TOP 3 PER WEEK NON OVERLAPPING",
    "quiet": "SEQ(Reading p, NOT(Reading n)) WHERE p.sensor = n.sensor WITHIN 7 h RANK BY MAX(p.x) TOP 2 PER DAY",
    "used": f"{RISES} SELECT first CONSUME all RANK BY MAX(q.x - p.x) TOP 2 PER WEEK",
    "either": "OR(SEQ(Reading p, Reading q) RANK BY MAX(q.x - p.x), Reading p RANK BY MAX(p.x)) WITHIN 2 h "
    "TOP 3 PER WEEK",
    "sets": "SEQ(Reading p, Reading* q) WHERE p.sensor = 'a' AND q.sensor = 'b' WITHIN 3 h "
    "RANK BY MAX(SUM(q.x)) TOP 2 PER WEEK",
}  # fmt: skip
#: Those that are lived through, by what is odd about them.
PERIODS, RULES = ("weeks", "zoned", "hops"), ("ever", "first", "used")


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    with quiet(), quick(), light(**getattr(request, "param", {})):
        yield


def made(home: Home, **queries: str) -> Home:
    """A home with the source and some patterns."""
    return with_files(home, {name: of_lab(query) for name, query in queries.items()})


def events_of(rng: random.Random, number: int) -> list[Row]:
    """Some readings of a day; none on some."""
    return readings(rng, number, [0, 5, 9, 9], 5)


def rows_of(contents: dict[int, list[Row]]) -> pa.Table:
    """All events."""
    return pa.Table.from_pylist([row for rows in contents.values() for row in rows])


def expected(query: str, contents: dict[int, list[Row]]) -> list[Row]:
    """What the library finds in all events."""
    found = []
    for one in cl.match(f"PATTERN {query}", rows_of(contents), key="sensor"):
        bound = [one[name] for name in ("p", "q") if one.get(name)]
        ids = [i for ids in bound for i in (ids if isinstance(ids, list) else [ids])]
        score = one["score"] if isinstance(one["score"], list) else [one["score"]]
        per = json.dumps(json.loads(one["per"]) if isinstance(one.get("per"), str) else one.get("per", []))
        found.append((one.get("scope_start"), one.get("scope_end"), per, one["rank"], score, one["criteria"], ids))
    return sorted(found, key=repr)


def published(home: Home, name: str) -> list[Row]:
    if not tables.exists(home, "ranked", name):
        return []
    return as_rows(tables.arrow(home, "ranked", name))


def as_rows(rows: pa.Table) -> list[Row]:
    """Rows of a table of ranked matches, as :func:`expected` gives them."""
    found = []
    for row in rows.to_pylist():
        start = None if row["scope_kind"] == "all" else row["scope_start"]
        ids = [event["event_id"] for event in row["events"]]
        assert row["score"] == row["scores"][0]
        found.append((start, row["scope_end"], row["per"], row["rank"], row["scores"], row["criteria"], ids))
    return sorted(found, key=repr)


@pytest.mark.parametrize("names", [PERIODS, RULES], ids=["periods", "rules"])
def test_any_history_ends_with_the_rankings_of_all_events(home: Home, names: tuple[str, ...]) -> None:
    rng, lived = random.Random(names[0]), made(home, **{name: PATTERNS[name] for name in names})
    contents: dict[int, list[Row]] = {}
    coming = rng.sample(range(SPAN), SPAN)
    deliver(lived, {SPAN: []})
    for turn in range(3):
        new = [coming.pop() for _ in range(min(len(coming), 3))] if turn % 2 == 0 else [rng.randrange(SPAN)]
        fresh = {number: events_of(rng, number) for number in new}
        contents |= fresh
        deliver(lived, fresh)
        if rng.random() < 0.7:
            first = rng.randrange(SPAN)
            run(lived, Days(day(first), day(rng.randint(first + 1, SPAN + 1))), repair_horizon=rng.choice([0, 2, 7]))
        else:
            backfill(lived, rng.choice([ALL, None, Days(day(2), day(4))]), chunk=rng.choice([3, 30]))
    late = {number: events_of(rng, number) for number in coming}
    contents |= late
    deliver(lived, late)
    backfill(lived, ALL)
    assert {state for _, state in states(lived)} <= {"done"}
    for name in names:
        wanted = expected(PATTERNS[name], contents)
        assert wanted and published(lived, name) == wanted, name
    assert backfill(lived, ALL)["applications"] == 0


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_days_that_are_searched_one_by_one_have_the_best_of_all(name: str) -> None:
    rng, query = random.Random(name), PATTERNS[name]
    contents = {number: events_of(rng, number) for number in range(SPAN)}
    events = rows_of(contents).sort_by([("ts", "ascending"), ("event_id", "ascending")])
    kinds = {one.name: one.type for one in events.schema}
    pattern = compile_pattern(f"---\nsource: lab\n---\nPATTERN {query}", name=name, columns=kinds)
    schema = matches_table(match_shape(pattern, key="sensor", types=kinds)).arrow()
    end = ALL.micros()[1]
    cuts = [0, *sorted(rng.randrange(ALL.micros()[0], end) for _ in range(0 if name == "used" else 6)), end]
    parts = [schema.empty_table()]
    for own in pairwise(cuts):
        parts += [match_rows(pattern, events, some, schema) for some in find_candidates(pattern, events, own=own)]
    rows = pa.concat_tables(parts)
    if not keeps_all(pattern):
        rows = thinned(pattern, rows)
    rows = rows.take(pa.array(rng.sample(range(len(rows)), len(rows)), pa.int64()))
    wanted = expected(query, contents)
    assert wanted and as_rows(ranked_rows(pattern, rows, -(1 << 62), 1 << 62)) == wanted


def lived_in(home: Home, name: str = "weeks", query: str | None = None) -> tuple[Home, dict[int, list[Row]]]:
    """A home whose days are all computed."""
    found = made(home, **{name: query or PATTERNS[name]})
    contents = {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)}
    deliver(found, {**contents, SPAN: []})
    assert backfill(found, ALL)["days"] > SPAN
    return found, contents


def test_daily_runs_give_what_one_backfill_gives(home: Home) -> None:
    daily = made(home, weeks=PATTERNS["weeks"])
    contents = {number: events_of(random.Random(f"d{number}"), number) for number in range(4)}
    for number in contents:
        deliver(daily, {number: contents[number]})
        run(daily, Days.one(day(number)), repair_horizon=1)
    assert published(daily, "weeks") == expected(PATTERNS["weeks"], contents)
    assert states(daily) == {("pattern", "done"), ("ranked", "done")}
    version = tables.version(daily, "ranked", "weeks")
    assert run(daily, Days.one(day(3)))["days"] == 0
    assert tables.version(daily, "ranked", "weeks") == version


def test_a_period_is_provisional_until_its_days_are_done(home: Home) -> None:
    daily = made(home, weeks=PATTERNS["weeks"], ever=PATTERNS["ever"])
    contents = {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)}
    # From a Saturday on: the week of the first two days is over, the one after it is not.
    for number in range(3):
        deliver(daily, {number: contents[number]})
        run(daily, Days.one(day(number)), repair_horizon=1)
    rows = {row.day: row for row in status_rows(daily, all_definitions(daily)[0]) if row.definition == "ranked/weeks"}
    assert {str(one): (row.state, row.provisional) for one, row in rows.items()} == {
        "2025-02-24": ("done", False), "2025-03-03": ("done", True),
    }  # fmt: skip
    scopes = cl.Lake(daily).sql("SELECT * FROM ranked.weeks_scopes ORDER BY scope_start").to_pylist()
    assert [(str(one["scope_start"].date()), one["provisional"]) for one in scopes] == [
        ("2025-02-24", False), ("2025-03-03", True),
    ]  # fmt: skip
    assert all(one["matches"] >= 1 and one["theta"] > 0 for one in scopes)
    (ever,) = cl.Lake(daily).sql("SELECT * FROM ranked.ever_scopes").to_pylist()
    assert not ever["provisional"] and ever["scope_end"] is None
    deliver(daily, {3: contents[3]}, status="provisional")
    run(daily, Days.one(day(3)), patterns=["ever"])
    assert all(one["provisional"] for one in cl.Lake(daily).sql("SELECT * FROM ranked.ever_scopes").to_pylist())


def test_periods_whose_matches_come_back_are_announced_as_possible(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A correction is taken back before its matches had been merged."""
    lived, contents = lived_in(home, "days")
    deliver(lived, {3: []})
    with monkeypatch.context() as patched:
        patched.setattr(step, "run_rankings", killed)
        with pytest.raises(KeyboardInterrupt):
            backfill(lived, ALL)
    deliver(lived, {3: contents[3]})
    assert states(lived) == {(kind, state) for kind in ("pattern", "ranked") for state in ("done", "stale")}
    (application,) = plan_range(lived, ALL).applications
    (part,) = (one for one in application.parts if one.definition == "ranked/days")
    assert part.days == () and part.states == {} and day(3) in part.following
    version = tables.version(lived, "ranked", "days")
    backfill(lived, ALL)
    assert states(lived) == {("pattern", "done"), ("ranked", "done")}
    assert tables.version(lived, "ranked", "days") == version
    assert published(lived, "days") == expected(PATTERNS["days"], contents)


@pytest.mark.parametrize("name", ["hops", "weeks"])
def test_a_late_event_changes_the_periods_that_it_can_be_in(home: Home, name: str) -> None:
    lived, contents = lived_in(home, name)
    version = tables.version(lived, "ranked", name)
    at = datetime(2025, 3, 6, 11, 30, tzinfo=UTC)
    late = {"event_id": "f" * 32, "type": "Reading", "sensor": "a", "seq": 0, "y": 0.0, "event_date": day(5)}
    contents[5] = [*contents[5], {**late, "ts": at, "x": 40.0}]
    contents[5] += [{**late, "event_id": "e" * 32, "ts": at - timedelta(hours=1), "x": 0.0}]
    deliver(lived, {5: contents[5]})
    backfill(lived, None, only_stale=True)
    assert published(lived, name) == expected(PATTERNS[name], contents)
    moved = {
        (row["scope_start"], row["scope_end"])
        for row in cl.Lake(lived).changes(f"ranked.{name}", version).rows.to_pylist()
    }
    assert moved and all(start < at < end for start, end in moved)


def killed(*_: Any) -> None:
    """A step that the machine ends."""
    raise KeyboardInterrupt


def test_what_a_killed_run_has_not_merged_the_next_one_does(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(home, weeks=PATTERNS["weeks"])
    contents = {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)}
    deliver(found, {**contents, SPAN: []})

    with monkeypatch.context() as patched:
        patched.setattr(step, "run_rankings", killed)
        with pytest.raises(KeyboardInterrupt):
            backfill(found, ALL)
    assert states(found) == {("pattern", "done"), ("ranked", "missing")}
    (application,) = plan_range(found, ALL).applications
    assert [part.definition for part in application.parts] == ["ranked/weeks"]
    backfill(found, ALL)
    assert published(found, "weeks") == expected(PATTERNS["weeks"], contents)


@pytest.mark.parametrize(
    "change",
    [("PER WEEK", "PER DAY"), (PATTERNS["weeks"], RISES)],
    ids=["period", "no ranking"],
)
def test_an_edit_leaves_nothing_of_what_was_before(home: Home, change: tuple[str, str]) -> None:
    lived, contents = lived_in(home)
    query = PATTERNS["weeks"].replace(*change)
    made(home, weeks=query)
    backfill(lived, ALL)
    backfill(lived, None, only_stale=True)
    assert {state for _, state in states(lived)} == {"done"}
    if "TOP" in query:
        assert published(lived, "weeks") == expected(query, contents)
        return
    assert retire(lived, "ranked/weeks", drop=True, run_id="x")["dropped"] == ["ranked.weeks"]
    assert len(tables.arrow(lived, "matches", "weeks")) == len(list(cl.match(f"PATTERN {RISES}", rows_of(contents))))
    made(home, weeks=PATTERNS["weeks"])
    backfill(lived, ALL)
    assert published(lived, "weeks") == expected(PATTERNS["weeks"], contents)


def test_the_match_table_holds_what_can_be_among_the_best_of_its_day(home: Home) -> None:
    lived, contents = lived_in(home, "apart", PATTERNS["weeks"].replace("WITH TIES ", ""))
    per_day = tables.arrow(lived, "matches", "apart")["decision_ts"].cast(pa.date32()).value_counts().to_pylist()
    every = len(list(cl.match(f"PATTERN {RISES}", rows_of(contents))))
    assert max(one["counts"] for one in per_day) == 3 and sum(one["counts"] for one in per_day) < every


def test_matches_without_a_score_are_counted(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    query = "Reading p WITHIN 1 h RANK BY MAX(1 / p.x) TOP 2 PER DAY NON OVERLAPPING"
    lived, contents = lived_in(home, "inverse", query)
    unscored = sum(row["x"] == 0 for rows in contents.values() for row in rows)
    stated = [json.loads(row["stated"]) for row in ops.current(lived, "plans", definition="pattern/inverse")]
    assert max(one.get("unscored", 0) for one in stated) == unscored > 0
    assert published(lived, "inverse") == expected(query, contents)


@pytest.mark.parametrize(("score", "strategy"), [("1 / p.x", "B"), ("(1 / p.x) * q.x", "C")])
def test_matches_that_are_not_listed_have_names_without_numbers(
    home: Home, score: str, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = f"SEQ(Reading p, Reading q) WITHIN 8 d RANK BY MAX({score}) TOP 2 PER DAY"
    lived, contents = lived_in(home, "inverse", query)
    plans = [row for row in ops.current(lived, "plans", definition="pattern/inverse") if row["strategy"]]
    assert {row["strategy"] for row in plans} == {strategy}
    assert all("unscored" not in json.loads(row["stated"]) for row in plans)
    assert "some events of p give no number to rank by" in capsys.readouterr().out
    last, said = max(plans, key=lambda row: row["day"]), last_search(lived, "inverse")
    assert said is not None and f"up to {last['day']} by {strategy}: {last['partial']:,} partial matches, " in said
    assert said.endswith(last["why_not"] or "scored") and last_search(lived, "nothing") is None
    assert published(lived, "inverse") == expected(query, contents)
