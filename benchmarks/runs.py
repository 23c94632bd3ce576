"""Runs of neighbours, compared with other engines on one core: sessions, rises, V shapes, double bottoms, funnel.

Usage: ``python -m benchmarks.runs [--rows N] [--task NAME …] [--engine NAME …] [--python FILE] [--trino FOLDER]``, for
N events on one day, 10,000 of each key. Each engine runs in its own process on the same events, which lie in
memory in time order. CPU seconds and peak memory are printed; they leave out making the events, and a first run
of the engine on a few of them. The other engines give a row for each match with its key, first and last time and number
of events; the search also gives every event of each match. ClickHouse counts the matches of each key where it can, and
is compared with the counts of the search.

``duckdb`` and ``spark`` use window functions, ``trino`` uses MATCH_RECOGNIZE, and ``clickhouse`` (the package chdb)
sequenceCount. ``--python`` names a Python with the packages of benchmarks/requirements.txt, for clickhouse; ``--trino``
a folder with the jars of io.trino:trino-main and trino-memory, version 435, and their dependencies (it needs Java 17).
Exits with 1 if answers differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.processes import high_water_mb
from benchmarks.runs_sql import COUNTED, PAUSE_S, RECOGNIZED, WINDOWS

DAY_US = 86_400_000_000
TYPES = ["View", "Cart", "Buy", "Help"]
_V = "b.x < PREV(b.x) AND c.x > PREV(c.x)"
PATTERNS = {
    "sessions": f"PATTERN SEQ STRICT OF KEY (*+ a) PAUSE {PAUSE_S} s MAXIMAL",
    "rises": f"PATTERN SEQ STRICT OF KEY (* a, *+ b) WHERE b.x > PREV(b.x) PAUSE {PAUSE_S} s OUTERMOST",
    "valleys": f"PATTERN SEQ STRICT OF KEY (* a, *+ b, *+ c) WHERE {_V} PAUSE {PAUSE_S} s OUTERMOST",
    "bottoms": "PATTERN SEQ STRICT OF KEY (* a, *+ b, *+ c, *+ d, *+ e) "
    f"WHERE {_V} AND d.x < PREV(d.x) AND e.x > PREV(e.x) PAUSE {PAUSE_S} s OUTERMOST",
    "funnel": "PATTERN SEQ STRICT OF KEY (View a, Cart b, Buy c) WITHIN 1 d",
}


@dataclass(frozen=True)
class Asked:
    """An engine that has the events.

    Args:
        run: does the task.
        answer: makes the answer from the result, a row of numbers for each column; it is not timed.
    """

    run: Callable[[], Any]
    answer: Callable[[Any], np.ndarray]


def events(rows: int, keys: int) -> pa.Table:
    """Events of four types on one day, no two at the same time, in time order."""
    draw = np.random.default_rng(1)
    ts = np.sort(draw.choice(DAY_US // 1_000, rows, replace=False)) * 1_000 if rows <= 5_000_000 else (
        np.arange(rows) * (DAY_US // rows) + draw.integers(0, DAY_US // rows, rows))  # fmt: skip
    numbers = np.arange(rows)
    return pa.table(
        {
            "event_id": pa.array(numbers).cast(pa.string()),
            "type": pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, len(TYPES), rows, np.int32)), TYPES),
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
            "k": pa.array(draw.integers(0, keys, rows)),
            "x": pa.array(draw.normal(size=rows).round(3)),
        }
    )


def search(task: str, table: pa.Table) -> Asked:
    """Key, first time, last time and size of each match of the pattern."""
    from chainlake.cep.pattern import compile_pattern
    from chainlake.cep.search.find import find
    from chainlake.definitions.derived import Series

    pattern = compile_pattern(PATTERNS[task], series=Series("k"))
    key = table["k"].to_numpy()

    def run() -> np.ndarray:
        found = []
        for batch in find(pattern, table):
            size = sum((np.diff(offsets) for offsets, _ in batch.kleene.values()), np.zeros(batch.n, np.int64))
            some = batch.single["a"] if "a" in batch.single else batch.kleene["a"][1][batch.kleene["a"][0][:-1]]
            found.append(np.stack([key[some], batch.start_us, batch.end_us, size + len(batch.single)]))
        return np.concatenate([np.zeros((4, 0), np.int64), *found], axis=1)

    return Asked(run, lambda found: found)


def duckdb(task: str, table: pa.Table) -> Asked:
    """The same from DuckDB, by window functions."""
    import duckdb

    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("events", _plain(table))
    return Asked(lambda: con.sql(WINDOWS[task]).to_arrow_table(), _columns)


def clickhouse(task: str, table: pa.Table) -> Asked:
    """The number of matches of each key, from ClickHouse."""
    from chdb import session

    chdb = session.Session()
    chdb.query("CREATE DATABASE IF NOT EXISTS d")
    chdb.query(f"CREATE OR REPLACE TABLE d.events ENGINE = Memory AS SELECT * FROM file('{_file(table)}')")
    query = f"{COUNTED[task].replace('FROM events', 'FROM d.events')} SETTINGS max_threads = 1"
    return Asked(lambda: chdb.query(query, "Arrow").bytes(), lambda found: _columns(pa.ipc.open_file(found).read_all()))


def spark(task: str, table: pa.Table) -> Asked:
    """The same from Spark, by window functions; rows go to a file."""
    from pyspark.sql import SparkSession

    path = _file(table)
    builder = (
        SparkSession.builder.master("local[1]").config("spark.driver.memory", "6g").config("spark.ui.enabled", False)
    )
    session = builder.config("spark.sql.shuffle.partitions", 8).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.read.parquet(str(path)).cache().createOrReplaceTempView("events")
    session.sql("SELECT count(*) FROM events").collect()
    into = path.parent / "answer"
    return Asked(
        lambda: session.sql(WINDOWS[task]).write.mode("overwrite").parquet(str(into)),
        lambda _: _columns(pq.read_table(into)),
    )


def trino(jars: Path, task: str, table: pa.Table) -> Asked:
    """The same from Trino, by MATCH_RECOGNIZE; rows go to a table in memory."""
    jvm, folder, number = _trino(jars), Path(tempfile.mkdtemp()), len(table)
    for name, column in _plain(table).to_pydict().items():
        numbers = [TYPES.index(one) for one in column] if name == "type" else column
        np.array(numbers, "<f8" if name == "x" else "<i8").tofile(folder / name)
    jvm.asked(f"load {folder} events_{number}")
    (folder / "query.sql").write_text(RECOGNIZED[task].replace("{events}", f"events_{number}"))

    def answer(found: str) -> np.ndarray:
        jvm.asked(f"answer {found} {folder / 'answer'}")
        return np.fromfile(folder / "answer", ">i8").astype(np.int64).reshape(-1, 4).T

    def run() -> str:
        jvm.asked(f"run {folder / 'query.sql'} answer_{number}")
        return f"answer_{number}"

    return Asked(run, answer)


class Jvm:
    """A Java process that answers lines of input."""

    def __init__(self, jars: Path) -> None:
        place = tempfile.mkdtemp()
        source = Path(__file__).parent / "TrinoRuns.java"
        subprocess.run(["javac", "-d", place, "-cp", f"{jars}/*", str(source)], check=True)
        options = ["-Xmx5g", "-XX:+UseSerialGC", "-cp", f"{place}:{jars}/*", "TrinoRuns"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            ["java", *options], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        self.expect("ready")

    def asked(self, line: str) -> None:
        """Send a line and wait until it is done."""
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        self.expect("done")

    def expect(self, word: str) -> None:
        """Wait for a word on its own line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == word:
                return
        raise RuntimeError("Trino ended")


@cache
def _trino(jars: Path) -> Jvm:
    """One process for all calls, so that the few events of the first call warm it up."""
    return Jvm(jars)


ENGINES: dict[str, Callable[..., Asked]] = {one.__name__: one for one in (search, duckdb, clickhouse, spark, trino)}


def _plain(table: pa.Table) -> pa.Table:
    """The events in the form for the other engines."""
    return pa.table(
        {"k": table["k"], "ts": table["ts"].cast(pa.int64()), "type": table["type"].cast(pa.string()), "x": table["x"]}
    )


def _file(table: pa.Table) -> Path:
    path = Path(tempfile.mkdtemp()) / "events.parquet"
    pq.write_table(_plain(table), path)
    return path


def _columns(table: pa.Table) -> np.ndarray:
    return np.stack([column.cast(pa.int64()).to_numpy() for column in table.columns])


def _counted(found: np.ndarray) -> np.ndarray:
    """Keys and their numbers of matches, from rows of matches."""
    return np.stack(np.unique(found[0], return_counts=True))


def _digest(found: np.ndarray) -> str:
    ordered = found[:, np.lexsort(found[::-1])]
    return blake2b(np.ascontiguousarray(ordered).tobytes(), digest_size=8).hexdigest()


def _spent() -> float:
    """CPU seconds of this process and everything it started."""
    every = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return float(sum(times.user + times.system for times in (one.cpu_times() for one in every)))


def side(engine: str, task: str, rows: int, jars: Path) -> dict[str, Any]:
    """Measure one engine at one task, in this process."""
    make = partial(trino, jars) if engine == "trino" else ENGINES[engine]
    small = make(task, events(1_000, 10))
    small.answer(small.run())
    asked = make(task, events(rows, max(rows // 10_000, 1)))
    before = _spent()
    found = asked.run()
    spent = _spent() - before
    peak = sum(high_water_mb(one.pid) for one in [psutil.Process(), *psutil.Process().children(recursive=True)])
    answer = asked.answer(found)
    counts = answer[:, answer[1] > 0] if engine == "clickhouse" else _counted(answer)
    return {
        "cpu_s": round(spent, 2),
        "peak_mb": int(peak),
        "matches": int(counts[1].sum()),
        "answer": _digest(counts if engine == "clickhouse" else answer),
        "counts": _digest(counts),
    }


def main() -> int:
    """Run the tasks; returns 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--task", nargs="*", choices=sorted(PATTERNS), default=list(PATTERNS))
    parser.add_argument("--engine", nargs="*", choices=sorted(ENGINES), default=["search", "duckdb"])
    parser.add_argument("--python", default=sys.executable, help="runs clickhouse")
    parser.add_argument("--trino", type=Path, default=Path(), help="a folder with the jars of Trino")
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.side:
        print(json.dumps(side(asked.engine[0], asked.task[0], asked.rows, asked.trino)))
        return 0
    differ = False
    for task in asked.task:
        found: dict[str, Any] = {}
        for name in asked.engine:
            if name == "clickhouse" and task not in COUNTED:
                continue
            command = [asked.python if name == "clickhouse" else sys.executable, "-m", "benchmarks.runs", "--side"]
            command += ["--engine", name, "--task", task, "--rows", str(asked.rows)]
            command += ["--trino", str(asked.trino)]
            ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[name] = json.loads(ran.stdout.splitlines()[-1])
            ratio = found[name]["cpu_s"] / max(found.get("search", found[name])["cpu_s"], 0.01)
            print(f"{task:9} {name:10} {ratio:5.1f} x  {json.dumps(found[name])}", flush=True)
            what = "counts" if name == "clickhouse" else "answer"
            differ |= found[name][what] != found.get("search", found[name])[what]
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
