"""The images: ours, built by podman from the project's Dockerfile, and those that stand in for the official ones."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from chainlake.paths import PROJECT, Home
from tests.proof.s3proxy import server_jar

#: What processes may have here: some machines give root no more, and refuse to raise it.
LIMITS = {"nofile": "20000:20000", "nproc": "30000:30000"}
ACCOUNT = 10001
_DEBIAN = "bookworm"
_SOURCES = "/etc/apt/sources.list.d/debian.sources"
#: Python where the official image has it, and no mark that keeps pip from working.
_PYTHON = f"""FROM localhost/debian:{_DEBIAN}
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED \\
 && ln -s /usr/bin/python3 /usr/local/bin/python && ln -s /usr/bin/python3 /usr/local/bin/python3
"""
_POSTGRES = f"""FROM localhost/debian:{_DEBIAN}
RUN apt-get update && apt-get install -y --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/*
COPY entry.sh /usr/local/bin/entry.sh
ENTRYPOINT ["/usr/local/bin/entry.sh"]
CMD ["postgres"]
"""
#: What the official image's entry point does, as far as our services use it.
_POSTGRES_ENTRY = """#!/bin/sh
set -eu
export PATH="$(echo /usr/lib/postgresql/*/bin):$PATH"
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -m 700 "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    export LANG=C.UTF-8
    initdb -D "$PGDATA" -U "$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" -A scram-sha-256
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    pg_ctl -D "$PGDATA" -o '-c listen_addresses= -c unix_socket_directories=/tmp' -w start
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") createdb -h /tmp -U "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@" -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp
"""
#: Another store with conditional writes, under the name of the program that the service starts; with our Java.
_STORE = """FROM {chainlake}
USER 0
COPY s3proxy.jar /opt/s3proxy.jar
COPY minio mc /usr/local/bin/
"""
_MINIO = """#!/bin/sh
# minio server FOLDER --address :PORT
set -eu
umask 077
cat >/tmp/s3proxy.conf <<END
s3proxy.endpoint=http://0.0.0.0$4
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity=$MINIO_ROOT_USER
s3proxy.credential=$(cat "$MINIO_ROOT_PASSWORD_FILE")
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir=$2
jclouds.identity=none
jclouds.credential=none
END
exec java -Xmx400m -jar /opt/s3proxy.jar --properties /tmp/s3proxy.conf
"""
_MC = """#!/bin/sh
# mc ready local
exec python -c 'import socket; socket.create_connection(("127.0.0.1", 9000), 5)'
"""
#: Programs that only building needs, which a container must not have.
_UNWANTED = ("gcc", "cc", "g++", "make", "git", "curl", "uv")
#: Says which packages the image's Python has.
_PACKAGES = 'from importlib.metadata import distributions as all; print(*(one.name for one in all()), sep="\\n")'


class Images:
    """The images of one proof, in a folder of podman's.

    Args:
        folder: for all that is made.
        environment: of the programs, to which podman's settings are added.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        environment["CONTAINERS_CONF"] = str(self._settings())
        self.podman = ["podman", "--root", str(folder / "pod"), "--runroot", str(folder / "podrun")]
        self.names = _names()

    def build(self) -> None:
        """Make them; what has not changed since the last time is kept by podman."""
        if not self._has(f"localhost/debian:{_DEBIAN}"):
            tar = self._folder / "base.tar"
            packages = "--include=ca-certificates,python3,python3-venv,python3-pip"
            given = shlex.split(os.environ.get("DOCKER_PROOF_BASE_ARGS", ""))
            self._do("mmdebstrap", "--variant=minbase", packages, *given, _DEBIAN, str(tar), _SOURCES)
            self._do(*self.podman, "import", "--quiet", str(tar), f"localhost/debian:{_DEBIAN}")
            tar.unlink()
        self._stand_in("python", _PYTHON, {})
        self._stand_in("postgres", _POSTGRES, {"entry.sh": _POSTGRES_ENTRY})
        self._build(
            "chainlake", PROJECT / "docker" / "Dockerfile", PROJECT, f"--build-arg=MAVEN_REPOSITORY={_repository()}"
        )
        self._stand_in("store", _STORE.format(**self.names), {"minio": _MINIO, "mc": _MC}, s3proxy=True)
        self._do(*self.podman, "images", "--format", "{{.Repository}}:{{.Tag}}  {{.Size}}")

    def faults(self) -> Iterator[str]:
        """What is wrong with the project's image, a line each."""
        image = self.names["chainlake"]
        user = self._said(*self.podman, "image", "inspect", "--format", "{{.User}}", image)
        if user != f"{ACCOUNT}:{ACCOUNT}":
            yield f"its account is '{user}', not {ACCOUNT}:{ACCOUNT}"
        found = self._within(f"for name in {' '.join(_UNWANTED)}; do command -v $name || true; done")
        yield from (f"it has the program {line}" for line in found.splitlines())
        # The base may have a pip of its own.
        found = self._within("ls -d /opt/venv/bin/pip /opt/venv/bin/uv /opt/chainlake/secrets 2>/dev/null || true")
        yield from (f"it has {line}" for line in found.splitlines())
        lock = (PROJECT / "docker" / "requirements.txt").read_text()
        wanted_packages = {"chainlake", *(_normal(name) for name in re.findall(r"^([\w.-]+)(?:\[.*\])?==", lock, re.M))}
        there = {_normal(name) for name in self._within(f"python -c '{_PACKAGES}'").splitlines()}
        if not there:
            yield "it has no package"
        yield from (
            f"it has the package {name}, which its lock does not name" for name in sorted(there - wanted_packages)
        )
        writable = "find / -xdev -type d -writable -not -path '/proc/*' -not -path '/dev/*' 2>/dev/null || true"
        wanted = {"/tmp", "/var/tmp", "/run/lock", "/var/lib/chainlake", "/var/lib/airflow", "/var/cache/chainlake"}
        wanted |= {"/var/lib/spark"}
        yield from (f"the account can write to {at}" for at in self._within(writable).splitlines() if at not in wanted)

    def hand_over(self, *names: str) -> None:
        """Give images to the daemon that the environment names; what they have in common goes over once."""
        save = [*self.podman, "save", "--multi-image-archive", *(self.names[name] for name in names)]
        self._do("sh", "-c", f"{shlex.join(save)} | docker load --quiet")

    def _stand_in(self, name: str, text: str, files: Mapping[str, str], *, s3proxy: bool = False) -> None:
        context = self._folder / name
        context.mkdir(exist_ok=True)
        (context / "Dockerfile").write_text(text)
        for file, content in files.items():
            (context / file).write_text(content)
            (context / file).chmod(0o755)
        if s3proxy:
            shutil.copy(server_jar(Home.from_env().cache), context / "s3proxy.jar")
        self._build(name, context / "Dockerfile", context)

    def _build(self, name: str, file: Path, context: Path, *options: str) -> None:
        limits = [f"--ulimit={limit}={value}" for limit, value in LIMITS.items()]
        given = [*options, *shlex.split(os.environ.get("DOCKER_PROOF_BUILD_ARGS", ""))]
        self._do(
            *self.podman, "build", "--quiet", *limits, *given, "-f", str(file), "-t", self.names[name], str(context)
        )

    def _within(self, script: str) -> str:
        """What a shell in a container of our image says."""
        run = [*self.podman, "run", "--rm", "--network", "none", "--cap-drop", "all", self.names["chainlake"]]
        return self._said(*run, "sh", "-c", script)

    def _has(self, image: str) -> bool:
        command = [*self.podman, "image", "exists", image]
        return subprocess.run(command, env=self._environment, check=False).returncode == 0

    def _do(self, *command: str) -> None:
        print(f"  {shlex.join(command)[:160]}", flush=True)
        subprocess.run(command, env=self._environment, check=True)

    def _said(self, *command: str) -> str:
        done = subprocess.run(command, env=self._environment, check=True, text=True, stdout=subprocess.PIPE)
        return done.stdout.strip()

    def _settings(self) -> Path:
        file = self._folder / "containers.conf"
        limits = ", ".join(f'"{name}={value}"' for name, value in LIMITS.items())
        file.write_text(
            f'[containers]\ndefault_ulimits = [{limits}]\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'
            'events_logger = "file"\n[network]\nnetwork_backend = "netavark"\n'
        )
        return file


def _normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _repository() -> str:
    """Where the image's JARs come from, as the Makefile says it."""
    (found,) = re.findall(r"^MAVEN_REPOSITORY \?= (\S+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    return os.environ.get("MAVEN_REPOSITORY") or found


def _names() -> dict[str, str]:
    """The names that the Dockerfile and the services give to the images."""
    services = yaml.safe_load((PROJECT / "docker" / "compose.yaml").read_text())
    own = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", services["x-chainlake"]["image"])
    (base,) = re.findall(r"^FROM (\S+:\S+) AS base$", (PROJECT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    names = {"python": base, "chainlake": own}
    names |= {"postgres": services["services"]["database"]["image"], "store": services["services"]["store"]["image"]}
    # Names without a host are those of Docker's registry, and without an account those of its library.
    return {key: f"docker.io/{name if '/' in name else 'library/' + name}" for key, name in names.items()}
