"""Builds the DAGs. It is imported whenever the scheduler parses ``dags/``, so it must stay light."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import (
    DAG,
    Asset,
    Metadata,
    Param,
    PokeReturnValue,
    get_current_context,
    task,
)

from chainlake.airflow import page, ranges, tasks
from chainlake.airflow.failures import tell_failure
from chainlake.airflow.names import GATE, MAINTENANCE_CRON, SPARK_POOL, of_source
from chainlake.airflow.plugin import DailyTimetable
from chainlake.airflow.releases import AirflowFailException, CronTriggerTimetable, runs_by
from chainlake.days import Days
from chainlake.errors import ChainlakeError, UsageError
from chainlake.paths import Home
from chainlake.run.results import Computed

#: A time before all history, so that any day can be backfilled.
START = datetime(1970, 1, 1, tzinfo=UTC)
#: Arguments of all tasks; a site's page shows the owner and can filter by it.
TASK_ARGS = {
    "owner": "chainlake",
    "retries": 2,
    "retry_delay": timedelta(seconds=10),
    "on_failure_callback": tell_failure,
}
#: A shipped step takes minutes at most, and a day of a large source an hour.
STEP_TIMEOUT = timedelta(hours=6)
#: A line of applications over years of a model may take longer.
RANGE_TIMEOUT = timedelta(days=3)
#: The gate polls often at first and then less and less: most days are there at once, or come hours later.
GATE_FIRST_LOOK = timedelta(seconds=5)
GATE_LAST_LOOK = timedelta(minutes=5)
GATE_TIMEOUT = timedelta(days=14)


def daily(step: str, source: str, description: str, doc: str, *, max_active_runs: int) -> DAG:
    """A DAG whose runs have one whole UTC day each: by the schedule, by a backfill, or manually for any day.

    Args:
        step: ``ingest``, ``detect`` or ``monitor``.
        source: name of the source.
        description: one line for lists of DAGs.
        doc: text of its page, in Markdown.
        max_active_runs: the largest number of runs at a time.
    """
    return DAG(
        dag_id=f"{step}_{source}",
        description=description,
        doc_md=doc,
        tags=["chainlake", step, source],
        schedule=DailyTimetable(),
        start_date=START,
        catchup=False,
        # Neither an asset nor another DAG says which day a run is for.
        **runs_by("scheduled", "backfill", "manual"),
        max_active_runs=max_active_runs,
        default_args=TASK_ARGS,
    )


def events(source: str) -> Asset:
    """The asset for the events table of ``source``."""
    return _table("events", source)


def results(step: str, source: str) -> list[Asset]:
    """The assets that ``step`` publishes for ``source``: the tables of each pattern, or what each model found."""
    return [_table(schema, one.name) for one in of_source(Home.from_env(), step, source) for schema in one.schemas]


def _table(schema: str, name: str) -> Asset:
    return Asset(name=f"{schema}.{name}", uri=f"chainlake://{schema}/{name}", group="chainlake")


def this_day() -> Days:
    """The day of the running task; fails the task for good if its interval is not exactly one whole UTC day."""
    context = get_current_context()
    try:
        return tasks.days_of_run(context.get("data_interval_start"), context.get("data_interval_end"))
    except UsageError as error:
        raise AirflowFailException(error.summary) from error


def this_run() -> str:
    """The id of this try in ``ops``."""
    context = get_current_context()
    return f"{context['run_id']}.{context['ti'].try_number}"


def gated(step: str, source: str, description: str, *, max_active_runs: int) -> DAG:
    """A DAG that waits for the events of its day, and then runs ``step`` once per bundle of definitions.

    Args:
        step: ``detect`` or ``monitor``.
        source: name of the source.
        description: description shown on the Airflow page.
        max_active_runs: the largest number of runs at a time.
    """
    published = results(step, source)
    doc = page.gated_page(step, source, of_source(Home.from_env(), step, source))
    with daily(step, source, description, doc, max_active_runs=max_active_runs) as dag:

        @task.sensor(
            task_id=GATE,
            mode="reschedule",
            poke_interval=GATE_FIRST_LOOK.total_seconds(),
            exponential_backoff=True,
            max_wait=GATE_LAST_LOOK,
            timeout=GATE_TIMEOUT.total_seconds(),
        )
        def gate() -> PokeReturnValue:
            found = tasks.gate(step, source, this_day())
            return PokeReturnValue(is_done=found is not None, xcom_value=found)

        @task(
            task_id=step,
            pool=SPARK_POOL,
            execution_timeout=STEP_TIMEOUT,
            map_index_template="{{ bundle_name }}",
            inlets=[events(source)],
            outlets=published,
        )
        def run(bundle: tasks.Bundle) -> Generator[Metadata, None, dict[str, Any]]:
            days = this_day()
            label = f"{bundle['name']} {days.start}"
            get_current_context()["bundle_name"] = label  # type: ignore[typeddict-unknown-key]
            result = tasks.run_step(step, source, days, run_id=this_run(), definitions=bundle["definitions"])
            for table in published:
                yield Metadata(table, {"day": str(days.start), "run": result})
            return result

        run.expand(bundle=gate())
    return dag


def maintenance(dag_id: str, description: str) -> DAG:
    """A DAG that maintains and checks all tables, at an hour when daily runs have usually ended.

    It needs no Spark and no pool. The check fails for good if a table does not hold what was written to it.

    Args:
        dag_id: id of the DAG.
        description: description shown on the Airflow page.
    """
    with DAG(
        dag_id=dag_id,
        description=description,
        doc_md=page.maintenance_page(description),
        tags=["chainlake", "tables"],
        # A cron trigger without data intervals: of the runs that were missed, only the last is caught up.
        schedule=CronTriggerTimetable(MAINTENANCE_CRON, timezone="UTC"),
        start_date=START,
        catchup=False,
        is_paused_upon_creation=False,
        **runs_by("scheduled", "manual"),
        max_active_runs=1,
        default_args=TASK_ARGS,
    ) as dag:

        @task(execution_timeout=STEP_TIMEOUT)
        def maintain() -> dict[str, Any]:
            return tasks.run_on_tables(["maintain"], run_id=this_run())

        @task(execution_timeout=STEP_TIMEOUT)
        def check() -> dict[str, Any]:
            return tasks.run_on_tables(["check"], run_id=this_run())

        # Neither waits for the other: tables that cannot be maintained are still checked, and each has its own result.
        maintain()
        check()
    return dag


def ranged(
    dag_id: str, description: str, params: dict[str, Param], plan: Callable[[dict[str, Any]], list[ranges.Line]]
) -> DAG:
    """A DAG that is triggered manually for any range of days: it plans without a JVM, and then runs what was planned.

    Args:
        dag_id: id of the DAG.
        description: description shown on the Airflow page.
        params: what the person who runs it is asked for.
        plan: gives the lines to run for the params, see :mod:`chainlake.airflow.ranges`.
    """
    with DAG(
        dag_id=dag_id,
        description=description,
        doc_md=page.by_hand_page(description),
        tags=["chainlake", "by hand"],
        schedule=None,
        start_date=START,
        params=params,
        # A manual run of a paused DAG would wait silently, and without a schedule nothing runs by itself.
        is_paused_upon_creation=False,
        **runs_by("manual"),
        # Two runs at a time would compute the same days twice; within one, the pool limits how many Sparks run.
        max_active_runs=1,
        default_args=TASK_ARGS,
    ) as dag:

        @task(task_id="plan")
        def list_lines() -> list[ranges.Line]:
            try:
                return plan(dict(get_current_context()["params"]))
            except ChainlakeError as error:
                raise AirflowFailException(error.summary) from error

        @task(pool=SPARK_POOL, execution_timeout=RANGE_TIMEOUT, map_index_template="{{ line_name }}")
        def run(line: ranges.Line) -> Computed:
            context = get_current_context()
            context["line_name"] = line["name"]  # type: ignore[typeddict-unknown-key]
            return ranges.run_line(line, f"{this_run()}.{context['ti'].map_index}")

        run.expand(line=list_lines())
    return dag
