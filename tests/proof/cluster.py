"""A standalone Spark master with one or two workers of one core each, as processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from chainlake.env.ports import free_port
from tests.proof.processes import Program, listens, running

HOSTS = ("127.0.0.1", "127.0.0.2")
SPARK = Path(pyspark.__file__).parent
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def driver(master: str, conf: Path) -> dict[str, str]:
    """What a driver's environment says: the master, a site's settings."""
    # On loopback, since the names of this machine may lead elsewhere.
    return {"SPARK_MASTER": master, "CHAINLAKE_SPARK_CONF": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def cluster(folder: Path, conf: Path, hide: Sequence[Path | None]) -> Iterator[tuple[str, list[Program]]]:
    """A master and its workers; the URL of the master, and the workers.

    Args:
        folder: for logs and work.
        conf: Spark's settings.
        hide: for each worker a folder that it has empty, or None; there are at most two.
    """
    folder.mkdir()
    port, page = free_port(17077), free_port(18077)
    url = f"spark://127.0.0.1:{port}"
    told = ["--properties-file", str(conf)]
    workers = []
    with ExitStack() as stack:
        options = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page), *told]
        master = stack.enter_context(running(_daemon("master.Master", folder / "master.log", options)))
        master.until(listens(port), "its port")
        for number, (host, hidden) in enumerate(zip(HOSTS[: len(hide)], hide, strict=True)):
            work = folder / f"worker-{number}"
            work.mkdir()
            size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
            log = folder / f"worker-{number}.log"
            daemon = _daemon("worker.Worker", log, ["--host", host, *size, *told, url], hidden)
            worker = stack.enter_context(running(daemon))
            workers.append(worker)
            worker.until(lambda: "registered with master" in worker.said(), "its registration")  # noqa: B023
        yield url, workers


def _daemon(kind: str, log: Path, options: list[str], hide: Path | None = None) -> Program:
    """A daemon of Spark, which knows nothing of ours."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS", "CHAINLAKE", "SPARK", "PYTHONPATH"))}
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
    return Program(command, log, kept | own, log.parent)
