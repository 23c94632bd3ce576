"""A year of events through one ``chainlake backfill``: seconds, peak memory by kind of process, and size of tables.

``python -m benchmarks.year [--events N] [--days D] [--share C] [--chunk 30d] [--work FOLDER] [--json FILE]``

Events are generated day by day (``benchmarks/made_lake.py``). There are two patterns: ``rise`` has three names and two
price clauses in 60 s without a key; ``lonely`` has two names of one symbol and none of a third in between. The backfill
is the command, with an application per chunk; everything is counted, including the starts of Java and Great
Expectations. The matches of ``rise`` on three days are counted in another way; the exit code is 1 if a number is wrong,
or the backfill failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.made_lake import SOURCE, Stream, make_lake, size_mb
from benchmarks.pipeline import NAME, PATTERN, in_folder, wrong_days
from benchmarks.processes import PeakMemory
from chainlake.lake.records import ops
from chainlake.paths import PROJECT, Home

LONELY = f"""\
---
source: {SOURCE}
---
PATTERN SEQ(A a, NOT(C c), B b)
WHERE a.symbol = b.symbol AND a.symbol = c.symbol AND b.price > a.price + 2.4
WITHIN 20 s
"""
PATTERNS = {NAME: PATTERN, "lonely": LONELY}


def measure(stream: Stream, work: Path, chunk: str) -> dict[str, Any]:
    """Make the lake, run the backfill, and check the results."""
    begun = time.perf_counter()
    home = make_lake(work, stream, PATTERNS, Home.from_env().cache)
    found: dict[str, Any] = {"events": stream.events, "days": stream.days, "made_s": time.perf_counter() - begun}
    command = [
        sys.executable, "-m", "jobs", "backfill", str(stream.span.start), str(stream.span.end), "--chunk", chunk,
    ]  # fmt: skip
    env = {**os.environ, "CHAINLAKE_HOME": str(work), "CHAINLAKE_CONFIG": str(home.config)}
    begun = time.perf_counter()
    child = subprocess.Popen(command, cwd=PROJECT, env=env)
    try:
        with PeakMemory(child.pid) as memory:
            found["code"] = child.wait()
    finally:
        child.kill()
    found["seconds"] = time.perf_counter() - begun
    found["peak_mb"], found["together_mb"] = memory.peak, memory.together
    found["tables_mb"] = {"events": size_mb(home.table("events", SOURCE)), "ops": size_mb(home.table("ops", ""))}
    found["rows"], found["phases"] = {}, {}
    for name in PATTERNS:
        done = [row for row in ops.current(home, "intervals", definition=f"pattern/{name}") if row["status"] == "done"]
        found["rows"][name] = {"days": len(done), "rows": sum(row["rows"] for row in done)}
        found["tables_mb"][name] = size_mb(home.table("matches", name))
    for row in ops.current_table(home, "runs").to_pylist():
        spent = (row["ended"] - row["started"]).total_seconds()
        label = f"{row['definition'].removeprefix('pattern/')} {row['phase']}".strip()
        found["phases"][label] = round(found["phases"].get(label, 0.0) + spent, 1)
    found["wrong_days"] = wrong_days(home, stream, sorted({0, stream.days // 2, stream.days - 1}))
    return found


def main(argv: list[str] | None = None) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.year", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--share", type=float, default=0.01, help="of type C")
    parser.add_argument("--chunk", default="30d")
    found = in_folder(
        parser,
        argv,
        lambda args, work: measure(Stream(args.days, -(-args.events // args.days), args.share), work, args.chunk),
    )
    return int(bool(found["wrong_days"]) or found["code"] != 0)


if __name__ == "__main__":
    sys.exit(main())
