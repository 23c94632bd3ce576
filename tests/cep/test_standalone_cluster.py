"""A real cluster: a master and two workers on this machine, each a process of its own that has no copy of our code."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from chainlake.cep.events.history import add_histories
from chainlake.cep.library import as_dicts
from chainlake.cep.search.find import find
from chainlake.env.java import use_java
from chainlake.paths import PROJECT
from tests.cep.cluster_driver import HISTORIES, compiled, events
from tests.cep.test_cut import DAYS

pytestmark = pytest.mark.spark

SPARK = Path(pyspark.__file__).parent
#: JVMs that run for seconds spend them in the optimising compiler otherwise.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: A loopback address of its own for each worker, where the system gives out more than one.
HOSTS = ("127.0.0.1", "127.0.0.2" if sys.platform == "linux" else "127.0.0.1")


@contextmanager
def daemon(kind: str, log: Path, *arguments: str) -> Iterator[None]:
    """A Spark daemon, ended with all it started."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_MASTER")}
    environment = kept | {
        "SPARK_HOME": str(SPARK),
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_LOCAL_DIRS": str(log.parent),
    }
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["bash", *command], cwd=log.parent, env=environment, stdout=stream, stderr=stream, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for(port: int, log: Path) -> None:
    """Wait until something listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"the master does not listen: {log.read_text()[-2000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.on_spark()
def test_two_workers_find_what_one_kernel_finds(tmp_path: Path) -> None:
    use_java()
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        log = tmp_path / "master.log"
        stack.enter_context(daemon("Master", log, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"))
        wait_for(port, log)
        for number, host in enumerate(HOSTS):
            where = tmp_path / f"worker{number}"
            where.mkdir()
            size = ("--cores", "1", "--memory", "512m", "--webui-port", "0")
            options = ("--host", host, *size, "--work-dir", str(where))
            stack.enter_context(daemon("Worker", tmp_path / f"worker{number}.log", *options, master))
        home = tmp_path / "home"
        confs = ("memory=512m", "cores=1", f"extraJavaOptions={QUICK}")
        limits = " ".join(f'--conf "spark.executor.{conf}"' for conf in confs)
        # Begin when both executors are there, so that both have a share.
        limits += " --conf spark.cores.max=2 --conf spark.scheduler.minRegisteredResourcesRatio=1.0"
        environment = os.environ | {
            "SPARK_MASTER": master,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DRIVER_MEMORY": "512m",
            "CHAINLAKE_HOME": str(home),
            "PYSPARK_SUBMIT_ARGS": f"{limits} pyspark-shell",
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.cep.cluster_driver", str(tmp_path / "found.json")],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    # Two executors, each in a folder of its own, and each took our code from the archive that the session sends.
    assert found["executors"] == len(found["code"]) == 2
    assert all(".zip" in path for _, path in found["code"])
    table = add_histories(events(), ["k"], HISTORIES)
    pattern, ids = compiled(), table["event_id"].to_pylist()
    wanted = sorted(
        json.dumps(match, sort_keys=True)
        for batch in find(pattern, table, own=DAYS.micros())
        for match in as_dicts(pattern, batch, ids)
    )
    assert len(wanted) > 20
    assert found["matches"] == wanted
