"""Rankings in the lake: whatever happened on the way, they are those of one evaluation of all events."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import chainlake as cl
from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.lake.delta import tables
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.store.files import FilesLake
from chainlake.operations.backfill import run_here, run_plan
from chainlake.operations.plan import plan_range
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.replay.light import light
from tests.replay.surroundings import quick, quiet
from tests.steps.history import SOURCE, day, deliver

pytestmark = pytest.mark.slow

#: Days with events, from a Saturday on, over the end of two weeks; on one more a match can be decided.
SPAN = 10
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
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    with quiet(), quick(), light(**getattr(request, "param", {})):
        yield


def made(home: Home, name: str, query: str) -> Home:
    """A home with the source and one pattern."""
    config = home.root / "config"
    text = f"---\nsource: lab\n---\nPATTERN {query}\n"
    for path, content in (("sources/lab.yaml", SOURCE), (f"patterns/{name}.sase", text)):
        (config / path).parent.mkdir(parents=True, exist_ok=True)
        (config / path).write_text(content)
    return replace(home, config=config)


def events_of(rng: random.Random, number: int) -> list[Row]:
    """Some readings of a day; none on some."""
    rows = {}
    for _ in range(rng.choice([0, 5, 9, 9])):
        ts = datetime(2025, 3, 1, tzinfo=UTC) + timedelta(days=number, minutes=rng.randrange(1440))
        sensor = rng.choice("ab")
        rows[sensor, ts] = {
            "event_id": hashlib.md5(f"{sensor} {ts}".encode()).hexdigest(), "type": "Reading", "sensor": sensor,
            "ts": ts, "seq": 0, "x": float(rng.randrange(5)), "y": 0.0, "event_date": day(number),
        }  # fmt: skip
    return list(rows.values())


def ports(home: Home) -> Ports:
    return Ports(LocalTasks(), FilesLake(home))


def run(home: Home, days: Days, **options: Any) -> dict[str, Any]:
    return detect(home, "lab", days, run_id="r", ports=ports(home), **options)


def backfill(home: Home, days: Days | None, **options: Any) -> dict[str, Any]:
    plan = plan_range(home, days, **options)
    return run_plan(home, plan, run_id="b", launch=partial(run_here, ports=ports(home)), say=lambda line: None)


def states(home: Home) -> set[tuple[str, str]]:
    """How days of definitions stand."""
    rows = status_rows(home, all_definitions(home)[0])
    return {(row.definition.partition("/")[0], row.state) for row in rows}


def expected(query: str, contents: dict[int, list[Row]]) -> list[Row]:
    """What the library finds in all events."""
    events = [row for rows in contents.values() for row in rows]
    if not events:
        return []
    found = []
    for one in cl.match(f"PATTERN {query}", pa.Table.from_pylist(events), key="sensor"):
        bound = [one[name] for name in ("p", "q") if one.get(name)]
        ids = [i for ids in bound for i in (ids if isinstance(ids, list) else [ids])]
        score = one["score"] if isinstance(one["score"], list) else [one["score"]]
        per = json.dumps(json.loads(one["per"]) if isinstance(one.get("per"), str) else one.get("per", []))
        found.append((one.get("scope_start"), one.get("scope_end"), per, one["rank"], score, one["criteria"], ids))
    return sorted(found, key=repr)


def published(home: Home, name: str) -> list[Row]:
    if not tables.exists(home, "ranked", name):
        return []
    rows = tables.arrow(home, "ranked", name).to_pylist()
    found = []
    for row in rows:
        start = None if row["scope_kind"] == "all" else row["scope_start"]
        ids = [event["event_id"] for event in row["events"]]
        assert row["score"] == row["scores"][0]
        found.append((start, row["scope_end"], row["per"], row["rank"], row["scores"], row["criteria"], ids))
    return sorted(found, key=repr)


@pytest.mark.parametrize("name", sorted(PATTERNS))
@pytest.mark.parametrize("seed", range(1))
def test_any_history_ends_with_the_rankings_of_all_events(home: Home, name: str, seed: int) -> None:
    rng, query = random.Random(f"{name} {seed}"), PATTERNS[name]
    lived = made(home, name, query)
    contents: dict[int, list[Row]] = {}
    coming = rng.sample(range(SPAN), SPAN)
    deliver(lived, {SPAN: []})
    for _ in range(5):
        new = [coming.pop() for _ in range(min(len(coming), 3))] if rng.random() < 0.7 else [rng.randrange(SPAN)]
        fresh = {number: events_of(rng, number) for number in new}
        contents |= fresh
        deliver(lived, fresh)
        if rng.random() < 0.7:
            first = rng.randrange(SPAN)
            run(lived, Days(day(first), day(rng.randint(first + 1, SPAN + 1))), repair_horizon=rng.choice([0, 2, 7]))
        else:
            backfill(lived, rng.choice([ALL, None, Days(day(2), day(4))]), chunk=rng.choice([1, 3, 30]))
    late = {number: events_of(rng, number) for number in coming}
    contents |= late
    deliver(lived, late)
    backfill(lived, ALL, chunk=rng.choice([2, 30]))
    assert {state for _, state in states(lived)} <= {"done"}
    wanted = expected(query, contents)
    assert published(lived, name) == wanted
    assert wanted
    assert backfill(lived, ALL)["applications"] == 0
