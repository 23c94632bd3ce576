"""All statements on Airflow's own tables, and the release against which they were checked.

No setting can replace them. Airflow takes over the tasks of a dead scheduler when its last heartbeat is older than
``scheduler_health_check_threshold``; if that were shorter than a busy loop, tasks would be taken from a live scheduler.
And Airflow looks for finished backfills every 30 seconds, an interval that no option shortens.
"""

from __future__ import annotations

from chainlake.local import settings
from chainlake.local.postgres import connection

#: The release for whose tables the statements are written; a test fails when another one is installed.
CHECKED = "3.3.2"


def fail_running_jobs(database: str, kind: str | None = None) -> None:
    """Mark components that are known to be dead as failed, so that their tasks are taken over at once.

    Args:
        database: URL of an Airflow database that no other Airflow uses.
        kind: only components of this kind, such as ``SchedulerJob``.
    """
    _execute(
        database,
        "UPDATE job SET state = 'failed', end_date = now() WHERE state = 'running' "
        "AND (%(kind)s IS NULL OR job_type = %(kind)s)",
        {"kind": kind},
    )


def complete_finished_backfills(database: str) -> None:
    """Mark backfills whose runs have all ended as complete, since a DAG can have only one open backfill.

    The scheduler would run the same statement, only later.
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
    """The version of Airflow, and of its tables in ``database`` if there are any."""
    with connection(database) as opened, opened.cursor() as cursor:
        cursor.execute("SELECT to_regclass('alembic_version') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return settings.airflow_version()
        cursor.execute("SELECT version_num FROM alembic_version")
        return f"{settings.airflow_version()} {cursor.fetchone()[0]}"


def _execute(database: str, statement: str, values: dict[str, str | None]) -> None:
    with connection(database) as opened, opened.cursor() as cursor:
        cursor.execute(statement, values)
