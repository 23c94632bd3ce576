"""``make replay-proof``: the replay promise once through a real scheduler, with a real database and real Spark.

One installation runs three days as they come and gets a late file, which the run of the fourth day repairs. The other
has the three days backfilled by ``airflow backfill create``, backwards and two at a time, gets the late file then, and
repeats a middle day and the last one. Their tables must be the same (design §4 "Same tables"). Takes some minutes.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from jobs.airflow_run.chain import OPEN_STATES, Chain
from jobs.airflow_run.demo import POLL_S, _unpause, _work
from jobs.airflow_run.launcher import Airflow, close_finished_backfills, run_program
from jobs.airflow_run.progress import Progress
from jobs.airflow_run.shipped import ShippedDay, land
from jobs.errors import InfrastructureError
from jobs.lake.same import same_tables
from jobs.lake.staleness import status_rows
from jobs.paths import Home
from tests.steps.history import configured, day, pattern, readings

DAYS = 3
#: A late hour of the first day: the windows of its pairs reach into the second.
LATE_HOURS = (23,)


def main() -> int:
    """Run both installations and compare; 0 if their tables are the same, else 1."""
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="chainlake-proof-") as folder:
        root = Path(folder)
        delivered = _files(root / "files")
        late = ShippedDay(day(DAYS), (_file(root / "files" / "late.csv", 0, late=True),))
        by_day = _installation(root / "by day")
        _daily(by_day, delivered, late, progress)
        backwards = _installation(root / "backwards")
        _backwards(backwards, delivered, late, progress)
        differences = same_tables(by_day, backwards)
        differences += [f"{home.root.name}: {row}" for home in (by_day, backwards) for row in _unfinished(home)]
        for line in differences:
            print(line)
        print(
            "the tables differ" if differences else "same tables: by day, and backfilled backwards; late file repaired"
        )
        return 1 if differences else 0


def _installation(root: Path) -> Home:
    """A home of its own with the small source, two patterns and the model; the environment points to it."""
    root.mkdir()
    os.environ["CHAINLAKE_HOME"] = str(root)
    os.environ["CHAINLAKE_CONFIG"] = str(root / "config")
    configured(Home.from_env(), near=pattern(), far=pattern("26 h", step=1.0))
    return Home.from_env()


def _files(folder: Path) -> list[ShippedDay]:
    folder.mkdir()
    return [ShippedDay(day(n), (_file(folder / f"{n}.csv", n, late=False),)) for n in range(DAYS)]


def _file(path: Path, n: int, *, late: bool) -> Path:
    """The readings of a day; those of the late hours of the first day are in a file of their own."""
    rows = [row for row in readings(n) if (n == 0 and row["ts"].hour in LATE_HOURS) == late]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ts", "sensor", "x", "y"])
        writer.writerows([f"{r['ts']:%Y-%m-%dT%H:%M:%S}", r["sensor"], repr(r["x"]), repr(r["y"])] for r in rows)
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))
    return path


def _daily(home: Home, delivered: list[ShippedDay], late: ShippedDay, progress: Progress) -> None:
    with Airflow(home, say=progress.say) as airflow:
        _unpause(airflow, progress)
        for plan in (delivered, [late]):
            chain = Chain(home, airflow.api, lambda: close_finished_backfills(airflow), {"lab": plan})
            _work(airflow, chain, progress)
            _require(run.dag_id for run in chain.runs if not run.ok)


def _backwards(home: Home, delivered: list[ShippedDay], late: ShippedDay, progress: Progress) -> None:
    with Airflow(home, say=progress.say) as airflow:
        _unpause(airflow, progress)
        for shipped in delivered:
            land(home, "lab", shipped)
        span = (day(0), day(DAYS - 1))
        for step in ("ingest", "detect", "monitor"):
            _backfill(airflow, f"{step}_lab", *span, "--run-backwards", "--max-active-runs", "2", progress=progress)
        land(home, "lab", late)
        for n in (1, DAYS - 1):
            for step in ("ingest", "detect", "monitor"):
                again = ("--reprocess-behavior", "completed")
                _backfill(airflow, f"{step}_lab", day(n), day(n), *again, progress=progress)


def _backfill(airflow: Airflow, dag_id: str, first: date, last: date, *options: str, progress: Progress) -> None:
    """``airflow backfill create``, whose dates are inclusive, and wait until all its runs have ended."""
    close_finished_backfills(airflow)
    begin = time.monotonic()
    words = ["backfill", "create", "--dag-id", dag_id, "--from-date", str(first), "--to-date", str(last), *options]
    assert airflow._components is not None
    if airflow._components.run("backfill", words) != 0:
        raise InfrastructureError(
            f"airflow {' '.join(words)} failed: {airflow._components.log('backfill').read_text()}"
        )
    wanted = (last - first).days + 1
    while True:
        airflow.tick()
        runs = [run for run in airflow.api.runs([dag_id]) if _between(run, first, last)]
        if len(runs) == wanted and all(run["state"] not in OPEN_STATES for run in runs):
            break
        time.sleep(POLL_S)
    _require(f"{dag_id} {run['logical_date']}" for run in runs if run["state"] != "success")
    progress.say(f"{' '.join(words)}: {wanted} runs ok, {time.monotonic() - begin:.0f} s")


def _between(run: dict[str, Any], first: date, last: date) -> bool:
    return run["run_type"] == "backfill" and str(first) <= str(run["logical_date"])[:10] <= str(last)


def _require(failed: Iterable[str]) -> None:
    names = list(failed)
    if names:
        raise InfrastructureError(f"runs failed: {', '.join(names)}")


def _unfinished(home: Home) -> list[str]:
    from jobs.cli.status import _definitions

    rows = status_rows(home, _definitions(home)[0])
    return [f"{row.definition} {row.day} is {row.state}" for row in rows if row.state not in ("done", "waiting")]


if __name__ == "__main__":
    code = run_program(main)
    sys.stdout.flush()
    sys.stderr.flush()
    # As in the demo: a native library's thread can abort the teardown, which would hide the result.
    os._exit(code)
