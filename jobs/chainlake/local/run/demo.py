"""``make run``: a real scheduler takes the shipped days of every source through the DAGs; then a summary follows."""

from __future__ import annotations

import argparse
import threading
from datetime import UTC, datetime

from chainlake.airflow.names import source_names
from chainlake.env import doctor
from chainlake.env.processes.ending import end
from chainlake.errors import InfrastructureError
from chainlake.lake.spark.jars import delta_jars
from chainlake.local.airflow_tables import complete_finished_backfills
from chainlake.local.drivers.keeper import KEPT
from chainlake.local.launcher import Airflow, run_program
from chainlake.local.run.chain import Chain
from chainlake.local.run.driving import POLL_S, drive, unpause
from chainlake.local.run.progress import Progress
from chainlake.local.run.shipped import add_selection, all_landed, selected_days
from chainlake.local.run.summary import Timing, print_summary, report_now
from chainlake.paths import Home


def demo() -> int:
    """Run the chain and print the summary; returns 0 if every run succeeded, else 1."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    add_selection(parser)
    given = parser.parse_args()
    home = Home.from_env()
    doctor.require(home)
    plan = selected_days(home, given.source, given.days)
    progress = Progress()
    timing = Timing(datetime.now(UTC))
    fetched = Fetch(home)
    fetched.start()
    # Drivers are prepared while Airflow starts, which leaves cores idle. If nothing has landed since the last time, no
    # step needs Spark; and JARs that are still to be fetched are fetched once, not by every driver.
    fetched.join(_CACHED_S)
    prepared = 0 if fetched.is_alive() or fetched.error is not None or all_landed(home, plan) else KEPT
    with Airflow(home, progress.say, prepared=prepared, parse_s=PARSE_S) as airflow:
        timing.mark("start of Airflow: database, API server, scheduler, DAG processor")
        progress.say(f"Airflow is up at {airflow.address}")
        unpause(airflow, given.source or source_names(home), progress)
        timing.mark("runs for yesterday, which begin when schedules are switched on")
        while fetched.is_alive():
            progress.now("getting Delta's JARs (once)")
            airflow.tick()
            fetched.join(POLL_S)
        if fetched.error is not None:
            raise fetched.error
        chain = Chain(home, airflow.api, lambda: complete_finished_backfills(airflow.database), plan)
        drive(airflow, chain, progress)
        timing.mark("the shipped days: land, ingest, detect, monitor")
        airflow.begin_stop()
        report = report_now(home)
    timing.mark("stop of Airflow, and meanwhile the report")
    print_summary(home, chain, timing, report)
    return 1 if any(not run.ok for run in chain.runs) else 0


#: Seconds, more than it takes to check JARs that are in the cache.
_CACHED_S = 1.0
#: Seconds between two looks at a DAG file that has not changed: make run needs no second look.
PARSE_S = 600


class Fetch(threading.Thread):
    """Gets Delta's JARs while Airflow starts, so that the first applications need not each wait, or fail, alone."""

    def __init__(self, home: Home) -> None:
        super().__init__(daemon=True)
        self._home = home
        self.error: InfrastructureError | None = None

    def run(self) -> None:
        """Get the JARs, or keep the error."""
        try:
            delta_jars(self._home)
        except InfrastructureError as error:
            self.error = error


if __name__ == "__main__":
    end(run_program(demo))
