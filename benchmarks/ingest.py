"""Ingest of one large file of tick quotes against a bare Spark copy of it from CSV to Parquet, in the same run.

Usage: ``python -m benchmarks.ingest FILE [--home DIR] [--json FILE]``. FILE is a CSV file of October 2013, plain or
compressed, with the columns of ``COLUMNS``. Both run in one session that has done the same on one row before; JVM and
session start are not counted. Ingest parses every cell, numbers the lines, hashes, resolves identity and writes twice
(raw, events). Exits with 1 if the memory of driver, JVM and Python workers together passes 4 GB, if ingest takes more
than four times as long as the copy, or if a row is lost.
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
from pathlib import Path
from typing import Any

import psutil

from chainlake.days import Days
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.runs import new_run_id
from chainlake.paths import Home

LIMIT_MB, LIMIT_RATIO = 4_096, 4.0
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
_WARM = "AIG,2013-10-01 04:00:00.135,48.18,100,0,0,P,1,0\n"


class Peak(threading.Thread):
    """The largest resident memory of this process and all below it, sampled five times a second, in MB."""

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
        """Stop, and the peak."""
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


def measure(file: Path, root: Path) -> dict[str, Any]:
    """Both ways for ``file``; ``root`` is an empty folder."""
    from chainlake.ingest.step import ingest
    from chainlake.lake.spark.session import spark_session, stop_session

    base = Home.from_env()
    config = root / "config"
    (config / "sources").mkdir(parents=True)
    (config / "sources" / "quote.yaml").write_text(SOURCE)
    home = dataclasses.replace(base, root=root, lake=str(root / "lake"), config=config)
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
    """Measure, print, compare with the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--home", type=Path, metavar="DIR", help="where the lake of the run lies (default: temporary)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.home) as folder:
        found = measure(args.file, Path(folder))
    for name, value in found.items():
        print(f"{name:>16}  {value}")
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    lost = found["rows"] != found["rows_read"] or found["events"] + found["quarantined"] != found["rows"]
    slow, large = found["ratio"] > LIMIT_RATIO, found["ingest_peak_mb"] > LIMIT_MB
    for wrong, what in ((lost, "rows are lost"), (slow, "slower than four copies"), (large, "more than 4 GB")):
        if wrong:
            print(f"MISSED: {what}")
    return 1 if lost or slow or large else 0


if __name__ == "__main__":
    sys.exit(main())
