"""Peak memory of a Python worker: ten million events of one slice, a hundred million matches.

``python -m benchmarks.memory [--events N] [--per-event M] [--shape spread|window|middle] [--spark]``. The worker's own
code runs on the batches that Spark would send; matches are made into rows of the match table, counted and dropped, as
Spark takes them away. With ``--spark`` the events come from Parquet files and go through a session on one core, which
counts the rows; the worker's peak is judged, those of the JVM and of the driver are shown. Shapes: ``spread``, every
window holds little; ``window``, all events lie in one window, but only the first few must be remembered; ``middle``,
all lie in one window and none may be forgotten until the last one has come.
The high-water mark of the process (``VmHWM``) is compared with 1 GB; the exit code is 1 if it is above.
"""

from __future__ import annotations

import argparse
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
from chainlake.cep import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.days import Days
from chainlake.detect.tasks.slices import Slice, runs, whole
from chainlake.detect.tasks.worker import REPORT, SLICE, Matcher
from chainlake.paths import Home
from chainlake.schemas.matches import matches_table
from chainlake.schemas.table import TIMESTAMP

LIMIT_MB = 1_024
#: Events that Spark sends at a time (chainlake.lake.spark.session).
BATCH = 50_000
COLUMNS = {"type": pa.string(), "k": pa.string(), "ts": TIMESTAMP, "x": pa.float64()}
_STEP_US = 1_000
#: Batches of a Parquet file.
_BATCHES = 20


def pattern_of(shape: str, per_event: int) -> Pattern:
    """About ``per_event`` matches for each event of the stream."""
    window = f"{4 * per_event} ms" if shape == "spread" else "1 d"
    names = "A a, B b, C c" if shape == "middle" else "A a, B b"
    limits = "---\nlimits: {matches_per_day: 1000000000}\n---\n"
    text = f"{limits}PATTERN SEQ({names}) WHERE a.x <= b.x WITHIN {window}"
    return compile_pattern(text, name="memory", columns=COLUMNS)


def batches(shape: str, events: int, per_event: int) -> Iterator[pa.RecordBatch]:
    """The slice as Spark sends it: an event every millisecond."""
    for first in range(0, events, BATCH):
        number = np.arange(first, min(first + BATCH, events))
        # spread: every other event is an A; else the first few events are, and the last one is a C.
        is_a = number % 2 == 0 if shape == "spread" else number < per_event
        kinds = np.where(is_a, "A", np.where((number == events - 1) & (shape == "middle"), "C", "B"))
        yield pa.RecordBatch.from_pydict(
            {
                SLICE: pa.array(np.zeros(len(number), np.int32)),
                "event_id": pa.array([f"{n * 2_654_435_761 % 2**64:032x}" for n in number.tolist()]),
                "type": pa.array(kinds),
                "k": pa.array(["key"] * len(number)),
                "ts": pa.array(number * _STEP_US, TIMESTAMP),
                "x": pa.array(np.ones(len(number))),
            }
        )


def measure(shape: str, events: int, per_event: int) -> dict[str, object]:
    """Run the worker; what it found and what it took."""
    pattern = pattern_of(shape, per_event)
    own = (0, events * _STEP_US + 86_400_000_000)
    one = Slice(0, own, pattern.read_range(*own))
    table = matches_table(match_shape(pattern, key="k")).arrow()
    matcher = Matcher(pattern, table, {one.number: one.own}, None)
    before, started, matches, report = high_water_mb("self"), time.monotonic(), 0, ""
    for batch in matcher.run(batches(shape, events, per_event)):
        notes = batch[REPORT.names[0]].drop_null().to_pylist()
        matches += len(batch) - len(notes)
        report = notes[0] if notes else report
    return {
        "shape": shape,
        "events": events,
        "matches": matches,
        "report": json.loads(report),
        "seconds": round(time.monotonic() - started, 1),
        "start_mb": round(before),
        "peak_mb": round(high_water_mb("self")),
    }


def measure_in_spark(shape: str, events: int, per_event: int, folder: Path) -> dict[str, object]:
    """The same by a session's worker: one slice, one task."""
    from pyspark.sql import functions as F

    from chainlake.detect.tasks.by_shuffle import detect_matches, report_of
    from chainlake.lake.spark.session import spark_session, stop_session

    pattern = pattern_of(shape, per_event)
    written = folder / "events"
    written.mkdir()
    for number, batch in enumerate(batches(shape, events, per_event)):
        if number % _BATCHES == 0:
            file = pq.ParquetWriter(written / f"{number}.parquet", batch.drop_columns([SLICE]).schema)
        file.write_batch(batch.drop_columns([SLICE]))
        if number % _BATCHES == _BATCHES - 1 or number * BATCH + len(batch) == events:
            file.close()
    home = replace(Home.from_env(), root=folder, lake=str(folder / "lake"))
    layout = whole(runs(pattern, Days(date(1970, 1, 1), date(1970, 1, 2))))
    try:
        with PeakMemory() as memory:
            spark = spark_session(home, "memory benchmark", long_running=True)
            frame = spark.read.parquet(str(written))
            started = time.monotonic()
            found = detect_matches(frame, pattern, matches_table(match_shape(pattern, key="k")), layout)
            matches, reports = found.agg(F.count("match_id"), F.collect_list(report_of(found))).collect()[0]
            seconds = time.monotonic() - started
    finally:
        stop_session()
    return {
        "shape": shape,
        "events": events,
        "matches": matches,
        "report": json.loads(reports[0]),
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
    return 1 if found["peak_mb"] > LIMIT_MB or "error" in found["report"] else 0  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
