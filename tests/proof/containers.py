"""``make docker-proof``: build the image, start the services of docker/compose.yaml, run the shipped days through them.

For machines without a registry: podman builds the project's own Dockerfile on a base image made of Debian's packages,
which stands in under the base's name, and so does one of PostgreSQL; dockerd and docker-compose run them. What the
machine needs to reach its package indexes is not the project's, and comes from the environment:

DOCKER_PROOF_BUILD_ARGS   options of ``podman build``, such as ``-v`` for a file of certificates
DOCKER_PROOF_BASE_ARGS    options of ``mmdebstrap``
DOCKER_PROOF_RUN_ARGS     options of the run, such as ``--source sensor --days 1``
DOCKER_PROOF_FOLDER       where images are kept, to be quicker the next time; a temporary folder if unset
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from chainlake.paths import PROJECT
from tests.proof.processes import Program, running

TOOLS = ("podman", "runc", "dockerd", "docker", "docker-compose", "mmdebstrap", "iptables")
#: What processes may have here: some machines give root no more, and refuse to raise it.
LIMITS = {"nofile": "20000:20000", "nproc": "30000:30000"}
DEBIAN = "bookworm"
SOURCES = "/etc/apt/sources.list.d/debian.sources"
#: Python where the official image has it, and no mark that keeps pip from working.
PYTHON = f"""FROM localhost/debian:{DEBIAN}
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED \\
 && ln -s /usr/bin/python3 /usr/local/bin/python && ln -s /usr/bin/python3 /usr/local/bin/python3
"""
POSTGRES = f"""FROM localhost/debian:{DEBIAN}
RUN apt-get update && apt-get install -y --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/*
COPY entry.sh /usr/local/bin/entry.sh
ENTRYPOINT ["/usr/local/bin/entry.sh"]
CMD ["postgres"]
"""
#: What the official image's entry point does, as far as our services use it.
ENTRY = """#!/bin/sh
set -eu
export PATH="$(echo /usr/lib/postgresql/*/bin):$PATH"
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -m 700 "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb -D "$PGDATA" -U "$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" -A scram-sha-256
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    pg_ctl -D "$PGDATA" -o '-c listen_addresses= -c unix_socket_directories=/tmp' -w start
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") createdb -h /tmp -U "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@" -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp
"""


def main() -> int:
    """Build and run; 0 if every run of the shipped days ended green."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or absent:
        print(f"skipped: this needs root{''.join(f', {tool}' for tool in absent)}")
        return 0
    kept = os.environ.get("DOCKER_PROOF_FOLDER")
    folder = Path(kept or tempfile.mkdtemp(prefix="docker-proof-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        proof = _Proof(folder)
        proof.build()
        return proof.run()
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


class _Proof:
    """The images and services of one proof.

    Args:
        folder: for all that it makes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun = time.monotonic()
        self._environment = os.environ | {"CONTAINERS_CONF": str(self._podman_conf()), "TMPDIR": str(folder)}
        self._podman = ["podman", "--root", str(folder / "pod"), "--runroot", str(folder / "podrun")]
        self._images = _images()

    def build(self) -> None:
        """Make the images that are not there yet, and ours anew."""
        if not self._has(f"localhost/debian:{DEBIAN}"):
            tar = self._folder / "base.tar"
            packages = "--include=ca-certificates,python3,python3-venv,python3-pip"
            given = shlex.split(os.environ.get("DOCKER_PROOF_BASE_ARGS", ""))
            self._do(["mmdebstrap", "--variant=minbase", packages, *given, DEBIAN, str(tar), SOURCES])
            self._do([*self._podman, "import", str(tar), f"localhost/debian:{DEBIAN}"])
            tar.unlink()
        for name, text in (("python", PYTHON), ("postgres", POSTGRES)):
            if not self._has(self._images[name]):
                context = self._folder / name
                context.mkdir(exist_ok=True)
                (context / "Dockerfile").write_text(text)
                (context / "entry.sh").write_text(ENTRY)
                (context / "entry.sh").chmod(0o755)
                self._build(self._images[name], context / "Dockerfile", context)
        self._build(self._images["chainlake"], PROJECT / "docker" / "Dockerfile", PROJECT)
        self._do([*self._podman, "images"])

    def run(self) -> int:
        """Start the services, run the shipped days, stop them."""
        # A copy, so that the secrets of a proof are not those of the checkout.
        services = self._folder / "services"
        shutil.rmtree(services, ignore_errors=True)
        shutil.copytree(PROJECT / "docker", services, ignore=shutil.ignore_patterns("secrets"))
        with self._daemon():
            self._do([str(services / "secrets.sh")])
            for name in ("postgres", "chainlake"):
                pipe = f"{shlex.join([*self._podman, 'save', self._images[name]])} | docker load"
                self._do(["sh", "-c", pipe])
            compose = ["docker-compose", "--project-name", "chainlake", "--file", str(services / "compose.yaml")]
            try:
                self._do([*compose, "up", "--detach", "--no-build"])
                self._do([*compose, "ps"])
                self._do([*compose, "exec", "-T", "api-server", "id"])
                given = shlex.split(os.environ.get("DOCKER_PROOF_RUN_ARGS", ""))
                passwords = ["--passwords", "/run/secrets/airflow_passwords"]
                program = ["python", "-m", "chainlake.local.run.elsewhere", *passwords, *given]
                code = self._do([*compose, "exec", "-T", "api-server", *program], check=False)
                self._do(["docker", "stats", "--no-stream", "--format", "{{.Name}}\t{{.MemUsage}}\t{{.CPUPerc}}"])
                self._do([*compose, "ps"])
            except subprocess.CalledProcessError:
                self._do([*compose, "logs", "--tail", "60"], check=False)
                raise
            finally:
                self._do([*compose, "down", "--volumes"], check=False)
        print("every run ended green" if code == 0 else f"NOT GREEN: exit code {code}")
        return 0 if code == 0 else 1

    def _do(self, command: Sequence[str], *, check: bool = True) -> int:
        print(f"[{time.monotonic() - self._begun:5.0f}s] {shlex.join(command)[:160]}", flush=True)
        return subprocess.run(command, env=self._environment, check=check).returncode

    def _has(self, image: str) -> bool:
        command = [*self._podman, "image", "exists", image]
        return subprocess.run(command, env=self._environment, check=False).returncode == 0

    def _build(self, image: str, file: Path, context: Path) -> None:
        limits = [f"--ulimit={name}={value}" for name, value in LIMITS.items()]
        given = [f"--build-arg=MAVEN_REPOSITORY={_repository()}"] if image == self._images["chainlake"] else []
        given += shlex.split(os.environ.get("DOCKER_PROOF_BUILD_ARGS", ""))
        self._do([*self._podman, "build", "--quiet", *limits, *given, "-f", str(file), "-t", image, str(context)])

    def _podman_conf(self) -> Path:
        file = self._folder / "containers.conf"
        limits = ", ".join(f'"{name}={value}"' for name, value in LIMITS.items())
        file.write_text(
            f'[containers]\ndefault_ulimits = [{limits}]\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'
            'events_logger = "file"\n'
        )
        return file

    @contextmanager
    def _daemon(self) -> Iterator[None]:
        """A dockerd of our own, with its own folders and socket."""
        socket = self._folder / "docker.sock"
        command = ["dockerd", "--data-root", str(self._folder / "docker"), "--exec-root", str(self._folder / "exec")]
        command += ["-H", f"unix://{socket}", "--pidfile", str(self._folder / "dockerd.pid")]
        command += ["--oom-score-adjust", "0", "--default-ulimit", f"nofile={LIMITS['nofile']}"]
        self._environment["DOCKER_HOST"] = f"unix://{socket}"
        daemon = Program(command, self._folder / "dockerd.log", self._environment)
        asked = ["docker", "version", "--format", "{{.Server.Version}}"]
        with running(daemon):
            daemon.until(lambda: self._do(asked, check=False) == 0, "an answer")
            yield


def _repository() -> str:
    """Where the image's JARs come from, as the Makefile says it."""
    (found,) = re.findall(r"^MAVEN_REPOSITORY \?= (\S+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    return os.environ.get("MAVEN_REPOSITORY") or found


def _images() -> dict[str, str]:
    """The names that the Dockerfile and the services give to the images."""
    services = yaml.safe_load((PROJECT / "docker" / "compose.yaml").read_text())
    own = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", services["x-chainlake"]["image"])
    (base,) = re.findall(r"^FROM (\S+:\S+) AS base$", (PROJECT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    names = {"python": base, "postgres": services["services"]["database"]["image"]}
    # Names without a host are those of Docker's registry.
    return {key: f"docker.io/library/{name}" for key, name in {**names, "chainlake": own}.items()}


if __name__ == "__main__":
    sys.exit(main())
