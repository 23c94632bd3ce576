"""``make docker-proof``: the shipped days in containers give what they give without any.

``image``: builds it; its account has no rights, and it has nothing that only building needs. ``days``: ``make
docker-run`` runs all shipped days with the lake in a volume; summary and tables are those of ``make run``; all services
are healthy, their bounds hold, nobody has rights or tells a secret. ``again``: stopped and started again, the lake is
there and a run finds nothing to do. ``killed``: one of two workers is killed while it has tasks of an ingest, and again
of a detection; it comes back, and the tables are those of steps that no cluster did. ``store``: all shipped days with
tables and landed files in the service ``store``. ``--source sensor --days 1`` is a short proof, of these days alone.

What the machine needs to reach its package indexes is not the project's, and comes from the environment:

DOCKER_PROOF_BUILD_ARGS   options of ``podman build``, such as ``-v`` for a file of certificates
DOCKER_PROOF_BASE_ARGS    options of ``mmdebstrap``
DOCKER_PROOF_FOLDER       where images are kept, to be quicker the next time; a temporary folder if unset
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chainlake.env.java import use_java
from chainlake.env.ports import free_port
from chainlake.local.run.shipped import add_selection
from chainlake.paths import Home
from tests.proof.containers import checks, reference
from tests.proof.containers.images import Images
from tests.proof.containers.services import copied, daemon
from tests.proof.history import compared
from tests.proof.parts import Part, add_only, run_parts

TOOLS = ("podman", "runc", "dockerd", "docker", "docker-compose", "mmdebstrap", "iptables", "make")
NAMES = ("image", "days", "again", "killed", "store")
#: The source and the days of it that are run while workers are killed, and in the steps of which applications.
_SOURCE, _DAYS, _STEPS = "sensor", 2, ("ingest", "detect")
_KILLED = "spark-worker-1"


def main(argv: list[str]) -> int:
    """Run the parts; 0 if they hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.containers", description=__doc__)
    add_only(parser, NAMES)
    add_selection(parser)
    args = parser.parse_args(argv)
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or absent:
        print(f"skipped: this needs root{''.join(f', {tool}' for tool in absent)}")
        return 0
    use_java()
    kept = os.environ.get("DOCKER_PROOF_FOLDER")
    folder = Path(kept or tempfile.mkdtemp(prefix="docker-proof-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # Others of this machine may have those of compose.yaml.
        ports = {"CHAINLAKE_PAGE_PORT": str(free_port(28080)), "CHAINLAKE_SPARK_PORT": str(free_port(28090))}
        environment = os.environ | ports | {"TMPDIR": str(folder)}
        days = ["--days", str(args.days)] if args.days is not None else []
        words = [*(word for name in args.source or () for word in ("--source", name)), *days]
        return _Proof(folder, environment, words).run(args.only)
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


class _Proof:
    """The parts, with what one leaves for the next.

    Args:
        folder: for all that is made.
        environment: of all programs.
        words: options of a run, which choose from the shipped days.
    """

    def __init__(self, folder: Path, environment: dict[str, str], words: Sequence[str]) -> None:
        self._folder, self._environment, self._words = folder, environment, words
        self._images = Images(folder, environment)
        self._services = copied(folder / "services", environment)
        self._made: tuple[Home, str] | None = None

    def run(self, only: Sequence[str]) -> int:
        """Run parts; 0 if they hold."""
        with daemon(self._folder, self._environment):
            parts = (
                Part("image", self._image),
                Part("days", self._days, ("image",)),
                Part("again", self._again, ("image", "days")),
                Part("killed", self._with_kills, ("image",)),
                Part("store", self._in_store, ("image",)),
            )
            try:
                return run_parts(parts, only)
            finally:
                self._stop(volumes=True, store=True)

    def _image(self) -> Iterator[str]:
        self._images.build()
        yield from self._images.faults()
        self._images.hand_over("postgres", "chainlake", "store")

    def _days(self) -> Iterator[str]:
        self._stop(volumes=True)
        home, said = self._reference()
        code, in_containers = self._services.run(self._folder / "days.log", *self._words)
        if code:
            yield f"make docker-run ended with {code}:\n{in_containers[-3000:]}"
            return
        print("\n".join(f"  | {line}" for line in reference.summary(in_containers)), flush=True)
        yield from reference.other_lines(said, in_containers)
        yield from compared(home, self._lake("days"))
        yield from checks.faults(self._services)
        stats = ["docker", "stats", "--no-stream", "--format", "{{.Name}}\t{{.MemUsage}}\t{{.PIDs}} processes"]
        print(self._services.said(*stats), flush=True)

    def _again(self) -> Iterator[str]:
        before = self._lake("before")
        self._stop()
        if there := self._services.containers():
            yield f"there are containers: {', '.join(there)}"
        code, said = self._services.run(self._folder / "again.log", *self._words)
        if code:
            yield f"make docker-run ended with {code}:\n{said[-3000:]}"
            return
        yield from reference.other_lines(self._reference()[1], said)
        after = self._lake("after")
        yield from compared(before, after)
        was, now = reference.versions(before), reference.versions(after)
        yield from (f"{name} has version {now[name]}, not {was[name]}" for name in was if now[name] != was[name])

    def _with_kills(self) -> Iterator[str]:
        self._stop(volumes=True)
        alone = reference.made_by_steps(self._fresh("alone"), _SOURCE, _DAYS)
        log = self._folder / "killed.log"
        going = self._services.begin(log, "--source", _SOURCE, "--days", str(_DAYS))
        for step in _STEPS:
            while (application := self._working(step)) is None:
                if going.poll() is not None:
                    yield f"make docker-run ended with {going.returncode} before a {step} had tasks on {_KILLED}"
                    return
                time.sleep(0.2)
            # With its first process a container ends, and all that it has started.
            os.kill(self._services.containers()[_KILLED]["State"]["Pid"], signal.SIGKILL)
            print(f"  {_KILLED} was killed while it worked for {application}", flush=True)
        if going.wait():
            yield f"make docker-run ended with {going.returncode}:\n{log.read_text(errors='replace')[-3000:]}"
            return
        restarts = self._services.containers()[_KILLED]["RestartCount"]
        if restarts != len(_STEPS):
            yield f"{_KILLED} was started again {restarts} times, not {len(_STEPS)}"
        yield from checks.healthy(self._services)
        yield from compared(alone, self._lake("killed"))

    def _in_store(self) -> Iterator[str]:
        self._stop(volumes=True)
        home, said = self._reference()
        code, in_containers = self._services.run(self._folder / "store.log", *self._words, store=True)
        if code:
            yield f"make docker-run ended with {code}:\n{in_containers[-3000:]}"
            return
        yield from reference.other_lines(said, in_containers)
        (network,) = self._services.containers()["store"]["NetworkSettings"]["Networks"].values()
        os.environ |= {
            "CHAINLAKE_STORE_ENDPOINT": f"http://{network['IPAddress']}:9000",
            "CHAINLAKE_STORE_REGION": "us-east-1",
            "CHAINLAKE_STORE_ACCESS_KEY": "chainlake",
            "CHAINLAKE_STORE_SECRET_KEY": self._services.secrets["store_key"],
        }
        stored = reference.home_at(self._fresh("stored"))
        yield from compared(home, replace(stored, lake="s3://lake/lake", landing_root="s3://lake/landing"))
        yield from (f"the volume has {name}" for name in ("lake", "landing") if (self._volume / name).exists())
        yield from checks.faults(self._services)
        self._stop(volumes=True, store=True)

    def _working(self, step: str) -> str | None:
        """The name of an application of a step that has a task's Python process on the worker, if there is one."""
        container = self._services.containers().get(_KILLED)
        if container is None or not container["State"]["Running"]:
            return None
        listed = self._services.said("docker", "top", container["Id"], "-eo", "pid,ppid,args").splitlines()[1:]
        processes = {line.split()[0]: line.split(maxsplit=2)[1:] for line in listed}
        names = _names(f"http://127.0.0.1:{self._environment['CHAINLAKE_SPARK_PORT']}/json/")
        for parent, words in processes.values():
            executor = processes.get(parent, ["", ""])[1]
            found = re.search(r"CoarseGrainedExecutorBackend .*--app-id (\S+)", executor)
            if "pyspark.daemon" in words and found and (name := names.get(found[1], "")).startswith(step):
                return name
        return None

    def _reference(self) -> tuple[Home, str]:
        if self._made is None:
            self._made = reference.made_by_run(self._fresh("local"), self._folder / "local.log", self._words)
        return self._made

    @property
    def _volume(self) -> Path:
        return self._services.volume("home")

    def _lake(self, name: str) -> Home:
        return reference.copied_lake(self._volume, self._fresh(name))

    def _fresh(self, name: str) -> Path:
        root = self._folder / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        return root

    def _stop(self, *, volumes: bool = False, store: bool = False) -> None:
        self._services.stop(self._folder / "stop.log", volumes=volumes, store=store)


def _names(page: str) -> dict[str, str]:
    """Id and name of every application that the master knows to be running; none if it does not answer."""
    try:
        with urllib.request.urlopen(page, timeout=5) as answer:
            return {one["id"]: one["name"] for one in json.load(answer)["activeapps"]}
    except OSError:
        return {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
