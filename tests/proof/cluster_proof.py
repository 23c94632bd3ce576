"""``make cluster-proof``: a Spark master and two workers give the tables that one machine gives, or nothing.

``tables``: shipped days, a late file, an edited pattern, a pattern that uses events up and a model, on ``local[2]`` and
a disk, and on a standalone cluster, whose workers share nothing with the driver but an object store (S3Proxy; Moto with
``--server moto``): the folders of the driver's home are empty for them. Lake and landed files lie in the store; the
site's settings ask for other rows. All tables must be the same. ``killed``: on that cluster and store, after an edit of
the pattern, a step's executor, a worker with its executor, and the driver are killed (SIGKILL) while Python works in a
task; the step, or the next one, must leave the tables of one machine. ``refused``: one of two workers has another disk
under the path of a lake on a disk: the step must be refused in one sentence and publish nothing. ``again``: without
that worker the same step gives the events of the first part.

The workers are processes of this machine, in mount namespaces, so this runs as root.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from chainlake.days import Days
from chainlake.env.java import use_java
from chainlake.lake.delta import tables
from chainlake.lake.upkeep.same import same_tables
from chainlake.local.run.shipped import land, shipped_days
from chainlake.paths import Home
from tests.proof.cluster import QUICK, cluster, driver
from tests.proof.history import SOURCE, compared, edit, environment, in_a_process, installation
from tests.proof.parts import Part, add_only, run_parts
from tests.proof.processes import Program, run, running
from tests.proof.s3proxy import BUCKET
from tests.proof.servers import SERVERS, add_server
from tests.proof.small import in_folder

NAMES = ("tables", "killed", "refused", "again")
#: What is killed, and the window that the consuming pattern has got before.
KILLED = {"executor": "20 min", "worker": "25 min", "driver": "35 min"}
#: How a step is to end for a worker that does not see the folders, and what it then says.
REFUSED, SENTENCE = 5, "does not see"


def main(argv: list[str]) -> int:
    """Run the parts; 0 if they hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.cluster_proof", description=__doc__)
    parser.add_argument("--days", type=int, default=2, help="shipped days of a source (default 2)")
    add_only(parser, NAMES)
    add_server(parser)
    args = parser.parse_args(argv)
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        print("skipped: only root on Linux can hide a folder from one process")
        return 0
    use_java()
    return in_folder("cluster-proof-", lambda root: _proof(root, args.server, args.only, args.days))


def _proof(root: Path, server: str, only: Sequence[str], days: int) -> int:
    conf = _site(root)
    alone, hidden = installation(root / "alone", None), installation(root / "hidden", None)
    store = f"s3://{BUCKET}"
    shared = replace(installation(root / "shared", f"{store}/lake"), landing_root=f"{store}/landing")
    parts = (
        Part("tables", lambda: _tables(root, alone, shared, conf, days)),
        Part("killed", lambda: _killed(root, alone, shared, conf, days), ("tables",)),
        Part("refused", lambda: _refused(root, hidden, conf)),
        Part("again", lambda: _again(root, alone, hidden, conf), ("tables", "refused")),
    )
    with SERVERS[server](root, alone.cache):
        return run_parts(parts, only)


def _tables(root: Path, alone: Home, shared: Home, conf: Path, days: int) -> list[str]:
    """The history on this machine and on the cluster."""
    words = ["--days", str(days), SOURCE]
    took = [in_a_process(alone, root / "alone.log", words, SPARK_MASTER="local[2]")]
    with cluster(root / "sharing-nothing", conf, hide=[shared.root, shared.root]) as (master, _):
        took.append(in_a_process(shared, root / "shared.log", words, **driver(master, conf)))
    print(f"  {'step':<20} {'local[2]':>10} {'cluster':>10}")
    for name in took[0]:
        print(f"  {name:<20} {took[0][name]:>10.1f} {took[1][name]:>10.1f}")
    return compared(alone, shared)


def _killed(root: Path, alone: Home, shared: Home, conf: Path, days: int) -> Iterator[str]:
    """Each of the victims while a task of a step is at work."""
    for victim, window in KILLED.items():
        for home in (alone, shared):
            edit(home, window)
        with cluster(root / f"killed-{victim}", conf, hide=[shared.root, shared.root]) as (master, workers):
            more = driver(master, conf)
            with running(_detect(root, shared, days, more)) as step:
                step.until(lambda: any(_of_python(worker) for worker in workers), "a task of Python")  # noqa: B023
                code, said = _kill(victim, step, next(worker for worker in workers if _of_python(worker)))
            print(f"  a step whose {victim} was killed ended with {code}", flush=True)
            if "Traceback" in said:
                yield f"a step whose {victim} was killed: {said[-2000:]}"
            if code:
                with running(_detect(root, shared, days, more)) as step:
                    code, said = step.finish()
                if code:
                    yield f"the step after it ended with {code}: {said[-2000:]}"
        with running(_detect(root, alone, days, {"SPARK_MASTER": "local[2]"})) as step:
            code, said = step.finish()
        if code:
            yield f"the step of one machine ended with {code}: {said[-2000:]}"
        yield from compared(alone, shared)


def _detect(root: Path, home: Home, days: int, more: dict[str, str]) -> Program:
    """The verb on the days of the history."""
    shipped = [day.day for day in shipped_days(home)[SOURCE][:days]]
    words = ["detect", SOURCE, f"{shipped[0]}", f"{Days.one(shipped[-1]).end}"]
    return Program([sys.executable, "-m", "chainlake", *words], root / "detect.log", environment(home, more))


def _of_python(worker: Program) -> list[psutil.Process]:
    """A worker's executors in which Python works."""
    executors = []
    for one in psutil.Process(worker.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("pyspark.daemon" in word for child in one.children() for word in child.cmdline()):
                executors.append(one)
    return executors


def _kill(victim: str, step: Program, worker: Program) -> tuple[int, str]:
    """Kill it; how the step ended, and what it said."""
    if victim == "driver":
        said = step.said()
        step.stop(signal.SIGKILL)
        return -signal.SIGKILL, said
    if victim == "worker":
        worker.stop(signal.SIGKILL)
    for executor in _of_python(worker) if victim == "executor" else ():
        executor.kill()
    return step.finish()


def _refused(root: Path, hidden: Home, conf: Path) -> Iterator[str]:
    """A worker that has another disk under the path of the home."""
    land(hidden, SOURCE, shipped_days(hidden)[SOURCE][0])
    with cluster(root / "half-blind", conf, hide=[None, hidden.root]) as (master, _):
        code, said = _ingest(root, hidden, driver(master, conf))
    # The lines of a run's phases tell it, too.
    sentences = [line for line in said.splitlines() if line.startswith("error:") and SENTENCE in line]
    print("".join(f"  {line}\n" for line in sentences), end="")
    if code != REFUSED or len(sentences) != 1:
        yield f"exit code {code}\n{said[-2000:]}"
    if tables.exists(hidden, "events", SOURCE) and len(tables.arrow(hidden, "events", SOURCE, columns=["event_id"])):
        yield "events were published"


def _again(root: Path, alone: Home, hidden: Home, conf: Path) -> Iterator[str]:
    """The same step when all workers see the home."""
    for day in shipped_days(hidden)[SOURCE][1:2]:
        land(hidden, SOURCE, day)
    with cluster(root / "seeing", conf, hide=[None, None]) as (master, _):
        code, said = _ingest(root, hidden, driver(master, conf))
    if code:
        yield f"exit code {code}\n{said[-2000:]}"
    yield from (line for line in same_tables(alone, hidden) if line.startswith(("events.", "quarantine.")))


def _ingest(root: Path, home: Home, more: dict[str, str]) -> tuple[int, str]:
    """The verb on two shipped days; its exit code, and what it said."""
    days = Days(*(shipped_days(home)[SOURCE][at].day for at in (0, 1)))
    until = Days.one(days.end).end
    command = [sys.executable, "-m", "chainlake", "ingest", SOURCE, str(days.start), str(until)]
    return run(command, root / "ingest.log", environment(home, more))


def _site(root: Path) -> Path:
    """A site's settings: what a cluster needs, and what rows would suffer from."""
    conf = root / "spark.conf"
    conf.write_text(
        "spark.cores.max 2\nspark.executor.cores 1\nspark.executor.memory 512m\nspark.driver.memory 768m\n"
        "spark.scheduler.minRegisteredResourcesRatio 1.0\nspark.scheduler.maxRegisteredResourcesWaitingTime 120s\n"
        f"spark.executor.extraJavaOptions {QUICK}\n"
        f"spark.authenticate true\nspark.authenticate.secret {secrets.token_hex(16)}\n"
        "spark.sql.session.timeZone Asia/Kathmandu\nspark.sql.ansi.enabled false\n"
        "spark.sql.legacy.timeParserPolicy LEGACY\nspark.sql.parquet.outputTimestampType INT96\n"
    )
    conf.chmod(0o600)
    return conf


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
