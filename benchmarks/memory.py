"""Peak memory of a Python worker for ten million events in one slice and a hundred million matches.

``python -m benchmarks.memory [--events N] [--per-event M] [--shape spread|window|middle] [--spark]``. The search runs
on events as they arrive; matches are made into rows of the match table, counted and dropped. With ``--spark``, a task
of a session on one core reads the events from a Parquet file and writes the matches to another; its peak is judged,
and those of the JVM and the driver are shown. Shapes: ``spread``: every window holds little; ``window``: all events
lie in one window, but only the first few must be remembered; ``middle``: all lie in one window, and none may be
forgotten until the last one has come.
The high-water mark of the process (``VmHWM``) is compared with 1 GB; the exit code is 1 if it is above.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.processes import PeakMemory, high_water_mb
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.statistics import Statistics
from chainlake.detect.division.cut import Share, slice_of
from chainlake.detect.matcher import Matcher
from chainlake.errors import LimitExceeded
from chainlake.paths import Home
from chainlake.schemas.matches import matches_table
from chainlake.schemas.table import TIMESTAMP

LIMIT_MB = 1_024
#: Number of events that arrive at a time.
BATCH = 50_000
COLUMNS = {"type": pa.string(), "k": pa.string(), "ts": TIMESTAMP, "x": pa.float64()}
_STEP_US = 1_000
#: Number of batches in a row group.
_BATCHES = 20


def pattern_of(shape: str, per_event: int) -> Pattern:
    """A pattern with about ``per_event`` matches for each event of the stream."""
    window = f"{4 * per_event} ms" if shape == "spread" else "1 d"
    names = "A a, B b, C c" if shape == "middle" else "A a, B b"
    limits = "---\nlimits: {matches_per_day: 1000000000}\n---\n"
    text = f"{limits}PATTERN SEQ({names}) WHERE a.x <= b.x WITHIN {window}"
    return compile_pattern(text, name="memory", columns=COLUMNS)


def batches(shape: str, events: int, per_event: int) -> Iterator[pa.RecordBatch]:
    """The events of the slice: one every millisecond."""
    for first in range(0, events, BATCH):
        number = np.arange(first, min(first + BATCH, events))
        # With "spread", every other event is an A; otherwise the first few are, and with "middle" the last is a C.
        is_a = number % 2 == 0 if shape == "spread" else number < per_event
        kinds = np.where(is_a, "A", np.where((number == events - 1) & (shape == "middle"), "C", "B"))
        yield pa.RecordBatch.from_pydict(
            {
                "event_id": pa.array([f"{n * 2_654_435_761 % 2**64:032x}" for n in number.tolist()]),
                "type": pa.array(kinds),
                "k": pa.array(["key"] * len(number)),
                "ts": pa.array(number * _STEP_US, TIMESTAMP),
                "x": pa.array(np.ones(len(number))),
            }
        )


def measure(shape: str, events: int, per_event: int) -> dict[str, object]:
    """Run the search; returns what it found and what it cost."""
    pattern = pattern_of(shape, per_event)
    own = (0, events * _STEP_US + 86_400_000_000)
    statistics = Statistics()
    matcher = Matcher(pattern, matches_table(match_shape(pattern, key="k")).arrow(), None)
    hunt = matcher.hunt(own, statistics, DayLimit(pattern))
    before, started, matches, error = high_water_mb("self"), time.monotonic(), 0, ""
    try:
        for batch in batches(shape, events, per_event):
            matches += sum(map(len, hunt.add(pa.Table.from_batches([batch]))))
        matches += sum(map(len, hunt.finish()))
    except LimitExceeded as limit:
        error = limit.what
    return {
        "shape": shape,
        "events": events,
        "matches": matches,
        "evaluations": statistics.evaluations,
        "error": error,
        "seconds": round(time.monotonic() - started, 1),
        "start_mb": round(before),
        "peak_mb": round(high_water_mb("self")),
    }


def measure_in_spark(shape: str, events: int, per_event: int, folder: Path) -> dict[str, object]:
    """Do the same in a task of a session, with one slice."""
    from chainlake.detect.stage import Search, stage
    from chainlake.lake.spark.session import stop_session
    from chainlake.lake.store.event_files import EventFiles
    from chainlake.run.tasks import SparkTasks

    pattern, day, path = pattern_of(shape, per_event), date(1970, 1, 1), folder / "events.parquet"
    made = batches(shape, events, per_event)
    first = next(made)
    with pq.ParquetWriter(path, first.schema) as file:
        file.write_batch(first)
        while some := list(itertools.islice(made, _BATCHES)):
            file.write_table(pa.Table.from_batches(some))
    files = EventFiles(first.schema, {day: (str(path),)}, {day: events})
    search = Search(pattern, matches_table(match_shape(pattern, key="k")), None, str(folder / "staged"))
    share = Share({0: (slice_of(pattern, (0, 86_400_000_000)),)})
    home = replace(Home.from_env(), root=folder, lake=str(folder / "lake"))
    try:
        with PeakMemory() as memory:
            tasks = SparkTasks(home, "memory benchmark", long_running=True)
            started = time.monotonic()
            (found,) = stage(tasks, files, "k", [search], [share])
            seconds = time.monotonic() - started
    finally:
        stop_session()
    return {
        "shape": shape,
        "events": events,
        "matches": sum(found.per_day.values()),
        "evaluations": found.evaluations,
        "error": "" if found.failure is None else found.failure.what,
        "seconds": round(seconds, 1),
        "jvm_mb": memory.peak["jvm"],
        "driver_mb": memory.peak["python"],
        "peak_mb": memory.peak["worker"],
    }


def main() -> int:
    """Measure one shape and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--per-event", type=int, default=10, help="matches for each event, about")
    parser.add_argument("--shape", choices=("spread", "window", "middle"), default="spread")
    parser.add_argument("--spark", action="store_true", help="through a session")
    args = parser.parse_args()
    if args.spark:
        os.environ["SPARK_MASTER"] = "local[1]"
        with tempfile.TemporaryDirectory(prefix="chainlake-memory-") as folder:
            found = measure_in_spark(args.shape, args.events, args.per_event, Path(folder))
    else:
        found = measure(args.shape, args.events, args.per_event)
    print(json.dumps(found))
    return 1 if found["peak_mb"] > LIMIT_MB or found["error"] else 0  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
