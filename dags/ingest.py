"""DAGs ``ingest_<source>``: turn the landing files of a day into raw rows and events, one Spark application a day."""

from collections.abc import Generator
from typing import Any

from airflow.sdk import DAG, Metadata, task

from chainlake.airflow import page, tasks
from chainlake.airflow.dag import STEP_TIMEOUT, daily, events, this_day, this_run
from chainlake.airflow.names import SPARK_POOL, source_names
from chainlake.paths import Home


def ingest_dag(source: str) -> DAG:
    """The DAG of one source."""
    description = f"Landed files of {source} into events"
    with daily("ingest", source, description, page.ingest_page(source), max_active_runs=1) as dag:

        @task(pool=SPARK_POOL, execution_timeout=STEP_TIMEOUT, outlets=[events(source)])
        def ingest() -> Generator[Metadata, None, dict[str, Any]]:
            days = this_day()
            result = tasks.run_step("ingest", source, days, run_id=this_run())
            yield Metadata(events(source), {"day": str(days.start), "run": result})
            return result

        ingest()
    return dag


for _source in source_names(Home.from_env()):
    globals()[f"ingest_{_source}"] = ingest_dag(_source)
