"""A dockerd of the proof's own, and the project's services in it, by the targets of the Makefile."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chainlake.paths import PROJECT
from tests.proof.containers.images import LIMITS
from tests.proof.processes import Program, running

PROJECT_NAME = "chainlake"


@dataclass(frozen=True)
class Services:
    """The services of one project of compose.

    Args:
        folder: has the Makefile and ``docker/``, copied, so that the secrets of a proof are not those of the checkout.
        environment: of all programs; names the daemon.
    """

    folder: Path
    environment: Mapping[str, str]

    @property
    def declared(self) -> dict[str, Any]:
        """What compose.yaml says of each service."""
        declared: dict[str, Any] = yaml.safe_load((self.folder / "docker" / "compose.yaml").read_text())["services"]
        return declared

    @property
    def secrets(self) -> dict[str, str]:
        """Name of every secret that is a single word, and the word."""
        found = {}
        for file in sorted((self.folder / "docker" / "secrets").iterdir()):
            text = file.read_text()
            if file.name == "spark_conf":
                text = text.split("spark.authenticate.secret ")[1]
            elif file.name == "airflow_passwords":
                (text,) = json.loads(text).values()
            found[file.name] = text.strip()
        return found

    def run(self, log: Path, *words: str, store: bool = False) -> tuple[int, str]:
        """``make docker-run`` with options of the run, but no build of the image; its exit code and what it said."""
        return self._make(log, "-o", "docker-image", "docker-run", f"ARGS={shlex.join(words)}", store=store)

    @contextmanager
    def going(self, log: Path, *words: str, store: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        """The same, which goes on during the block."""
        command = self._command("-o", "docker-image", "docker-run", f"ARGS={shlex.join(words)}", store=store)
        print(f"  {shlex.join(command)}", flush=True)
        with open(log, "wb") as file, subprocess.Popen(command, env=self.environment, stdout=file, stderr=file) as one:
            try:
                yield one
            finally:
                one.terminate()

    def stop(self, log: Path, *, volumes: bool = False, store: bool = False) -> None:
        """``make docker-stop``; with their volumes, if so wanted.

        Raises:
            RuntimeError: it failed.
        """
        code, said = self._make(log, "docker-stop", f"ARGS={'--volumes' if volumes else ''}", store=store)
        if code:
            raise RuntimeError(f"make docker-stop ended with {code}:\n{said[-2000:]}")

    def containers(self) -> dict[str, dict[str, Any]]:
        """Service → all that the daemon knows of its container."""
        ids = self.said(
            "docker", "ps", "--all", "--quiet", "--filter", f"label=com.docker.compose.project={PROJECT_NAME}"
        )
        found = json.loads(self.said("docker", "inspect", *ids.split())) if ids else []
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    def processes(self, name: str) -> dict[str, tuple[str, str]]:
        """Process of a service's container → its parent and its command line; none if the container does not run."""
        command = ["docker", "top", f"{PROJECT_NAME}_{name}_1", "-eo", "pid,ppid,args"]
        done = subprocess.run(command, env=self.environment, check=False, text=True, capture_output=True)
        lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()[1:]]
        return {pid: (parent, words) for pid, parent, words in lines}

    def applications(self) -> dict[str, str]:
        """Id and name of every application that Spark's master knows to run; none if it does not answer."""
        page = f"http://127.0.0.1:{self.environment['CHAINLAKE_SPARK_PORT']}/json/"
        try:
            with urllib.request.urlopen(page, timeout=5) as answer:
                return {one["id"]: one["name"] for one in json.load(answer)["activeapps"]}
        except OSError:
            return {}

    def volume(self, name: str) -> Path:
        """The folder of a volume, on this machine."""
        return Path(self.said("docker", "volume", "inspect", "--format", "{{.Mountpoint}}", f"{PROJECT_NAME}_{name}"))

    def within(self, service: str, *command: str) -> str:
        """What a command in a service's container says."""
        return self.said("docker", "exec", self.containers()[service]["Id"], *command)

    def alone(self, service: str, *command: str) -> int:
        """Run a command in a new container of a service, and nothing else; its exit code."""
        words = ["docker-compose", "--project-name", PROJECT_NAME, "--file", str(self.folder / "docker/compose.yaml")]
        words += ["run", "--rm", "--no-deps", "-T", service, *command]
        return subprocess.run(words, env=self.environment, check=False, stderr=subprocess.DEVNULL).returncode

    def said(self, *command: str) -> str:
        """What a program of this machine says, which must succeed."""
        done = subprocess.run(command, env=self.environment, check=True, text=True, stdout=subprocess.PIPE)
        return done.stdout.strip()

    def _command(self, *words: str, store: bool = False) -> list[str]:
        chosen = ["COMPOSE=docker-compose", *(["STORE=1"] if store else [])]
        return ["make", "--no-print-directory", "-C", str(self.folder), *words, *chosen]

    def _make(self, log: Path, *words: str, store: bool = False) -> tuple[int, str]:
        command = self._command(*words, store=store)
        print(f"  {shlex.join(command)}", flush=True)
        with open(log, "wb") as file:
            done = subprocess.run(command, env=self.environment, check=False, stdout=file, stderr=file)
        return done.returncode, log.read_text(errors="replace")


def copied(folder: Path, environment: Mapping[str, str]) -> Services:
    """Services with the project's files, in a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROJECT / "docker", folder / "docker", ignore=shutil.ignore_patterns("secrets"))
    shutil.copy(PROJECT / "Makefile", folder)
    return Services(folder, environment)


@contextmanager
def daemon(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A dockerd with its own folders and socket, which the environment names from then on."""
    socket = folder / "docker.sock"
    command = ["dockerd", "--data-root", str(folder / "docker"), "--exec-root", str(folder / "exec")]
    command += ["-H", f"unix://{socket}", "--pidfile", str(folder / "dockerd.pid")]
    command += ["--oom-score-adjust", "0", "--default-ulimit", f"nofile={LIMITS['nofile']}"]
    environment["DOCKER_HOST"] = f"unix://{socket}"
    asked = ["docker", "version", "--format", "{{.Server.Version}}"]

    def answers() -> bool:
        done = subprocess.run(asked, env=environment, check=False, capture_output=True)
        return done.returncode == 0

    one = Program(command, folder / "dockerd.log", os.environ | environment)
    with running(one):
        one.until(answers, "an answer")
        yield
