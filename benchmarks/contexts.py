"""Selection and consumption compared with listing all matches, SQL and Esper, on the kernel's streams.

``python -m benchmarks.contexts [--streams million dense ...] [--esper FOLDER] [--json FILE]``

For ``SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 60 s``, each policy and the listing of all
matches are timed in turn on one core: CPU seconds (for Esper: wall), the least of some runs, without compiling, and the
peak of memory beyond what the events take. The rows of ``first`` and ``last`` are compared with those of a self-join
with window functions in DuckDB, and those of policies that use events up with the choice among all matches. The
self-join is timed as the question reads and as one who knows DuckDB would help it, with time cut into bins; what is
not done within ``--patience`` seconds has taken at least these. For
``SEQ(A a, B b)``, ``last`` is compared with an ASOF join, or with a self-join where a condition rules that out, and
``continuous`` with Esper. ``--esper`` names a folder with Esper's jars; it needs Java 17. The exit code is 1 if rows
differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.kernel_peers import PATIENCE_S, csv_of, least, parts
from benchmarks.kernel_streams import QUERY, STREAMS, Stream, stream
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics

LIMITS, THREE = QUERY.split("PATTERN ")
TWO = "SEQ(A a, B b) WITHIN 60 s"
CROSSED = "SEQ(A a, B b) WHERE a.price < b.price WITHIN 60 s"
POLICIES = {
    "first": "SELECT first",
    "last": "SELECT last",
    "chronicle": "CONTEXT chronicle",
    "continuous": "CONTEXT continuous",
    "cumulative": "CONTEXT cumulative",
}
#: Up to this many matches, rows are checked by choosing among all matches.
MOST_CHOSEN = 2_000_000
#: Up to this many pairs of events in windows, SQL joins them.
MOST_JOINED = 4e8
#: Up to this many events, Esper finishes the policy on three events in a few minutes.
MOST_ESPER = 20_000
#: The self-joins as a user would write them: time is cut into bins of one window.
SELF_JOIN = {
    TWO: (
        "SELECT a.n AS a, b.n AS b FROM (SELECT *, unnest([bin, bin - 1]) AS j FROM B) b JOIN A a ON a.bin = b.j "
        "AND a.ts < b.ts AND a.ts >= b.ts - 60000 {where} "
        "QUALIFY row_number() OVER (PARTITION BY b.n ORDER BY {order}) = 1"
    ),
    THREE: (
        "SELECT a.n AS a, cb.b, cb.c FROM (SELECT c.n AS c, c.ts AS cts, b.n AS b, b.ts AS bts, b.price AS bprice, "
        "unnest([c.bin, c.bin - 1]) AS j FROM (SELECT *, unnest([bin, bin - 1]) AS j FROM C) c JOIN B b "
        "ON b.bin = c.j AND b.ts < c.ts AND b.ts >= c.ts - 60000 AND b.price < c.price) cb JOIN A a ON a.bin = cb.j "
        "AND a.ts < cb.bts AND a.ts >= cb.cts - 60000 AND a.price < cb.bprice "
        "QUALIFY row_number() OVER (PARTITION BY cb.c ORDER BY {order}) = 1"
    ),
}
#: The same as the question reads, without bins.
PLAIN = {
    TWO: (
        "SELECT a.n AS a, b.n AS b FROM A a JOIN B b ON a.ts < b.ts AND a.ts >= b.ts - 60000 {where} "
        "QUALIFY row_number() OVER (PARTITION BY b.n ORDER BY {order}) = 1"
    ),
    THREE: (
        "SELECT a.n AS a, cb.b, c.n AS c FROM A a JOIN (SELECT n AS b, ts, price FROM B) cb ON a.ts < cb.ts "
        "AND cb.ts <= a.ts + 60000 AND a.price < cb.price JOIN C c ON cb.ts < c.ts AND c.ts <= a.ts + 60000 "
        "AND cb.price < c.price QUALIFY row_number() OVER (PARTITION BY c.n ORDER BY {order}) = 1"
    ),
}
ASOF = "SELECT a.n AS a, b.n AS b FROM B b ASOF JOIN A a ON b.ts > a.ts WHERE a.ts >= b.ts - 60000"
#: Esper's own way of using events up. Its timers end slightly early, so a millisecond is added.
ESPER = {
    "chronicle": (THREE, "abc", (
        "select a, b, c from pattern @DiscardPartialsOnMatch @SuppressOverlappingMatches [every a=A -> "
        "(every b=B(price > a.price) -> every c=C(price > b.price)) where timer:within(60 seconds 1 milliseconds)]")),
    "continuous": (CROSSED, "ab", (
        "select a, b from pattern [every a=A -> b=B(price > a.price) where timer:within(60 seconds 1 milliseconds)]")),
}  # fmt: skip


def searched(query: str, events: pa.Table, mode: str = "auto") -> tuple[dict[str, np.ndarray], Statistics]:
    """The rows bound to each name (or all rows of its sets), in the order in which matches are published."""
    statistics = Statistics()
    pattern = compile_pattern(f"{LIMITS}PATTERN {query}")
    columns: dict[str, list[np.ndarray]] = {name.name: [] for name in pattern.names}
    backend = "compiled" if mode == "auto" else "auto"
    for batch in find(pattern, events, backend=backend, statistics=statistics, options=SearchOptions(mode=mode)):
        for name, found in columns.items():
            found.append(batch.single[name] if name in batch.single else batch.kleene[name][1])
    return {name: np.concatenate([np.zeros(0, np.int64), *found]) for name, found in columns.items()}, statistics


def runner(query: str, events: pa.Table) -> Callable[[], int]:
    """A function that runs a query on machine code and counts its matches, as Arrow arrays."""
    pattern = compile_pattern(f"{LIMITS}PATTERN {query}")

    def run() -> int:
        n = 0
        for batch in find(pattern, events, backend="compiled"):
            rows = batch.single.values() or [flat for _, flat in batch.kleene.values()]
            n += batch.n if [pa.array(one) for one in rows] else 0
        return n

    return run


def peak_mb(run: Callable[[], int]) -> float:
    """The peak of this process's memory during a run beyond what it held before, in MB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    run()
    return (_status("VmHWM") - before) / 1024


def _status(word: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(word)))


def same(rows: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> bool:
    """Whether the same rows were found, in whatever order."""

    def ordered(found: dict[str, np.ndarray]) -> np.ndarray:
        table = np.stack([np.asarray(found[name], np.int64) for name in sorted(found)])
        return table[:, np.lexsort(table)]

    return len(rows["a"]) == len(others["a"]) and bool((ordered(rows) == ordered(others)).all())


class Duck:
    """DuckDB on one thread, with a table per type."""

    def __init__(self, made: Stream) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        for name, part in parts(made).items():
            self._connection.register(f"part{name}", part)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM part{name}")

    def rows(self, query: str) -> dict[str, np.ndarray]:
        """The columns that a query gives."""
        return dict(self._connection.sql(query).fetchnumpy())

    def runner(self, query: str) -> Callable[[], int]:
        """A function that runs a query and counts its rows, as Arrow arrays."""
        return lambda: sum(batch.num_rows for batch in self._connection.sql(query).to_arrow_reader(1 << 17))

    def patiently(self, query: str, seconds: float) -> tuple[float, dict[str, np.ndarray] | None]:
        """CPU seconds of one run, and its columns; None if it was not done after some seconds by the clock."""
        import duckdb

        timer, began = threading.Timer(seconds, self._connection.interrupt), time.process_time()
        timer.start()
        try:
            found = self.rows(query)
        except duckdb.InterruptException:
            return time.process_time() - began, None
        finally:
            timer.cancel()
        return time.process_time() - began, found


def esper(folder: Path, made: Stream, statement: str, names: str) -> tuple[float, dict[str, np.ndarray]] | None:
    """The wall seconds of the faster of two runs, and the rows; None if it did not finish in time."""
    with csv_of(made) as file, tempfile.TemporaryDirectory() as place:
        rows = Path(place) / "rows.csv"
        source = Path(__file__).parent / "EsperPattern.java"
        subprocess.run(["javac", "-cp", f"{folder}/*", "-d", place, str(source)], check=True)
        options = ["-Xmx8g", "-XX:+UseSerialGC", "-cp", f"{place}:{folder}/*", "EsperPattern"]
        command = ["java", *options, str(file), statement, ",".join(names), str(rows), "2"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3 * PATIENCE_S)
        except subprocess.TimeoutExpired:
            return None
        walls = [json.loads(line)["wall_s"] for line in done.stdout.splitlines()]
        found = np.loadtxt(rows, np.int64, delimiter=",", ndmin=2).reshape(-1, len(names))
        return min(walls), {name: found[:, i] for i, name in enumerate(names)}


class Report:
    """Prints rows of a table, and keeps them.

    Args:
        patience: after how many seconds a peer that is not done is stopped.
    """

    def __init__(self, patience: float) -> None:
        self.results: dict[str, Any] = {}
        self.patience = patience
        self.wrong = False

    def begin(self, title: str) -> None:
        """Begin the rows of a stream."""
        self.rows = self.results.setdefault(title, {})
        print(title, flush=True)

    def add(self, what: str, seconds: float, base: float, verdict: bool | None, **more: Any) -> None:
        """Add a measurement, with its seconds compared with ``base``."""
        self.wrong |= verdict is False
        self.rows[what] = {"seconds": seconds, "times": seconds / base, "same": verdict, **more}
        said = {None: "", True: "same rows", False: "OTHER ROWS"}[verdict]
        notes = ", ".join(f"{name} {value:,.0f}" for name, value in more.items())
        print(f"  {what:<44} {seconds:9.4f} s {seconds / base:8.2f} x  {notes}  {said}", flush=True)


def three(made: Stream, duck: Duck, jars: Path | None, report: Report) -> None:
    """Measure policies on three events, and listing all their matches."""
    events, pairs = made.table(), made.n * made.rate * 60
    run_all = runner(THREE, events)
    matches = run_all()
    runs = {name: runner(f"{THREE} {tail}", events) for name, tail in POLICIES.items()}
    counts = {name: run() for name, run in runs.items()}
    took = {"all matches": 1e9, **dict.fromkeys(runs, 1e9)}
    for _ in range(5):
        for name, run in (("all matches", run_all), *runs.items()):
            took[name] = min(took[name], least(run, 2)["cpu"] or 1e9)
    report.add("all matches", took["all matches"], took["all matches"], None, rows=matches, MB=peak_mb(run_all))
    for name, run in runs.items():
        rows, statistics = searched(f"{THREE} {POLICIES[name]}", events)
        verdict, other = None, None
        if name in ("first", "last") and pairs <= MOST_JOINED:
            order = "a.n, cb.b" if name == "first" else "cb.b DESC, a.n DESC"
            other = SELF_JOIN[THREE].format(order=order)
            verdict = same(rows, duck.rows(other))
        elif matches <= MOST_CHOSEN:
            plain = searched(f"{THREE} {POLICIES[name]}", events, "P")[0]
            verdict = all(np.array_equal(rows[one], plain[one]) for one in rows)
        mode = statistics.modes[-1][0]
        report.add(
            f"{name} (mode {mode})", took[name], took["all matches"], verdict, rows=counts[name], MB=peak_mb(run)
        )
        if other is not None:
            _beside_joins(duck, THREE, {"order": order}, rows, took[name], report)
        if jars is not None and name in ESPER and ESPER[name][0] == THREE and made.n <= MOST_ESPER:
            _beside_esper(jars, made, ESPER[name], rows, took[name], report)


def two(made: Stream, duck: Duck, jars: Path | None, report: Report) -> None:
    """Measure policies on two events, and what SQL and Esper have for them."""
    events, crossed = made.table(), {"where": "AND a.price < b.price", "order": "a.n DESC"}
    cases = [("last of two", f"{TWO} SELECT last", ASOF, "ASOF join"),
             ("last of two, compared", f"{CROSSED} SELECT last", SELF_JOIN[TWO].format(**crossed), ""),
             ("continuous of two, compared", f"{CROSSED} CONTEXT continuous", None, "")]  # fmt: skip
    for name, query, other, peer in cases:
        run = runner(query, events)
        run()
        seconds = least(run, 7)["cpu"] or 0.0
        rows, _ = searched(query, events)
        verdict = None if other is None else same(rows, duck.rows(other))
        report.add(name, seconds, seconds, verdict, rows=len(rows["a"]), MB=peak_mb(run))
        if peer and other is not None:
            report.add(f"  {peer}", least(duck.runner(other), 2)["cpu"] or 0.0, seconds, None)
        elif other is not None:
            _beside_joins(duck, TWO, crossed, rows, seconds, report)
        elif jars is not None:
            _beside_esper(jars, made, ESPER["continuous"], rows, seconds, report)


def _beside_joins(
    duck: Duck, query: str, filled: dict[str, str], rows: dict[str, np.ndarray], seconds: float, report: Report
) -> None:
    """Measure the self-joins with window functions: with bins, and as the question reads."""
    binned = duck.runner(SELF_JOIN[query].format(**filled))
    report.add("  self-join, window function, bins", least(binned, 2)["cpu"] or 0.0, seconds, None)
    spent, found = duck.patiently(PLAIN[query].format(**filled), report.patience)
    said = "self-join, window function" if found is not None else "self-join, window function, NOT DONE after"
    report.add(f"  {said}", spent, seconds, None if found is None else same(rows, found))


def _beside_esper(
    jars: Path, made: Stream, case: tuple[str, str, str], rows: dict[str, np.ndarray], seconds: float, report: Report
) -> None:
    _, names, statement = case
    found = esper(jars, made, statement, names)
    if found is None:
        print("    Esper was not done in time", flush=True)
        return
    equal = same(rows, found[1])
    report.add(f"  Esper (wall), {'the same' if equal else 'other'} rows", found[0], seconds, None,
               rows=len(found[1]["a"]))  # fmt: skip


def streams(names: list[str]) -> Iterator[Stream]:
    """The streams of some sizes."""
    for name in names:
        for n, share, rate in STREAMS[name]:
            yield stream(n, share, rate)


def main(argv: list[str] | None = None) -> int:
    """Print a table per stream."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contexts", description=__doc__)
    parser.add_argument("--streams", choices=sorted(STREAMS), nargs="+", default=["million"])
    parser.add_argument("--esper", type=Path, help="a folder with Esper's jars")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds after which a self-join is stopped")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    report = Report(args.patience)
    for made in streams(args.streams):
        report.begin(made.name)
        duck = Duck(made)
        three(made, duck, args.esper, report)
        two(made, duck, args.esper, report)
    if args.json is not None:
        args.json.write_text(json.dumps(report.results, indent=1), encoding="utf-8")
    return int(report.wrong)


if __name__ == "__main__":
    sys.exit(main())
