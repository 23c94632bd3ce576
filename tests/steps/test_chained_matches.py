"""Patterns that use events up: whatever happened on the way, the lake has the matches of one sequential evaluation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from deltalake import DeltaTable

from chainlake.days import Days
from chainlake.detect.chained import course, rounds
from chainlake.errors import InputError, LimitExceeded
from chainlake.lake import faults
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.records.staleness import status_rows
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from chainlake.run.chains import ChainBlocked
from tests.replay.light import light
from tests.replay.surroundings import quick, quiet
from tests.steps.consuming import KINDS, SOURCE, Kind, Row, events_of, published
from tests.steps.history import day, deliver
from tests.steps.in_process import backfill, run, with_files

pytestmark = pytest.mark.slow

SPAN = 6
ALL = Days(day(0), day(SPAN))


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    with quiet(), quick(), light():
        yield


def made(home: Home, name: str, text: str) -> Home:
    """A home with the source and one pattern."""
    return with_files(home, {name: text}, SOURCE)


def states(home: Home) -> dict[int, str]:
    """Day → how it stands."""
    rows = status_rows(home, all_definitions(home)[0])
    return {(row.day - day(0)).days: row.state for row in rows}


def same(home: Home, name: str, kind: Kind, contents: dict[int, list[Row]]) -> None:
    """The lake has what the plain evaluation gives."""
    events = [row for rows in contents.values() for row in rows]
    assert published(home, name, kind) == kind.expected(events)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KINDS))
def test_any_history_ends_as_one_sequential_evaluation(home: Home, name: str) -> None:
    rng, kind = random.Random(name), KINDS[name]
    lived = made(home, name, kind.text())
    contents: dict[int, list[Row]] = {}
    coming = rng.sample(range(SPAN), SPAN)
    for _ in range(6):
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


CHRONICLE = KINDS["chronicle"]


def event(number: int, hour: float, kind: str, seq: int = 0) -> Row:
    """An event of a day, whose id says where it is."""
    ts = datetime(2025, 3, 1, tzinfo=UTC) + timedelta(days=number, hours=hour)
    name = f"{number:02d}{round(hour * 100):04d}{ord(kind):03d}{seq}"
    return {"event_id": f"{name:0>32}", "type": kind, "sensor": "k", "ts": ts, "seq": seq, "x": 0.0,
            "event_date": day(number)}  # fmt: skip


def busy(days: int = SPAN, a: int = 3, b: int = 2) -> dict[int, list[Row]]:
    """More A than B on every day, so that each day takes A from the day before: a state that never is empty."""
    return {
        n: [event(n, 1 + 4 * i, "A") for i in range(a)] + [event(n, 2 + 6 * i, "B") for i in range(b)]
        for n in range(days)
    }


def intervals(home: Home) -> dict[int, dict[str, Any]]:
    return {(row["day"] - day(0)).days: row for row in ops.current(home, "intervals")}


def lake_of(home: Home, contents: dict[int, list[Row]], name: str = "chronicle", more: str = "") -> Home:
    lake = made(home, name, KINDS[name].text(more))
    deliver(lake, contents)
    return lake


def test_a_day_goes_on_from_what_the_days_before_used_up(home: Home) -> None:
    contents = busy()
    lake = lake_of(home, contents)
    for n in range(SPAN):
        run(lake, Days.one(day(n)), repair_horizon=0)
    same(lake, "chronicle", CHRONICLE, contents)
    recorded = intervals(lake)
    assert [recorded[n]["state_in"] for n in range(1, SPAN)] == [recorded[n]["state_out"] for n in range(SPAN - 1)]
    assert recorded[0]["state_in"] == EMPTY and EMPTY not in {row["state_out"] for row in recorded.values()}


def test_a_late_event_is_followed_as_far_as_it_changes_the_state(home: Home) -> None:
    # One A and one B a day pair with each other, whatever comes late before noon of a day.
    contents = busy(a=1, b=1)
    lake = lake_of(home, contents)
    run(lake, ALL)
    late = {1: [*contents[1], event(1, 12, "A"), event(1, 13, "B")]}
    deliver(lake, late)
    # Three days read the late events, and what these use up is no part of the state of the last of them any more.
    assert states(lake) == {0: "done", 1: "stale", 2: "stale", 3: "stale", 4: "following", 5: "following"}
    assert run(lake, ALL)["days"] == 3
    assert set(states(lake).values()) == {"done"}
    same(lake, "chronicle", CHRONICLE, contents | late)


def test_a_day_behind_one_that_is_not_finished_waits(home: Home) -> None:
    contents = busy()
    lake = lake_of(home, {n: rows for n, rows in contents.items() if n != 2})
    run(lake, ALL)
    with pytest.raises(InputError, match="continue to 2025-03-04 and 2 more days: 2025-03-03 before it: no ingest"):
        run(lake, Days(day(3), day(6)), repair_horizon=0)
    assert states(lake) == {0: "done", 1: "done", 2: "waiting", 3: "waiting", 4: "waiting", 5: "waiting"}
    deliver(lake, {2: contents[2]})
    run(lake, ALL)
    same(lake, "chronicle", CHRONICLE, contents)


@pytest.mark.parametrize(("days", "words"), [([day(3)], ""), ([day(3), day(5)], " and 1 more day")])
def test_days_that_wait_are_counted(days: list[date], words: str) -> None:
    assert ChainBlocked.of("pattern/p", days, "why").what == f"pattern/p cannot continue to {day(3)}{words}: why"


def test_a_day_goes_on_from_none_of_another_definition(home: Home) -> None:
    contents = busy()
    lake = lake_of(home, contents)
    with pytest.raises(InputError, match="2025-03-04, which 2025-03-05 continues from, was never computed") as error:
        run(lake, Days.one(day(4)), repair_horizon=0)
    assert "backfill 2025-03-01 2025-03-06 --patterns chronicle" in str(error.value)
    run(lake, ALL)
    edited = CHRONICLE.text().replace("30 h", "31 h")
    made(home, "chronicle", edited)
    with pytest.raises(InputError, match="was never computed"):
        run(lake, Days.one(day(4)), repair_horizon=1)
    backfill(lake, ALL)
    assert set(states(lake).values()) == {"done"}


def test_after_a_quiet_day_the_days_are_independent(home: Home) -> None:
    contents = busy() | {2: [], 3: []}
    lake = lake_of(home, contents)
    # Nothing lies within 30 hours before the start of the fifth day.
    run(lake, Days.one(day(4)), repair_horizon=0)
    run(lake, Days.one(day(5)), repair_horizon=0)
    assert {n: state for n, state in states(lake).items() if state == "done"} == {4: "done", 5: "done"}
    assert intervals(lake)[4]["state_in"] == EMPTY
    backfill(lake, ALL)
    same(lake, "chronicle", CHRONICLE, contents)


def test_nothing_is_used_up_before_the_start(home: Home) -> None:
    contents = busy()
    lake = lake_of(home, contents, more="start: 2025-03-03\n")
    run(lake, ALL)
    events = [row for rows in contents.values() for row in rows]
    at = datetime(2025, 3, 3, tzinfo=UTC)
    assert published(lake, "chronicle", CHRONICLE) == CHRONICLE.expected(events, start=at)
    recorded = intervals(lake)
    assert [recorded[n]["rows"] for n in range(2)] == [0, 0] and recorded[2]["rows"] == 2
    # Without a start it is another chain of the same definition.
    made(home, "chronicle", CHRONICLE.text())
    run(lake, ALL)
    same(lake, "chronicle", CHRONICLE, contents)
    made(home, "chronicle", CHRONICLE.text("start: 2025-03-03\n"))
    run(lake, ALL)
    assert published(lake, "chronicle", CHRONICLE) == CHRONICLE.expected(events, start=at)


def test_the_days_before_one_over_its_limit_are_published(home: Home) -> None:
    contents = busy() | {3: busy(a=4, b=4)[3]}
    lake = lake_of(home, contents, more="limits: {matches_per_day: 3}\n")
    with pytest.raises(LimitExceeded):
        run(lake, ALL)
    assert {n: row["status"] for n, row in intervals(lake).items()} == {0: "done", 1: "done", 2: "done", 3: "failed"}
    made(home, "chronicle", CHRONICLE.text("limits: {matches_per_day: 4}\n"))
    run(lake, ALL)
    same(lake, "chronicle", CHRONICLE, contents)


class Killed(BaseException):
    """As a signal that cannot be caught: nothing takes note of it."""


@pytest.mark.parametrize(
    ("point", "at"),
    [("publish.commit.before", SPAN), ("publish.done.before", 3), ("publish.done.after", 3)],
)  # fmt: skip
def test_a_run_that_dies_between_two_days_is_gone_on_with(
    home: Home, monkeypatch: pytest.MonkeyPatch, point: str, at: int
) -> None:
    contents = busy()
    lake = lake_of(home, contents)
    monkeypatch.setattr(course, "BATCH", 1)
    real, times = faults.reached, []

    def die(name: str) -> None:
        times.append(name)
        if times.count(point) == at and name == point:
            raise Killed
        real(name)

    with monkeypatch.context() as dying:
        dying.setattr(faults, "reached", die)
        with pytest.raises(Killed):
            run(lake, ALL)
    assert states(lake)[1] == "done" and "done" not in {states(lake)[n] for n in range(at, SPAN)}
    assert (states(lake)[at - 1] == "done") == (point == "publish.done.after")
    run(lake, ALL)
    assert set(states(lake).values()) == {"done"}
    same(lake, "chronicle", CHRONICLE, contents)


@pytest.mark.parametrize("at", [1, 3])
def test_two_backfills_at_the_same_time_end_as_one(home: Home, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """One goes through all days, a late event included, while the other has searched two and not published them.

    The first two days have other input by then, the last two only another state to go on from: neither takes the place
    of what is published.
    """
    # One A is always left over, until a late B takes it: from there on each B has another A than before.
    contents = busy(a=2, b=2)
    contents[0].append(event(0, 0.5, "A"))
    late = {1: [*contents[1], event(1, 12, "B")]}
    lake = lake_of(home, contents)
    monkeypatch.setattr(course, "BATCH", 2)
    real, calls, nested = rounds.publish, [], []

    def overtaken(work: Any, audited: Any) -> Any:
        calls.append(work)
        if len(calls) == at:
            deliver(lake, late)
            nested.append(backfill(lake, ALL))
        return real(work, audited)

    monkeypatch.setattr(rounds, "publish", overtaken)
    backfill(lake, ALL, undisturbed=False)
    monkeypatch.undo()
    assert nested[0]["days"] >= SPAN - 1
    assert set(states(lake).values()) == {"done"}
    same(lake, "chronicle", CHRONICLE, contents | late)
    assert backfill(lake, ALL)["applications"] == 0


def test_rows_that_are_not_those_left_are_gone_on_from_by_nobody(home: Home) -> None:
    contents = busy()
    lake = lake_of(home, {n: contents[n] for n in range(3)})
    run(lake, Days(day(0), day(3)))
    table = DeltaTable(lake.table("matches", "chronicle"))
    table.delete("decision_ts >= '2025-03-03'")
    deliver(lake, {3: contents[3]})
    assert run(lake, Days.one(day(3)), repair_horizon=0)["days"] == 2, "the day before is computed again"
    same(lake, "chronicle", CHRONICLE, {n: contents[n] for n in range(4)})
