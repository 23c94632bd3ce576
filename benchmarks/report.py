"""How long the report takes for ten years of a hundred patterns: to make, after a new day, and to open in a browser.

Usage: ``python -m benchmarks.report [--years 10] [--patterns 100] [--step]``. The rows of ``ops`` are those of
``benchmarks.status``; the last days have events, and each pattern has six matches on the last one. It prints the CPU
seconds of the whole report, of a report after a day was added to all patterns, and of a run with nothing new; the size
of the pages; and, if there is a Chromium, the seconds until it has drawn the grid of the first page. With ``--step`` it
also prints the CPU seconds of a detect step on one day, in this process and without a JVM, of which the report may take
a twentieth.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.status import FIRST, make
from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.days import Days, day_start_us
from chainlake.definitions.source import find_source, load_sources
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.report.make import make_report
from chainlake.schemas.events import events_table

#: Number of days with events, and of events on each.
DAYS, EVENTS = 3, 1000
SENSORS = 10


def main() -> None:
    """Make the lake and the report, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=10)
    parser.add_argument("--patterns", type=int, default=100)
    parser.add_argument("--step", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chainlake-report-") as folder:
        os.environ |= {"CHAINLAKE_HOME": folder, "CHAINLAKE_CONFIG": f"{folder}/config"}
        Path(folder, "config").mkdir()
        home = Home.from_env()
        make(home, args.patterns, args.years)
        last = FIRST + timedelta(days=365 * args.years - 1)
        compiled, _ = load_patterns(home, load_sources(home))
        write_events(home, [last - timedelta(days=back) for back in range(DAYS)])
        for one in compiled:
            write_matches(home, one, last)
        found: dict[str, Any] = {}

        def tell(name: str, value: float) -> None:
            found[name] = value
            print(f"{name:<24}{value:10}", flush=True)

        tell("whole", timed(home))
        day = last + timedelta(days=1)
        write_events(home, [day])
        add_day(home, compiled, day)
        tell("one new day", timed(home))
        tell("nothing new", timed(home))
        folder_of_pages = home.root / "report"
        tell("first page, kB", (folder_of_pages / "index.html").stat().st_size // 1000)
        tell("whole report, kB", sum(p.stat().st_size for p in folder_of_pages.rglob("*") if p.is_file()) // 1000)
        for name, value in opened(home).items():
            tell(name, value)
        if args.step:
            tell("detect, one day", step(home, day + timedelta(days=1)))
        print(json.dumps(found))


def timed(home: Home) -> float:
    """CPU seconds of bringing the report up to date."""
    began = time.process_time()
    outcome = make_report(home)
    assert not outcome.failed, outcome.failed
    return round(time.process_time() - began, 2)


def write_events(home: Home, days: list[date]) -> None:
    """Write events of some days, evenly spread over each day."""
    from deltalake import write_deltalake

    table = events_table(find_source(home, "lab"))
    tables.ensure_table(home, table)
    for day in days:
        draw = np.random.default_rng(day.toordinal())
        ts = day_start_us(day) + np.arange(EVENTS) * (86_400_000_000 // EVENTS)
        rows = {
            "event_id": [f"{day.toordinal():08x}{n:024x}" for n in range(EVENTS)],
            "type": ["Reading"] * EVENTS,
            "sensor": [f"s{n % SENSORS}" for n in range(EVENTS)],
            "ts": pa.array(ts).cast(pa.timestamp("us", tz="UTC")),
            "seq": [0] * EVENTS,
            "x": draw.uniform(0, 110, EVENTS),
            "event_date": [day] * EVENTS,
            "file_id": ["0" * 32] * EVENTS,
            "line": list(range(2, EVENTS + 2)),
            "ingested_at": pa.array(ts).cast(pa.timestamp("us", tz="UTC")),
        }
        write_deltalake(
            home.table("events", "lab"), pa.table(rows).cast(table.arrow()), mode="append", partition_by=["event_date"]
        )


def write_matches(home: Home, one: CompiledPattern, day: date) -> None:
    """Write six matches of a pattern on a day."""
    from deltalake import write_deltalake

    tables.ensure_table(home, one.table)
    rows = []
    for n in range(6):
        first, then = (
            {
                "event_id": f"{day.toordinal():08x}{at:024x}",
                "ts": _time(day, at),
                "type": "Reading",
                "sensor": f"s{at % SENSORS}",
            }
            for at in (100 * n + 1, 100 * n + 2)
        )
        times = {"start_ts": first["ts"], "end_ts": then["ts"], "decision_ts": then["ts"]}
        rows.append({"match_id": f"{n:032x}", **times, "a": first, "b": then})
    schema = one.table.arrow()
    write_deltalake(home.table("matches", one.table.name), pa.Table.from_pylist(rows, schema=schema), mode="append")


def _time(day: date, at: int) -> Any:
    return pa.scalar(day_start_us(day) + at * (86_400_000_000 // EVENTS), pa.timestamp("us", tz="UTC")).as_py()


def add_day(home: Home, compiled: list[CompiledPattern], day: date) -> None:
    """Write what a daily run leaves in ``ops``."""
    from chainlake.lake.records.defined.fingerprints import fingerprint
    from chainlake.lake.records.event_days import EventDays

    ops.append(home, "event_days", [{
        "source": "lab", "day": day, "status": "complete", "rows": EVENTS, "duplicates": 0, "conflicts": 0,
        "superseded": 0, "events_version": 0, "checksum": str(day),
    }], "new")  # fmt: skip
    events = EventDays.load(home, "lab")
    ops.append(home, "intervals", [{
        "definition": one.definition.name, "day": day, "table_name": one.definition.table_name, "rows": 3,
        "definition_hash": one.definition.definition_hash, "engine_version": one.definition.engine_version, "added": 3,
        "changed": 0, "withdrawn": 0, "published_version": 9, "status": "done", "reason": None,
        "input_fingerprint": fingerprint(one.definition, day, events),
    } for one in compiled], "new")  # fmt: skip


def opened(home: Home) -> dict[str, float]:
    """Seconds until the first page has drawn its grid in a browser, median of five."""
    from tests.report.browser import browser, program

    found = program()
    if found is None:
        return {}
    seconds = []
    with browser(found) as page:
        for _ in range(5):
            began = time.monotonic()
            page.open(home.root / "report" / "index.html")
            page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            seconds.append(time.monotonic() - began)
            page.call("Page.navigate", url="about:blank")
    return {"opened, s": round(sorted(seconds)[2], 2)}


def step(home: Home, day: date) -> float:
    """CPU seconds of a detect step with all patterns on one day, including audits."""
    from chainlake.detect.step import detect
    from chainlake.lake.store.files import FilesLake
    from chainlake.run.ports import Ports
    from chainlake.run.tasks import LocalTasks

    write_events(home, [day])
    ops.append(home, "event_days", [{
        "source": "lab", "day": day, "status": "complete", "rows": EVENTS, "duplicates": 0, "conflicts": 0,
        "superseded": 0, "events_version": tables.version(home, "events", "lab"), "checksum": str(day),
    }], "new")  # fmt: skip
    began = time.process_time()
    detect(home, "lab", Days.one(day), run_id="step", repair_horizon=0, ports=Ports(LocalTasks(), FilesLake(home)))
    return round(time.process_time() - began, 2)


if __name__ == "__main__":
    main()
