"""The compiled kernel compared with the NumPy kernel, SQL joins, automata, Esper and Flink, on the peers' streams.

``python -m benchmarks.kernel [--streams small|middle|million|dense ...] [--orders] [--plain] [--spark] [--automata]
[--peers FOLDER --built FOLDER] [--json FILE]``

Pattern: ``SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 60 s``. Every engine must give the
exact number of matches, which is counted here in another way. Our kernels deliver every match as Arrow arrays of row
numbers. Everything runs on one core (``sched_setaffinity``); compiling, also of patterns, and the start of the JVM are
left out. CPU seconds (for Esper and Flink: wall) are the least of some runs. The joins by bins are those that a user of
SQL would write, in several orders; they and the compiled kernel take turns, equally often. ``--plain`` adds joins on
times alone. ``--peers`` names the folder with the peers' ``run.sh``, ``--built`` the one that ``run.sh build`` filled.
``--orders`` also times all binding orders. The exit code is 1 if a count is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import kernel_peers as peers
from benchmarks.kernel_peers import least
from benchmarks.kernel_streams import QUERY, STREAMS, WINDOW_MS, Stream, stream
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.values.arrow import whole_array

PATTERN = compile_pattern(QUERY)
#: Numbers of pairs of events in windows beyond which NumPy, joins by bins, plain joins or Flink's join take minutes.
MOST_NUMPY, MOST_BUCKETED, MOST_JOIN, MOST_FLINK = 7e8, 4e8, 2e7, 7e7
#: The least number of seconds for which each backend is run on a stream.
SECONDS = 1.5
#: The machine code and the joins by bins take turns: the least number of turns, and of seconds in all.
TURNS, TURNS_S = 7, 10.0


def ours(events: pa.Table, backend: str, order: tuple[str, ...] | None = None) -> tuple[int, Statistics]:
    """The number of matches of one run, and its statistics."""
    statistics = Statistics()
    n = 0
    for batch in find(PATTERN, events, backend=backend, order=order, statistics=statistics):
        arrays = [whole_array(rows) for rows in batch.single.values()]
        n += len(arrays[0])
    return n, statistics


def measured(made: Stream, args: argparse.Namespace, session: Any) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Each engine with its measurements."""
    events = made.table()
    pairs = made.n * made.rate * WINDOW_MS / 1000
    duckdb, sides = peers.duckdb_joins(made), {"compiled": lambda: ours(events, "compiled")[0]}
    for order in peers.BUCKETED if pairs <= MOST_BUCKETED else ():
        sides[f"duckdb bucketed, {order}"] = duckdb(peers.bucketed(order, "unnest([{}])"))
    ours(events, "compiled")
    yield from peers.in_turn(sides, TURNS, TURNS_S).items()
    if pairs <= MOST_NUMPY:
        yield "numpy", least(lambda: ours(events, "numpy")[0], 3, SECONDS)
    yield "compiled, eager order a b c", least(lambda: ours(events, "compiled", ("a", "b", "c"))[0], 3, SECONDS)
    if made.n <= 20_000 and args.automata:
        yield "eager automaton", least(lambda: peers.automaton(made, "eager"), 1)
        yield "chain automaton", least(lambda: peers.automaton(made, "chain"), 1)
    if pairs <= MOST_JOIN and args.plain:
        yield "duckdb join", least(duckdb(peers.JOIN), 1)
    if session is not None:
        spark, spent = peers.spark_joins(session, made), peers.spent_by(session)
        for order in peers.BUCKETED:
            query = peers.bucketed(order, "explode(array({}))")
            yield f"spark bucketed, {order}", least(spark(query), 5, SECONDS, spent)
        if made.n <= 20_000 and args.plain:
            yield "spark join", least(spark(peers.JOIN), 2, 0.0, spent)
    if args.peers is not None:
        with peers.csv_of(made) as file:
            yield "esper join", peers.jvm(args.peers, args.built, "esper", "join", file)
            if pairs <= MOST_FLINK:
                yield "flink join", peers.jvm(args.peers, args.built, "flink", "join", file)
            if made.n <= 20_000:
                yield "flink cep", peers.jvm(args.peers, args.built, "flink", "cep", file)


def show_orders(made: Stream) -> dict[str, float]:
    """Print and return the seconds of every order, and how the chosen one compares."""
    events = made.table()
    found: dict[str, float] = {}
    for order in permutations("abc"):
        ours(events, "compiled", order)
    for _ in range(5):
        for order in permutations("abc"):
            seconds = least(lambda order=order: ours(events, "compiled", order)[0], 1)["cpu"]
            name = "".join(order)
            found[name] = min(found.get(name, seconds), seconds)
    chosen = "".join(ours(events, "compiled")[1].order[0])
    print(f"    CPU seconds per order, chosen {chosen} ({found[chosen] / min(found.values()):.2f} of the best):",
          {order: round(seconds, 4) for order, seconds in found.items()}, flush=True)  # fmt: skip
    return found


def main(argv: list[str] | None = None) -> int:
    """Print a table per stream."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel", description=__doc__)
    parser.add_argument("--streams", choices=sorted(STREAMS), nargs="+", default=["small"])
    parser.add_argument("--orders", action="store_true")
    parser.add_argument("--automata", action="store_true", help="the event by event automata, too")
    parser.add_argument("--plain", action="store_true", help="self-joins without bins, too")
    parser.add_argument("--spark", action="store_true", help="Spark, too")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--built", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if (args.peers is None) != (args.built is None):
        parser.error("--peers and --built go together")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    results: dict[str, Any] = {}
    wrong = False
    with ExitStack() as stack:
        session = stack.enter_context(peers.spark()) if args.spark else None
        for n, share, rate in (one for name in args.streams for one in STREAMS[name]):
            made = stream(n, share, rate)
            exact = made.exact()
            statistics = ours(made.table(), "compiled")[1]
            print(f"{made.name}: {exact:,} matches, E {statistics.evaluations:,}, tested {statistics.tests:,}, order "
                  f"{' '.join(statistics.order[0])}", flush=True)  # fmt: skip
            rows = results[made.name] = {"exact": exact}
            for engine, row in measured(made, args, session):
                rows[engine] = row
                if row["wall"] is None:
                    print(f"  {engine:<28} not done in {peers.PATIENCE_S:.0f} s", flush=True)
                    continue
                wrong |= row["matches"] != exact
                by = "wall" if row.get("cpu") is None else "cpu"
                times = f"{row[by]:9.4f} s {by:<4} {row[by] / rows['compiled'][by]:9.1f} x"
                verdict = "" if row["matches"] == exact else " WRONG"
                print(f"  {engine:<28} {times}  {row['matches']:,}{verdict}", flush=True)
            if args.orders:
                rows["orders"] = show_orders(made)
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
