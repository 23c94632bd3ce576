"""What Airflow's releases have in different places: from 3.1 on, all of them run these DAGs."""

from __future__ import annotations

import inspect
from typing import Any

from airflow.sdk import DAG

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # before 3.2
    from airflow.exceptions import AirflowFailException  # type: ignore[no-redef]

try:
    from airflow.sdk import CronTriggerTimetable
except ImportError:  # before 3.2
    from airflow.timetables.trigger import CronTriggerTimetable  # type: ignore[assignment]

__all__ = ["AirflowFailException", "CronTriggerTimetable", "runs_by"]


def runs_by(*kinds: str) -> dict[str, Any]:
    """The argument of ``DAG`` that allows runs of these kinds alone.

    Airflow 3.1 has none, and allows all: there, a run that has no day fails in its first task.

    Args:
        kinds: ``scheduled``, ``backfill``, ``manual``.
    """
    name = "allowed_run_types"
    return {name: list(kinds)} if name in inspect.signature(DAG).parameters else {}
