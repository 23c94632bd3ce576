"""Episodes in the lake: whatever happened on the way, they are those of one evaluation of all events."""

from __future__ import annotations

import hashlib
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
from chainlake.errors import InputError
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

#: Days with events; on two more an episode can be decided.
SPAN = 6
ALL = Days(day(0), day(SPAN + 2))
PATTERNS = {
    "rises": "SEQ(Reading p, Reading q) WHERE p.sensor = q.sensor AND q.x > p.x + 1 WITHIN 5 h "
    "MEASURES q.x - p.x AS severity EPISODES BY sensor PAUSE 3 h",
    "quiet": "SEQ(Reading p, NOT(Reading n)) WHERE p.sensor = n.sensor AND p.x < 1 WITHIN 4 h "
    "EPISODES BY p.sensor PAUSE 20 h",
    "whole": "SEQ(Reading p, Reading q) WHERE q.x > p.x + 1 WITHIN 3 h EPISODES BY p.type PAUSE 12 h",
}
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    with quiet(), quick(), light():
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
    for _ in range(rng.choice([0, 6, 12, 12])):
        ts = datetime(2025, 3, 1, tzinfo=UTC) + timedelta(days=number, minutes=rng.randrange(1440))
        sensor = rng.choice("ab")
        rows[sensor, ts] = {
            "event_id": hashlib.md5(f"{sensor} {ts}".encode()).hexdigest(), "type": "Reading", "sensor": sensor,
            "ts": ts, "seq": 0, "x": float(rng.randrange(4)), "y": 0.0, "event_date": day(number),
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
    for _ in range(6):
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
