"""Conditions that cost milliseconds, on one and two processes, compared with a router that looks into events.

``python -m benchmarks.heavy [--seconds 12] [--ms 2 5.5 29] [--json FILE]``

The events are stories about many symbols, one of which has 40 % of them. The pattern is ``SEQ(Story a, Story b)`` with
one symbol, two sources and similar strings; similarity is decided by a function that burns ``--ms`` milliseconds of CPU
for each pair. There are as many stories as make all pairs together take ``--seconds`` of CPU. The work is divided as in
a run of ``detect``, and done by one process, then by two. Then three stories are looked for, each two of which are
alike, so that tasks need the same pairs. The *router* is one process that decides by the function, for each event, to
which of the open windows it belongs.

It prints wall-clock seconds, the load of the machine, CPU seconds of each task of each stage and outside tasks, pairs
evaluated, how often an event was looked at, and the seconds of the longest task as a multiple of the median's. ``by the
clock`` is meaningful only on an idle machine; ``by CPU`` is what two free cores would give: all CPU seconds, divided by
those of the busier core if each core takes the next task of a stage as soon as it is free. The exit code is 1 if rows
differ, more pairs were evaluated than there are candidates, or the ratio by CPU is below 1.8.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle

from chainlake.cep.language.declared.function import Code
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.days import Days
from chainlake.detect.division.counts import Counting
from chainlake.detect.prepared import prepare
from chainlake.detect.stage import Search, stage
from chainlake.lake.store.event_files import EventFiles
from chainlake.schemas.matches import matches_table

DAY = date(2024, 1, 1)
WINDOW_S = 600
PATTERN = """---
functions: {{alike: {{call: 'burn:alike', cost: {cost}, symmetric: true, longest: 10 min}}}}
---
PATTERN SEQ(Story a, Story b)
WHERE a.symbol = b.symbol AND a.source != b.source AND alike(a.words, b.words) >= 0.5
WITHIN {window} s
"""

THREE = """---
functions: {{alike: {{call: 'burn:alike', cost: {cost}, symmetric: true, longest: 10 min}}}}
---
PATTERN SEQ(Story a, Story b, Story c)
WHERE a.symbol = b.symbol AND a.source != b.source AND alike(a.words, b.words) >= 0.5
  AND b.symbol = c.symbol AND b.source != c.source AND alike(b.words, c.words) >= 0.5
  AND a.source != c.source AND alike(a.words, c.words) >= 0.5
WITHIN {window} s
"""


@dataclass(frozen=True)
class Burn:
    """The share of letters that two strings have in common, computed slowly.

    Args:
        ms: CPU milliseconds for each pair.
    """

    ms: float

    def __call__(self, ones: np.ndarray, others: np.ndarray) -> np.ndarray:
        found = np.empty(len(ones))
        for at, (one, other) in enumerate(zip(ones.tolist(), others.tolist(), strict=True)):
            until = time.process_time() + self.ms / 1000
            while time.process_time() < until:
                pass
            found[at] = len({*one} & {*other}) / len({*one} | {*other})
        return found


def _worked(given: tuple[bytes, Any]) -> tuple[bytes, int, float]:
    work, item = cloudpickle.loads(given[0]), given[1]
    began = time.process_time()
    gave = bytes(cloudpickle.dumps(work(item)))
    return gave, os.getpid(), time.process_time() - began


@dataclass(frozen=True)
class Processes:
    """Tasks in several processes.

    Args:
        pool: the pool of processes.
        parallelism: number of processes.
        spent: process and CPU seconds of each task, in the order of the tasks, for each stage.
    """

    pool: Any
    parallelism: int
    name: str = field(default="process", init=False)
    spent: list[list[tuple[int, float]]] = field(default_factory=list)

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """The results of ``work`` for each item."""
        sent = cloudpickle.dumps(work)
        gave = self.pool.map(_worked, [(sent, item) for item in items], 1)
        self.spent.append([(process, seconds) for _, process, seconds in gave])
        return [cloudpickle.loads(one) for one, _, _ in gave]


def stories(n: int) -> pa.Table:
    """The stories of a day, the same at every call."""
    pick, start = random.Random(n), datetime(2024, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "event_id": [f"e{i:06}" for i in range(n)],
            "type": ["Story"] * n,
            "ts": pa.array(
                [start + timedelta(seconds=s) for s in sorted(pick.sample(range(86_000), n))],
                pa.timestamp("us", tz="UTC"),
            ),
            "symbol": ["HOT" if pick.random() < 0.4 else f"s{pick.randrange(20)}" for _ in range(n)],
            "source": [pick.choice("pqr") for _ in range(n)],
            "words": ["".join(pick.sample("abcdefgh", 5)) for _ in range(n)],
        }
    )


def candidates(table: pa.Table) -> tuple[int, int]:
    """The number of pairs within the window, and of those that pass the cheap conditions."""
    ts = table["ts"].cast(pa.int64()).to_numpy()
    symbol, source = table["symbol"].to_pylist(), table["source"].to_pylist()
    near = cheap = 0
    for one, end in enumerate(np.searchsorted(ts, ts + WINDOW_S * 1_000_000, "right").tolist()):
        near += end - one - 1
        cheap += sum(symbol[one] == symbol[at] and source[one] != source[at] for at in range(one + 1, end))
    return near, cheap


def routed(table: pa.Table, burn: Burn) -> set[tuple[str, str]]:
    """The pairs that a router finds, which asks for every event whether it belongs to each open window."""
    ts, ids = table["ts"].cast(pa.int64()).to_numpy(), table["event_id"].to_pylist()
    words = np.array(table["words"].to_pylist(), object)
    symbol, source = table["symbol"].to_pylist(), table["source"].to_pylist()
    found = set()
    for at in range(len(ts)):
        opened = np.arange(int(np.searchsorted(ts, ts[at] - WINDOW_S * 1_000_000)), at)
        alike = burn(words[opened], np.full(len(opened), words[at])) >= 0.5 if len(opened) else []
        for one, yes in zip(opened.tolist(), alike, strict=True):
            if yes and symbol[one] == symbol[at] and source[one] != source[at]:
                found.add((ids[one], ids[at]))
    return found


def cpu() -> float:
    """CPU seconds of this process and of the children that it waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def divided(
    table: pa.Table, ms: float, processes: int, text: str = PATTERN
) -> tuple[dict[str, Any], set[tuple[str, ...]]]:
    """A run with this many processes: its costs, and the stories of each match that it found."""
    types = {one.name: one.type for one in table.schema}
    columns = {name: kind for name, kind in types.items() if name != "event_id"}
    pattern: Pattern = compile_pattern(
        text.format(cost=ms * 1000, window=WINDOW_S), columns=columns, params={"alike": Code(Burn(ms))}
    )
    day = Days.one(DAY)
    item = SimpleNamespace(compiled=SimpleNamespace(pattern=pattern), fingerprints={DAY: ""}, read_days=day)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.parquet")
        pq.write_table(table, path)
        files = EventFiles(table.schema, {DAY: [str(path)]}, {DAY: len(table)})
        began_cpu = cpu()
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            tasks = Processes(pool, processes)
            tasks.map(len, ["warm"] * 2 * processes)
            tasks.spent.clear()
            began, began_own = time.perf_counter(), time.process_time()
            counting = Counting(tasks, files, "symbol")
            work = prepare(counting, [item], SimpleNamespace(events=lambda _: len(table)), lambda _: [])  # type: ignore[list-item, arg-type]
            shape = matches_table(match_shape(pattern, key="symbol", types=types))
            search = Search(pattern, shape, work.patterns[0].plan.orders, folder)
            found = stage(tasks, files, "symbol", [search], work.shares)[0]
            seconds, own = time.perf_counter() - began, time.process_time() - began_own
            pool.close()
            pool.join()
        if found.failure is not None:
            raise found.failure
        rows = [row for one in found.paths for row in pq.read_table(one).to_pylist()]
    of_process: Counter[int] = Counter()
    for process, took_s in (one for those in tasks.spent for one in those):
        of_process[process] += took_s  # type: ignore[assignment]
    took = {
        "processes": processes, "load": os.getloadavg()[0], "wall_s": seconds, "cpu_s": cpu() - began_cpu, "own_s": own,
        "task_s": [[round(one, 2) for _, one in those] for those in tasks.spent],
        "busiest": max(of_process.values()) / of_process.total(),
        "pair_evals": found.pair_evals, "replication": found.replication, "longest_task": found.longest_task,
    }  # fmt: skip
    names = [one.name for one in pattern.names]
    return took, {tuple(row[name]["event_id"] for name in names) for row in rows}


def by_cpu(took: dict[str, Any], cores: int) -> float:
    """All CPU seconds, divided by those until the last of ``cores`` free cores is done with each stage."""
    until = 0.0
    for those in took["task_s"]:
        busy = [0.0] * cores
        for one in those:
            busy[busy.index(min(busy))] += one
        until += max(busy)
    return float((took["own_s"] + sum(map(sum, took["task_s"]))) / (took["own_s"] + until))


def scaled(ms: float, seconds: float, text: str = PATTERN) -> tuple[dict[str, Any], bool]:
    """Run with one process and with two; returns the costs, and whether anything is wrong."""
    # 600 stories have 330 candidate pairs, and the number of pairs grows with the square of the number of stories.
    table = stories(int(600 * math.sqrt(seconds * 1000 / ms / 330)))
    near, cheap = candidates(table)
    names = text.count("Story ")
    print(
        f"{ms:g} ms, {names} of {len(table):,} stories: {near:,} pairs in a window, {cheap:,} pass cheap conditions",
        flush=True,
    )
    one, rows = divided(table, ms, 1, text)
    two, same = divided(table, ms, 2, text)
    ratio = {"by_clock": one["wall_s"] / two["wall_s"], "by_cpu": by_cpu(two, 2)}
    for each in (one, two):
        shown = {key: round(value, 2) if isinstance(value, float) else value for key, value in each.items()}
        print(f"{ms:g} ms: {shown}")
    text = f"{ratio['by_clock']:.2f} x by the clock, {ratio['by_cpu']:.2f} x by CPU"
    print(f"{ms:g} ms: 1 -> 2 processes {text}, {len(rows):,} matches", flush=True)
    wrong = rows != same or not rows or max(one["pair_evals"], two["pair_evals"]) > cheap or ratio["by_cpu"] < 1.8
    return {
        "ms": ms,
        "names": names,
        "near": near,
        "cheap": cheap,
        **ratio,
        "one": one,
        "two": two,
        "matches": len(rows),
    }, wrong


def beside_router(ms: float) -> tuple[dict[str, Any], bool]:
    """Run a router and one process on 600 stories; returns the costs, and whether anything is wrong."""
    table = stories(600)
    near, cheap = candidates(table)
    one, rows = divided(table, ms, 1)
    began, began_cpu = time.perf_counter(), cpu()
    by_router = routed(table, Burn(ms))
    took = {"wall_s": time.perf_counter() - began, "cpu_s": cpu() - began_cpu, "pair_evals": near}
    print(f"{ms:g} ms, 600 events: router {took['cpu_s']:.2f} s of CPU for {near:,} pairs, "
          f"tasks {sum(map(sum, one['task_s'])) + one['own_s']:.2f} s for {one['pair_evals']:,}")  # fmt: skip
    return {"ms": ms, "router": took, "one": one}, by_router != rows or one["pair_evals"] > cheap


def main() -> int:
    """Print the costs of each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--ms", type=float, nargs="+", default=[2.0, 5.5, 29.0])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = [scaled(ms, args.seconds, text) for ms in args.ms for text in (PATTERN, THREE)]
    results.append(beside_router(min(args.ms)))
    if args.json is not None:
        args.json.write_text(json.dumps([one for one, _ in results], indent=2), encoding="utf-8")
    return int(any(wrong for _, wrong in results))


if __name__ == "__main__":
    sys.exit(main())
