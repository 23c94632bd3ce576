"""The best matches, found by the engine's strategies, by sorting all matches, and by row_number over a join in SQL.

``python -m benchmarks.topk --what days comparable constant streams dense pass billion``:

* ``days``: the ten best rises within ten minutes on each of ten days, with 50 keys
* ``comparable``: how many partial matches strategies A and C make
* ``constant``: what bounds cost when they cut nothing
* ``streams``, ``dense``: the ten best of the streams of ``benchmarks.kernel_streams``
* ``pass``: a million events with a million and with a billion matches, in one pass
* ``billion``: a million events of one day with a billion matches within a window, by bounds

It prints seconds of CPU time, the least of some runs, and the largest growth of memory, each in its own process.
SQL joins the events as they are, and by bins of one window as a user would help it, on tables in memory; a query that
does not finish in two minutes has no rows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.kernel_peers import JOIN, PATIENCE_S, bucketed, spark, spent_by
from benchmarks.kernel_streams import QUERY, WINDOW_MS, stream
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics

DAY = 86_400_000_000
#: Limits for streams with many matches.
LIMITS = "---\nlimits: {matches_per_day: 2000000000}\n---\n"
RISES = "PATTERN SEQ(Bar a, Bar b) WHERE a.key = b.key AND b.price > a.price WITHIN 10 min"
RISES_SQL = """
SELECT a.n, b.n FROM events a, events b
WHERE a.key = b.key AND b.ts > a.ts AND b.ts <= a.ts + 600000000 AND b.price > a.price
QUALIFY row_number() OVER (PARTITION BY b.ts // 86400000000 ORDER BY b.price - a.price DESC, a.n, b.n) <= 10
ORDER BY b.ts // 86400000000, b.price - a.price DESC, a.n, b.n
"""
#: The ten best of a join from the comparison of kernels.
TEN = """
SELECT a, b, c FROM (SELECT j.*, row_number() OVER (ORDER BY e.price - s.price DESC, j.a, j.b, j.c) AS place
FROM ({}) j JOIN A s ON s.n = j.a JOIN C e ON e.n = j.c) WHERE place <= 10 ORDER BY place
"""
JOINS = {
    engine: {"as it is": TEN.format(JOIN),
             **{f"by bins, {order}": TEN.format(bucketed(order, rows)) for order in ("c b a", "any")}}
    for engine, rows in (("DuckDB", "unnest([{}])"), ("Spark", "explode(array({}))"))
}  # fmt: skip
CHAIN = "PATTERN SEQ(A a, B b, C c, D d) WHERE b.y > a.y AND c.y > b.y AND d.y > c.y WITHIN 60 s"
LISTED = (
    "PATTERN D d WITHIN 60 s",
    "PATTERN SEQ(C c, D d) WHERE d.y > c.y WITHIN 60 s",
    "PATTERN SEQ(B b, C c, D d) WHERE c.y > b.y AND d.y > c.y WITHIN 60 s",
    CHAIN,
)


def bars(n: int) -> pa.Table:
    """Bars in time order, all at different times."""
    draw = np.random.default_rng(n)
    ts = np.sort(draw.choice(10 * DAY // 1000, n, replace=False)) * 1000
    return _table(ts, np.full(n, "Bar"), key=draw.integers(0, 50, n), price=draw.integers(0, 100_000, n) / 100)


def comparable(tail: bool) -> pa.Table:
    """12,000 events, one a second, types 45, 35, 15 and 5 %."""
    draw, n = np.random.default_rng(1), 12_000
    kinds = draw.choice(list("ABCD"), n, p=[0.45, 0.35, 0.15, 0.05])
    x = draw.pareto(1.5, n) if tail else draw.random(n)
    return _table(np.arange(n) * 1_000_000, kinds, x=x, y=draw.random(n))


def million(begins: int, *, seconds: float) -> pa.Table:
    """A million events over ``seconds``, ``begins`` of them of type A."""
    draw, n = np.random.default_rng(begins), 1_000_000
    kinds = np.full(n, "B")
    kinds[np.sort(draw.choice(n, begins, replace=False))] = "A"
    ts = np.arange(n) * int(seconds * 1_000_000) // n
    return _table(ts, kinds, x=draw.integers(0, 100_000, n) / 100)


def _table(ts: np.ndarray, kinds: np.ndarray, **columns: np.ndarray) -> pa.Table:
    n = len(ts)
    return pa.table({
        "event_id": [f"{i:08}" for i in range(n)], "type": pa.array(kinds).dictionary_encode(),
        "ts": pa.array(ts, pa.timestamp("us", tz="UTC")), **columns, "n": np.arange(n),
    })  # fmt: skip


@dataclass(frozen=True, eq=False)
class Question:
    """A question to the engines.

    Args:
        events: makes the events.
        query: the query without the ranking.
        ranking: the ranking.
        strategies: strategies of the engine.
        sql: the same in SQL, by engine and kind of join.
        score: names whose prices give the score, for sorting all matches; None: this is not done.
        runs: number of runs, of which the least counts.
    """

    events: Callable[[], pa.Table]
    query: str
    ranking: str
    strategies: Sequence[str] = ("A", "auto")
    sql: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    score: tuple[str, str] | None = None
    runs: int = 3


def _stream(share: float, rate: float = 5.0, n: int = 200_000) -> Callable[[], pa.Table]:
    def events() -> pa.Table:
        table = stream(n, share, rate).table()
        return table.append_column("n", pa.array(np.arange(len(table))))

    return events


BEST = "RANK BY MAX(c.price - a.price) TOP 10 PER ALL"
QUESTIONS: dict[str, dict[str, Question]] = {
    "days": {f"{n:,} bars": Question(lambda n=n: bars(n), RISES, "RANK BY MAX(b.price - a.price) TOP 10 PER DAY",
                                     sql={"DuckDB": {"as it is": RISES_SQL}}, score=("a", "b"))
             for n in (120_000, 600_000)},
    "constant": {name: Question(_stream(0.10, rate, n), QUERY, f"RANK BY {score} TOP 10 PER ALL", ("A", "C"), runs=runs)
                 for of, n, rate, runs in (("20,000", 20_000, 5.0, 30), ("dense", 200_000, 50.0, 3))
                 for name, score in ((of, "MAX(a.price * 0 + c.price * 0)"),
                                     (f"{of}, but for a few", "MAX(Least(c.price, 95))"))},
    "streams": {f"{share:.0%} C": Question(_stream(share), QUERY, BEST, sql=JOINS, score=("a", "c"))
                for share in (0.01, 0.10, 0.33)},
    "dense": {"dense": Question(_stream(0.10, 50.0), QUERY, BEST, score=("a", "c"))},
    "pass": {f"{half:,} A": Question(lambda half=half: million(half, seconds=86_000), "PATTERN SEQ(A a, B b)",
                                              "RANK BY MAX(a.x + b.x) TOP 10 PER ALL", strategies=("B",))
             for half in (2, 2_000)},
    "billion": {"window": Question(lambda: million(500_000, seconds=86_000), "PATTERN SEQ(A a, B b) WITHIN 344 s",
                                   "RANK BY MAX(b.x - a.x) TOP 10 PER DAY", strategies=("C",), runs=1)},
}  # fmt: skip


@cache
def compiled(question: Question, ranking: str) -> Pattern:
    """The pattern of a question, which remembers what was chosen once."""
    return compile_pattern(f"{'' if question.query.startswith('---') else LIMITS}{question.query} {ranking}")


def engine(question: Question, events: pa.Table, strategy: str) -> tuple[list[Any], Any]:
    """The best rows, and how they were found."""
    pattern, statistics = compiled(question, question.ranking), Statistics()
    names = [name.name for name in pattern.names]
    options = SearchOptions(strategy=strategy)
    batches = find(pattern, events, backend="compiled", statistics=statistics, options=options)
    rows = [list(row) for one in batches for row in zip(*(one.single[name].tolist() for name in names), strict=True)]
    return rows, statistics.best


def sorted_list(question: Question, events: pa.Table) -> tuple[list[Any], Any]:
    """The best rows by listing all matches with the engine and sorting them."""
    assert question.score is not None, "asked of those that have one"
    price, (first, last) = events["price"].to_numpy(), question.score
    pattern = compiled(question, "")
    names = [name.name for name in pattern.names]
    found = list(find(pattern, events, backend="compiled"))
    rows = {name: np.concatenate([batch.single[name] for batch in found]) for name in names}
    day = np.concatenate([batch.end_us for batch in found]) // DAY if "DAY" in question.ranking else np.zeros(1)
    day = np.broadcast_to(day, (len(rows[first]),))
    order = np.lexsort([*(rows[name] for name in reversed(names)), price[rows[first]] - price[rows[last]], day])
    begins = np.flatnonzero(np.diff(day[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    best = order[rank < 10]
    return [[int(rows[name][i]) for name in names] for i in best], len(order)


def sides(events: pa.Table) -> dict[str, pa.Table]:
    """The events for SQL, and those of each type with times in ms and bins of one window."""
    us = events["ts"].cast(pa.int64()).to_numpy()
    columns = events.drop_columns(["ts", "type"])
    found = {"events": columns.append_column("ts", pa.array(us))}
    for kind in "ABC":
        mine = pc.equal(events["type"].cast(pa.string()), kind)
        ms = us[mine.to_numpy()] // 1000
        of = columns.filter(mine).append_column("ts", pa.array(ms))
        found[kind] = of.append_column("bin", pa.array(ms // WINDOW_MS))
    return found


def duckdb(question: Question, events: pa.Table, how: str) -> tuple[list[Any] | None, float]:
    """The rows of a DuckDB query on one thread, None if it did not finish in time, and its seconds."""
    import duckdb as sql

    connection = sql.connect(config={"threads": 1})
    for name, table in sides(events).items():
        connection.register(f"arrow_{name}", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_{name}")
    began, timer = time.process_time(), threading.Timer(PATIENCE_S, connection.interrupt)
    timer.start()
    try:
        rows = [list(row) for row in connection.execute(question.sql["DuckDB"][how]).fetchall()]
    except sql.InterruptException:
        rows = None
    timer.cancel()
    return rows, time.process_time() - began


def in_spark(question: Question, events: pa.Table, how: str) -> tuple[list[Any] | None, float]:
    """The rows of a Spark query on one core, None if it did not finish in time, and the seconds of driver and JVM.

    The least of five runs counts, since the first ones are slow.
    """
    from py4j.protocol import Py4JJavaError

    with spark() as session:
        for name, table in sides(events).items():
            frame = session.createDataFrame(table).cache()
            frame.createOrReplaceTempView(name)
            frame.count()
        spent, least, rows = spent_by(session), float("inf"), None
        for _ in range(5):
            began, timer = spent(), threading.Timer(PATIENCE_S, session.sparkContext.cancelAllJobs)
            timer.start()
            try:
                rows = [list(row) for row in session.sql(question.sql["Spark"][how]).collect()]
            except Py4JJavaError:
                if timer.is_alive():
                    raise
                return rows, least if rows else spent() - began
            timer.cancel()
            least = min(least, spent() - began)
    return rows, least


def one(what: str, name: str, *hows: str) -> None:
    """Print the costs of one or several ways, which take turns."""
    question = QUESTIONS[what][name]
    events, least, made = question.events(), dict.fromkeys(hows, float("inf")), {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for turn in range(question.runs + 1):  # the first one loads the kernel
        for how in hows:
            side, _, join = how.partition(": ")
            if join:
                if not turn:
                    made[how], least[how] = (duckdb if side == "DuckDB" else in_spark)(question, events, join)
                continue
            began = time.process_time()
            made[how] = sorted_list(question, events) if how == "sorted" else engine(question, events, how)
            least[how] = min(least[how], time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for how in hows:
        rows, said = made[how] if ": " not in how else (made[how], None)
        digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:8]
        print(json.dumps({"what": what, "of": name, "how": how, "rows": len(rows or ()), "cpu_s": round(least[how], 4),
                          "grown_MiB": (peak - before) // 1024, "peak_MiB": peak // 1024, "digest": digest,
                          "found": said if how == "sorted" or said is None else asdict(said)}))  # fmt: skip


def partial_matches() -> None:
    """Print the numbers of partial matches, including whole ones, that strategies A and C make."""
    for tail in (False, True):
        events = comparable(tail)
        listed = sum(batch.n for text in LISTED for batch in find(compile_pattern(text), events))
        for period in ("ALL", "BUCKET 1000 s BY LAST"):
            query = f"{CHAIN} RANK BY MAX(a.x + b.x + c.x + d.x) TOP 10 PER {period}"
            for backend in ("numpy", "compiled"):
                statistics = Statistics()
                rows = sum(one.n for one in find(compile_pattern(query), events, order="dcba", backend=backend,
                                                 statistics=statistics))  # fmt: skip
                assert statistics.best is not None, "of a ranked pattern"
                made = statistics.best.partial + statistics.best.complete
                print(json.dumps({"heavy tail": tail, "period": period, "backend": backend, "rows": rows, "A": listed,
                                  "C": made,
                                  "share": round(made / listed, 3)}), flush=True)  # fmt: skip


def main() -> None:
    """Run each measurement in its own process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topk", description=__doc__)
    parser.add_argument("--what", nargs="+", choices=("comparable", *QUESTIONS), default=["comparable", *QUESTIONS])
    parser.add_argument("--one", nargs="+", metavar="WORD", help="what, of what, and how, in this process")
    args = parser.parse_args()
    if args.one:
        one(*args.one)
        return
    for what in args.what:
        if what == "comparable":
            partial_matches()
            continue
        for name, question in QUESTIONS[what].items():
            joins = [f"{side}: {join}" for side, every in question.sql.items() for join in every]
            more = [*(["sorted"] if question.score else []), *joins]
            # A difference of a few percent only shows if the ways take turns.
            turns = [question.strategies] if what == "constant" else [(how,) for how in question.strategies]
            for hows in (*turns, *((how,) for how in more)):
                command = [sys.executable, "-m", "benchmarks.topk", "--one", what, name, *hows]
                print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
