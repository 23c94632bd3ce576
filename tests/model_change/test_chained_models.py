"""A model's days in a lake: how far a late file is followed, and what a run that dies between two days leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable

from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.errors import AuditFailed
from chainlake.lake import faults
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.store.files import FilesLake
from chainlake.model_change.library import monitor as library
from chainlake.monitoring import course
from chainlake.monitoring import run as monitor_run
from chainlake.monitoring.step import monitor
from chainlake.operations.backfills.backfill import run_here, run_plan
from chainlake.operations.backfills.plan import RangePlan, plan_range
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from chainlake.quality import Verdict
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.models import CHANGES, METRICS
from tests.replay.light import light
from tests.steps.history import MODEL, SOURCE, day, deliver

pytestmark = pytest.mark.slow

DAYS = range(1, 13)
ALL = Days(day(1), day(13))
EXACT = MODEL.replace("max_replay: 5", "max_replay: 30\ndetector: exact")
#: The same of some of the events, and of a computed value.
SOME = (
    EXACT.replace("[x]", "[{name: half, expression: x / 2}]") + "where: Hour(ts, 'Asia/Tokyo') != 5 AND x IS NOT NULL\n"
)


@pytest.fixture
def lab(home: Home) -> Iterator[Home]:
    """A source and a model whose exact detector sees two changes in twelve days; nothing is computed."""
    config = home.root / "config"
    for name, text in (("sources/lab.yaml", SOURCE), ("models/slope.yaml", EXACT)):
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text(text)
    (config / "patterns").mkdir(exist_ok=True)
    with light():
        yield dataclasses.replace(home, config=config)


def readings(n: int, edition: int = 0) -> list[dict[str, Any]]:
    """Hourly readings of a day; in another edition those of two hours are other ones, and one hour more is there."""
    rng = np.random.default_rng([7, n])
    rows = []
    for hour in range(24):
        for key in ("a", "b"):
            x, noise = float(rng.normal()), 0.02 * float(rng.normal())
            if hour == 3 and not edition:
                continue
            x += 0.5 * edition * (hour in (10, 11))
            ts = datetime.combine(day(n), datetime.min.time(), UTC) + timedelta(hours=hour, minutes=3)
            slope = 1.0 if n < 6 else 3.0 if n < 11 else 1.5
            rows.append({"event_id": f"{key}{ts:%d%H}".zfill(32), "type": "Reading", "sensor": key, "ts": ts, "seq": 0,
                         "x": x, "y": slope * x + noise, "event_date": day(n)})  # fmt: skip
    return rows


def run(lab: Home, days: Days, run_id: str, **more: Any) -> dict[str, Any]:
    return monitor(lab, "lab", days, run_id=run_id, ports=Ports(LocalTasks(), FilesLake(lab)), **more)


def computed(lab: Home, run_id: str) -> list[int]:
    """Days that a run, or its applications, published."""
    rows = ops.current_table(lab, "intervals", columns=["day", "status", "run_id"], as_log=True).to_pylist()
    mine = {row["day"] for row in rows if row["run_id"].startswith(run_id) and row["status"] == "done"}
    return sorted((one - day(0)).days for one in mine)


def states(lab: Home) -> list[str]:
    return [row.state for row in status_rows(lab, all_definitions(lab)[0])]


def check(lab: Home, editions: dict[int, int]) -> None:
    """The tables are those of one pass of the library over all events, and everything is done."""
    assert set(states(lab)) == {"done"}
    rows = [row for n in DAYS for row in readings(n, editions.get(n, 0))]
    whole = library(lab.config / "models" / "slope.yaml", rows, key="sensor")
    for table, wanted in ((CHANGES, whole.changes), (METRICS, whole.metrics)):
        found = tables.arrow(lab, "models", table.name)
        assert sorted(found.to_pylist(), key=str) == sorted(wanted.to_pylist(), key=str)
    assert len(whole.changes) >= 3
    ends = [(row["state_in"], row["state_out"]) for row in ops.current(lab, "intervals")]
    assert [before for before, _ in ends] == [EMPTY, *(after for _, after in ends[:-1])]


def certain(plan: RangePlan) -> tuple[list[date], list[date]]:
    (part,) = (part for application in plan.applications for part in application.parts)
    return list(part.days), list(part.following)


@pytest.mark.parametrize("text", [EXACT, SOME], ids=["all", "some"])
@pytest.mark.parametrize("how", ["monitor", "restate", "backfill"])
def test_a_late_file_whose_effect_dies_out_recomputes_the_affected_days(lab: Home, how: str, text: str) -> None:
    (lab.config / "models" / "slope.yaml").write_text(text)
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "first")
    check(lab, {})
    before = {table.name: tables.version(lab, "models", table.name) for table in (CHANGES, METRICS)}
    deliver(lab, {8: readings(8, edition=1)})
    assert states(lab) == ["done"] * 7 + ["stale"] + ["following"] * 4
    late = [day(n) for n in range(9, 13)]
    assert certain(plan_range(lab, ALL)) == certain(plan_range(lab, None, only_stale=True)) == ([day(8)], late)
    ports = Ports(LocalTasks(), FilesLake(lab))
    if how == "monitor":
        run(lab, Days.one(day(12)), "late")
    else:
        plan = plan_range(lab, ALL if how == "backfill" else None, only_stale=how == "restate", chunk=3)

        def launch(home: Home, application: Any, run_id: str) -> dict[str, Any]:
            return run_here(home, application, run_id, ports)

        run_plan(lab, plan, run_id="late", launch=launch, say=lambda line: None)
    # Its rounds are in the window of the next morning, and its counters until the next change; nothing after that.
    assert computed(lab, "late") in ([8, 9, 10, 11], [8, 9, 10], [8, 9])
    check(lab, {8: 1})
    assert run(lab, ALL, "again")["days"] == 0
    assert tables.version(lab, "models", "metrics") - before["metrics"] <= 2


def test_a_late_file_that_changes_no_event_of_the_model_recomputes_its_day_alone(lab: Home) -> None:
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "first")
    other = [{**row, "sensor": "elsewhere", "event_id": f"e{row['event_id'][1:]}"} for row in readings(3)]
    deliver(lab, {3: [*readings(3), *other]})
    run(lab, ALL, "late")
    assert computed(lab, "late") == [3]
    check(lab, {})


def test_late_events_that_a_model_does_not_see_recompute_their_day_alone(lab: Home) -> None:
    (lab.config / "models" / "slope.yaml").write_text(SOME)
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "first")
    # 20:03 UTC is 05:03 in Tokyo.
    deliver(lab, {8: [row | {"x": row["x"] + 9 * (row["ts"].hour == 20)} for row in readings(8)]})
    run(lab, ALL, "late")
    assert computed(lab, "late") == [8]
    check(lab, {})


def test_a_late_file_of_an_infinite_window_reaches_to_the_end(lab: Home) -> None:
    file = lab.config / "models" / "slope.yaml"
    file.write_text(file.read_text().replace("sliding: 8", "infinite: 8"))
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "first")
    deliver(lab, {4: readings(4, edition=1)})
    run(lab, ALL, "late")
    assert computed(lab, "late") == list(range(4, 13))
    check(lab, {4: 1})


def test_a_stale_day_beyond_the_horizon_is_left_and_the_chain_goes_on_as_it_is_published(lab: Home) -> None:
    deliver(lab, {n: readings(n) for n in DAYS if n < 12})
    run(lab, Days(day(1), day(12)), "first")
    deliver(lab, {2: readings(2, edition=1), 12: readings(12)})
    assert run(lab, Days.one(day(12)), "daily", repair_horizon=7)["days"] == 1
    assert computed(lab, "daily") == [12]
    assert states(lab) == ["done", "stale", *["following"] * 10]
    run(lab, ALL, "repaired", only_stale=True)
    assert computed(lab, "repaired")[0] == 2
    check(lab, {2: 1})


def test_an_edit_computes_every_day_again_from_the_beginning(lab: Home) -> None:
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "first")
    file = lab.config / "models" / "slope.yaml"
    file.write_text(file.read_text().replace("eps: 0.3", "eps: 0.4"))
    assert set(states(lab)) == {"stale"}
    run(lab, Days.one(day(12)), "edited")
    assert computed(lab, "edited") == list(DAYS)
    check(lab, {})


def test_a_failed_audit_ends_the_chain_and_the_days_behind_it_wait(lab: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, Days(day(1), day(10)), "first")
    deliver(lab, {8: readings(8, edition=1)})

    def broken(*args: Any) -> Verdict:
        return Verdict({one: "broken" if one == day(8) else None for one in args[3]})

    with monkeypatch.context() as patch:
        patch.setattr(monitor_run, "audit_models", broken)
        with pytest.raises(AuditFailed, match="first 2025-03-09: broken"):
            run(lab, ALL, "late")
    assert computed(lab, "late") == []
    assert states(lab) == ["done"] * 7 + ["audit_failed"] + ["waiting"] * 4
    deliver(lab, {8: readings(8, edition=2)})
    run(lab, ALL, "mended")
    assert computed(lab, "mended")[:2] == [8, 9] and computed(lab, "mended")[-3:] == [10, 11, 12]
    check(lab, {8: 2})


def test_days_without_events_leave_the_empty_state(lab: Home) -> None:
    deliver(lab, {n: readings(n) if n > 3 else [] for n in DAYS})
    run(lab, ALL, "first")
    ends = {(row["day"] - day(0)).days: row["state_out"] for row in ops.current(lab, "intervals")}
    assert ends[1] == ends[2] == ends[3] == EMPTY != ends[4]
    # Earlier events that the model does not look at: the chain begins with them, and goes on as before.
    other = [{**row, "sensor": "elsewhere"} for row in readings(2)]
    deliver(lab, {2: other})
    run(lab, ALL, "late")
    assert computed(lab, "late") == [2]


def test_a_state_that_is_not_what_was_published_is_not_used(lab: Home) -> None:
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "first")
    table = DeltaTable(lab.table("models", "state"))
    kept = {row["day"]: row["state"] for row in table.to_pyarrow_table().to_pylist()}
    table.update({"state": f"'{kept[day(3)]}'"}, predicate=f"day = '{day(7)}'")
    deliver(lab, {8: readings(8, edition=1)})
    run(lab, ALL, "late")
    assert computed(lab, "late")[:2] == [7, 8]
    check(lab, {8: 1})


class Killed(BaseException):
    """The end of a process."""


#: Between the end of one write and the beginning of the next nothing is written, so one of the two is enough.
POINTS = [
    "publish.publishing.before", "publish.commit.before", "publish.done.before", "monitor.state.before",
    "monitor.state.after",
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_a_run_that_dies_between_two_days_loses_none(lab: Home, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Days are published one by one, and the run dies at the third, of new days and of those that a late file moved."""
    monkeypatch.setattr(course, "BATCH", 1)
    real, reached = faults.reached, []

    def dies(name: str) -> None:
        real(name)
        reached.append(name)
        if name == point and reached.count(point) == 3:
            raise Killed(name)

    def killed(days: Days, run_id: str) -> None:
        reached.clear()
        with monkeypatch.context() as patch:
            patch.setattr(faults, "reached", dies)
            with pytest.raises(Killed):
                run(lab, days, run_id)

    recorded = point in ("monitor.state.before", "monitor.state.after")
    deliver(lab, {n: readings(n) for n in DAYS})
    killed(ALL, "new")
    assert computed(lab, "new") == ([1, 2, 3] if recorded else [1, 2])
    run(lab, ALL, "new again")
    # A state that was not kept is made again with its day.
    lost = point == "monitor.state.before"
    assert computed(lab, "new again") == list(range(4 if recorded and not lost else 3, 13))
    check(lab, {})

    deliver(lab, {8: readings(8, edition=1)})
    reach = (8, 9, 10)
    killed(ALL, "late")
    assert computed(lab, "late") == ([8, 9, 10] if recorded else [8, 9])
    assert states(lab)[:9] == ["done"] * 9
    run(lab, ALL, "late again")
    assert set(computed(lab, "late again")) <= {*reach, 11}
    check(lab, {8: 1})


def test_the_verbs_mark_what_is_an_estimate(
    lab: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "first")
    deliver(lab, {8: readings(8, edition=1)})
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(lab.config))
    assert main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if "following" in line and line.startswith("model/slope"))
    assert line.split()[1:5] == [str(day(9)), str(day(13)), "4", "following"]
    assert "2025-03-09 before it is stale; it may turn out to be unaffected" in line
    assert "1 definition, days: 7 done, 1 stale, 4 following" in lines
    assert main(["plan", str(ALL.start), str(ALL.end)]) == 0
    out = capsys.readouterr().out
    assert "1 stale, at most 4 following (estimate)" in out
    assert "1 day to compute, and at most 4 more that follow (estimate)" in out
    assert main(["status", "--state", "following", "--json"]) == 0
    assert capsys.readouterr().out.count('"state":"following"') == 4


def test_states_are_kept_with_the_digests_of_their_days(lab: Home) -> None:
    """Whatever slices a history was computed in, and when."""
    deliver(lab, {n: readings(n) for n in DAYS})
    run(lab, ALL, "whole")
    whole = {row["day"]: row["state_out"] for row in ops.current(lab, "intervals")}
    kept = {row["day"]: row["fingerprint"] for row in tables.arrow(lab, "models", "state").to_pylist()}
    assert kept == whole and len(set(whole.values())) == len(DAYS)
    Path(lab.config / "models" / "twin.yaml").write_text(EXACT)
    for n in DAYS:
        run(lab, Days.one(day(n)), f"twin {n}", models=["twin"])
    twin = ops.current(lab, "intervals", definition="model/twin")
    assert {row["day"]: row["state_out"] for row in twin} == whole
