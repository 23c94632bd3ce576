"""Reports tasks that have failed for good to a webhook. Airflow calls it in the task's process, after the last try.

Nothing here imports Airflow, and the code that sends is imported only after a failure, since the scheduler's parser
reads this file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from chainlake.airflow.tasks import NotOneDay, days_of_run
from chainlake.errors import ChainlakeError
from chainlake.terminal import one_line

#: The environment variable with the address of the webhook.
WEBHOOK = "CHAINLAKE_FAILURE_WEBHOOK"


def tell_failure(context: Mapping[str, Any]) -> None:
    """Send a message about a failed task, if the environment has an address for it.

    Args:
        context: the context of the task, as Airflow hands it to callbacks.

    Raises:
        InfrastructureError: the message is not accepted; Airflow writes this to the log of the task.
        UsageError: the environment variable does not hold an address.
    """
    if not os.environ.get(WEBHOOK):
        return
    from chainlake.definitions.alerting import Alerts
    from chainlake.operations.alerts.webhook import Trying, address_of, post

    message = message_of(context)
    name = f"{message['dag']}.{message['task']}"
    post(name, address_of(name, Alerts(f"${WEBHOOK}")), message, Trying())


def message_of(context: Mapping[str, Any]) -> dict[str, Any]:
    """The message about a failed task.

    Args:
        context: the context of the task.

    Returns:
        ``id`` (the same whenever this failure is reported), ``kind``, ``dag``, ``run``, ``task``, ``index`` (-1 if the
        task is not mapped), ``try``, ``day`` (UTC; None if the run has no day), ``reason`` in one line, and ``log``,
        the address of the log on Airflow's page.
    """
    task, error = context["ti"], context.get("exception")
    reason = error.summary if isinstance(error, ChainlakeError) else str(error or "")
    named = (task.dag_id, task.run_id, task.task_id, task.map_index, task.try_number)
    return {
        "id": "/".join(map(str, named)),
        "kind": "failed",
        **dict(zip(("dag", "run", "task", "index", "try"), named, strict=True)),
        "day": _day(context),
        "reason": one_line(reason),
        "log": task.log_url,
    }


def _day(context: Mapping[str, Any]) -> str | None:
    try:
        return str(days_of_run(context.get("data_interval_start"), context.get("data_interval_end")).start)
    except NotOneDay:
        # Runs of the DAGs that are triggered manually have no day.
        return None
