"""A task that has failed for good is told to a webhook, once it is known that no other try will be made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chainlake.airflow import tasks
from chainlake.airflow.failures import WEBHOOK, tell_failure
from chainlake.errors import UsageError
from chainlake.paths import PROJECT, Home
from tests.lake.test_alerts import Receiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    found = Receiver()
    monkeypatch.setenv(WEBHOOK, found.address)
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture(scope="module")
def dags(airflow_database: Path) -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag

    return dict(DagBag(PROJECT / "dags").dags)


def _task(**told: Any) -> dict[str, Any]:
    """The context of a task, as far as a message has it."""
    named = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "try_number": 1, "log_url": "u"}
    return {"ti": SimpleNamespace(**named | told)}


def _nothing_to_do(*_: Any, **__: Any) -> None:
    raise UsageError("there is nothing to do", hint="Choose other days.")


def test_a_failure_is_told_with_its_reason(
    dags: dict[str, Any], receiver: Receiver, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a run of the DAG, whose first task fails in a way that no retry can fix; the receiver fails at first."""
    monkeypatch.setattr("chainlake.operations.backfills.plan.plan_range", _nothing_to_do)
    receiver.plan = [503]
    run = dags["restate_stale"].test(run_conf={"chunk": 7})
    assert str(run.state) == "failed"
    first, again = receiver.got
    assert first == again and set(receiver.keys) == {first["id"]}
    assert first["id"] == f"restate_stale/{run.run_id}/plan/-1/{first['try']}"
    told = {key: first[key] for key in ("kind", "dag", "run", "task", "index", "day")}
    assert told == {
        "kind": "failed", "dag": "restate_stale", "run": run.run_id, "task": "plan", "index": -1, "day": None,
    }  # fmt: skip
    assert first["reason"] == "there is nothing to do. Choose other days." and "/dags/restate_stale/" in first["log"]


def test_a_daily_task_is_told_with_its_day(receiver: Receiver) -> None:
    context = _task(dag_id="detect_stock", run_id="scheduled__2025-10-01", task_id="detect", map_index=2, try_number=3)
    begin = datetime(2025, 9, 30, 17, tzinfo=timezone(timedelta(hours=-7)))
    end = begin + timedelta(days=1)
    interval = {"data_interval_start": begin, "data_interval_end": end}
    tell_failure(context | interval | {"exception": tasks.StepFailed("one line\nand another")})
    (message,) = receiver.got
    assert message["id"] == "detect_stock/scheduled__2025-10-01/detect/2/3"
    assert (message["day"], message["index"]) == ("2025-10-01", 2) and "\n" not in message["reason"]


def test_every_task_tells(dags: dict[str, Any]) -> None:
    for dag in dags.values():
        for task in dag.tasks:
            # That of a mapped task becomes a list when it is known how many there are.
            callbacks = task.on_failure_callback
            assert callbacks in (tell_failure, [tell_failure]), f"{dag.dag_id}.{task.task_id}"


def test_without_an_address_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainlake.operations.alerts.webhook.post", lambda *_: pytest.fail("sent"))
    monkeypatch.delenv(WEBHOOK, raising=False)
    tell_failure(_task())
    monkeypatch.setenv(WEBHOOK, "mail")
    with pytest.raises(UsageError, match=f"{WEBHOOK}, which does not begin with http"):
        tell_failure(_task())
