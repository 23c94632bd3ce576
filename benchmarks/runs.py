"""Runs of neighbours against DuckDB's window functions on one thread: sessions, longest rises, V shapes.

Usage: ``python -m benchmarks.runs [--rows N] [--task NAME …]``: N events on one day, 10,000 of each key. Each side runs
in a process of its own on the same events, which lie in memory in the order of time; what is told are the CPU seconds
and the peak memory of each side, without making the events, and after it has done the same on few of them. DuckDB gives
a row for each match, of its key, first and last time and number of events; the search gives every event of each match
besides. Exits with 1 if the answers differ.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from hashlib import blake2b

import numpy as np
import pyarrow as pa

DAY_US, PAUSE_S = 86_400_000_000, 30
#: Steps of one direction; what lies after a pause, or is equal, has none.
_STEPS = f"""
    SELECT k, ts, lag(ts) OVER w AS before,
        CASE WHEN ts - lag(ts) OVER w > {PAUSE_S * 1_000_000} THEN 0
             WHEN x > lag(x) OVER w THEN 1 WHEN x < lag(x) OVER w THEN -1 ELSE 0 END AS way
    FROM events WINDOW w AS (PARTITION BY k ORDER BY ts)"""
_LEGS = f"""
    SELECT k, leg, any_value(way) AS way, min(before) AS before, min(ts) AS first, max(ts) AS last, count(*) AS n
    FROM (SELECT *, sum(turn) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS leg
          FROM (SELECT *, CASE WHEN way = 0 OR way IS DISTINCT FROM lag(way) OVER (PARTITION BY k ORDER BY ts)
                          THEN 1 ELSE 0 END AS turn FROM ({_STEPS})))
    GROUP BY k, leg"""
#: Task to the pattern and the SQL of the same answer.
TASKS = {
    "sessions": (
        f"PATTERN SEQ STRICT OF KEY (T+ a) PAUSE {PAUSE_S} s MAXIMAL",
        f"""
        SELECT k, min(ts), max(ts), count(*)
        FROM (SELECT k, ts, sum(new) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session
              FROM (SELECT k, ts, CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) <= {PAUSE_S * 1_000_000}
                           THEN 0 ELSE 1 END AS new FROM events))
        GROUP BY k, session""",
    ),
    "rises": (
        f"PATTERN SEQ STRICT OF KEY (T a, T+ b) WHERE b.x > PREV(b.x) PAUSE {PAUSE_S} s OUTERMOST",
        f"SELECT k, before, last, n + 1 FROM ({_LEGS}) WHERE way = 1",
    ),
    "valleys": (
        "PATTERN SEQ STRICT OF KEY (T a, T+ b, T+ c) WHERE b.x < PREV(b.x) AND c.x > PREV(c.x) "
        f"PAUSE {PAUSE_S} s OUTERMOST",
        f"""
        SELECT k, before, up_last, n + up_n + 1
        FROM (SELECT *, lead(way) OVER v AS up, lead(last) OVER v AS up_last, lead(n) OVER v AS up_n
              FROM ({_LEGS}) WINDOW v AS (PARTITION BY k ORDER BY leg))
        WHERE way = -1 AND up = 1""",
    ),
}


def events(rows: int, keys: int) -> pa.Table:
    """Events of one type on one day, no two at one time, in their order."""
    draw = np.random.default_rng(1)
    ts = np.sort(draw.choice(DAY_US // 1_000, rows, replace=False)) * 1_000 if rows <= 5_000_000 else (
        np.arange(rows) * (DAY_US // rows) + draw.integers(0, DAY_US // rows, rows))  # fmt: skip
    numbers = np.arange(rows)
    return pa.table(
        {
            "event_id": pa.array(numbers).cast(pa.string()),
            "type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["T"])),
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
            "k": pa.array(draw.integers(0, keys, rows)),
            "x": pa.array(draw.normal(size=rows).round(3)),
        }
    )


def searched(task: str, table: pa.Table) -> np.ndarray:
    """Key, first time, last time and size of each match of the pattern."""
    from chainlake.cep import compile_pattern, find
    from chainlake.definitions.derived import Series

    pattern = compile_pattern(TASKS[task][0], series=Series("k"))
    key = table["k"].to_numpy()
    found = []
    for batch in find(pattern, table):
        size = sum((np.diff(offsets) for offsets, _ in batch.kleene.values()), np.zeros(batch.n, np.int64))
        some = batch.single["a"] if "a" in batch.single else batch.kleene["a"][1][batch.kleene["a"][0][:-1]]
        found.append(np.stack([key[some], batch.start_us, batch.end_us, size + len(batch.single)]))
    return np.concatenate([np.zeros((4, 0), np.int64), *found], axis=1)


def selected(task: str, table: pa.Table) -> np.ndarray:
    """The same of DuckDB's rows."""
    import duckdb

    con = duckdb.connect()
    con.execute("SET threads = 1")
    ts = table["ts"].cast(pa.int64())
    con.register("events", pa.table({"ts": ts, "k": table["k"], "x": table["x"]}))
    rows = con.execute(TASKS[task][1]).to_arrow_table()
    return np.stack([column.cast(pa.int64()).to_numpy() for column in rows.columns])


def side(name: str, task: str, rows: int, keys: int) -> dict[str, float | str]:
    """One side of one task, in this process."""
    run = searched if name == "search" else selected
    run(task, events(1_000, 10))
    table = events(rows, keys)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, wall = time.process_time(), time.perf_counter()
    answer = run(task, table)
    spent, wall = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ordered = answer[:, np.lexsort(answer[::-1])]
    digest = blake2b(np.ascontiguousarray(ordered).tobytes(), digest_size=8).hexdigest()
    return {
        "cpu_s": round(spent, 2),
        "wall_s": round(wall, 2),
        "peak_mb": peak // 1024,
        "events_mb": before // 1024,
        "matches": answer.shape[1],
        "answer": digest,
    }


def main() -> int:
    """Run the tasks; 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--task", nargs="*", choices=sorted(TASKS), default=list(TASKS))
    parser.add_argument("--side", choices=["search", "duckdb"])
    asked = parser.parse_args()
    if asked.side is not None:
        print(json.dumps(side(asked.side, asked.task[0], asked.rows, max(asked.rows // 10_000, 1))))
        return 0
    differ = False
    for task in asked.task:
        found = {}
        for name in ("search", "duckdb"):
            command = [sys.executable, "-m", "benchmarks.runs", "--side", name, "--task", task]
            command += ["--rows", str(asked.rows)]
            found[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{task:9} {name:7} {json.dumps(found[name])}", flush=True)
        differ |= found["search"]["answer"] != found["duckdb"]["answer"]
        ratio = found["duckdb"]["cpu_s"] / max(found["search"]["cpu_s"], 0.01)
        print(f"{task:9} DuckDB takes {ratio:.1f} times the CPU seconds", flush=True)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
