"""Takes days through the DAGs of a running Airflow, whether ``make run`` started it or it was already running."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Protocol

from chainlake.airflow.names import daily_dag_ids
from chainlake.local.api import Api, ApiUnreachable, day_of_run
from chainlake.local.errors import AirflowUnavailable
from chainlake.local.run.chain import OPEN_STATES, Chain
from chainlake.local.run.first import First
from chainlake.local.run.progress import Progress
from chainlake.paths import Home
from chainlake.words import counted

POLL_S = 1.0
#: The runs for yesterday, which Airflow starts by itself, find nothing to do; if they take minutes, something hangs.
YESTERDAY_TIMEOUT_S = 600.0
#: Seconds of silence from the API server after which the run is given up; a dead one is restarted within seconds.
SILENCE_S = 120.0


class Driven(Protocol):
    """An Airflow that can be driven."""

    @property
    def home(self) -> Home:
        """The installation whose DAGs the Airflow runs."""

    @property
    def api(self) -> Api:
        """A client of its API server."""

    def tick(self) -> None:
        """Keep the Airflow running; called about once a second."""


def unpause(airflow: Driven, sources: Collection[str], progress: Progress) -> None:
    """Unpause the DAGs that are paused, and wait for the runs that this creates at once, those for yesterday.

    Ingest DAGs come first, since the gates of the others open only after ingest has looked for files.

    Args:
        airflow: where the DAGs run.
        sources: names of the sources whose DAGs are meant.
        progress: reports what happens.
    """
    wanted = {dag_id for dag_id in daily_dag_ids(airflow.home) if dag_id.partition("_")[2] in sources}
    paused = {dag_id for dag_id, state in airflow.api.dags().items() if state} & wanted
    ingests = sorted(dag_id for dag_id in paused if dag_id.startswith("ingest_"))
    for group in (ingests, sorted(paused - set(ingests))):
        for dag_id in group:
            airflow.api.pause(dag_id, False)
        _wait_yesterday(airflow, group, progress)
    if paused:
        progress.say(
            f"switched on {counted(len(paused), 'schedule')}; this starts runs for yesterday, which have ended"
        )


def _wait_yesterday(airflow: Driven, group: list[str], progress: Progress) -> None:
    patience = Patience(airflow)
    end = time.monotonic() + YESTERDAY_TIMEOUT_S
    waiting = list(group)
    while waiting:
        if time.monotonic() > end:
            raise AirflowUnavailable.runs_unended(waiting, YESTERDAY_TIMEOUT_S)
        with patience:
            ended = {
                str(run["dag_id"])
                for run in airflow.api.runs(group)
                if day_of_run(run) is not None and run["state"] not in OPEN_STATES
            }
            waiting = [dag_id for dag_id in group if dag_id not in ended]
        progress.now("switching on a schedule starts its run for yesterday; still to end: " + ", ".join(waiting))


def drive(airflow: Driven, chain: Chain, progress: Progress) -> None:
    """Drive the chain until every run has ended."""
    patience, first = Patience(airflow), First(airflow.home)
    while not chain.ended:
        with patience:
            chain.step()
            for run in chain.news:
                progress.ended(airflow.api, run)
                run.reported = True
                first.look(run)
            for said in first.said():
                progress.say(said)
            progress.tasks(airflow.api, chain)


class Patience:
    """The context of one look at Airflow: tolerates an API server that restarts, and keeps other components running.

    Args:
        airflow: the running Airflow.
    """

    def __init__(self, airflow: Driven) -> None:
        self._airflow = airflow
        self._answered = time.monotonic()

    def __enter__(self) -> None:
        self._airflow.tick()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        time.sleep(POLL_S if kind is None or kind is ApiUnreachable else 0.0)
        if kind is None:
            self._answered = time.monotonic()
        return kind is ApiUnreachable and time.monotonic() - self._answered < SILENCE_S
