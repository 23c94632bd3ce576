"""``make cluster-proof``: a Spark master and two workers give the tables that one machine gives, or nothing.

The shipped days of one source are ingested, searched and monitored on ``local[2]`` and on a standalone cluster, under a
site's settings that ask for other rows; the tables must be the same. Then one worker has another disk under the home's
path: the step must be refused in one sentence, publish nothing, and give the same events once that worker is gone. The
workers are processes of this machine, the second one in a mount namespace, so this runs as root.
Takes five minutes on an idle machine.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from chainlake.env.java import use_java
from chainlake.env.ports import free_port
from chainlake.lake.upkeep.same import same_tables
from chainlake.local.run.shipped import land, shipped_days
from chainlake.paths import PROJECT, Home
from tests.proof.small import in_folder, print_tables

SOURCE = "stock"
STEPS = ("ingest", "detect", "monitor")
HOSTS = ("127.0.0.1", "127.0.0.2")
SPARK = Path(pyspark.__file__).parent
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: How the steps are to end for a worker that does not see the folders, and what they then say.
REFUSED, SENTENCE = 5, "does not see"
_START_S = 120.0


def main() -> int:
    """Run both proofs; 0 if both hold."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        print("skipped: only root on Linux can hide a folder from one process")
        return 0
    use_java()
    return in_folder("cluster-proof-", _proof)


def _proof(root: Path) -> int:
    clock = _Clock()
    alone = _installation(root / "alone")
    clock.run(alone, {"SPARK_MASTER": "local[2]"}, "local[2]")
    conf = _site(root)
    faults = []
    shared = _installation(root / "shared")
    with _cluster(root / "seeing", conf) as master:
        clock.run(shared, _driver(master, conf), "two workers")
    faults += [f"two workers: {line}" for line in same_tables(alone, shared)]
    print_tables(alone, shared)
    hidden = _installation(root / "hidden")
    with _cluster(root / "half-blind", conf, hide=hidden.root) as master:
        code, said = clock.step(hidden, _driver(master, conf), "one worker sees nothing", "ingest")
    sentences = [line for line in said.splitlines() if SENTENCE in line]
    print("\n".join(sentences))
    if code != REFUSED or len(sentences) != 1:
        faults.append(f"a worker that sees nothing: exit code {code}\n{said[-2000:]}")
    if Path(hidden.table("events", SOURCE)).exists():
        faults.append("a worker that sees nothing: events were published")
    with _cluster(root / "seeing-again", conf) as master:
        clock.run(hidden, _driver(master, conf), "without it", ["ingest"])
    events = [line for line in same_tables(alone, hidden) if line.startswith(("events.", "quarantine."))]
    faults += [f"after a worker that saw nothing: {line}" for line in events]
    for line in faults:
        print(line)
    print(
        "FAILED"
        if faults
        else "same tables: on this machine, on two workers, and events after a worker with another disk"
    )
    return 1 if faults else 0


class _Clock:
    """Runs steps and prints how long each took."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def run(self, home: Home, environment: dict[str, str], where: str, verbs: Sequence[str] = STEPS) -> None:
        """Steps of all shipped days."""
        for verb in verbs:
            code, said = self.step(home, environment, where, verb)
            if code != 0:
                raise SystemExit(f"{where}: {verb} ended with {code}\n{said[-4000:]}")

    def step(self, home: Home, environment: dict[str, str], where: str, verb: str) -> tuple[int, str]:
        """One step; its exit code, and what it said."""
        days = [shipped.day for shipped in shipped_days(home)[SOURCE]]
        end = days[-1].fromordinal(days[-1].toordinal() + 1)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CHAINLAKE_S", "SPARK"))}
        variables = kept | {"CHAINLAKE_HOME": str(home.root), "PYTHONPATH": f"{PROJECT / 'jobs'}"} | environment
        command = [sys.executable, "-m", "chainlake", verb, SOURCE, str(days[0]), str(end)]
        begun = time.monotonic()
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        took = time.monotonic() - begun
        large = max((line for line in done.stdout.splitlines() if "very large size" in line), default="")
        print(
            f"[{time.monotonic() - self._begun:4.0f}s] {where}: {verb} {done.returncode}, {took:.0f} s {large}",
            flush=True,
        )
        return done.returncode, done.stdout


def _installation(root: Path) -> Home:
    """A home with the shipped days of the source landed."""
    home = Home(root, str(root / "lake"), PROJECT / "dags" / "config", Home.from_env().cache)
    for day in shipped_days(home)[SOURCE]:
        land(home, SOURCE, day)
    return home


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


def _driver(master: str, conf: Path) -> dict[str, str]:
    # On loopback, since the names of this machine may lead elsewhere.
    return {"SPARK_MASTER": master, "CHAINLAKE_SPARK_CONF": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def _cluster(folder: Path, conf: Path, hide: Path | None = None) -> Iterator[str]:
    """A master and two workers; the URL of the master.

    Args:
        folder: for logs and work.
        conf: Spark's settings.
        hide: a folder that the second worker has empty.
    """
    folder.mkdir()
    port, page = free_port(17077), free_port(18077)
    url = f"spark://127.0.0.1:{port}"
    told = ["--properties-file", str(conf)]
    with ExitStack() as stack:
        options = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page), *told]
        stack.enter_context(_daemon("master.Master", folder / "master.log", options))
        _wait(port)
        for number, host in enumerate(HOSTS):
            work = folder / f"worker-{number}"
            work.mkdir()
            size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
            blind = hide if number else None
            log = folder / f"worker-{number}.log"
            stack.enter_context(_daemon("worker.Worker", log, ["--host", host, *size, *told, url], blind))
        yield url


@contextmanager
def _daemon(kind: str, log: Path, options: list[str], hide: Path | None = None) -> Iterator[None]:
    """A daemon of Spark, ended with all that it started."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHAINLAKE", "SPARK", "PYTHONPATH"))}
    own = {
        "SPARK_HOME": str(SPARK),
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_LOCAL_DIRS": str(log.parent),
    }
    command = ["bash", str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *options]
    if hide is not None:
        under = 'mount -t tmpfs none "$0" && exec "$@"'
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", under, str(hide), *command]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=log.parent, env=kept | own, stdout=stream, stderr=stream, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait(port: int) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"the master does not listen on port {port}")


if __name__ == "__main__":
    sys.exit(main())
