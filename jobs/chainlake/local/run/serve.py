"""``make airflow``: starts Airflow, shows where its page is, and keeps it running until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
import time

from chainlake.env import doctor
from chainlake.local.launcher import Airflow, Stopped, run_program
from chainlake.paths import Home


def serve() -> int:
    """Run until a signal comes; that is not an error, so the exit code is 0."""
    home = Home.from_env()
    doctor.require(home)
    print("chainlake: starting Airflow", flush=True)
    with Airflow(home, say=lambda line: print(f"chainlake: {line}", flush=True)) as airflow:
        print(f"chainlake: Airflow is at {airflow.address}")
        print("chainlake: this address logs you in, so keep it to yourself; it ends with this Airflow")
        print("chainlake: Ctrl-C stops it", flush=True)
        # From here on a signal is the normal end, so that make reports no error.
        with contextlib.suppress(KeyboardInterrupt, Stopped):
            while True:
                airflow.tick()
                time.sleep(1.0)
    print("chainlake: stopped; nothing is left running", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run_program(serve))
