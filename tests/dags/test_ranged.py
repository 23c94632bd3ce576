"""The lines of the DAGs that are run by hand, and how a line is run; no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainlake.airflow import ranges, tasks
from chainlake.days import Days
from chainlake.errors import InfrastructureError, UsageError
from chainlake.paths import PROJECT, Home
from tests.steps.history import configured, day, deliver, pattern, readings

PARAMS: dict[str, Any] = {
    "start": "2025-03-01", "end": "2025-03-05", "patterns": [], "models": [], "chunk": 2, "only_stale": False,
}  # fmt: skip


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Four days of events, one good pattern, one broken one, a model."""
    made = configured(home, near=pattern(), wrong=pattern().replace("p.x", "p.z"))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(made.config))
    deliver(made, {n: readings(n) for n in range(4)})
    return made


def test_patterns_run_beside_each_other_and_models_one_after_the_other(lab: Home) -> None:
    lines = ranges.backfill_lines(PARAMS)
    assert [(line["name"], len(line["applications"])) for line in lines] == [
        ("detect lab 2025-03-01 2025-03-03", 1),
        ("detect lab 2025-03-03 2025-03-05", 1),
        ("monitor lab", 2),
        ("pattern/wrong", 0),
    ]
    assert "wrong.sase" in lines[-1]["error"]
    (only,) = ranges.backfill_lines(PARAMS | {"patterns": ["near"], "chunk": 30})
    assert only["applications"][0]["definitions"] == ["near"]
    assert ranges.restate_lines({"sources": ["lab"], "chunk": 30}) == [lines[-1]]
    with pytest.raises(UsageError, match="no pattern nil"):
        ranges.backfill_lines(PARAMS | {"patterns": ["nil"]})


def test_a_field_that_was_emptied_is_as_if_untouched(lab: Home) -> None:
    emptied = dict.fromkeys(("patterns", "models", "chunk", "only_stale"))
    assert ranges.backfill_lines(PARAMS | emptied) == ranges.backfill_lines(PARAMS | {"chunk": 30})
    assert ranges.restate_lines({"sources": None, "chunk": None}) == ranges.restate_lines({"sources": [], "chunk": 30})


def test_more_lines_than_airflow_maps_are_refused(lab: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "MOST_LINES", 3)
    with pytest.raises(UsageError, match="4 tasks would be needed"):
        ranges.backfill_lines(PARAMS)


@pytest.mark.parametrize(
    "tail", ["CONTEXT chronicle", "EPISODES BY p.sensor PAUSE 3 h", "RANK BY MAX(q.x) TOP 3 PER WEEK"]
)
def test_patterns_whose_days_depend_on_each_other_are_one_line(lab: Home, tail: str) -> None:
    (lab.config / "patterns" / "near.sase").write_text(pattern().rstrip() + f"\n{tail}\n")
    lines = ranges.backfill_lines(PARAMS | {"patterns": ["near"]})
    assert [(line["name"], len(line["applications"])) for line in lines] == [("detect lab", 2)]
    assert [one["start"] for one in lines[0]["applications"]] == ["2025-03-01", "2025-03-03"]


def test_a_line_runs_its_applications_in_order_and_a_failure_stops_none_of_them(
    lab: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    ran: list[Any] = []

    def run_step(step: str, source: str, days: Days, **told: Any) -> dict[str, Any]:
        ran.append((step, days, told["run_id"], told["definitions"], told["options"]))
        if len(ran) == 3:
            raise AirflowFailException("no")
        return {"days": 2, "added": 1, "changed": 0, "withdrawn": 0, "models": 1}

    monkeypatch.setattr(tasks, "run_step", run_step)
    models = ranges.backfill_lines(PARAMS)[2]
    assert ranges.run_line(models, "r.1") == {"days": 4, "added": 2, "changed": 0, "withdrawn": 0}
    # The model has no days before its start.
    span = (Days(day(1), day(2)), Days(day(2), day(4)))
    assert [(days, run_id) for _, days, run_id, *_ in ran] == [(span[0], "r.1.1"), (span[1], "r.1.2")]
    assert ran[0][3:] == (["slope"], ["--repair-horizon", "0"])
    with pytest.raises(AirflowFailException, match="^no$"):
        ranges.run_line(models, "r.2")
    assert [run_id for _, _, run_id, *_ in ran[2:]] == ["r.2.1", "r.2.2"]
    with pytest.raises(AirflowFailException, match="wrong"):
        ranges.run_line({"name": "pattern/wrong", "applications": [], "error": "wrong"}, "r")


def test_many_days_get_a_process_of_their_own(lab: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warm drivers' JVMs lack the optimising compiler."""
    started: list[str] = []

    def child(*_: Any, **__: Any) -> int:
        started.append("child")
        return 5

    def driver(*_: Any, fresh: bool) -> int:
        started.append("fresh" if fresh else "warm")
        return 5

    monkeypatch.setattr(tasks, "run_child", child)
    monkeypatch.setattr(tasks, "run_in_driver", driver)
    line = ranges.backfill_lines(PARAMS | {"patterns": ["near"]})[0]
    for address, end, where in (
        ("1:token", "2025-03-03", "warm"),
        ("1:token", "2025-04-01", "fresh"),
        ("", "2025-03-03", "child"),
        ("", "2025-04-01", "child"),
    ):
        monkeypatch.setenv(tasks.ADDRESS, address)
        line["applications"][0]["end"] = end
        with pytest.raises(InfrastructureError):
            ranges.run_line(line, "r")
        assert started.pop() == where


def ended(run: Any) -> dict[str, str]:
    """How each line of a run ended, by its name."""
    return {ti.rendered_map_index: str(ti.state) for ti in run.get_task_instances() if ti.task_id == "run"}


def test_what_will_not_be_computed_is_in_the_log_of_the_plan(lab: Home, caplog: pytest.LogCaptureFixture) -> None:
    deliver(lab, {3: readings(3)}, status="open")
    with caplog.at_level("INFO", logger="chainlake"):
        ranges.backfill_lines(PARAMS | {"patterns": ["near", "wrong"]})
    said = [record.getMessage() for record in caplog.records if record.name == "chainlake"]
    assert said[0].startswith("cannot be computed: pattern/wrong: ") and "wrong.sase" in said[0]
    assert said[1:] == [
        "left out: pattern/near, 1 day: expected files are missing or not read",
        "detect lab 2025-03-01 2025-03-03: near",
        "detect lab 2025-03-03 2025-03-04: near",
    ]
    caplog.clear()
    with caplog.at_level("INFO", logger="chainlake"):
        assert ranges.backfill_lines(PARAMS | {"patterns": ["near"], "start": "2020-01-01", "end": "2020-01-02"}) == []
    (line,) = [record.getMessage() for record in caplog.records if record.name == "chainlake"]
    assert line.startswith("the events of lab are from 2025-03-01 to 2025-03-04")


def test_the_dags_run_every_line_and_name_it(
    lab: Home, airflow_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = (lab.config / "patterns" / "wrong.sase").read_text()
    broken = {
        "patterns/wrong.sase": wrong,
        "models/wrong.yaml": "source: lab\nresponse: [",
        "sources/road.yaml": "key: [",
        "patterns/other.sase": pattern().replace("source: lab", "source: road"),
    }
    from airflow.dag_processing.dagbag import DagBag

    ran: list[tuple[str, Days, str]] = []

    def run_step(step: str, source: str, days: Days, *, run_id: str, **rest: Any) -> dict[str, Any]:
        ran.append((step, days, run_id))
        return dict.fromkeys(("days", "added", "changed", "withdrawn"), 1)

    monkeypatch.setattr(tasks, "run_step", run_step)
    (lab.config / "patterns" / "wrong.sase").unlink()
    dags = DagBag(PROJECT / "dags").dags
    asked = {"start": "2025-03-01", "end": "2025-03-05", "chunk": 2}
    run = dags["backfill_history"].test(run_conf=asked)
    assert str(run.state) == "success"
    spans = [Days(day(0), day(2)), Days(day(2), day(4))]
    # Mapped tasks come in any order; a source's models run one after the other in one task.
    assert sorted(((step, days) for step, days, _ in ran if step == "detect"), key=str) == [
        ("detect", spans[0]), ("detect", spans[1]),
    ]  # fmt: skip
    assert [days for step, days, _ in ran if step == "monitor"] == [Days(day(1), day(2)), spans[1]]
    assert len(ran) == 4
    assert len({run_id for *_, run_id in ran}) == 4, "every application logs under an id of its own"
    lines = {"detect lab 2025-03-01 2025-03-03", "detect lab 2025-03-03 2025-03-05", "monitor lab"}
    assert ended(run) == dict.fromkeys(lines, "success")
    ran.clear()
    assert str(dags["restate_stale"].test().state) == "success" and ran == [], "nothing is stale"

    # Files that cannot be read, of a pattern, a model and a source: all else is run, and the run fails and names them.
    for name, text in broken.items():
        (lab.config / name).write_text(text)
    run = dags["backfill_history"].test(run_conf=asked)
    assert str(run.state) == "failed" and len(ran) == 4
    bad = ("pattern/wrong", "model/wrong", "pattern/other")
    assert ended(run) == dict.fromkeys(lines, "success") | dict.fromkeys(bad, "failed")
