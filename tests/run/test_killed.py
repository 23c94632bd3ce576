"""A step's process that is killed: what its parent says, and what it notes in its place."""

from __future__ import annotations

from datetime import date

import pytest

from chainlake.airflow import tasks
from chainlake.days import Days
from chainlake.env.processes.child import Killed
from chainlake.lake.records import ops
from chainlake.operations.backfills import launch
from chainlake.operations.backfills.applications import Application, Part
from chainlake.paths import Home

DAYS = Days.parse("2025-01-01", "2025-01-03")


def part(name: str) -> Part:
    return Part(name, "matches.x", (date(2025, 1, 1),), (), {"missing": 1}, DAYS, 1, 0, in_order=False)


def test_a_killed_application_says_what_to_do_and_is_noted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "run_child", lambda *_, **__: -9)
    application = Application("detect", "stock", DAYS, False, (part("pattern/near"), part("pattern/far")))
    with pytest.raises(Killed) as raised:
        launch.in_a_process(lambda line: None)(home, application, "backfill-1.1")
    told = raised.value.summary
    assert "killed from outside, by signal 9" in told and "memory" in told and raised.value.exit_code == 5
    assert "Nothing half is published: run the same command again." in told
    rows = ops.current(home, "runs")
    assert {row["definition"] for row in rows} == {"pattern/near", "pattern/far"}
    for row in rows:
        assert (row["run_id"], row["step"], row["status"]) == ("backfill-1.1", "detect", "failed")
        assert (row["day_from"], row["day_to"]) == (DAYS.start, DAYS.end)
        assert row["reason"] == told and row["started"] <= row["ended"]


def test_a_task_of_airflow_says_the_same(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_run", lambda call, lines, driver: lines("the last word") or -9)
    with pytest.raises(tasks.StepFailed, match="killed from outside, by signal 9.*run the same command again.*last w"):
        tasks.run_verb(["detect", "stock"], run_id="r")
