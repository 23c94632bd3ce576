"""``make replay-proof``: the replay promise once through a real scheduler, with a real database and real Spark.

One installation runs three days as they come and gets a late file, which the run of the fourth day repairs. The other
has the three days backfilled by ``airflow backfill create``, backwards and two at a time, gets the late file then, has
a middle day cleared and run again by ``airflow tasks clear``, and the last one by another backfill. Their tables must
be the same (docs/semantics.md#same-tables). Takes five minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

from chainlake.errors import InfrastructureError
from chainlake.lake.records import ops
from chainlake.local.airflow_tables import complete_finished_backfills
from chainlake.local.api import day_of_run
from chainlake.local.launcher import Airflow, run_program
from chainlake.local.run.chain import OPEN_STATES, Chain
from chainlake.local.run.driving import POLL_S, drive, unpause
from chainlake.local.run.progress import Progress
from chainlake.local.run.shipped import ShippedDay, land
from chainlake.paths import PROJECT, Home
from tests.proof.small import DAYS, control, deliver, differences, in_folder, installation, print_tables
from tests.steps.history import day

STEPS = ("ingest", "detect", "monitor")


def main() -> int:
    """Run both installations and compare; 0 if their tables are the same, else 1."""
    return in_folder("chainlake-proof-", _proof)


def _proof(root: Path) -> int:
    progress = Progress()
    delivered = [ShippedDay(day(n), (deliver(root / "files", n),)) for n in range(DAYS)]
    late = ShippedDay(day(DAYS), (deliver(root / "files", 0, late=True),))
    by_day = installation(root / "by-day")
    _daily(by_day, delivered, late, progress)
    backwards = installation(root / "backwards")
    _backwards(backwards, delivered, late, progress)
    found = differences(by_day, backwards)
    print_tables(by_day, backwards)
    for line in found:
        print(line)
    seen = control(by_day, backwards)
    print("the tables differ" if found else "same tables: by day, and backfilled backwards; late file repaired")
    return 1 if found or not seen else 0


def _daily(home: Home, delivered: list[ShippedDay], late: ShippedDay, progress: Progress) -> None:
    with Airflow(home, say=progress.say) as airflow:
        unpause(airflow, ["lab"], progress)
        for plan in (delivered, [late]):
            chain = Chain(home, airflow.api, lambda: complete_finished_backfills(airflow.database), {"lab": plan})
            drive(airflow, chain, progress)
            _require(run.dag_id for run in chain.runs if not run.ok)


def _backwards(home: Home, delivered: list[ShippedDay], late: ShippedDay, progress: Progress) -> None:
    with Airflow(home, say=progress.say) as airflow:
        unpause(airflow, ["lab"], progress)
        proof = _Commands(home, airflow, progress)
        for shipped in delivered:
            land(home, "lab", shipped)
        for step in STEPS:
            proof.backfill(step, range(DAYS), "--run-backwards", "--max-active-runs", "2")
        land(home, "lab", late)
        for step in STEPS:
            proof.clear(step, 1)
        for step in STEPS:
            proof.backfill(step, [DAYS - 1], "--reprocess-behavior", "completed")


class _Commands:
    """Airflow's own commands, as a user gives them, and the wait for what they start."""

    def __init__(self, home: Home, airflow: Airflow, progress: Progress) -> None:
        self._home = home
        self._airflow = airflow
        self._progress = progress

    def backfill(self, step: str, numbers: Iterable[int], *options: str) -> None:
        """``airflow backfill create`` for days, whose dates are inclusive."""
        days = [day(n) for n in numbers]
        complete_finished_backfills(self._airflow.database)
        words = ["backfill", "create", "--dag-id", f"{step}_lab"]
        self._give([*words, "--from-date", str(days[0]), "--to-date", str(days[-1]), *options], step, days)

    def clear(self, step: str, n: int) -> None:
        """``airflow tasks clear`` for a day: all tasks of its run start anew."""
        one = str(day(n))
        self._give(["tasks", "clear", f"{step}_lab", "--start-date", one, "--end-date", one, "--yes"], step, [day(n)])

    def _give(self, words: list[str], step: str, days: list[date]) -> None:
        begin = time.monotonic()
        before = self._attempts(step)
        done = subprocess.run(
            [sys.executable, "-m", "chainlake.local.command", *words],
            cwd=PROJECT,
            env=os.environ,
            text=True,
            capture_output=True,
            check=False,
        )
        said = f"airflow {' '.join(words)}"
        if done.returncode != 0:
            raise InfrastructureError(f"{said} failed: {done.stdout[-500:]} {done.stderr[-2000:]}")
        command_s = time.monotonic() - begin
        runs = self._ended(f"{step}_lab", days)
        _require(f"{run['dag_id']} {run['logical_date']}" for run in runs if run["state"] != "success")
        names = [str(run["dag_run_id"]) for run in runs]
        after = self._attempts(step)
        _require((f"{step} {name}" for name in names if after[name] <= before[name]), "runs were not made again: ")
        self._progress.say(
            f"{said}: {len(runs)} runs ok, {time.monotonic() - begin:.0f} s, {command_s:.0f} of them the command"
        )

    def _ended(self, dag_id: str, days: list[date]) -> list[dict[str, Any]]:
        """The runs of the days, when all have ended."""
        while True:
            self._airflow.tick()
            runs = [run for run in self._airflow.api.runs([dag_id]) if day_of_run(run) in days]
            if len(runs) == len(days) and all(run["state"] not in OPEN_STATES for run in runs):
                return runs
            time.sleep(POLL_S)

    def _attempts(self, step: str) -> Counter[str]:
        """How many attempts of the step each run has made, from our own log: the id of an attempt is RUN.NUMBER."""
        rows = ops.current(self._home, "runs", source="lab", step=step)
        return Counter(attempt.rpartition(".")[0] for attempt in {str(row["run_id"]) for row in rows})


def _require(failed: Iterable[str], what: str = "runs failed: ") -> None:
    names = list(failed)
    if names:
        raise InfrastructureError(what + ", ".join(names))


def end(program: Callable[[], int]) -> None:
    """Run a proof as a program and end the process."""
    code = run_program(program)
    sys.stdout.flush()
    sys.stderr.flush()
    # As in the demo: a native library's thread can abort the teardown, which would hide the result.
    os._exit(code)


if __name__ == "__main__":
    end(main)
