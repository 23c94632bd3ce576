"""What a run looks at besides its own days, and that the days of a long run come out as if each had been run alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

import chainlake.detect.run as detect_run
from chainlake.catalog.patterns import load_patterns
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.detect.step import detect
from chainlake.detect.work import DetectResult, SearchRun, Work
from chainlake.errors import LimitExceeded
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.store.files import FilesLake
from chainlake.operations.backfills.backfill import run_plan
from chainlake.operations.backfills.plan import plan_range
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.steps.history import configured, day, deliver, pattern, readings
from tests.steps.test_backfill import played

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.slow

NOT_AFTER = pattern().replace("SEQ(Reading p, Reading q)", "SEQ(Reading p, Reading q, NOT(Reading n))")
Looked = Callable[..., set[date]]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Looked:
    """Runs the detect step up to the point where Spark would start; returns the days it would compute."""

    def look(home: Home, days: Days, **options: Any) -> set[date]:
        seen: set[date] = set()

        def run_work(run: SearchRun, work: Sequence[Work]) -> DetectResult:
            seen.update(at for item in work for at in item.fingerprints)
            return DetectResult()

        monkeypatch.setattr(detect_run, "run_work", run_work)
        detect(home, "lab", days, run_id="r", ports=Ports(LocalTasks(), FilesLake(home)), **options)
        return seen

    return look


def test_a_daily_run_repairs_a_week_and_a_backfill_only_its_days(home: Home, looked_at: Looked) -> None:
    made = configured(home, near=pattern("10 min"))
    deliver(made, {n: readings(n) for n in range(12)})
    run_plan(
        made,
        plan_range(made, Days(day(0), day(10)), patterns=["near"]),
        run_id="b",
        launch=played,
        say=lambda line: None,
    )
    deliver(made, {2: readings(2, edition=1), 4: readings(4, edition=1)})
    # A day reads into the day before its own, so each of the two corrected days makes two stale.
    assert looked_at(made, Days.one(day(10))) == {day(3), day(4), day(5), day(10)}
    assert looked_at(made, Days.one(day(10)), repair_horizon=0) == {day(10)}
    assert looked_at(made, Days(day(2), day(12)), repair_horizon=0, only_stale=True) == {
        day(2), day(3), day(4), day(5),
    }  # fmt: skip


def test_the_day_on_which_the_last_events_decide_is_computed_with_them(home: Home, looked_at: Looked) -> None:
    made = configured(home, late=NOT_AFTER, near=pattern())
    deliver(made, {n: readings(n) for n in range(3)} | {3: [], 4: []})
    last = datetime(2025, 3, 3, 23, 40, tzinfo=UTC)
    rate = {"source": "lab", "day": day(2), "type": "Reading", "key": "b", "events": 4, "last_ts": last}
    ops.append(made, "rates", [rate], "ingest")
    assert looked_at(made, Days.one(day(2)), patterns=["late"]) == {day(0), day(1), day(2), day(3)}
    assert looked_at(made, Days.one(day(2)), patterns=["near"]) == {day(0), day(1), day(2)}
    assert looked_at(made, Days.one(day(1)), patterns=["late"]) == {day(0), day(1)}
    assert looked_at(made, Days.one(day(2)), patterns=["late"], repair_horizon=0) == {day(2)}
    # Days without events: computed by the daily run of the day, so that it is seen to be done; not by a backfill whose
    # plan does not announce them, though its window holds them for another pattern's sake.
    assert looked_at(made, Days(day(2), day(5)), patterns=["near"]) == {day(n) for n in range(5)}
    assert looked_at(made, Days(day(2), day(5)), patterns=["near"], repair_horizon=0) == {day(2)}


def pairs(n: int) -> int:
    """Matches of the plain pattern on day ``n``: each b of an hour with the a of this hour, if it is not below it."""
    rows = {(row["ts"].hour, row["sensor"]): row["x"] for row in readings(n)}
    return sum(rows[hour, "b"] >= rows[hour, "a"] for hour, sensor in rows if sensor == "b")


@pytest.mark.on_spark()
def test_a_limit_fails_the_days_that_exceed_it_and_no_others(home: Home, tasks: None) -> None:
    days = range(4)
    most = max(map(pairs, days))
    made = configured(home, tight=pattern(more=f"limits: {{matches_per_day: {most - 1}}}\n"))
    deliver(made, {n: readings(n) for n in days})
    assert {pairs(n) < most for n in days} == {True, False}, "some days exceed the limit and some do not"
    with pytest.raises(LimitExceeded):
        detect(made, "lab", Days(day(0), day(4)), run_id="r")
    found = {row["day"]: (row["status"], row["rows"]) for row in ops.current(made, "intervals")}
    assert found == {day(n): ("failed", None) if pairs(n) == most else ("done", pairs(n)) for n in days}


def test_a_long_run_publishes_a_few_days_at_a_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    made = configured(home, near=pattern(), late=NOT_AFTER)
    deliver(made, {n: readings(n) for n in range(5)})
    monkeypatch.setattr(detect_run, "MOST_DAYS", 2)
    searched: list[set[date]] = []
    real = detect_run.find

    def find(run: SearchRun, work: Sequence[Work]) -> list[detect_run.StagedMatches]:
        searched.append({at for item in work for at in item.fingerprints})
        if len(searched) == 3:
            raise KeyboardInterrupt
        return real(run, work)

    monkeypatch.setattr(detect_run, "find", find)
    ports = Ports(LocalTasks(), FilesLake(made))
    days = Days(day(0), day(5))
    with pytest.raises(KeyboardInterrupt):
        detect(made, "lab", days, run_id="stopped", repair_horizon=0, ports=ports)
    assert searched == [{day(0), day(1)}, {day(2), day(3)}, {day(4)}]
    done = {(row["definition"], row["day"]) for row in ops.current(made, "intervals") if row["status"] == "done"}
    assert done == {(f"pattern/{name}", day(n)) for name in ("near", "late") for n in range(4)}
    assert detect(made, "lab", days, run_id="again", repair_horizon=0, ports=ports)["days"] == 2
    assert tables.arrow(made, "matches", "near").num_rows == sum(map(pairs, range(5)))


def test_parts_of_a_run_have_few_days_and_few_events(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    made = configured(home, near=pattern())
    (compiled,), _ = load_patterns(made, load_sources(made))
    rows = [{"day": day(n), "status": "complete", "rows": many} for n, many in enumerate((4, 4, 4, 20, 1, 1, 1, 1))]
    events = EventDays.of("lab", rows)
    whole, some = (Work(compiled, {day(n): "x" for n in numbers}) for numbers in (range(8), (0, 4)))
    monkeypatch.setattr(detect_run, "MOST_DAYS", 3)
    monkeypatch.setattr(detect_run, "MOST_EVENTS", 10)
    parts = list(detect_run.in_parts([whole, some], events))
    found = [[[(at - day(0)).days for at in item.fingerprints] for item in part] for part in parts]
    assert found == [[[0, 1], [0]], [[2]], [[3]], [[4, 5, 6], [4]], [[7]]]


def test_days_without_any_events_are_published_empty(home: Home) -> None:
    """Before the table exists, and where it is empty."""
    made = configured(home, near=pattern(), late=NOT_AFTER)
    rows = [{"source": "lab", "day": day(n), "status": "complete", "rows": 0, "checksum": ""} for n in range(3)]
    ops.append(made, "event_days", rows, "ingest")
    days = Days(day(0), day(2))
    ports = Ports(LocalTasks(), FilesLake(made))
    assert detect(made, "lab", days, run_id="none", ports=ports)["days"] == 4
    assert tables.arrow(made, "matches", "near").num_rows == 0
    deliver(made, {n: [] for n in range(3)} | {3: readings(3)})
    days = Days(day(2), day(4))
    result = detect(made, "lab", days, run_id="some", patterns=["near"], repair_horizon=0, ports=ports)
    assert (result["days"], result["added"]) == (1, pairs(3))


@pytest.mark.on_spark()
def test_after_an_edit_a_day_keeps_its_rows_until_its_own_turn(home: Home, tasks: None) -> None:
    made = configured(home, near=pattern())
    deliver(made, {n: readings(n) for n in range(2)})

    def published(n: int) -> list[dict[str, Any]]:
        rows = tables.arrow(made, "matches", "near").to_pylist()
        mine = [row for row in rows if row["decision_ts"].date() == day(n)]
        return sorted(mine, key=lambda row: str(row["match_id"]))

    detect(made, "lab", Days(day(0), day(2)), run_id="r1")
    before = published(0)
    assert len(before) == pairs(0) > 0 and len(published(1)) == pairs(1)
    configured(home, near=pattern(step=100.0))
    detect(made, "lab", Days.one(day(1)), run_id="r2", repair_horizon=0)
    assert published(0) == before and published(1) == []
    hashes = SqlConnection(made).query("SELECT DISTINCT day, definition_hash FROM matches.near_origin").fetchall()
    assert [at for at, _ in hashes] == [day(0)]
    assert {row.day: row.state for row in status_rows(made, [the_pattern(made)])} == {day(0): "stale", day(1): "done"}
    detect(made, "lab", Days.one(day(1)), run_id="r3")
    assert published(0) == [], "the next daily run repairs it"


def the_pattern(home: Home) -> Definition:
    """The definition of the only pattern."""
    (found,), _ = load_patterns(home, load_sources(home))
    return found.definition
