"""``make airflow``: start Airflow, show where its page is, and keep it running until Ctrl-C."""

from __future__ import annotations

import sys
import time

from chainlake.env import doctor
from chainlake.local.launcher import Airflow, run_program
from chainlake.paths import Home


def serve() -> int:
    """Run until a signal ends it."""
    home = Home.from_env()
    doctor.require(home)
    print("chainlake: starting Airflow", flush=True)
    with Airflow(home, say=lambda line: print(f"chainlake: {line}", flush=True)) as airflow:
        print(f"chainlake: Airflow is at {airflow.address}")
        print("chainlake: this address logs you in, so keep it to yourself; it ends with this Airflow")
        print("chainlake: Ctrl-C stops it", flush=True)
        while True:
            airflow.tick()
            time.sleep(1.0)


if __name__ == "__main__":
    sys.exit(run_program(serve))
