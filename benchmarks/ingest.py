"""Ingest of one large file of tick quotes, compared with a bare Spark copy of it from CSV to Parquet in the same run.

Usage: ``python -m benchmarks.ingest FILE [--home DIR] [--json FILE]``. With ``--small N`` instead of FILE, it makes N
files of four rows, and measures the CPU seconds of all processes for a run that takes them, for one that finds nothing,
and for one that takes one more.

FILE is a CSV file of October 2013, plain or compressed, with the columns of ``COLUMNS``. Both ways run in one session
that has done the same on one row before; the start of JVM and session is not counted. Ingest parses every cell, numbers
the lines, hashes, resolves identity, and writes twice (raw, events). Exits with 1 if the memory of driver, JVM and
Python workers together exceeds 4 GB, if ingest takes more than 1.6 times as long as the copy, or if a row is lost.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psutil

from benchmarks.processes import cpu_seconds
from chainlake.days import Days
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.runs import new_run_id
from chainlake.paths import Home

LIMIT_MB, LIMIT_RATIO = 4_096, 1.6
COLUMNS = ("ticker", "ts", "bid", "bid_size", "ask", "ask_size", "exchange", "condition", "suspicious")
SOURCE = """\
description: Tick quotes, one side per row.
key: ticker
type: Quote
zone: America/New_York
attributes:
  bid: {type: double}
  bid_size: {type: long}
  ask: {type: double}
  ask_size: {type: long}
  exchange: {type: string}
  condition: {type: string}
  suspicious: {type: boolean}
identity: multiset
formats:
  - time: {column: ts, format: iso}
"""
SMALL = """\
key: ticker
type: Bar
attributes:
  price: {type: double}
  volume: {type: long}
path: 'bars_(?P<date>\\d{8})'
expect: ['bars_{date:%Y%m%d}*']
formats:
  - time: {column: ts, format: iso}
"""
#: Number of small files per day, and: every how many-th file has a bad line.
_PER_DAY, _DIRTY = 20, 50
_WARM = "AIG,2013-10-01 04:00:00.135,48.18,100,0,0,P,1,0\n"


class Peak(threading.Thread):
    """The largest resident memory of this process and all its descendants, sampled five times a second, in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.mb = 0.0
        self._ended = threading.Event()

    def run(self) -> None:
        me = psutil.Process()
        while not self._ended.wait(0.2):
            total = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.mb = max(self.mb, total / (1 << 20))

    def end(self) -> float:
        """Stop sampling, and return the peak."""
        self._ended.set()
        self.join()
        return self.mb


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """(seconds, peak MB, result)."""
    peak = Peak()
    peak.start()
    started = time.monotonic()
    result = work()
    seconds = time.monotonic() - started
    return seconds, peak.end(), result


def measure_small(number: int, root: Path) -> dict[str, Any]:
    """Measure with ``number`` small files; ``root`` is an empty folder."""
    from chainlake.ingest.step import ingest
    from chainlake.lake.spark.session import stop_session

    home = home_in(root, "bars", SMALL)
    days = Days.parse("2000-01-01", "2100-01-01")
    first = date(2001, 1, 1)

    def land(at: int) -> None:
        day = first + timedelta(days=at // _PER_DAY)
        rows = [f"{day} 10:00:0{n},K{at:05d},1.5,{n}" for n in range(4)]
        text = "\n".join(["ts,ticker,price,volume", *rows, *(["dirt"] if at % _DIRTY == 0 else []), ""])
        path = home.landing("bars") / f"bars_{day:%Y%m%d}_{at:05d}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def take() -> tuple[float, dict[str, Any]]:
        before = cpu_seconds()
        result = ingest(home, "bars", days, run_id=new_run_id("ingest"))
        return round(cpu_seconds() - before, 1), result

    found: dict[str, Any] = {"files": number}
    land(number)
    take()
    for at in range(number):
        land(at)
    found["cpu_s"], result = take()
    found["rows_read"] = result["rows"]
    found["nothing_cpu_s"], _ = take()
    land(number + 1)
    found["one_more_cpu_s"], _ = take()
    stop_session()
    return found


def home_in(root: Path, name: str, source: str) -> Home:
    """An installation in ``root`` with one source."""
    config = root / "config"
    (config / "sources").mkdir(parents=True)
    (config / "sources" / f"{name}.yaml").write_text(source)
    return dataclasses.replace(Home.from_env(), root=root, lake=str(root / "lake"), config=config)


def measure(file: Path, root: Path) -> dict[str, Any]:
    """Measure both ways for ``file``; ``root`` is an empty folder."""
    from chainlake.ingest.step import ingest
    from chainlake.lake.spark.session import spark_session, stop_session

    home = home_in(root, "quote", SOURCE)
    spark = spark_session(home, "benchmark of ingest", long_running=True)
    days = Days.parse("2013-10-01", "2013-11-01")

    def land(name: str, content: Path) -> None:
        target = home.landing("quote") / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(content, target)

    def copy(content: Path, name: str) -> int:
        target = str(root / name)
        spark.read.csv(str(content), header=True).write.parquet(target)
        return spark.read.parquet(target).count()

    run = new_run_id("ingest")

    def take() -> dict[str, Any]:
        return ingest(home, "quote", days, run_id=run)

    warm = root / "warm.csv.gz"
    warm.write_bytes(gzip.compress((",".join(COLUMNS) + "\n" + _WARM).encode()))
    copy(warm, "warm")
    land(warm.name, warm)
    ingest(home, "quote", days, run_id=new_run_id("warm"))

    print("warm", flush=True)
    copy_s, copy_mb, rows = timed(lambda: copy(file, "copy"))
    print(f"copied in {copy_s:.1f} s", flush=True)
    land(file.name, file)
    ingest_s, ingest_mb, result = timed(take)
    current = ops.current(home, "files", source="quote")
    events = tables.arrow(home, "events", "quote", columns=["event_date"])
    phases = ops.current(home, "runs", run_id=run)
    stop_session()
    return {
        "file": file.name,
        "rows": rows,
        "rows_read": sum(row["rows_read"] for row in current) - 1,
        "quarantined": result["quarantined"],
        "events": len(events) - 1,
        "copy_s": round(copy_s, 1),
        "ingest_s": round(ingest_s, 1),
        "phases_s": {p["phase"]: round((p["ended"] - p["started"]).total_seconds(), 1) for p in phases},
        "ratio": round(ingest_s / copy_s, 2),
        "copy_peak_mb": round(copy_mb),
        "ingest_peak_mb": round(ingest_mb),
        "rows_per_s": round(rows / ingest_s),
    }


def main() -> int:
    """Measure, print, and compare with the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE", nargs="?")
    parser.add_argument("--small", type=int, metavar="N", help="N small files in place of FILE")
    parser.add_argument("--home", type=Path, metavar="DIR", help="where the lake of the run lies (default: temporary)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    args = parser.parse_args()
    if (args.file is None) == (args.small is None):
        parser.error("give FILE or --small")
    with tempfile.TemporaryDirectory(dir=args.home) as folder:
        found = measure(args.file, Path(folder)) if args.small is None else measure_small(args.small, Path(folder))
    for name, value in found.items():
        print(f"{name:>16}  {value}")
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    if args.small is not None:
        return 0
    lost = found["rows"] != found["rows_read"] or found["events"] + found["quarantined"] != found["rows"]
    slow, large = found["ratio"] > LIMIT_RATIO, found["ingest_peak_mb"] > LIMIT_MB
    for wrong, what in ((lost, "rows are lost"), (slow, "slower than 1.6 copies"), (large, "more than 4 GB")):
        if wrong:
            print(f"MISSED: {what}")
    return 1 if lost or slow or large else 0


if __name__ == "__main__":
    sys.exit(main())
