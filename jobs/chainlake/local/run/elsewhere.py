"""``make docker-run``: takes the shipped days through the DAGs of an Airflow that is already running; then a
summary.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chainlake.airflow.names import dag_ids
from chainlake.env.processes.ending import end
from chainlake.local.access import USER
from chainlake.local.api import Api, ApiUnreachable
from chainlake.local.errors import AirflowUnavailable
from chainlake.local.launcher import run_program
from chainlake.local.run.chain import Chain
from chainlake.local.run.driving import POLL_S, drive, unpause
from chainlake.local.run.progress import Progress
from chainlake.local.run.shipped import add_selection, selected_days
from chainlake.local.run.summary import Timing, print_summary, report_now
from chainlake.paths import Home

#: How many seconds the DAGs may take to appear.
START_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class ExternalAirflow:
    """An Airflow that is kept running by others."""

    home: Home
    api: Api

    def tick(self) -> None:
        """Do nothing: this Airflow is not ours to restart."""


def elsewhere() -> int:
    """Run the chain and print the summary; returns 0 if every run succeeded, else 1."""
    given = options().parse_args()
    home = Home.from_env()
    plan = selected_days(home, given.source, given.days)
    airflow = ExternalAirflow(home, Api(given.page, json.loads(given.passwords.read_text())[USER]))
    progress = Progress()
    timing = Timing(datetime.now(UTC))
    _wait_for_dags(airflow, progress)
    timing.mark("wait for the DAGs")
    unpause(airflow, plan, progress)
    timing.mark("runs for yesterday, which begin when schedules are switched on")
    # This Airflow's scheduler marks backfills as complete itself, twice a minute.
    chain = Chain(home, airflow.api, lambda: None, plan)
    drive(airflow, chain, progress)
    timing.mark("the shipped days: land, ingest, detect, monitor")
    print_summary(home, chain, timing, report_now(home), page=given.page, command="chainlake")
    return 1 if any(not run.ok for run in chain.runs) else 0


def options() -> argparse.ArgumentParser:
    """What can be said on the command line."""
    parser = argparse.ArgumentParser(prog="python -m chainlake.local.run.elsewhere", description=__doc__)
    page = os.environ.get("AIRFLOW__API__BASE_URL", "http://localhost:8080")
    parser.add_argument(
        "--page", default=page, help="address of Airflow's page (default: the one in Airflow's settings)"
    )
    parser.add_argument("--passwords", type=Path, required=True, help=f"JSON file with the password of '{USER}'")
    add_selection(parser)
    return parser


def _wait_for_dags(airflow: ExternalAirflow, progress: Progress) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    missing = sorted(dag_ids(airflow.home))
    silent: ApiUnreachable | None = None
    while missing:
        if time.monotonic() > until:
            raise silent or AirflowUnavailable.no_dags(missing, START_TIMEOUT_S)
        try:
            errors = airflow.api.import_errors()
            if errors:
                raise AirflowUnavailable.broken_dag(*errors[0])
            missing, silent = sorted(set(dag_ids(airflow.home)) - airflow.api.dags().keys()), None
        except ApiUnreachable as error:
            # The API server is still starting.
            silent = error
        if missing:
            what = f"the DAGs {', '.join(missing)}" if silent is None else "Airflow's API server"
            progress.now(f"waiting for {what}")
            time.sleep(POLL_S)


if __name__ == "__main__":
    end(run_program(elsewhere))
