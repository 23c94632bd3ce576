"""The three steps of one source with everything on a disk and in an object store, by one Spark worker and by two.

``python -m benchmarks.places [--source stock] [--days D] [--events-per-day M] [--only NAME,...] [--json FILE]``

Files are generated once. For each place, a separate home with the shipped definitions takes the first day, so that
JVM, workers and all imports are warm, and then the others in one run of each step, by one driver. Measured are seconds
of the clock, and CPU seconds of driver, workers and store together: they tell what a place costs on a machine whose
other work, the store among it, shares the same cores. ``local[2]`` is what one machine does; workers have one core
each. The store is S3Proxy on the loopback address, with tables, staged output, locks and landed files in it; Data Docs
are not made. The exit code is 1 if the tables of two places differ.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.processes import cpu_seconds
from chainlake.days import Days
from chainlake.env.java import use_java
from chainlake.env.processes.ending import end
from chainlake.lake.delta import tables
from chainlake.lake.records.runs import new_run_id
from chainlake.lake.upkeep.same import published_tables, same_tables
from chainlake.paths import PROJECT, Home
from chainlake.storage.resolve import storage_of
from tests.proof.cluster import QUICK, cluster, driver
from tests.proof.history import STEPS, environment, installation, without_pages
from tests.proof.processes import run
from tests.proof.s3proxy import BUCKET, serving

FIRST = date(2024, 3, 4)


@dataclass(frozen=True)
class Place:
    """Where a home works.

    Args:
        name: what it is called.
        stored: whether tables and landed files lie in the store.
        workers: of a standalone cluster, one core each; 0 for ``local[2]``.
    """

    name: str
    stored: bool
    workers: int


PLACES = (
    Place("disk-local", False, 0),
    Place("disk-1", False, 1),
    Place("disk-2", False, 2),
    Place("store-local", True, 0),
    Place("store-1", True, 1),
    Place("store-2", True, 2),
)


def measure(root: Path, place: Place, source: str, files: Sequence[Path], watched: Sequence[int]) -> dict[str, Any]:
    """Take a new home through the files; seconds of the clock and of CPU time by step, and the number of events.

    Args:
        root: an empty folder.
        place: where.
        source: whose files they are.
        files: one a day; the first is not counted.
        watched: processes whose CPU time counts, with their children, beside those of driver and workers.
    """
    home = at(root, place)
    with spark(root / f"{place.name}-spark", place) as (variables, workers):
        words = [source, ",".join(str(pid) for pid in (*watched, *workers)), *(str(file) for file in files)]
        command = [sys.executable, "-m", "benchmarks.places", "--work", *words]
        code, said = run(command, root / f"{place.name}.log", environment(home, variables))
    if code:
        raise RuntimeError(f"{place.name} ended with {code}:\n{said[-3000:]}")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def at(root: Path, place: Place) -> Home:
    """The home of a place, which is made if need be."""
    folder, store = root / place.name, f"s3://{BUCKET}/{place.name}"
    home = replace(Home.from_env(), root=folder, lake=str(folder / "lake"), config=folder / "config", landing_root="")
    if not folder.exists():
        installation(folder, None)
    return replace(home, lake=f"{store}/lake", landing_root=f"{store}/landing") if place.stored else home


@contextmanager
def spark(folder: Path, place: Place) -> Iterator[tuple[dict[str, str], list[int]]]:
    """What leads a driver to the tasks' processes, and those that it does not start itself."""
    if not place.workers:
        yield {"SPARK_MASTER": "local[2]"}, []
        return
    conf = folder.with_suffix(".conf")
    conf.write_text(
        f"spark.cores.max {place.workers}\nspark.executor.cores 1\nspark.executor.memory 512m\n"
        "spark.scheduler.minRegisteredResourcesRatio 1.0\nspark.scheduler.maxRegisteredResourcesWaitingTime 120s\n"
        f"spark.executor.extraJavaOptions {QUICK}\n"
        f"spark.authenticate true\nspark.authenticate.secret {secrets.token_hex(16)}\n"
    )
    conf.chmod(0o600)
    with cluster(folder, conf, hide=[None] * place.workers) as (master, workers):
        yield driver(master, conf), [worker.pid for worker in workers]


def work(source: str, watched: Sequence[int], files: Sequence[Path]) -> dict[str, Any]:
    """What the driver of a place does: the first day, then the others, which are measured."""
    without_pages()
    home = Home.from_env()
    found: dict[str, Any] = {}

    def steps(landed: Sequence[Path], days: Days) -> None:
        for file in landed:
            folder = home.landed(source)
            storage_of(folder).make_folder(folder)
            storage_of(folder).take(str(file), f"{folder}/{file.name}")
        for name, step in STEPS.items():
            begun = time.monotonic(), cpu_seconds(watched)
            step(home, source, days, run_id=new_run_id(name), ports=None)
            found[name] = {
                "s": round(time.monotonic() - begun[0], 1),
                "cpu_s": round(cpu_seconds(watched) - begun[1], 1),
            }

    def events() -> int:
        return tables.arrow(home, "events", source, columns=["event_date"]).num_rows

    second = FIRST + timedelta(days=1)
    steps(files[:1], Days(FIRST, second))
    first = events()
    # Exchanges close in the evening of the local day, which is the next day of UTC for some sources.
    steps(files[1:], Days(second, FIRST + timedelta(days=len(files) + 1)))
    return found | {"events": events() - first}


def print_table(results: dict[str, dict[str, Any]]) -> None:
    """A line for each place: thousands of events a second, and CPU seconds, for each step."""
    print(f"{'':<12}{'events':>10}" + "".join(f"{f'{name}, s':>12}{'k events/s':>12}{'CPU s':>8}" for name in STEPS))
    for name, found in results.items():
        line = f"{name:<12}{found['events']:>10}"
        for step in STEPS:
            spent = found[step]
            line += f"{spent['s']:>12.1f}{found['events'] / spent['s'] / 1000:>12.1f}{spent['cpu_s']:>8.1f}"
        print(line, flush=True)


def main(argv: Sequence[str]) -> int:
    """Measure all places, and compare their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.places", description=__doc__)
    parser.add_argument("--source", default="stock", choices=("stock", "traffic", "sensor"))
    parser.add_argument("--days", type=int, default=4, help="that are measured (default 4)")
    parser.add_argument("--events-per-day", type=int, default=100_000)
    parser.add_argument("--only", default=",".join(place.name for place in PLACES), help="places, with commas between")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    chosen = [place for place in PLACES if place.name in args.only.split(",")]
    use_java()
    root = Path(tempfile.mkdtemp(prefix="chainlake-places-"))
    try:
        words = ["--from", str(FIRST), "--days", str(args.days + 1), "--events-per-day", str(args.events_per_day)]
        generate = [sys.executable, "-m", "jobs", "generate", args.source, *words, "--out", str(root / "files")]
        subprocess.run(generate, cwd=PROJECT, check=True)
        files = sorted((root / "files").iterdir())
        with serving(root, Home.from_env().cache) as server:
            results = {place.name: measure(root, place, args.source, files, [server.pid]) for place in chosen}
            homes = [at(root, place) for place in chosen]
            wrong = [line for other in homes[1:] for line in same_tables(homes[0], other)]
            compared = len(published_tables(homes[0]))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print_table(results)
    print("\n".join(wrong) or f"the same {compared} tables everywhere")
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(bool(wrong) or not compared)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        source, pids, *landed = sys.argv[2:]
        print(
            json.dumps(work(source, [int(pid) for pid in pids.split(",")], [Path(one) for one in landed])), flush=True
        )
        end(0)
    sys.exit(main(sys.argv[1:]))
