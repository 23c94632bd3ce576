"""Others on the question of ``benchmarks.kernel_streams``: SQL self-joins, the eager automaton, Esper and Flink."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.kernel_streams import QUERY, Stream
from chainlake.cep import compile_pattern
from chainlake.cep.automata.simulate import simulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The window between a and b follows from the others; said, it saves the joins most of their pairs.
JOIN = (
    "SELECT a.n AS a, b.n AS b, c.n AS c FROM A a, B b, C c WHERE a.ts < b.ts AND b.ts < c.ts AND c.ts <= a.ts + 60000 "
    "AND b.ts <= a.ts + 60000 AND a.price < b.price AND b.price < c.price"
)
#: Longer than this no peer is waited for.
PATIENCE_S = 120.0


def parts(made: Stream) -> dict[str, pa.Table]:
    """The events of each type: row number, ms, price."""
    found = {}
    for k, name in enumerate("ABC"):
        rows = np.flatnonzero(made.kinds == k)
        found[name] = pa.table({"n": rows, "ts": made.ms[rows], "price": made.price[rows]})
    return found


def duckdb_join(made: Stream) -> Callable[[], int | None]:
    """DuckDB's self-join on one thread, matches delivered as Arrow arrays; None if it was not done in time."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, part in parts(made).items():
        connection.register(f"part{name}", part)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM part{name}")

    def run() -> int | None:
        timer = threading.Timer(PATIENCE_S, connection.interrupt)
        timer.start()
        try:
            return sum(batch.num_rows for batch in connection.sql(JOIN).to_arrow_reader(1 << 17))
        except duckdb.InterruptException:
            return None
        finally:
            timer.cancel()

    return run


@contextmanager
def spark() -> Iterator[SparkSession]:
    """A session of one core."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "3g")
    session = (
        builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
        .config("spark.log.level", "ERROR").getOrCreate()
    )  # fmt: skip
    yield session
    session.stop()


def spark_join(session: SparkSession, made: Stream) -> Callable[[], int | None]:
    """Spark's self-join of cached tables; its matches are counted, not delivered. None if it was not done in time."""
    for name, part in parts(made).items():
        frame = session.createDataFrame(part).cache()
        frame.createOrReplaceTempView(name)
        frame.count()

    def run() -> int | None:
        from py4j.protocol import Py4JJavaError

        timer = threading.Timer(PATIENCE_S, session.sparkContext.cancelAllJobs)
        timer.start()
        try:
            return int(session.sql(JOIN).selectExpr("count(a + b + c)").collect()[0][0])
        except Py4JJavaError:
            if timer.is_alive():
                raise
            return None
        finally:
            timer.cancel()

    return run


def automaton(made: Stream, engine: str) -> int:
    """Matches of the event-order run of ``eager`` or ``chain``."""
    outcome = simulate(compile_pattern(QUERY), made.table(), engine=engine)
    return sum(1 for _ in outcome.matches(compile_pattern(QUERY), list(map(str, range(made.n)))))


@contextmanager
def csv_of(made: Stream) -> Iterator[Path]:
    """The stream as the file that the JVM peers read."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream.csv"
        with file.open("w", encoding="ascii") as out:
            out.write("id,type,ts,price,volume\n")
            for i in range(made.n):
                out.write(f"{i},{'ABC'[made.kinds[i]]},{made.ms[i]},{made.price[i]:.4f},100\n")
        yield file


def jvm(folder: Path, built: Path, engine: str, mode: str, file: Path) -> dict[str, float | None]:
    """The fastest repetition that a JVM peer reports; wall None if it was not done in time."""
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


def least(work: Callable[[], int | None], repeats: int, seconds: float = 0.0) -> dict[str, float | None]:
    """Wall seconds of the fastest of some runs, and what they gave; None if one was not done in time.

    Args:
        work: gives its number of matches, or None if it was not done in time.
        repeats: so many runs at least.
        seconds: and for so long: the machine's speed changes from one tenth of a second to the next.
    """
    walls: list[float] = []
    matches: int | None = None
    while len(walls) < repeats or sum(walls) < seconds:
        began = time.perf_counter()
        matches = work()
        walls.append(time.perf_counter() - began)
        if matches is None:
            return {"wall": None, "matches": None}
    return {"wall": min(walls), "matches": matches}
