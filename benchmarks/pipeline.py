"""From the events table to the published match table, compared with a bare Spark job that reads and writes as much.

``python -m benchmarks.pipeline [--events N] [--share C] [--jobs] [--json FILE] [--work FOLDER]``

Events are generated (5/s, types A, B, C, ``--share`` of them C); the pattern is ``SEQ(A a, B b, C c) WHERE a.price <
b.price AND b.price < c.price WITHIN 60 s``; and the detect step runs as the command runs it: plan, detection, staging,
audit, publishing, ``ops``. The session is ``local[2]`` unless ``SPARK_MASTER`` says otherwise. The step first runs on a
small lake in the same session, so that the start of the JVM, of the workers and of Great Expectations is not counted
(but is printed). The bare job runs afterwards in the same session, also on the small lake first: it reads the
columns that the pattern needs, and writes the rows of the published match table to two Delta tables. ``--jobs`` lists
the Spark jobs of the step with their seconds. The matches of the first, the middle and the last day are counted in
another way; the exit code is 1 if a number is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.made_lake import SOURCE, Stream, day_rows, make_lake, size_mb
from benchmarks.processes import PeakMemory
from chainlake.days import day_start_us
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.paths import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "rise"
PATTERN = f"""\
---
source: {SOURCE}
---
PATTERN SEQ(A a, B b, C c)
WHERE a.price < b.price AND b.price < c.price
WITHIN 60 s
"""
WINDOW_MS = 60_000
RATE = 5
COLUMNS = ["event_id", "type", "symbol", "ts", "price"]


def stream_of(events: int, share: float) -> Stream:
    """A stream of whole days that holds about this many events, at about 5 events a second."""
    days = max(1, round(events / (RATE * 86_400)))
    return Stream(days, round(events / days), share)


def exact(stream: Stream, number: int) -> int:
    """The number of matches decided on a day: for each B, the fitting pairs of an A before and a C after it."""
    days = list(stream.span)
    made = [day_rows(stream, n, days[n]) for n in (number - 1, number) if n >= 0]
    rows = pa.concat_tables(made).select(["type", "ts", "price"]).sort_by("ts")
    every, cost = rows["ts"].cast("int64").to_numpy() // 1000, rows["price"].to_numpy()
    begin = day_start_us(days[number]) // 1000
    kinds = np.array([ord(text) - ord("A") for text in rows["type"].to_pylist()], np.int8)
    wanted = every >= np.where(kinds == 2, begin, begin - WINDOW_MS)
    ms, price = ([column[(kinds == k) & wanted] for k in range(3)] for column in (every, cost))
    los, his = np.searchsorted(ms[0], ms[1] - WINDOW_MS), np.searchsorted(ms[0], ms[1])
    firsts, lasts = np.searchsorted(ms[2], ms[1] + 1), np.searchsorted(ms[2], ms[1] + WINDOW_MS + 1)
    found = 0
    for i, p in enumerate(price[1].tolist()):
        behind = ms[2][firsts[i] : lasts[i]][price[2][firsts[i] : lasts[i]] > p]
        if len(behind):
            before = ms[0][los[i] : his[i]][price[0][los[i] : his[i]] < p]
            found += len(before) * len(behind) - int(np.searchsorted(before, behind - WINDOW_MS).sum())
    return found


def wrong_days(home: Home, stream: Stream, days: Sequence[int]) -> list[str]:
    """The days for which the number of published rows is not what :func:`exact` says."""
    rows = {row["day"]: row["rows"] for row in ops.current(home, "intervals", definition=f"pattern/{NAME}")}
    every = list(stream.span)
    return [str(every[n]) for n in days if rows.get(every[n]) != exact(stream, n)]


def timed(work: Callable[[], object]) -> float:
    """Wall seconds of some work."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def step(home: Home, stream: Stream, run_id: str) -> dict[str, Any]:
    """Run the detect step over all days; returns its seconds, and those of its phases."""
    from chainlake.detect.step import detect

    found: dict[str, Any] = {}
    found["seconds"] = timed(lambda: found.update(detect(home, SOURCE, stream.span, run_id=run_id, repair_horizon=0)))
    for row in ops.current(home, "runs", run_id=run_id):
        found[row["phase"]] = (row["ended"] - row["started"]).total_seconds()
    return found


def bare(spark: SparkSession, home: Home, folder: Path) -> dict[str, float]:
    """Seconds of the parts of the bare job; ``reread``: of reading the match table once, which it does twice."""
    events = tables.read(spark, home, "events", SOURCE).select(*COLUMNS)
    published = tables.read(spark, home, "matches", NAME)
    found = {"scan": timed(lambda: events.write.format("noop").mode("overwrite").save())}
    for number in (1, 2):
        path = str(folder / f"copy{number}")
        found[f"write{number}"] = timed(lambda path=path: published.write.format("delta").save(path))  # type: ignore[misc]
    found["seconds"] = sum(found.values())
    found["reread"] = timed(lambda: published.write.format("noop").mode("overwrite").save())
    return found


def jobs_of(spark: SparkSession, after: int) -> list[dict[str, Any]]:
    """The Spark jobs with numbers above ``after``: seconds, and for each stage tasks, seconds and MB shuffled."""
    store = spark.sparkContext._jsc.sc().statusStore()
    java = spark.sparkContext._gateway.jvm
    listed = java.scala.jdk.javaapi.CollectionConverters.asJava(store.jobsList(None))
    found = []
    for job in sorted(listed, key=lambda job: job.jobId()):
        if job.jobId() <= after:
            continue
        begun, ended = job.submissionTime().get().getTime(), job.completionTime().get().getTime()
        stages = []
        for stage in java.scala.jdk.javaapi.CollectionConverters.asJava(job.stageIds()):
            data = store.lastStageAttempt(stage)
            if data.numCompleteTasks():
                stages.append(
                    f"{data.numCompleteTasks()} tasks {data.executorRunTime() / 1000:.1f} s, "
                    f"shuffled {data.shuffleWriteBytes() / 1e6:.0f} MB, spilled {data.diskBytesSpilled() / 1e6:.0f} MB"
                )
        found.append({
            "job": job.jobId(), "begun": begun / 1000, "seconds": (ended - begun) / 1000, "name": job.name(),
            "stages": stages,
        })  # fmt: skip
    return found


def last_job(spark: SparkSession) -> int:
    """Number of the last job so far."""
    return max((job["job"] for job in jobs_of(spark, -1)), default=-1)


def run(stream: Stream, work: Path, *, list_jobs: bool) -> dict[str, Any]:
    """Run everything on one stream."""
    from chainlake.lake.spark.session import spark_session, stop_session

    cache = Home.from_env().cache
    found: dict[str, Any] = {"events": stream.events, "days": stream.days, "share": stream.share}
    try:
        home = make_lake(work / "large", stream, {NAME: PATTERN}, cache)
        small_stream = Stream(1, 250_000, stream.share)
        small = make_lake(work / "small", small_stream, {NAME: PATTERN}, cache)
        found["events_mb"] = size_mb(home.table("events", SOURCE))
        begun = time.perf_counter()
        spark = spark_session(home, "pipeline benchmark", long_running=True)
        found["start"] = {"session": time.perf_counter() - begun}
        found["start"]["small"] = step(small, small_stream, "small")["seconds"]
        bare(spark, small, work / "warm")
        before = last_job(spark)
        epoch = time.time()
        with PeakMemory() as memory:
            found["product"] = step(home, stream, "large")
        if list_jobs:
            for job in jobs_of(spark, before):
                print(f"  {job['begun'] - epoch:6.1f} s + {job['seconds']:5.1f} s  {job['name']}: {job['stages']}")
        found["memory_mb"] = {"peak": memory.peak, "together": memory.together}
        found["bare"] = bare(spark, home, work)
        found["matches_mb"] = size_mb(home.table("matches", NAME))
    finally:
        stop_session()
    found["wrong_days"] = wrong_days(home, stream, sorted({0, stream.days // 2, stream.days - 1}))
    found["ratio"] = found["product"]["seconds"] / found["bare"]["seconds"]
    return found


def in_folder(
    parser: argparse.ArgumentParser,
    argv: list[str] | None,
    measure: Callable[[argparse.Namespace, Path], dict[str, Any]],
) -> dict[str, Any]:
    """Measure in a folder that is removed afterwards; the result is printed, and written where ``--json`` says.

    Args:
        parser: the command's parser, which gets ``--work`` and ``--json``.
        argv: the command's words; those of the process if None.
        measure: gives the result for the arguments and the folder.
    """
    parser.add_argument("--work", type=Path, help="an empty folder; default: a temporary one")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    work = args.work or Path(tempfile.mkdtemp(prefix="chainlake-benchmark-"))
    try:
        found = measure(args, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for name, value in found.items():
        print(f"{name}: {json.dumps(value)}", flush=True)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def _measure(args: argparse.Namespace, work: Path) -> dict[str, Any]:
    os.environ["CHAINLAKE_HOME"] = str(work / "large")
    return run(stream_of(args.events, args.share), work, list_jobs=args.jobs)


def main(argv: list[str] | None = None) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--share", type=float, default=0.01, help="of type C")
    parser.add_argument("--jobs", action="store_true", help="list the Spark jobs of the step")
    found = in_folder(parser, argv, _measure)
    return int(bool(found["wrong_days"]))


if __name__ == "__main__":
    sys.exit(main())
