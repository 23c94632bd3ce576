"""``make docker-proof``: the shipped days in containers give what they give without any.

``image``: builds it; its account has no rights, and it has nothing that only building needs. ``days``: ``make
docker-run`` runs all shipped days with the lake in a volume; summary and tables are those of ``make run``; all services
are healthy, their bounds hold, nobody has rights or tells a secret. ``again``: stopped and started again, the lake is
there and a run finds nothing to do. ``store``: the same days with tables and landed files in the service ``store``; one
worker is killed while it has tasks of an ingest, and one while it has tasks of a detection. ``--source sensor --days
1`` is a short proof, of these days alone.

What the machine needs to reach its package indexes is not the project's, and comes from the environment:

DOCKER_PROOF_BUILD_ARGS   options of ``podman build``, such as ``-v`` for a file of certificates
DOCKER_PROOF_BASE_ARGS    options of ``mmdebstrap``
DOCKER_PROOF_FOLDER       where images are kept, to be quicker the next time; a temporary folder if unset
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time
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
NAMES = ("image", "days", "again", "store")
_WORKERS = ("spark-worker-1", "spark-worker-2")
#: In the steps of which applications a worker is killed.
_STEPS = ("ingest", "detect")


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

    def _in_store(self) -> Iterator[str]:
        self._stop(volumes=True)
        log = self._folder / "store.log"
        with self._services.going(log, *self._words, store=True) as going:
            for step in _STEPS:
                while (found := self._working(step)) is None:
                    if going.poll() is not None:
                        yield f"make docker-run ended with {going.returncode} before a worker had tasks of a {step}"
                        return
                    time.sleep(0.2)
                worker, application = found
                # With its first process a container ends, and all that it has started.
                os.kill(self._services.containers()[worker]["State"]["Pid"], signal.SIGKILL)
                print(f"  {worker} was killed while it worked for {application}", flush=True)
            code = going.wait()
        in_containers = log.read_text(errors="replace")
        if code:
            yield f"make docker-run ended with {code}:\n{in_containers[-3000:]}"
            return
        restarts = sum(self._services.containers()[worker]["RestartCount"] for worker in _WORKERS)
        if restarts != len(_STEPS):
            yield f"workers were started again {restarts} times, not {len(_STEPS)}"
        home, said = self._reference()
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

    def _working(self, step: str) -> tuple[str, str] | None:
        """A worker that has a task's Python process of a step, and the name of the application, if there is one."""
        names = self._services.applications()
        for worker in _WORKERS:
            processes = self._services.processes(worker)
            for parent, command in processes.values():
                executor = processes.get(parent, ("", ""))[1]
                found = re.search(r"CoarseGrainedExecutorBackend .*--app-id (\S+)", executor)
                if "pyspark.daemon" in command and found and (name := names.get(found[1], "")).startswith(step):
                    return worker, name
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
