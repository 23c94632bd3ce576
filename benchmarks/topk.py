"""The best ten of each day: the engine's block by block, all matches sorted, and DuckDB's row_number over a self-join.

``python -m benchmarks.topk --events 120000 600000``: random prices of 50 keys over ten days; a rise within ten minutes,
ranked by its height. Seconds of processor time, and the largest growth of memory, each in a process of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.cep import Statistics, compile_pattern, find

DAY = 86_400_000_000
WITHIN = 600_000_000
QUERY = "PATTERN SEQ(Bar a, Bar b) WHERE a.key = b.key AND b.price > a.price WITHIN 10 min"
RANKED = f"{QUERY} RANK BY MAX(b.price - a.price) TOP 10 PER DAY"
SQL = """
SELECT a.n, b.n FROM Bar a, Bar b
WHERE a.key = b.key AND b.ts > a.ts AND b.ts <= a.ts + 600000000 AND b.price > a.price
QUALIFY row_number() OVER (PARTITION BY b.ts // 86400000000 ORDER BY b.price - a.price DESC, a.n, b.n) <= 10
ORDER BY b.ts // 86400000000, b.price - a.price DESC, a.n, b.n
"""


def made(n: int) -> pa.Table:
    """Bars in the order of time, all times different."""
    draw = np.random.default_rng(n)
    ts = np.sort(draw.choice(10 * DAY // 1000, n, replace=False)) * 1000
    return pa.table({
        "event_id": [f"{i:08}" for i in range(n)],
        "type": ["Bar"] * n,
        "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
        "key": draw.integers(0, 50, n),
        "price": draw.integers(0, 100_000, n) / 100,
        "n": np.arange(n),
    })  # fmt: skip


def ranked(events: pa.Table) -> tuple[list[Any], int]:
    """The engine."""
    statistics = Statistics()
    batches = list(find(compile_pattern(RANKED), events, statistics=statistics))
    rows = [[int(a), int(b)] for one in batches for a, b in zip(one.single["a"], one.single["b"], strict=True)]
    return rows, sum(one.candidates for one in statistics.lists)


def sorted_list(events: pa.Table) -> tuple[list[Any], int]:
    """All matches of the engine, then one sort."""
    price = events["price"].to_numpy()
    found = list(find(compile_pattern(QUERY), events))
    a, b = (np.concatenate([batch.single[name] for batch in found]) for name in "ab")
    day = np.concatenate([batch.end_us for batch in found]) // DAY
    order = np.lexsort([b, a, price[a] - price[b], day])
    begins = np.flatnonzero(np.diff(day[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    best = order[rank < 10]
    return [[int(a[i]), int(b[i])] for i in best], len(order)


def duckdb(events: pa.Table) -> tuple[list[Any], int]:
    """SQL."""
    import duckdb as sql

    connection = sql.connect(config={"threads": 1})
    at = events.column_names.index("ts")
    connection.register("Bar", events.set_column(at, "ts", events["ts"].cast(pa.int64())))
    return [list(row) for row in connection.execute(SQL).fetchall()], 0


HOW: dict[str, Callable[[pa.Table], tuple[list[Any], int]]] = {
    "engine, ranked": ranked, "engine, sorted": sorted_list, "DuckDB": duckdb,
}  # fmt: skip


def one(how: str, n: int) -> None:
    """Print what one of them takes."""
    events = made(n)
    if how.startswith("engine"):
        HOW[how](made(500))  # imports, which are no part of it
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    rows, matches = HOW[how](events)
    took = time.process_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12]
    print(json.dumps({"how": how, "events": n, "rows": len(rows), "matches": matches, "cpu_s": round(took, 2),
                      "MiB": round(grown), "digest": digest}))  # fmt: skip


def main() -> None:
    """Run each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topk", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[120_000, 600_000])
    parser.add_argument("--one", choices=HOW)
    args = parser.parse_args()
    if args.one:
        one(args.one, args.events[0])
        return
    for n in args.events:
        for how in HOW:
            command = [sys.executable, "-m", "benchmarks.topk", "--one", how, "--events", str(n)]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
