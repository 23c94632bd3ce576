"""``make run``: the shipped days of every source through the DAGs by a real scheduler, then what came of it."""

from __future__ import annotations

import argparse
import threading
import time
from datetime import UTC, datetime

from chainlake.airflow.names import daily_dag_ids
from chainlake.env import doctor
from chainlake.env.ending import end
from chainlake.errors import InfrastructureError
from chainlake.lake.spark.jars import delta_jars
from chainlake.local.airflow_tables import complete_finished_backfills
from chainlake.local.api import ApiUnreachable, day_of_run
from chainlake.local.errors import AirflowUnavailable
from chainlake.local.launcher import Airflow, run_program
from chainlake.local.run.chain import OPEN_STATES, Chain
from chainlake.local.run.progress import Progress
from chainlake.local.run.shipped import shipped_days
from chainlake.local.run.summary import Timing, print_summary
from chainlake.paths import Home

POLL_S = 1.0
#: The automatic runs of yesterday find nothing to do; minutes mean that something hangs.
AUTOMATIC_TIMEOUT_S = 600.0
#: Silence of the API server after which the run is given up; the launcher restarts a dead one within seconds.
SILENCE_S = 120.0


def demo() -> int:
    """Run the chain and print the summary; 0 when every run succeeded, else 1."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.parse_args()
    home = Home.from_env()
    doctor.require(home)
    plan = shipped_days(home)
    progress = Progress()
    timing = Timing(datetime.now(UTC))
    fetched = Fetch(home)
    fetched.start()
    with Airflow(home, say=progress.say) as airflow:
        timing.mark("start of Airflow: database, API server, scheduler, DAG processor")
        progress.say(f"Airflow is up at {airflow.address}")
        _unpause(airflow, progress)
        timing.mark("automatic runs of yesterday")
        while fetched.is_alive():
            progress.now("getting Delta's JARs (once)")
            airflow.tick()
            fetched.join(POLL_S)
        if fetched.error is not None:
            raise fetched.error
        chain = Chain(home, airflow.api, lambda: complete_finished_backfills(airflow.database), plan)
        _work(airflow, chain, progress)
        timing.mark("the chain: land, ingest, detect, monitor")
        failed = [run for run in chain.runs if not run.ok]
    timing.mark("stop of Airflow")
    print_summary(home, chain, timing)
    return 1 if failed else 0


class Fetch(threading.Thread):
    """Gets Delta's JARs while Airflow starts, so that the first applications do not wait, and fail, each by itself."""

    def __init__(self, home: Home) -> None:
        super().__init__(daemon=True)
        self._home = home
        self.error: InfrastructureError | None = None

    def run(self) -> None:
        """Get them, or keep the reason."""
        try:
            delta_jars(self._home)
        except InfrastructureError as error:
            self.error = error


def _unpause(airflow: Airflow, progress: Progress) -> None:
    """Unpause the DAGs that are paused and wait for the runs that this creates at once: those of yesterday.

    Ingest first: the gates of the others open when it has looked.
    """
    paused = {dag_id for dag_id, state in airflow.api.dags().items() if state} & set(daily_dag_ids(airflow.home))
    ingests = sorted(dag_id for dag_id in paused if dag_id.startswith("ingest_"))
    for group in (ingests, sorted(paused - set(ingests))):
        for dag_id in group:
            airflow.api.pause(dag_id, False)
        _wait_automatic(airflow, group, progress)
    if paused:
        progress.say(f"{len(paused)} DAGs unpaused; their automatic runs of yesterday have ended")


def _wait_automatic(airflow: Airflow, group: list[str], progress: Progress) -> None:
    patience = Patience(airflow)
    end = time.monotonic() + AUTOMATIC_TIMEOUT_S
    waiting = list(group)
    while waiting:
        if time.monotonic() > end:
            raise AirflowUnavailable.runs_unended(waiting, AUTOMATIC_TIMEOUT_S)
        with patience:
            ended = {
                str(run["dag_id"])
                for run in airflow.api.runs(group)
                if day_of_run(run) is not None and run["state"] not in OPEN_STATES
            }
            waiting = [dag_id for dag_id in group if dag_id not in ended]
        progress.now("waiting for the automatic runs of yesterday: " + ", ".join(waiting))


def _work(airflow: Airflow, chain: Chain, progress: Progress) -> None:
    """Drive the chain until every run has ended."""
    patience = Patience(airflow)
    while not chain.ended:
        with patience:
            chain.step()
            for run in chain.news:
                progress.ended(airflow.api, run)
                run.reported = True
            progress.tasks(airflow.api, chain)


class Patience:
    """One look at Airflow: tolerates a restarting API server for a while and keeps the other components running.

    Args:
        airflow: the running Airflow.
    """

    def __init__(self, airflow: Airflow) -> None:
        self._airflow = airflow
        self._heard = time.monotonic()

    def __enter__(self) -> None:
        self._airflow.tick()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        time.sleep(POLL_S if kind is None or kind is ApiUnreachable else 0.0)
        if kind is None:
            self._heard = time.monotonic()
        return kind is ApiUnreachable and time.monotonic() - self._heard < SILENCE_S


if __name__ == "__main__":
    end(run_program(demo))
