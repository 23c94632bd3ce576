"""Other engines on the question of ``benchmarks.kernel_streams``: SQL joins, automata, Esper and Flink."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.kernel_streams import QUERY, WINDOW_MS, Stream
from chainlake.cep.automata.simulate import simulate
from chainlake.cep.pattern import compile_pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The window between a and b follows from the other conditions, but stating it saves the joins most of their pairs.
JOIN = (
    "SELECT a.n AS a, b.n AS b, c.n AS c FROM A a, B b, C c WHERE a.ts < b.ts AND b.ts < c.ts AND c.ts <= a.ts + 60000 "
    "AND b.ts <= a.ts + 60000 AND a.price < b.price AND b.price < c.price"
)
#: Joins as a user would write them, by the order in which tables are joined: time is cut into bins of one window, and
#: two events can meet only in the same bin or in neighbouring ones. In the last join the optimizer chooses the order.
#: ``{back}`` and ``{ahead}`` make two rows of one, for its own bin and the one before or after.
BUCKETED = {
    "c b a": (
        "SELECT a.n AS a, cb.b, cb.c FROM (SELECT c.n AS c, c.ts AS cts, b.n AS b, b.ts AS bts, b.price AS bprice, "
        "{back:c.bin} AS j FROM (SELECT *, {back:bin} AS j FROM C) c JOIN B b ON b.bin = c.j AND b.ts < c.ts "
        "AND b.ts >= c.ts - 60000 AND b.price < c.price) cb "
        "JOIN A a ON a.bin = cb.j AND a.ts < cb.bts AND a.ts >= cb.cts - 60000 AND a.price < cb.bprice"
    ),
    "a b c": (
        "SELECT ab.a, ab.b, c.n AS c FROM (SELECT a.n AS a, a.ts AS ats, b.n AS b, b.ts AS bts, b.price AS bprice, "
        "{ahead:a.bin} AS j FROM (SELECT *, {ahead:bin} AS j FROM A) a JOIN B b ON b.bin = a.j AND b.ts > a.ts "
        "AND b.ts <= a.ts + 60000 AND b.price > a.price) ab "
        "JOIN C c ON c.bin = ab.j AND c.ts > ab.bts AND c.ts <= ab.ats + 60000 AND c.price > ab.bprice"
    ),
    "b a c": (
        "SELECT ab.a, ab.b, c.n AS c FROM (SELECT a.n AS a, a.ts AS ats, b.n AS b, b.ts AS bts, b.price AS bprice, "
        "{ahead:a.bin} AS j FROM (SELECT *, {back:bin} AS j FROM B) b JOIN A a ON a.bin = b.j AND b.ts > a.ts "
        "AND b.ts <= a.ts + 60000 AND b.price > a.price) ab "
        "JOIN C c ON c.bin = ab.j AND c.ts > ab.bts AND c.ts <= ab.ats + 60000 AND c.price > ab.bprice"
    ),
    "any": (
        "SELECT a.n AS a, b.n AS b, c.n AS c FROM A a JOIN (SELECT *, {back:bin} AS j FROM B) b ON b.j = a.bin "
        "JOIN (SELECT *, {back:bin} AS j FROM C) c ON c.j = a.bin WHERE a.ts < b.ts AND b.ts < c.ts "
        "AND c.ts <= a.ts + 60000 AND a.price < b.price AND b.price < c.price"
    ),
}
#: The longest time to wait for a peer, seconds.
PATIENCE_S = 120.0
#: Number of runs in a turn, if no run takes more than this many seconds.
_RUNS, _SLOW_S = 5, 0.5


def bucketed(order: str, two_rows: str) -> str:
    """A join of ``BUCKETED`` in a dialect; ``two_rows`` turns a list into rows, such as ``unnest([{}])``."""
    made = BUCKETED[order]
    for word, sign in (("back", "-"), ("ahead", "+")):
        made = re.sub(
            rf"\{{{word}:([\w.]+)\}}", lambda found, s=sign: two_rows.format(f"{found[1]}, {found[1]} {s} 1"), made
        )
    return made


def parts(made: Stream) -> dict[str, pa.Table]:
    """The events of each type: row number, ms, price, and bin of one window."""
    found = {}
    for k, name in enumerate("ABC"):
        rows = np.flatnonzero(made.kinds == k)
        ms = made.ms[rows]
        found[name] = pa.table({"n": rows, "ts": ms, "price": made.price[rows], "bin": ms // WINDOW_MS})
    return found


def duckdb_joins(made: Stream) -> Callable[[str], Callable[[], int | None]]:
    """Makes a function of a query that runs it in DuckDB on one thread and counts matches; None if out of time."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, part in parts(made).items():
        connection.register(f"part{name}", part)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM part{name}")

    def run(query: str) -> int | None:
        timer = threading.Timer(PATIENCE_S, connection.interrupt)
        timer.start()
        try:
            return sum(batch.num_rows for batch in connection.sql(query).to_arrow_reader(1 << 17))
        except duckdb.InterruptException:
            return None
        finally:
            timer.cancel()

    return lambda query: lambda: run(query)


@contextmanager
def spark() -> Iterator[SparkSession]:
    """A session on one core."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "3g")
    session = (
        builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
        .config("spark.log.level", "ERROR").getOrCreate()
    )  # fmt: skip
    yield session
    session.stop()


def spark_joins(session: SparkSession, made: Stream) -> Callable[[str], Callable[[], int | None]]:
    """Makes a function of a query that runs it in Spark on cached tables and counts matches; None if out of time."""
    for name, part in parts(made).items():
        frame = session.createDataFrame(part).cache()
        frame.createOrReplaceTempView(name)
        frame.count()

    def run(query: str) -> int | None:
        from py4j.protocol import Py4JJavaError

        timer = threading.Timer(PATIENCE_S, session.sparkContext.cancelAllJobs)
        timer.start()
        try:
            return int(session.sql(query).selectExpr("count(a + b + c)").collect()[0][0])
        except Py4JJavaError:
            if timer.is_alive():
                raise
            return None
        finally:
            timer.cancel()

    return lambda query: lambda: run(query)


def spent_by(session: SparkSession) -> Callable[[], float]:
    """A function for the CPU seconds of this process and the session's JVM so far."""
    jvm = psutil.Process(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]

    def spent() -> float:
        times = jvm.cpu_times()
        return time.process_time() + times.user + times.system

    return spent


def automaton(made: Stream, engine: str) -> int:
    """The number of matches of the event-by-event run of ``eager`` or ``chain``."""
    outcome = simulate(compile_pattern(QUERY), made.table(), engine=engine)
    return sum(1 for _ in outcome.matches(compile_pattern(QUERY), list(map(str, range(made.n)))))


@contextmanager
def csv_of(made: Stream) -> Iterator[Path]:
    """The stream as a file that the JVM peers read."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream.csv"
        with file.open("w", encoding="ascii") as out:
            out.write("id,type,ts,price,volume\n")
            for i in range(made.n):
                out.write(f"{i},{'ABC'[made.kinds[i]]},{made.ms[i]},{made.price[i]:.4f},100\n")
        yield file


def jvm(folder: Path, built: Path, engine: str, mode: str, file: Path) -> dict[str, float | None]:
    """The fastest repetition that a JVM peer reports; its wall time is None if it did not finish in time."""
    command = ["bash", str(folder / "run.sh"), engine, mode, str(file)]
    environment = {**os.environ, "PEERS_OUT": str(built)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        try:
            out, _ = process.communicate(timeout=2 * PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return {"wall": None, "matches": None}
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    runs = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {"wall": min(run["wall_s"] for run in runs), "matches": runs[0]["matches"]}


def in_turn(
    works: Mapping[str, Callable[[], int | None]], turns: int, seconds: float
) -> dict[str, dict[str, float | None]]:
    """``least`` of each work, in turn, so that all make the same number of runs, and other load slows all of them.

    A turn is some runs of the same work, so that it has warm caches, or a single run if the slowest takes long.

    Args:
        works: the works by name; one that does not finish in time drops out.
        turns: the least number of turns of each.
        seconds: the least number of seconds in all.
    """
    found = {name: least(work, 1) for name, work in works.items()}
    slowest = max(row["wall"] or 0.0 for row in found.values())
    runs = _RUNS if slowest < _SLOW_S else 1
    began, turn = time.perf_counter(), 0
    while turn < turns or time.perf_counter() - began < seconds:
        for name, row in found.items():
            if row["wall"] is not None:
                again = least(works[name], runs)
                if again["wall"] is not None:
                    again |= {by: min(t for t in (row[by], again[by]) if t is not None) for by in ("wall", "cpu")}
                found[name] = again
        turn += 1
    return found


def least(
    work: Callable[[], int | None], repeats: int, seconds: float = 0.0, spent: Callable[[], float] = time.process_time
) -> dict[str, float | None]:
    """Wall and CPU seconds, each the least of some runs, and their result; None if a run did not finish in time.

    Args:
        work: gives its number of matches, or None if it did not finish in time.
        repeats: the least number of runs.
        seconds: the least number of seconds, since a machine's speed changes from one tenth of a second to the next.
        spent: gives the CPU seconds so far.
    """
    walls: list[float] = []
    cpus: list[float] = []
    matches: int | None = None
    while len(walls) < repeats or sum(walls) < seconds:
        began, before = time.perf_counter(), spent()
        matches = work()
        cpus.append(spent() - before)
        walls.append(time.perf_counter() - began)
        if matches is None:
            return {"wall": None, "cpu": None, "matches": None}
    return {"wall": min(walls), "cpu": min(cpus), "matches": matches}
