"""The DAGs of safe zones, learners and latent faults; their tasks run the verbs in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chainlake.airflow import tasks
from chainlake.cli.main import main
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.model_change.days.definitions import load_definition, result_table
from chainlake.model_change.library import monitor as library
from chainlake.paths import PROJECT, Home
from tests.model_change.companions import COMPANIONS
from tests.model_change.test_chained_models import readings
from tests.replay.light import light
from tests.steps.history import SOURCE, day, deliver

#: Days with events, from the start of the models on.
DAYS = range(1, 5)


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A source and a model of each kind."""
    config = home.root / "config"
    texts = {name: f"description: Of its own kind\n{text}" for name, text in COMPANIONS.items()}
    for name, text in {"sources/lab": SOURCE, **{f"models/{name}": text for name, text in texts.items()}}.items():
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    return Home.from_env()


@pytest.fixture
def dags(lab: Home, airflow_database: Path) -> dict[str, Any]:
    """Its DAGs, from the files."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(PROJECT / "dags")
    assert not bag.import_errors
    return dict(bag.dags)


@pytest.fixture
def verbs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What a task starts as a process of its own is run in this one; the list has the words of each."""
    ran: list[list[str]] = []

    def child_here(command: Sequence[str], on_line: Callable[[str], None], **_: object) -> int:
        assert list(command[1:3]) == ["-m", "chainlake"]
        ran.append(list(command[3 : command.index("--run-id")]))
        return main(list(command[3:]))

    monkeypatch.setattr(tasks, "run_child", child_here)
    monkeypatch.delenv(tasks.ADDRESS, raising=False)
    return ran


def check(lab: Home, kind: str, days: Sequence[int], editions: dict[int, int] | None = None) -> None:
    """The kind's tables hold what one pass of the library over the events of these days finds."""
    file = lab.config / "models" / f"{kind}.yaml"
    rows = [row for n in days for row in readings(n, (editions or {}).get(n, 0))]
    whole, table = library(file, rows, key="sensor"), result_table(load_definition(file))
    order = [(column, "ascending") for column in table.key]
    found = tables.arrow(lab, "models", table.name).sort_by(order)
    assert found.to_pylist() == whole.found.sort_by(order).to_pylist() and len(found) >= len(days) - 1
    metrics = tables.arrow(lab, "models", "metrics").sort_by("day").to_pylist()
    assert [row for row in metrics if row["model"] == kind] == whole.metrics.to_pylist()
    noted = ops.current(lab, "intervals", definition=f"model/{kind}")
    assert {row["day"]: row["status"] for row in noted} == {day(n): "done" for n in days}


def test_every_kind_is_in_the_dags_of_its_source(dags: dict[str, Any]) -> None:
    assert [dag_id for dag_id in dags if dag_id.startswith("monitor_")] == ["monitor_lab"]
    (step,) = [task for task in dags["monitor_lab"].tasks if task.task_id == "monitor"]
    assert [asset.name for asset in step.outlets] == [f"models.{kind}" for kind in sorted(COMPANIONS)]
    assert [asset.name for asset in step.inlets] == ["events.lab"]
    for kind in COMPANIONS:
        assert f"| `{kind}` | Of its own kind |" in str(dags["monitor_lab"].doc_md)
    assert dags["backfill_history"].params.get_param("models").schema["examples"] == sorted(COMPANIONS)


def test_a_day_a_history_and_late_files_of_every_kind(lab: Home, dags: dict[str, Any], verbs: list[list[str]]) -> None:
    def ran(dag_id: str, **given: Any) -> list[list[str]]:
        """Run the DAG, which must succeed: the words of its verbs."""
        before = len(verbs)
        assert str(dags[dag_id].test(**given).state) == "success"
        return verbs[before:]

    with light():
        deliver(lab, {n: readings(n) for n in DAYS})
        at = datetime.combine(day(1), datetime.min.time(), UTC)
        assert ran("monitor_lab", logical_date=at) == [["monitor", "lab", str(day(1)), str(day(2))]]
        for kind in COMPANIONS:
            check(lab, kind, DAYS[:1])
            span = {"start": str(day(1)), "end": str(day(5))}
            (words,) = ran("backfill_history", run_conf={**span, "models": [kind]})
            assert words[:4] == ["monitor", "lab", str(day(2)), str(day(5))] and words[-2:] == ["--model", kind]
            check(lab, kind, DAYS)
        deliver(lab, {4: readings(4, 1)})
        assert len(ran("restate_stale")) == 1
        for kind in COMPANIONS:
            check(lab, kind, DAYS, {4: 1})
        assert ran("restate_stale") == [], "nothing is stale any more"
