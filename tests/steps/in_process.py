"""A small lab whose steps run in this process: its files, its readings, and what is done with them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.store.files import FilesLake
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.replay.verbs import run_as_planned
from tests.steps.history import SOURCE, day

Row = dict[str, Any]


def with_files(home: Home, patterns: Mapping[str, str], source: str = SOURCE) -> Home:
    """A home with the source ``lab`` and some patterns, by name."""
    config = home.root / "config"
    files = {f"patterns/{name}.sase": text for name, text in patterns.items()}
    for path, content in {"sources/lab.yaml": source, **files}.items():
        (config / path).parent.mkdir(parents=True, exist_ok=True)
        (config / path).write_text(content)
    return replace(home, config=config)


def of_lab(query: str) -> str:
    """The text of a pattern of the lab."""
    return f"---\nsource: lab\n---\nPATTERN {query}\n"


def readings(rng: random.Random, number: int, sizes: Sequence[int], values: int) -> list[Row]:
    """Some readings of a day, one of ``sizes``; each is one of as many whole numbers from 0 on as ``values``."""
    rows = {}
    for _ in range(rng.choice(sizes)):
        ts = datetime(2025, 3, 1, tzinfo=UTC) + timedelta(days=number, minutes=rng.randrange(1440))
        sensor = rng.choice("ab")
        rows[sensor, ts] = {
            "event_id": hashlib.md5(f"{sensor} {ts}".encode()).hexdigest(), "type": "Reading", "sensor": sensor,
            "ts": ts, "seq": 0, "x": float(rng.randrange(values)), "y": 0.0, "event_date": day(number),
        }  # fmt: skip
    return list(rows.values())


def ports(home: Home) -> Ports:
    return Ports(LocalTasks(), FilesLake(home))


def run(home: Home, days: Days, **options: Any) -> dict[str, Any]:
    return detect(home, "lab", days, run_id="r", ports=ports(home), **options)


def backfill(home: Home, days: Days | None, *, undisturbed: bool = True, **options: Any) -> dict[str, Any]:
    """A backfill; if nothing disturbs it, it computes what its plan announced."""
    return run_as_planned(home, plan_range(home, days, **options), undisturbed=undisturbed, ports=ports(home))


def states(home: Home) -> set[tuple[str, str]]:
    """How days of definitions stand."""
    rows = status_rows(home, all_definitions(home)[0])
    return {(row.definition.partition("/")[0], row.state) for row in rows}
