"""A year of events through one ``chainlake backfill``: seconds, CPU and peak memory by kind of process, size of tables.

``python -m benchmarks.year [--events N] [--days D] [--share C] [--chunk 366d] [--work FOLDER] [--json FILE]``. With
``--make FOLDER`` it only makes the lake there, where a later call with ``--work FOLDER`` and the same numbers finds it.

Events are generated day by day (``benchmarks/made_lake.py``). There are two patterns: ``rise`` has three names and two
price clauses in 60 s without a key; ``lonely`` has two names of one symbol and none of a third in between. The backfill
is the command, with an application per chunk; everything is counted, including the starts of Java and Great
Expectations. The matches of ``rise`` on three days are counted in another way; the exit code is 1 if a number is wrong,
or the backfill failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.made_lake import SOURCE, Stream, make_lake, size_mb
from benchmarks.pipeline import NAME, PATTERN, in_folder, wrong_days
from benchmarks.processes import PeakMemory
from chainlake.lake.records import ops
from chainlake.operations.backfills.applications import CHUNK
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


def made(stream: Stream, work: Path) -> tuple[Home, float]:
    """The lake in its folder, and the seconds that it took to make it; 0 if it was there.

    Raises:
        ValueError: the one that is there was made of another stream.
    """
    begun, note = time.perf_counter(), work / "made.json"
    text = json.dumps(asdict(stream))
    cache = Home.from_env().cache
    if note.exists():
        if note.read_text() != text:
            raise ValueError(f"{work} has the lake of another stream, {note.read_text()}")
        return Home(root=work, lake=str(work / "lake"), config=work / "config", cache=cache), 0.0
    home = make_lake(work, stream, PATTERNS, cache)
    note.write_text(text)
    return home, time.perf_counter() - begun


def measure(stream: Stream, work: Path, chunk: str) -> dict[str, Any]:
    """Make the lake if it is not there, run the backfill, and check the results."""
    home, made_s = made(stream, work)
    found: dict[str, Any] = {"events": stream.events, "days": stream.days, "made_s": made_s}
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
    found["cpu_s"] = {kind: round(spent) for kind, spent in memory.cpu.items()}
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
    parser.add_argument("--chunk", default=f"{CHUNK}d")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="only make the lake there, for --work FOLDER")

    def stream(args: argparse.Namespace) -> Stream:
        return Stream(args.days, -(-args.events // args.days), args.share)

    args, _ = parser.parse_known_args(argv)
    if args.make is not None:
        print(f"made in {made(stream(args), args.make)[1]:.1f} s")
        return 0
    found = in_folder(parser, argv, lambda args, work: measure(stream(args), work, args.chunk))
    return int(bool(found["wrong_days"]) or found["code"] != 0)


if __name__ == "__main__":
    sys.exit(main())
