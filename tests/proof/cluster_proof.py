"""``make cluster-proof``: a Spark master and two workers give the tables that one machine gives, or nothing.

``tables``: shipped days, a late file, an edited pattern, a pattern that uses events up and a model, on ``local[2]`` and
a disk, and on a standalone cluster, whose workers share nothing with the driver but an object store (S3Proxy): the
folders of the driver's home are empty for them. Lake and landed files lie in the store; the site's settings ask for
other rows. All tables must be the same. ``refused``: one of two workers has another disk under the path of a lake on a
disk: the step must be refused in one sentence and publish nothing. ``again``: without that worker the same step gives
the events of the first part.

The workers are processes of this machine, in mount namespaces, so this runs as root.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chainlake.days import Days
from chainlake.env.java import use_java
from chainlake.env.ports import free_port
from chainlake.lake.delta import tables
from chainlake.lake.upkeep.same import same_tables
from chainlake.local.run.shipped import land, shipped_days
from chainlake.paths import Home
from tests.proof.cluster import QUICK, cluster, driver
from tests.proof.history import SOURCE, compared, environment, in_a_process, installation
from tests.proof.parts import Part, add_only, run_parts
from tests.proof.processes import run
from tests.proof.s3proxy import BUCKET, Server, server_jar, settings
from tests.proof.small import in_folder

NAMES = ("tables", "refused", "again")
#: How a step is to end for a worker that does not see the folders, and what it then says.
REFUSED, SENTENCE = 5, "does not see"


def main(argv: list[str]) -> int:
    """Run the parts; 0 if they hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.cluster_proof", description=__doc__)
    parser.add_argument("--days", type=int, default=2, help="shipped days of a source (default 2)")
    add_only(parser, NAMES)
    args = parser.parse_args(argv)
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        print("skipped: only root on Linux can hide a folder from one process")
        return 0
    use_java()
    return in_folder("cluster-proof-", lambda root: _proof(root, args.only, args.days))


def _proof(root: Path, only: Sequence[str], days: int) -> int:
    conf = _site(root)
    alone, hidden = installation(root / "alone", None), installation(root / "hidden", None)
    parts = (
        Part("tables", lambda: _tables(root, alone, conf, days)),
        Part("refused", lambda: _refused(root, hidden, conf)),
        Part("again", lambda: _again(root, alone, hidden, conf), ("tables", "refused")),
    )
    return run_parts(parts, only)


def _tables(root: Path, alone: Home, conf: Path, days: int) -> list[str]:
    """The history on this machine and on the cluster."""
    words = ["--days", str(days), SOURCE]
    took = [in_a_process(alone, root / "alone.log", words, SPARK_MASTER="local[2]")]
    server = Server(server_jar(alone.cache), root / "s3", free_port(19_300))
    server.start()
    os.environ |= settings(server)
    try:
        store = f"s3://{BUCKET}"
        shared = replace(installation(root / "shared", f"{store}/lake"), landing_root=f"{store}/landing")
        with cluster(root / "sharing-nothing", conf, hide=[shared.root, shared.root]) as (master, _):
            took.append(in_a_process(shared, root / "shared.log", words, **driver(master, conf)))
        print(f"  {'step':<20} {'local[2]':>10} {'cluster':>10}")
        for name in took[0]:
            print(f"  {name:<20} {took[0][name]:>10.1f} {took[1][name]:>10.1f}")
        return compared(alone, shared)
    finally:
        server.stop()


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
