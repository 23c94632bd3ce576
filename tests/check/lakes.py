"""A small lake with everything in it, made by the steps in their light mode, for damaging it; no JVM."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.ingest.step import ingest
from chainlake.lake.records import runs
from chainlake.lake.store.files import FilesLake
from chainlake.monitoring.step import monitor
from chainlake.operations.backfills.backfill import run_here, run_plan
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.check import Checked, Scope, check
from chainlake.operations.repair import Repaired, repair
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.replay.light import light

FIRST = date(2025, 3, 1)
DAYS = 4
SPAN = Days(FIRST, FIRST + timedelta(days=DAYS))
NOW = datetime(2026, 1, 1, tzinfo=UTC)

SOURCE = """\
key: sensor
type: {column: kind}
zone: UTC
attributes:
  x: {type: double}
  y: {type: double}
identity: unique
on_conflict: first
path: 'lab_(?P<date>\\d{8})'
formats:
  - {glob: '*lab_*', time: {column: ts, format: iso}, map: {}}
"""
PATTERNS = {
    "rise": "SEQ(A a, B b) WHERE b.x > a.x WITHIN 16 h",
    "many": "SEQ(A a, B* b, C c) WITHIN 20 h",
}
MODEL = """\
source: lab
start: 2025-03-01
nodes: [k1, k2]
response: y
features: [x]
round: {length: 4 h, aggregate: mean}
window: {sliding: 4}
eps: 0.2
"""


def place() -> AbstractContextManager[None]:
    """The light mode with tables for ``ops``."""
    return light(ops_in_memory=False)


def make(root: Path, patterns: Mapping[str, str] | None = None, models: Mapping[str, str] | None = None) -> Home:
    """Land four days, with a conflict, a row that cannot be read and a duplicate, and run every step day by day.

    Args:
        root: an empty folder.
        patterns: their queries by name; ``PATTERNS`` if not given.
        models: their files by name; one with ``MODEL`` if not given.
    """
    home = Home(root=root, lake=str(root / "lake"), config=root / "config", cache=root / "cache")
    files = {"sources/lab.yaml": SOURCE}
    files |= {f"models/{name}.yaml": text for name, text in (models or {"slope": MODEL}).items()}
    for name, text in (patterns or PATTERNS).items():
        files[f"patterns/{name}.sase"] = f"---\nsource: lab\n---\nPATTERN {text}\n"
    for name, text in files.items():
        path = home.config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        rows = rows_of(number)
        land(home, f"lab_{day:%Y%m%d}.csv", rows + (["no row at all"] if number == 1 else []))
        if number == 2:
            again = rows[0].rsplit(",", 2)[0] + ",99,99"
            land(home, f"lab_{day:%Y%m%d}_b.csv", [again, rows[1]])
        run(home, Days.one(day))
    return home


def rows_of(number: int) -> list[str]:
    """The rows of a day."""
    return [_row(number, slot, key) for slot in range(6) for key in ("k1", "k2")]


def _row(number: int, slot: int, key: str) -> str:
    at = datetime(2025, 3, 1 + number, slot * 4, 30 if key == "k2" else 0, tzinfo=UTC)
    x = ((number * 7 + slot * 5 + (key == "k2") * 3) % 11) / 4 - 1
    slope = 1.0 if number < 2 else 2.5
    return f"{at:%Y-%m-%dT%H:%M:%S},{'ABC'[(slot + number) % 3]},{key},{x},{slope * x + slot / 100}"


def land(home: Home, name: str, rows: list[str]) -> None:
    """A landing file, an hour old."""
    path = home.landing("lab") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("ts,kind,sensor,x,y\n" + "".join(f"{row}\n" for row in rows))
    os.utime(path, (time.time() - 3600, time.time() - 3600))


def run(home: Home, days: Days) -> None:
    """The daily steps."""
    ports = Ports(LocalTasks(), FilesLake(home))
    ingest(home, "lab", days, run_id=runs.new_run_id("ingest"), now=NOW, ports=ports)
    detect(home, "lab", days, run_id=runs.new_run_id("detect"), ports=ports)
    monitor(home, "lab", days, run_id=runs.new_run_id("monitor"), ports=ports)


def checked(home: Home, **scope: Any) -> Checked:
    """A check of the lake."""
    return check(home, run_id=runs.new_run_id("check"), scope=Scope(**scope))


def repaired(home: Home) -> Repaired:
    """A repair, and then the commands that it names."""
    ports = Ports(LocalTasks(), FilesLake(home))
    _, result = repair(home, run_id=runs.new_run_id("check"), scope=Scope())
    for command in dict.fromkeys(result.commands):
        words = command.removeprefix("chainlake ").split(" ")
        if words[0] == "ingest":
            days = Days.parse(words[2], words[3])
            ingest(home, words[1], days, run_id=runs.new_run_id("ingest"), now=NOW, ports=ports)
        else:
            assert words[0] == "backfill" or words[:2] == ["restate", "--source"]
            run_plan(
                home,
                plan_range(home, Days.parse(words[1], words[2]))
                if words[0] == "backfill"
                else plan_range(home, None, sources=[words[2]], only_stale=True),
                run_id=runs.new_run_id("restate"),
                launch=partial(run_here, ports=ports),
                say=lambda line: None,
            )
    return result


def copied(home: Home, root: Path) -> Home:
    """Another home with the same files."""
    shutil.copytree(home.root, root)
    return replace(home, root=root, lake=str(root / "lake"), config=root / "config")
