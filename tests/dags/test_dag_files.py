"""The DAG files: they import, cheaply, and declare what daily runs need."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chainlake.airflow.broken import BrokenDefinitions, check_definitions
from chainlake.airflow.names import (
    MAINTENANCE,
    MAINTENANCE_CRON,
    MAINTENANCE_TIMES,
    ON_DEMAND,
    dag_ids,
    daily_dag_ids,
    defined,
    first_start,
    monitored_sources,
)
from chainlake.airflow.tasks import days_of_run
from chainlake.days import Days
from chainlake.paths import PROJECT, Home


@pytest.fixture(scope="module")
def dags(airflow_database: Path) -> dict[str, Any]:
    """All DAGs by id, from the files."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(PROJECT / "dags")
    assert not bag.import_errors
    return dict(bag.dags)


@pytest.fixture(scope="module")
def daily(dags: dict[str, Any]) -> dict[str, Any]:
    """Those that have a run per day."""
    return {dag_id: dags[dag_id] for dag_id in daily_dag_ids(Home.from_env())}


def test_one_family_per_source(dags: dict[str, Any]) -> None:
    assert set(dags) == set(dag_ids(Home.from_env()))
    steps = ("ingest", "detect", "monitor")
    assert {f"{step}_{source}" for step in steps for source in ("sensor", "stock", "traffic")} <= set(dags)


def test_runs_are_whole_days(daily: dict[str, Any]) -> None:
    for dag in daily.values():
        assert type(dag.timetable).__name__ == "DailyTimetable", dag.dag_id
        assert dag.catchup is False, dag.dag_id
        assert {kind.value for kind in dag.allowed_run_types} == {"scheduled", "backfill", "manual"}, dag.dag_id
        assert all(task.retries == 2 for task in dag.tasks), dag.dag_id
        assert not any(task.depends_on_past for task in dag.tasks), dag.dag_id


def test_what_is_run_by_hand_can_be_and_asks_for_what_it_needs(dags: dict[str, Any]) -> None:
    assert "ingest_history" in ON_DEMAND
    for dag_id in ON_DEMAND:
        dag = dags[dag_id]
        assert {kind.value for kind in dag.allowed_run_types} == {"manual"}, dag_id
        assert dag.is_paused_upon_creation is False and dag.max_active_runs == 1, dag_id
        assert {task.task_id: task.pool for task in dag.tasks} == {"plan": "default_pool", "run": "spark"}, dag_id
    params = dags["backfill_history"].params
    assert set(params) == {"start", "end", "patterns", "models", "chunk", "only_stale"}
    assert params["chunk"] == 366 and params["only_stale"] is False
    with pytest.raises(ValueError, match="start"):
        params.validate()


def test_a_run_is_named_by_the_day_that_it_computes(daily: dict[str, Any]) -> None:
    from airflow.serialization.decoders import decode_timetable
    from airflow.serialization.encoders import encode_timetable
    from airflow.timetables.base import DataInterval
    from airflow.utils.types import DagRunType
    from pendulum import datetime

    interval = DataInterval(start=datetime(2025, 10, 1), end=datetime(2025, 10, 2))
    for dag in daily.values():
        # As the scheduler has it, which reads it from the database.
        timetable = decode_timetable(encode_timetable(dag.timetable))
        for kind, name in ((DagRunType.SCHEDULED, "scheduled"), (DagRunType.BACKFILL_JOB, "backfill")):
            run_id = timetable.generate_run_id(run_type=kind, run_after=interval.end, data_interval=interval)
            assert run_id == f"{name}__2025-10-01"


@pytest.mark.parametrize(
    "logical_date",
    [
        "2025-10-01T00:00:00+00:00",
        "2025-10-01T23:59:59+00:00",
        "2025-09-30T17:00:00-07:00",
        "2025-10-02T01:30:00+02:00",
    ],
)
def test_a_run_by_hand_has_the_utc_day_of_its_logical_date(daily: dict[str, Any], logical_date: str) -> None:
    """As the form of Airflow's page creates it."""
    found = _triggered(daily["ingest_stock"], logical_date)
    interval = found["data_interval"]
    assert days_of_run(interval.start, interval.end) == Days.parse("2025-10-01", "2025-10-02")
    # Several runs of a day have names of their own, each with the day.
    assert found["run_id"] == "manual__2025-10-01__2025-10-07T08:09:10+00:00"


def test_a_run_by_hand_of_a_day_that_is_not_over_is_refused(daily: dict[str, Any]) -> None:
    now = datetime.now(UTC)
    yesterday = now - timedelta(days=1)
    for date in (now, now + timedelta(days=400)):
        with pytest.raises(ValueError, match=f"{date:%Y-%m-%d}, a UTC day that is not over(.|\n)*{yesterday:%Y-%m-%d}"):
            _triggered(daily["detect_stock"], date.isoformat())


def test_the_command_that_loses_the_logical_date_names_the_one_that_keeps_it(daily: dict[str, Any]) -> None:
    from airflow.api.common.trigger_dag import _trigger_dag
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.utils.types import DagRunTriggeredByType

    found = DagSerialization.from_dict(DagSerialization.to_dict(daily["ingest_stock"]))
    bag: Any = SimpleNamespace(get_latest_version_of_dag=lambda *_, **__: found)
    asked = datetime(2013, 10, 8, 12, tzinfo=UTC)
    session: Any = object()
    with pytest.raises(ValueError, match="whatever --logical-date says: use 'airflow backfill create'"):
        _trigger_dag(
            dag_id="ingest_stock", dag_bag=bag, triggered_by=DagRunTriggeredByType.CLI, logical_date=asked,
            session=session,
        )  # fmt: skip


def test_a_run_by_hand_without_a_date_is_refused(daily: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs a logical date"):
        _triggered(daily["monitor_stock"], None)


def _triggered(dag: Any, logical_date: str | None) -> dict[str, Any]:
    """What Airflow's API makes of a request for a run; it shows the text of a ``ValueError`` in its form."""
    from airflow.api_fastapi.core_api.datamodels.dag_run import TriggerDAGRunPostBody
    from airflow.serialization.serialized_objects import DagSerialization

    body = TriggerDAGRunPostBody.model_validate({"logical_date": logical_date, "run_after": "2025-10-07T08:09:10Z"})
    return dict(body.validate_context(DagSerialization.from_dict(DagSerialization.to_dict(dag))))


def test_every_dag_says_what_it_does_and_whose_it_is(dags: dict[str, Any]) -> None:
    for dag_id, dag in dags.items():
        assert dag.doc_md and "**Runs**" in dag.doc_md or "**By hand**" in dag.doc_md, dag_id
        assert "chainlake" in dag.tags and len(dag.tags) > 1, dag_id
        assert all(task.owner == "chainlake" for task in dag.tasks), dag_id
    assert "| `shakeout` | a sharp one-minute fall" in dags["detect_stock"].doc_md


def test_a_step_publishes_the_tables_of_its_definitions(dags: dict[str, Any]) -> None:
    (run,) = [task for task in dags["detect_stock"].tasks if task.task_id == "detect"]
    found = {asset.name: asset.uri for asset in run.outlets}
    assert found["matches.shakeout"] == "chainlake://matches/shakeout" and "matches.gas_onset" not in found
    assert [asset.name for asset in run.inlets] == ["events.stock"]
    # Of the shipped patterns of this source, one has episodes and one is ranked.
    more = {name for name in found if not name.startswith("matches.")}
    assert more == {"episodes.fall_not_recovered", "ranked.fastest_rises"}
    assert "**Tables**: `matches.NAME`, `episodes.NAME`, `ranked.NAME`;" in dags["detect_stock"].doc_md
    (run,) = [task for task in dags["monitor_stock"].tasks if task.task_id == "monitor"]
    assert [asset.name for asset in run.outlets] == ["models.bac_beta"]


@pytest.mark.parametrize(
    ("text", "schemas"),
    [
        ("---\nsource: s\n---\nPATTERN Bar a WITHIN 1 min\n", ("matches",)),
        ("# EPISODES\n---\ndescription: RANK BY and EPISODES\n---\nPATTERN Bar a  # RANK BY\n", ("matches",)),
        ("---\nsource: s\n---\nPATTERN Bar a WITHIN 1 min EPISODES BY k PAUSE 1 min\n", ("matches", "episodes")),
        ("---\nsource: s\n---\nPATTERN Bar a WITHIN 1 min\nrank  by MAX(a.x) TOP 2\n", ("matches", "ranked")),
        ("---\r\ndescription: EPISODES\r\n---\r\nPATTERN Bar a WITHIN 1 min\r\n", ("matches",)),
    ],
)
def test_which_tables_a_pattern_has_is_read_off_its_query(
    text: str, schemas: tuple[str, ...], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home.root / "config" / "patterns"
    folder.mkdir(parents=True)
    (folder / "one.sase").write_bytes(text.encode())
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(folder.parent))
    (found,) = defined(Home.from_env(), "detect")
    assert found.schemas == schemas


def test_what_is_asked_for_by_hand_can_be_picked(dags: dict[str, Any]) -> None:
    def schema(dag_id: str, name: str) -> dict[str, Any]:
        return dict(dags[dag_id].params.get_param(name).schema)

    assert "shakeout" in schema("backfill_history", "patterns")["examples"]
    models = ["bac_beta", "gas_array", "i5n_speed_profile", "loop_lengths", "next_speed", "road_queue"]
    assert schema("backfill_history", "models")["examples"] == models
    assert schema("ingest_history", "source")["enum"] == ["sensor", "stock", "traffic"]
    assert schema("restate_stale", "sources")["examples"] == ["sensor", "stock", "traffic"]


def test_a_form_marks_as_required_just_what_has_no_default(dags: dict[str, Any]) -> None:
    """Airflow's page puts an asterisk on fields whose type is given and has no null."""
    required = {}
    for dag_id in ON_DEMAND:
        params = dags[dag_id].params
        required[dag_id] = [name for name in params if "null" not in params.get_param(name).schema["type"]]
    assert required == {
        "ingest_history": ["source", "start", "end"],
        "backfill_history": ["start", "end"],
        "restate_stale": [],
    }


def test_sources_and_models_go_one_day_at_a_time(daily: dict[str, Any]) -> None:
    for dag_id, dag in daily.items():
        assert (dag.max_active_runs == 1) == (not dag_id.startswith("detect_")), dag_id


def test_what_starts_spark_uses_the_pool_and_what_waits_does_not(dags: dict[str, Any]) -> None:
    for dag_id, dag in dags.items():
        for task in dag.tasks:
            if task.task_id == "gate":
                assert (task.pool, task.mode) == ("default_pool", "reschedule"), dag_id
            elif task.task_id not in ("plan", "maintain", "check"):
                assert task.pool == "spark", dag_id


def test_maintenance_waits_for_its_hour_and_holds_no_place_of_spark(dags: dict[str, Any]) -> None:
    dag = dags[MAINTENANCE]
    assert type(dag.timetable).__name__ == "CronTriggerTimetable" and dag.catchup is False
    assert {kind.value for kind in dag.allowed_run_types} == {"scheduled", "manual"} and dag.max_active_runs == 1
    found = sorted((task.task_id, task.pool, task.retries) for task in dag.tasks)
    assert found == [("check", "default_pool", 2), ("maintain", "default_pool", 2)]
    assert not any(task.upstream_task_ids for task in dag.tasks)
    assert dag.timetable.expression == MAINTENANCE_CRON and f"{MAINTENANCE_TIMES}," in dag.doc_md


def test_an_airflow_that_cannot_choose_kinds_of_runs_is_not_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from chainlake.airflow import releases

    assert releases.runs_by("manual") == {"allowed_run_types": ["manual"]}
    monkeypatch.setattr(releases, "DAG", lambda dag_id, schedule: None)
    assert releases.runs_by("manual") == {}


def test_parsing_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from chainlake.airflow import dag, names\n"
        "import dags.ingest, dags.detect, dags.monitor, dags.backfill_history, dags.restate_stale\n"
        "import dags.ingest_history, dags.maintain_tables\n"
        "heavy = {'pyspark', 'delta', 'deltalake', 'pyarrow', 'great_expectations', 'duckdb'}\n"
        "heavy.add('chainlake.definitions.source')\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_a_broken_model_file_hides_no_dag(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    config = home.root / "config"
    for folder in ("sources", "models"):
        (config / folder).mkdir(parents=True)
    (config / "sources" / "road.yaml").write_text("key: detector\n")
    (config / "sources" / "bank.yaml").write_text("key: ticker\n")
    (config / "models" / "good.yaml").write_text("source: road\nstart: 2025-10-02\n")
    (config / "models" / "bad.yaml").write_text("source: road\nwindow: [1,\nstart: '2025-10-01'\n")
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    here = Home.from_env()
    assert monitored_sources(here) == ["road"]
    assert str(first_start(here, "road")) == "2025-10-01"
    assert dag_ids(here) == [*daily_dag_ids(here), *ON_DEMAND, MAINTENANCE]
    assert daily_dag_ids(here) == ["ingest_bank", "ingest_road", "detect_bank", "detect_road", "monitor_road"]


def test_broken_definitions_are_told_until_they_are_mended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    config = home.root / "config"
    for folder in ("sources", "patterns"):
        (config / folder).mkdir(parents=True)
    bad = config / "patterns" / "bad.sase"
    bad.write_text("---\nsource: road\n---\nPATTERN SEQ(Bar a\n")
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    here = Home.from_env()
    with pytest.raises(BrokenDefinitions, match=r"1 definition cannot be used:(.|\n)*bad\.sase") as first:
        check_definitions(here)
    # Kept: the loaders are not asked while no file changes.
    with monkeypatch.context() as patched:
        patched.setattr("chainlake.airflow.broken._looked_through", lambda home: pytest.fail("looked through again"))
        with pytest.raises(BrokenDefinitions) as second:
            check_definitions(here)
    assert str(second.value) == str(first.value)
    bad.unlink()
    check_definitions(here)


def test_the_shipped_definitions_can_all_be_used(home: Home) -> None:
    check_definitions(Home.from_env())
