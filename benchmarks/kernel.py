"""The compiled kernel beside the NumPy kernel, a DuckDB self-join, Esper and Flink CEP, on the peers' streams.

``python -m benchmarks.kernel [--streams small|middle|million|dense] [--orders] [--peers FOLDER --built FOLDER]
[--json FILE]``

Pattern: ``SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 60 s``. Every engine gives the exact
number of matches, which is counted by another way here. Ours deliver every match as Arrow arrays of row numbers. One
core for everything (``sched_setaffinity``); compiling and the start of the JVM are left out; seconds are the least of
some runs. ``--peers`` names the folder with the peers' ``run.sh``, ``--built`` the one that ``run.sh build`` filled.
``--orders`` times all binding orders, too. The exit code is 1 if a count is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jobs.cep import Statistics, compile_pattern, find

QUERY = (
    "---\nlimits: {matches_per_day: 1000000000}\n---\n"
    "PATTERN SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 60 s"
)
JOIN = (
    "SELECT a.n, b.n, c.n FROM A a, B b, C c WHERE a.ts < b.ts AND b.ts < c.ts AND c.ts <= a.ts + 60000 "
    "AND a.price < b.price AND b.price < c.price"
)
WINDOW_MS = 60_000
#: Events, share of C, events per second.
STREAMS = {
    "small": [(20_000, 0.01, 5.0), (20_000, 0.33, 5.0)],
    "middle": [(200_000, 0.01, 5.0), (200_000, 0.10, 5.0), (200_000, 0.33, 5.0)],
    "million": [(1_000_000, 0.01, 5.0), (1_000_000, 0.10, 5.0), (1_000_000, 0.33, 5.0)],
    "dense": [(200_000, 0.10, 50.0)],
}
#: Pairs of events in a window; beyond, NumPy or the self-join would run for minutes.
MOST_NUMPY, MOST_JOIN = 3.5e8, 8e6


@dataclass(frozen=True)
class Stream:
    """A stream: types (0, 1, 2 for A, B, C), ms and prices, in time order."""

    n: int
    share: float
    rate: float
    kinds: np.ndarray
    ms: np.ndarray
    price: np.ndarray

    @property
    def name(self) -> str:
        """As the tables show it."""
        return f"{self.n:,} events, {self.share:.0%} C, {self.rate:g}/s"

    def table(self) -> pa.Table:
        """As an events table."""
        return pa.table({
            "event_id": pa.array(np.arange(self.n)),
            "type": pa.DictionaryArray.from_arrays(self.kinds, ["A", "B", "C"]),
            "ts": pa.array(self.ms * 1000).cast(pa.timestamp("us", tz="UTC")),
            "price": pa.array(self.price),
        })  # fmt: skip

    def exact(self) -> int:
        """The number of matches: for each B, the pairs of passing A before and C behind that fit the window."""
        ms, price = ([self.ms[self.kinds == k] for k in range(3)], [self.price[self.kinds == k] for k in range(3)])
        found = 0
        for ts, p in zip(ms[1].tolist(), price[1].tolist(), strict=True):
            lo, hi = np.searchsorted(ms[0], [ts - WINDOW_MS, ts])
            first, last = np.searchsorted(ms[2], [ts + 1, ts + WINDOW_MS + 1])
            before = ms[0][lo:hi][price[0][lo:hi] < p]
            behind = ms[2][first:last][price[2][first:last] > p]
            found += len(before) * len(behind) - int(np.searchsorted(before, behind - WINDOW_MS).sum())
        return found


def stream(n: int, share: float, rate: float) -> Stream:
    """The stream that the peers' ``gen.py`` makes with these options (shift 1.8, its default seed)."""
    shift = 1.8
    draw = random.Random(f"20250101|{n}|{share:.6f}|{rate:.6f}|{shift:.6f}")
    t, last = 0.0, 0
    kinds, ms, price = np.zeros(n, np.int8), np.zeros(n, np.int64), np.zeros(n)
    for i in range(n):
        t += draw.expovariate(rate)
        last = max(last + 1, int(t * 1000))
        u = draw.random()
        kinds[i] = 2 if u < share else 0 if u < share + (1 - share) / 2 else 1
        ms[i] = last
        price[i] = round(100 - shift * int(kinds[i]) + draw.gauss(0, 1), 4)
        draw.randrange(100, 10000)
    return Stream(n, share, rate, kinds, ms, price)


def least(work: Callable[[], int], repeats: int) -> dict[str, float]:
    """Wall and CPU seconds of the fastest of some runs, and what they gave."""
    runs = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        matches = work()
        runs.append((time.perf_counter() - wall, time.process_time() - cpu, matches))
    return {
        "wall": min(wall for wall, _, _ in runs), "cpu": min(cpu for _, cpu, _ in runs), "matches": runs[0][2],
    }  # fmt: skip


def ours(events: pa.Table, backend: str, order: tuple[str, ...] | None = None) -> tuple[int, Statistics]:
    """Matches of one run."""
    statistics = Statistics()
    pattern = compile_pattern(QUERY)
    n = 0
    for batch in find(pattern, events, backend=backend, order=order, statistics=statistics):
        arrays = [pa.array(rows) for rows in batch.single.values()]
        n += len(arrays[0])
    return n, statistics


def joined(made: Stream) -> int:
    """Matches of DuckDB's self-join, delivered as Arrow arrays, on one thread."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for k, name in enumerate("ABC"):
            rows = np.flatnonzero(made.kinds == k)
            part = pa.table({"n": rows, "ts": made.ms[rows], "price": made.price[rows]})
            connection.register(f"part{name}", part)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM part{name}")
        return sum(batch.num_rows for batch in connection.sql(JOIN).to_arrow_reader(1 << 17))


def peer(folder: Path, built: Path, engine: str, mode: str, file: Path) -> dict[str, float]:
    """The fastest repetition that a peer reports."""
    done = subprocess.run(
        ["bash", str(folder / "run.sh"), engine, mode, str(file)],
        env={**os.environ, "PEERS_OUT": str(built)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    runs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {
        "wall": min(run["wall_s"] for run in runs), "cpu": min(run["cpu_s"] for run in runs),
        "matches": runs[0]["matches"],
    }  # fmt: skip


def measured(made: Stream, args: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    """Engine and what it took."""
    events = made.table()
    small = made.n <= 20_000
    pairs = made.n * made.rate * WINDOW_MS / 1000
    ours(events, "compiled")
    yield "compiled", least(lambda: ours(events, "compiled")[0], 5)
    if pairs <= MOST_NUMPY:
        yield "numpy", least(lambda: ours(events, "numpy")[0], 1)
    if pairs <= MOST_JOIN:
        yield "duckdb join", least(lambda: joined(made), 1)
    if args.peers is not None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stream.csv"
            with file.open("w", encoding="ascii") as out:
                out.write("id,type,ts,price,volume\n")
                for i in range(made.n):
                    out.write(f"{i},{'ABC'[made.kinds[i]]},{made.ms[i]},{made.price[i]:.4f},100\n")
            yield "esper join", peer(args.peers, args.built, "esper", "join", file)
            if small:
                yield "flink cep", peer(args.peers, args.built, "flink", "cep", file)
                yield "flink join", peer(args.peers, args.built, "flink", "join", file)


def show_orders(made: Stream) -> dict[str, float]:
    """Seconds of every order beside the chosen one."""
    events = made.table()
    found = {}
    for order in permutations("abc"):
        ours(events, "compiled", order)
        found["".join(order)] = least(lambda order=order: ours(events, "compiled", order)[0], 3)["cpu"]
    chosen = "".join(ours(events, "compiled")[1].order[0])
    print(f"    CPU seconds per order, chosen {chosen} ({found[chosen] / min(found.values()):.2f} of the best):",
          {order: round(seconds, 3) for order, seconds in found.items()})  # fmt: skip
    return found


def main(argv: list[str] | None = None) -> int:
    """Print a table per stream."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel", description=__doc__)
    parser.add_argument("--streams", choices=sorted(STREAMS), default="small")
    parser.add_argument("--orders", action="store_true")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--built", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if (args.peers is None) != (args.built is None):
        parser.error("--peers and --built go together")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    results: dict[str, Any] = {}
    wrong = False
    for n, share, rate in STREAMS[args.streams]:
        made = stream(n, share, rate)
        exact = made.exact()
        statistics = ours(made.table(), "compiled")[1]
        print(f"{made.name}: {exact:,} matches, E {statistics.evaluations:,}, tested {statistics.tests:,}", flush=True)
        rows = results[made.name] = {"exact": exact}
        for engine, row in measured(made, args):
            rows[engine] = row
            base = rows["compiled"]
            wrong |= row["matches"] != exact
            times = [f"{row[key]:9.3f} s {what} {row[key] / base[key]:8.1f} x" for key, what in
                     (("wall", "wall"), ("cpu", "CPU"))]  # fmt: skip
            verdict = "" if row["matches"] == exact else " WRONG"
            print(f"  {engine:<12} {'  '.join(times)}  {row['matches']:,}{verdict}", flush=True)
        if args.orders:
            rows["orders"] = show_orders(made)
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
