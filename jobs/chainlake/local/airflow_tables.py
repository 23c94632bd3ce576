"""The statements on Airflow's own tables, all in this file, and the release that they were checked against.

No setting does the same. Airflow takes over the tasks of a dead scheduler when its last heartbeat is older than
``scheduler_health_check_threshold``; set below the length of a busy loop, it would take them from one that lives. And
it looks for finished backfills every 30 seconds, which no option shortens.
"""

from __future__ import annotations

from chainlake.local import settings
from chainlake.local.postgres import connection

#: The release whose tables the statements know; a test fails when another one is installed.
CHECKED = "3.3.2"


def fail_running_jobs(database: str, kind: str | None = None) -> None:
    """Mark components that are known to be dead as failed, so that the tasks they ran are taken up at once.

    Args:
        database: URL of an Airflow database that nobody else uses.
        kind: only components of this kind, such as ``SchedulerJob``.
    """
    _execute(
        database,
        "UPDATE job SET state = 'failed', end_date = now() WHERE state = 'running' "
        "AND (%(kind)s IS NULL OR job_type = %(kind)s)",
        {"kind": kind},
    )


def complete_finished_backfills(database: str) -> None:
    """Note that backfills whose runs have all ended are complete: a DAG can have one open backfill.

    It is the scheduler's own statement, said earlier.
    """
    _execute(
        database,
        "UPDATE backfill SET completed_at = now(), updated_at = now() WHERE completed_at IS NULL "
        "AND EXISTS (SELECT 1 FROM backfill_dag_run b WHERE b.backfill_id = backfill.id) "
        "AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.backfill_id = backfill.id "
        "AND r.state IN ('running', 'queued'))",
        {},
    )


def schema_version(database: str) -> str:
    """Airflow's version and that of its tables in ``database``; without the latter if there are none."""
    with connection(database) as opened, opened.cursor() as cursor:
        cursor.execute("SELECT to_regclass('alembic_version') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return settings.airflow_version()
        cursor.execute("SELECT version_num FROM alembic_version")
        return f"{settings.airflow_version()} {cursor.fetchone()[0]}"


def _execute(database: str, statement: str, values: dict[str, str | None]) -> None:
    with connection(database) as opened, opened.cursor() as cursor:
        cursor.execute(statement, values)
