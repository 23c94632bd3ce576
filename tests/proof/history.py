"""A history that a lake goes through: shipped days, a late file, an edited pattern; the proofs compare what it gives.

``python -m tests.proof.history --days 2 sensor`` takes the home that the environment names through it, by Spark or with
``--here`` in this process, and prints the seconds of each step as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.env.processes.ending import end
from chainlake.ingest.step import ingest
from chainlake.lake.records.runs import new_run_id
from chainlake.lake.store.files import FilesLake
from chainlake.lake.upkeep.same import published_tables, same_tables
from chainlake.local.run.shipped import land, shipped_days
from chainlake.monitoring.step import monitor
from chainlake.paths import PROJECT, Home
from chainlake.quality.audit import Audit
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.proof.processes import run

STEPS: dict[str, Callable[..., Any]] = {"ingest": ingest, "detect": detect, "monitor": monitor}

#: A pattern that uses events up, beside the shipped ones of its source; the edit gives it a longer window.
SOURCE, PATTERN = "sensor", "switched"
_CONSUMING = """---
source: sensor
---
PATTERN SEQ(Reading clean, Reading gas)
WHERE clean.channel = R7 AND gas.channel = R7 AND gas.value <= clean.value * 0.9
WITHIN 10 min CONSUME all
"""


def installation(root: Path, lake: str | None) -> Home:
    """A home with its own copy of the shipped definitions and the consuming pattern."""
    root.mkdir()
    config = root / "config"
    shutil.copytree(PROJECT / "dags" / "config", config)
    (config / "patterns" / f"{PATTERN}.sase").write_text(_CONSUMING)
    return replace(Home.from_env(), root=root, lake=lake or str(root / "lake"), config=config)


def edit(home: Home, window: str) -> None:
    """Give the consuming pattern another window."""
    (home.config / "patterns" / f"{PATTERN}.sase").write_text(_CONSUMING.replace("10 min", window))


def environment(home: Home, more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that works on ``home``."""
    own = {
        "CHAINLAKE_HOME": str(home.root),
        "CHAINLAKE_LAKE": home.lake,
        "CHAINLAKE_LANDING": home.landed_all,
        "CHAINLAKE_CONFIG": str(home.config),
    }
    return os.environ | own | more


def without_pages() -> None:
    """Data Docs lie on a disk in any case, and take longer than all else."""
    Audit.build_docs = lambda audit: audit.home.docs / "index.html"  # type: ignore[method-assign]


def take_through(home: Home, source: str, days: int, ports: Ports | None) -> dict[str, float]:
    """The shipped days, of which the first lands last, then an edit; seconds of the clock and of CPU time by step."""
    took: dict[str, float] = {}

    def steps(day: Days, names: Sequence[str] = tuple(STEPS)) -> None:
        for name in names:
            begun = time.monotonic(), time.process_time()
            STEPS[name](home, source, day, run_id=new_run_id(name), ports=ports)
            for unit, spent in (("s", time.monotonic() - begun[0]), ("s of CPU", time.process_time() - begun[1])):
                took[f"{name}, {unit}"] = took.get(f"{name}, {unit}", 0.0) + spent

    shipped = shipped_days(home)[source][:days]
    for day in shipped[1:]:
        land(home, source, day)
        steps(Days.one(day.day))
    land(home, source, shipped[0])
    steps(Days.one(shipped[-1].day))
    if source == SOURCE:
        edit(home, "30 min")
        steps(Days(shipped[0].day, Days.one(shipped[-1].day).end), ["detect"])
    return took


def in_a_process(home: Home, log: Path, words: Sequence[str], **more: str) -> dict[str, float]:
    """Take a home through the history in a process of its own; seconds by step.

    Raises:
        RuntimeError: it did not come to its end.
    """
    code, said = run([sys.executable, "-m", "tests.proof.history", *words], log, environment(home, more))
    if code:
        raise RuntimeError(f"the history of {home.root.name} ended with {code}:\n{said[-3000:]}")
    took: dict[str, float] = json.loads(said.splitlines()[-1])
    return took


def compared(first: Home, second: Home) -> list[str]:
    """The differences between all tables of two homes, a line each; how many tables and rows there are is printed."""
    tables = published_tables(first)
    only = set(tables) ^ set(published_tables(second))
    print(f"  {len(tables)} tables compared: {', '.join(f'{schema}.{name}' for schema, name in tables)}", flush=True)
    return [*same_tables(first, second), *(f"{schema}.{name} is in one of them only" for schema, name in sorted(only))]


def main(argv: list[str]) -> int:
    """Take the home of the environment through the history."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.history", description=__doc__)
    parser.add_argument("--here", action="store_true", help="compute in this process, without Spark")
    parser.add_argument("--days", type=int, default=2, help="shipped days (default 2)")
    parser.add_argument("source", help="of the shipped data")
    args = parser.parse_args(argv)
    without_pages()
    home = Home.from_env()
    took = take_through(home, args.source, args.days, Ports(LocalTasks(), FilesLake(home)) if args.here else None)
    print(json.dumps(took), flush=True)
    return 0


if __name__ == "__main__":
    end(main(sys.argv[1:]))
