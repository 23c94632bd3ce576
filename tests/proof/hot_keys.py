"""``make heavy-proof``: one key has 40 % of a million events, and no task of a cluster of two workers has much of it.

A function of pairs decides which stories of one symbol and topic are alike. ``hot-keys``: a driver, a master and two
workers search sixteen days; each task tells how many events of the key it read and for how many pairs it called the
function, and Spark's event log which worker ran it, and how many bytes it gave to the driver. No task may have more
than 15 % of the key's events, no call may be made before the search, no pair may be asked for twice, and the matches
must be those of one search of all events at once, which knows nothing of tasks. ``killed``: the worker that calls the
function first is killed (SIGKILL) while it does; the matches must be the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from deltalake import write_deltalake

from chainlake.catalog.functions import codes_of
from chainlake.cep.library import as_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.detect.step import detect
from chainlake.env.java import use_java
from chainlake.env.processes.ending import end
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.runs import new_run_id
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import SparkTasks
from chainlake.schemas.events import events_table
from tests.proof.cluster import QUICK, cluster, driver
from tests.proof.history import environment, without_pages
from tests.proof.parts import Part, add_only, run_parts
from tests.proof.processes import Program, running
from tests.proof.small import in_folder

NAMES = ("hot-keys", "killed")
HOT, MOST_SHARE = "HOT", 0.15
#: Bytes that all tasks of a run may give to the driver; the events have some 100 times as many.
MOST_BYTES = 2_000_000
FIRST, DAYS = date(2025, 3, 1), 16
WINDOW_S = 60
SOURCE = """\
key: symbol
type: Story
zone: UTC
attributes:
  topic: {type: long}
  words: {type: string}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, symbol, topic, words], time: {column: ts, format: '%Y-%m-%dT%H:%M:%S'},
     map: {symbol: symbol, topic: topic, words: words}}
"""
PATTERN = f"""\
---
source: stories
functions: {{alike: {{call: 'burn:alike', cost: 5500, symmetric: true, longest: 10 min}}}}
---
PATTERN SEQ(Story a, Story b)
WHERE a.symbol = b.symbol AND a.topic = b.topic AND alike(a.words, b.words) >= 0.5
WITHIN {WINDOW_S} s
"""
#: The share of letters that two texts have in common; it counts its pairs, and one call may wait for its end.
FUNCTION = """\
import os
import time

import numpy as np

MS, HOLD = {ms}, {hold}
called = 0


def alike(ones, others):
    global called
    called += len(ones)
    if HOLD:
        try:
            with open(HOLD, "x") as file:
                file.write(str(os.getpid()))
            time.sleep(500)
        except FileExistsError:
            pass
    until = time.process_time() + MS / 1000 * len(ones)
    while time.process_time() < until:
        pass
    return np.array([len(set(x) & set(y)) / len(set(x) | set(y)) for x, y in zip(ones.tolist(), others.tolist())])
"""


@dataclass(frozen=True)
class Measured(SparkTasks):
    """Tasks that tell what they did beside what they give; a line of JSON for each is printed."""

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """See `Tasks.map`."""
        gave = super().map(_measured(work), list(items))
        for _, told in gave:
            print(json.dumps({"task": told}), flush=True)
        return [result for result, _ in gave]


def _measured(work: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, dict[str, Any]]]:
    hot = HOT

    def calls() -> int:
        mine = (one for name, one in list(sys.modules.items()) if name.startswith("chainlake_functions_"))
        return sum(getattr(one, "called", 0) for one in mine)

    def measured(item: Any) -> tuple[Any, dict[str, Any]]:
        import pyarrow.compute as pc
        from pyspark import TaskContext

        from chainlake.detect.feed import Feed

        rows, before, original = [0, 0], calls(), Feed.chunks

        def chunks(feed: Any, spans: Any) -> Iterator[pa.Table]:
            for chunk in original(feed, spans):
                rows[0] += len(chunk)
                rows[1] += pc.sum(pc.equal(chunk["symbol"], hot)).as_py() or 0
                yield chunk

        Feed.chunks = chunks
        try:
            gave = work(item)
        finally:
            Feed.chunks = original
        context = TaskContext.get()
        told = {"stage": context.stageId(), "index": context.partitionId(), "attempt": context.attemptNumber()}
        return gave, told | {"rows": rows[0], "hot": rows[1], "calls": calls() - before}

    return measured


def main(argv: list[str]) -> int:
    """Run the parts; 0 if they hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.hot_keys", description=__doc__)
    parser.add_argument("--driver", action="store_true", help="detect in the home of the environment, by Spark")
    parser.add_argument("--rows", type=int, default=1_000_000, help="events (default a million)")
    parser.add_argument("--ms", type=float, default=1.0, help="CPU milliseconds of a pair (default 1)")
    add_only(parser, NAMES)
    args = parser.parse_args(argv)
    if args.driver:
        return _drive(Home.from_env())
    use_java()
    return in_folder("heavy-proof-", lambda root: _proof(root, args.only, args.rows, args.ms))


def _drive(home: Home) -> int:
    """Detect, and say who read and called what."""
    without_pages()
    ports = Ports(Measured(home, "hot keys"), FilesLake(home))
    days = Days(FIRST, FIRST + timedelta(days=DAYS))
    result = detect(home, "stories", days, run_id=new_run_id("detect"), ports=ports)
    print(json.dumps({"result": result, "driver": sum(m.startswith("chainlake_functions_") for m in sys.modules)}))
    return 0


def _proof(root: Path, only: Sequence[str], rows: int, ms: float) -> int:
    events = _events(rows)
    conf = root / "spark.conf"
    logs = root / "events"
    logs.mkdir()
    conf.write_text(
        "spark.cores.max 2\nspark.executor.cores 1\nspark.executor.memory 512m\nspark.driver.memory 768m\n"
        "spark.scheduler.minRegisteredResourcesRatio 1.0\nspark.scheduler.maxRegisteredResourcesWaitingTime 120s\n"
        f"spark.executor.extraJavaOptions {QUICK}\nspark.eventLog.enabled true\nspark.eventLog.compress false\n"
        f"spark.eventLog.dir file://{logs}\n"
    )
    plain, killed = root / "plain", root / "killed"
    hold = root / "hold"
    wanted: list[set[tuple[str, str]]] = []
    with cluster(root / "spark", conf, hide=[None, None]) as (master, workers):
        told = driver(master, conf)
        parts = (
            Part("hot-keys", lambda: _hot_keys(_home(plain, events, ms, None), told, logs, wanted)),
            Part("killed", lambda: _killed(_home(killed, events, ms, hold), told, hold, workers, wanted)),
        )
        return run_parts(parts, only)


def _hot_keys(home: Home, told: dict[str, str], logs: Path, wanted: list[set[tuple[str, str]]]) -> Iterator[str]:
    with running(_detection(home, told)) as program:
        code, said = program.finish()
    if code:
        yield f"exit code {code}\n{said[-3000:]}"
        return
    tasks, last = _told(said)
    spark = _spark_tasks(logs)
    events = tables.arrow(home, "events", "stories", columns=["event_id", "symbol", "ts", "topic"])
    hot = int(pa.compute.sum(pa.compute.equal(events["symbol"], HOT)).as_py())
    print(f"  {len(events):,} events, {hot:,} of them with one key ({hot / len(events):.1%})")
    print("  stage task worker     events  of the key  share   pairs seconds")
    for one in tasks:
        of = spark[one["stage"], one["index"]]
        share, worker = one["hot"] / hot, of["worker"]
        row = f"{one['stage']:>5} {one['index']:>4} {worker:>6} {one['rows']:>10,} {one['hot']:>11,} {share:>6.1%}"
        print(f"  {row} {one['calls']:>7,} {of['seconds']:>7.1f}")
        if share > MOST_SHARE:
            yield f"task {one['index']} of stage {one['stage']} read {share:.1%} of the key's events"
    search = max(one["stage"] for one in tasks)
    mine = [one for one in tasks if one["stage"] == search]
    if sum(one["hot"] for one in mine) < hot or len({spark[search, one["index"]]["worker"] for one in mine}) < 2:
        yield "the search did not read all events of the key, by two workers"
    if any(one["calls"] for one in tasks if one["stage"] != search) or last["driver"]:
        yield "the function was called before the search, or by the driver"
    asked, near = sum(one["calls"] for one in mine), _candidates(events)
    gave = sum(one["bytes"] for one in spark.values())
    print(f"  {asked:,} pairs asked for, {near:,} candidates; {gave:,} bytes given to the driver by {len(spark)} tasks")
    if asked != near:
        yield f"{asked:,} pairs were asked for, of {near:,} candidates"
    plans = [row for row in ops.current(home, "plans") if row["pair_evals"] is not None]
    for row in plans:
        told = {name: row[name] for name in ("pair_evals", "pair_memo_hits", "replication", "longest_task")}
        print(f"  ops.plans: {told}")
    if sum(row["pair_evals"] for row in plans) != asked:
        yield f"ops.plans has {[row['pair_evals'] for row in plans]} pairs, and {asked:,} were asked for"
    if gave > MOST_BYTES:
        yield f"the driver was given {gave:,} bytes"
    yield from _compared(home, wanted)


def _killed(
    home: Home, told: dict[str, str], hold: Path, workers: Sequence[Program], wanted: list[set[tuple[str, str]]]
) -> Iterator[str]:
    with running(_detection(home, told)) as program:
        program.until(lambda: hold.exists() and hold.read_text() != "", "the first call of the function")
        pid = int(hold.read_text())
        above = {one.pid for one in psutil.Process(pid).parents()}
        (worker,) = (one for one in workers if one.pid in above)
        worker.stop(signal.SIGKILL)
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)
        code, said = program.finish()
    print(f"  {worker.name} was killed while its task called the function")
    if code:
        yield f"exit code {code}\n{said[-3000:]}"
        return
    tasks, _ = _told(said)
    again = [one for one in tasks if one["attempt"]]
    print("".join(f"  task {one['index']} of stage {one['stage']} was tried again\n" for one in again), end="")
    if not again:
        yield "no task was tried again"
    yield from _compared(home, wanted)


def _compared(home: Home, wanted: list[set[tuple[str, str]]]) -> Iterator[str]:
    """Whether the matches are those of one search of all events, which is made once."""
    if not wanted:
        wanted.append(_in_one_search(home))
    rows = tables.arrow(home, "matches", "alike", columns=["a", "b"]).to_pylist()
    found = [(row["a"]["event_id"], row["b"]["event_id"]) for row in rows]
    print(f"  {len(found):,} matches; one search of all events finds {len(wanted[0]):,}")
    if len(found) != len(set(found)) or set(found) != wanted[0] or not found:
        yield f"{len(set(found) - wanted[0])} matches too many, {len(wanted[0] - set(found))} missing"


def _in_one_search(home: Home) -> set[tuple[str, str]]:
    names = ["event_id", "type", "ts", "seq", "symbol", "topic", "words"]
    events = tables.arrow(home, "events", "stories", columns=names).sort_by("ts").combine_chunks()
    _write_function(home, 0.0, None)
    text = PATTERN
    columns = {f.name: f.type for f in events.schema if f.name != "event_id"}
    pattern = compile_pattern(text, columns=columns, params=codes_of(home, text))
    ids = events["event_id"].to_pylist()
    found = (one for batch in find(pattern, events) for one in as_dicts(pattern, batch, ids))
    return {(one["a"], one["b"]) for one in found}


def _candidates(events: pa.Table) -> int:
    """Pairs of one symbol and topic within the window."""
    symbol = events["symbol"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    group = symbol * 1_000_000 + events["topic"].to_numpy()
    ts = events["ts"].cast(pa.int64()).to_numpy()
    order = np.lexsort((ts, group))
    group, ts = group[order], ts[order] // 1_000_000
    # One number in which groups lie further apart than a window.
    line = np.unique(group, return_inverse=True)[1] * (int(ts.max() - ts.min()) + WINDOW_S + 1) + ts - ts.min()
    later = np.searchsorted(line, line + WINDOW_S, "right") - np.searchsorted(line, line, "right")
    return int(later.sum())


def _told(said: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the tasks of a driver told, and the driver itself."""
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [one["task"] for one in lines if "task" in one], next(one for one in lines if "driver" in one)


def _spark_tasks(logs: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """What Spark's event log says of the tasks that ended well, by stage and number."""
    found = {}
    for path in (one for one in logs.rglob("*") if one.is_file()):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line) if '"SparkListenerTaskEnd"' in line else {}
            if event.get("Task End Reason", {}).get("Reason") == "Success":
                info, metrics = event["Task Info"], event["Task Metrics"]
                found[event["Stage ID"], info["Index"]] = {
                    "worker": info["Executor ID"], "bytes": metrics["Result Size"],
                    "seconds": metrics["Executor Run Time"] / 1000,
                }  # fmt: skip
    return found


def _detection(home: Home, told: dict[str, str]) -> Program:
    command = [sys.executable, "-m", "tests.proof.hot_keys", "--driver"]
    return Program(command, home.root.with_suffix(".log"), environment(home, told))


def _home(root: Path, events: pa.Table, ms: float, hold: Path | None) -> Home:
    """An installation with the events, as an ingest would leave them."""
    home = replace(Home.from_env(), root=root, lake=str(root / "lake"), config=root / "config")
    for name, text in (("sources/stories.yaml", SOURCE), ("patterns/alike.sase", PATTERN)):
        (home.config / name).parent.mkdir(parents=True)
        (home.config / name).write_text(text)
    _write_function(home, ms, hold)
    table = events_table(load_sources(home)["stories"])
    tables.ensure_table(home, table)
    schema = table.arrow()
    full = pa.table(
        [events[f.name] if f.name in events.column_names else pa.nulls(len(events), f.type) for f in schema],
        schema=schema,
    )
    write_deltalake(home.table("events", "stories"), full, mode="append", partition_by=["event_date"])
    version = tables.version(home, "events", "stories")
    counts = events["event_date"].value_counts().to_pylist()
    ops.append(home, "event_days", [
        {"source": "stories", "day": one["values"], "status": "complete", "rows": one["counts"],
         "events_version": version, "checksum": hashlib.md5(str(one).encode()).hexdigest()}
        for one in counts
    ], "ingest")  # fmt: skip
    return home


def _events(rows: int) -> pa.Table:
    pick = np.random.default_rng(rows)
    seconds = np.sort(pick.integers(0, DAYS * 86_400, rows))
    start = int(datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC).timestamp())
    ts = pa.array((start + seconds) * 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    hot, other = pick.random(rows) < 0.4, pick.integers(0, 200, rows)
    letters = pick.permuted(np.tile(np.array(list("abcdefgh")), (rows, 1)), axis=1)[:, :5]
    return pa.table({
        "event_id": [f"{i:032x}" for i in range(rows)],
        "type": pa.array(["Story"]).take(pa.array(np.zeros(rows, np.int64))),
        "symbol": np.where(hot, HOT, np.char.add("s", other.astype(str))).tolist(),
        "ts": ts,
        "seq": np.arange(rows),
        "topic": pick.integers(0, 1_000, rows),
        "words": np.ascontiguousarray(letters).view("U5").ravel().tolist(),
        "event_date": pa.array((start + seconds) // 86_400, pa.int32()).cast(pa.date32()),
    })  # fmt: skip


def _write_function(home: Home, ms: float, hold: Path | None) -> None:
    path = home.config / "functions" / "burn.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(FUNCTION.format(ms=ms, hold=repr(str(hold)) if hold else None))


if __name__ == "__main__":
    end(main(sys.argv[1:]))
