"""A late event among a thousand chained days: how many days are computed again, and in what time.

``python -m benchmarks.late_chain [--days N] [--json FILE]``

One pattern that uses events up (``SEQ(A a, B b) … CONTEXT chronicle``) on three streams of 200 events a day:

* ``quiet nights``: events from 8:00 to 20:00 and a window of three hours, so that every day begins empty;
* ``unbalanced``: around the clock, no key, three of four events are A, so that there are always more starts than ends;
* ``balanced``: around the clock, no key, as many A as B, so that the number left over is a random walk.

The first half of the days is computed, and then the second, which a lake without chained days would compute again as a
whole. Then an event comes late in the middle, and a run looks at all days. The published rows are compared with those
of a lake that had the event from the start; the exit code is 1 if they differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.made_lake import FIRST, SOURCE, SOURCE_TEXT, hex_texts
from benchmarks.pipeline import in_folder
from chainlake.days import Days, day_start_us
from chainlake.definitions.source import find_source
from chainlake.detect.step import detect
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.events import events_table
from chainlake.schemas.table import TIMESTAMP

NAME = "pairs"
PATTERN = f"---\nsource: {SOURCE}\n---\nPATTERN SEQ(A a, B b) WITHIN {{hours}} h CONTEXT chronicle\n"
PER_DAY = 200
HOUR_US = 3_600_000_000
#: Stream → first hour with events and hour after the last, share of A, hours of the window.
STREAMS = {"quiet nights": (8, 20, 0.5, 3), "unbalanced": (0, 24, 0.75, 12), "balanced": (0, 24, 0.5, 12)}


def events(stream: str, days: int, late: bool) -> pa.Table:
    """The events of a stream, with or without the late one in the middle of the middle day."""
    begin, end, share, _ = STREAMS[stream]
    draw = np.random.default_rng([days, *stream.encode()])
    n = days * PER_DAY
    day = np.repeat(np.arange(days), PER_DAY)
    ts = day_start_us(FIRST) + day * 24 * HOUR_US + draw.integers(begin * HOUR_US, end * HOUR_US, n)
    is_a = draw.random(n) < share
    ids = draw.integers(0, 256, (n, 16), np.uint8)
    if late:
        middle = days // 2
        day, is_a = np.append(day, middle), np.append(is_a, True)
        ts = np.append(ts, day_start_us(FIRST) + (24 * middle + 12) * HOUR_US + 1)
        ids = np.vstack([ids, np.full((1, 16), 7, np.uint8)])
    rows = len(ts)
    date = np.datetime64(FIRST, "D") + day
    return pa.table({
        "event_id": hex_texts(ids), "type": pa.array(np.where(is_a, "A", "B")), "symbol": pa.array(["S"] * rows),
        "ts": pa.array(ts).cast(TIMESTAMP), "seq": pa.array(np.zeros(rows, np.int64)),
        "price": pa.array(np.zeros(rows)), "event_date": pa.array(date),
        "file_id": pa.array(["0" * 32] * rows), "line": pa.array(np.arange(2, rows + 2)),
        "ingested_at": pa.array(ts).cast(TIMESTAMP),
    })  # fmt: skip


def lake(root: Path, stream: str, days: int) -> Home:
    """An empty lake with the pattern."""
    home = Home(root=root, lake=str(root / "lake"), config=root / "config", cache=Home.from_env().cache)
    text = PATTERN.format(hours=STREAMS[stream][3])
    for path, content in ((f"sources/{SOURCE}.yaml", SOURCE_TEXT), (f"patterns/{NAME}.sase", text)):
        (home.config / path).parent.mkdir(parents=True, exist_ok=True)
        (home.config / path).write_text(content, encoding="utf-8")
    tables.ensure_table(home, events_table(find_source(home, SOURCE)))
    return home


def land(home: Home, rows: pa.Table, changed: range) -> None:
    """Replace the events; those of the ``changed`` days are recorded as new."""
    table = events_table(find_source(home, SOURCE)).arrow()
    write_deltalake(home.table("events", SOURCE), rows.cast(table), mode="overwrite", partition_by=["event_date"])
    version = tables.version(home, "events", SOURCE)
    ops.append(home, "event_days", [
        {"source": SOURCE, "day": FIRST + timedelta(days=n), "status": "complete", "rows": PER_DAY, "duplicates": 0,
         "conflicts": 0, "superseded": 0, "checksum": f"{n} {version}", "events_version": version}
        for n in changed
    ], "made")  # fmt: skip


def run(home: Home, begin: int, end: int) -> dict[str, float]:
    """Run over days; returns how many it computed, and wall-clock and CPU seconds."""
    days = Days(FIRST + timedelta(days=begin), FIRST + timedelta(days=end))
    clock, cpu = time.perf_counter(), time.process_time()
    result = detect(home, SOURCE, days, run_id="r", repair_horizon=0, ports=Ports(LocalTasks(), FilesLake(home)))
    return {
        "days": result["days"],
        "seconds": round(time.perf_counter() - clock, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
    }


def published(home: Home) -> list[Any]:
    """The ids of the published matches."""
    return sorted(tables.arrow(home, "matches", NAME)["match_id"].to_pylist())


def measure(args: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure each stream once."""
    found: dict[str, Any] = {}
    for stream in STREAMS:
        name = stream.replace(" ", "_")
        home = lake(work / name, stream, args.days)
        land(home, events(stream, args.days, late=False), range(args.days))
        run(home, 0, args.days // 2)
        following = run(home, args.days // 2, args.days)
        land(home, events(stream, args.days, late=True), range(args.days // 2, args.days // 2 + 1))
        late = run(home, 0, args.days)
        fresh = lake(work / f"{name}-fresh", stream, args.days)
        land(fresh, events(stream, args.days, late=True), range(args.days))
        run(fresh, 0, args.days)
        rows = published(home)
        found[stream] = {
            "late": late, "all that follow": following, "rows": len(rows), "equal": rows == published(fresh),
        }  # fmt: skip
    return found


def main(argv: list[str] | None = None) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.late_chain", description=__doc__)
    parser.add_argument("--days", type=int, default=1000)
    found = in_folder(parser, argv, measure)
    return 0 if all(one["equal"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
