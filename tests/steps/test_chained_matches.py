"""Patterns that use events up: whatever happened on the way, the lake has the matches of one sequential evaluation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.errors import InputError
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
from tests.steps.consuming import KINDS, SOURCE, Kind, Row, events_of, published
from tests.steps.history import day, deliver

SPAN = 6
ALL = Days(day(0), day(SPAN))


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    with quiet(), quick(), light():
        yield


def made(home: Home, name: str, text: str) -> Home:
    """A home with the source and one pattern."""
    config = home.root / "config"
    for path, content in (("sources/lab.yaml", SOURCE), (f"patterns/{name}.sase", text)):
        (config / path).parent.mkdir(parents=True, exist_ok=True)
        (config / path).write_text(content)
    return replace(home, config=config)


def ports(home: Home) -> Ports:
    return Ports(LocalTasks(), FilesLake(home))


def run(home: Home, days: Days, **options: Any) -> dict[str, Any]:
    return detect(home, "lab", days, run_id="r", ports=ports(home), **options)


def backfill(home: Home, days: Days | None, **options: Any) -> dict[str, Any]:
    plan = plan_range(home, days, **options)
    return run_plan(home, plan, run_id="b", launch=partial(run_here, ports=ports(home)), say=lambda line: None)


def states(home: Home) -> dict[int, str]:
    """Day → how it stands."""
    rows = status_rows(home, all_definitions(home)[0])
    return {(row.day - day(0)).days: row.state for row in rows}


def same(home: Home, name: str, kind: Kind, contents: dict[int, list[Row]]) -> None:
    """The lake has what the plain evaluation gives."""
    events = [row for rows in contents.values() for row in rows]
    assert published(home, name, kind) == kind.expected(events)


@pytest.mark.parametrize("name", sorted(KINDS))
@pytest.mark.parametrize("seed", range(13))
def test_any_history_ends_as_one_sequential_evaluation(home: Home, name: str, seed: int) -> None:
    rng, kind = random.Random(f"{name} {seed}"), KINDS[name]
    lived = made(home, name, kind.text())
    contents: dict[int, list[Row]] = {}
    coming = rng.sample(range(SPAN), SPAN)
    for _ in range(9):
        if coming and rng.random() < 0.6:
            # Two days at a time, often out of order: a later day can be computed before an earlier one has events.
            new = {coming.pop(): None for _ in range(min(len(coming), 2))}
        else:
            new = dict.fromkeys(rng.sample(range(SPAN), 1))
        fresh = {number: events_of(rng, number) for number in new}
        contents |= fresh
        deliver(lived, fresh)
        try:
            if rng.random() < 0.7:
                first = rng.randrange(SPAN)
                run(lived, Days(day(first), day(rng.randint(first + 1, SPAN))), repair_horizon=rng.choice([0, 2, 7]))
            else:
                backfill(lived, rng.choice([ALL, None, Days(day(2), day(4))]), chunk=rng.choice([1, 2, 30]))
        except InputError:
            # The day before was never computed, or its events have not come.
            pass
    late = {number: events_of(rng, number) for number in coming}
    contents |= late
    deliver(lived, late)
    backfill(lived, ALL, chunk=rng.choice([1, 30]))
    assert set(states(lived).values()) <= {"done"}
    same(lived, name, kind, contents)
    assert backfill(lived, ALL) == {"applications": 0, "days": 0, "added": 0, "changed": 0, "withdrawn": 0}
