"""S3Proxy, a server of an object store that keeps to conditional writes: fetched once, checked, started and stopped."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from chainlake.env.java import java_home
from chainlake.env.ports import free_port
from tests.proof.processes import Program, listens

_JAR = "s3proxy-4.1.0-jar-with-dependencies.jar"
_COORDINATE = "org.gaul:s3proxy:4.1.0:jar:jar-with-dependencies"
#: What it takes, and the bucket that it has.
KEY, SECRET, BUCKET = "chainlake", "chainlake-secret", "lake"
_SHA256 = "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d"


class Server:
    """S3Proxy on a port of its own.

    Args:
        jar: the program.
        folder: for its data, settings and log.
        port: on the loopback address.
        authorization: what it asks of who comes.
    """

    def __init__(self, jar: Path, folder: Path, port: int, authorization: str = "aws-v2-or-v4") -> None:
        self.jar, self.folder, self.port = jar, folder, port
        self.url = f"http://127.0.0.1:{port}"
        (self._data / BUCKET).mkdir(parents=True)
        told = {
            "s3proxy.endpoint": self.url,
            "s3proxy.authorization": authorization,
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self._data),
            "jclouds.identity": "none",
            "jclouds.credential": "none",
        }
        conf = folder / "s3proxy.conf"
        conf.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        java = str(Path(os.environ.get("JAVA_HOME") or java_home(), "bin", "java"))
        command = [java, "-Xmx400m", "-jar", str(jar), "--properties", str(conf)]
        self._program = Program(command, folder / "s3proxy.log", os.environ)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._program.start()
        self._program.until(listens(self.port), "an answer")

    def stop(self) -> None:
        """Kill it; what it holds stays."""
        self._program.stop(signal.SIGKILL)

    @property
    def pid(self) -> int:
        """Its process, while it runs."""
        return self._program.pid

    def written(self) -> int:
        """The time of the newest change of what it holds, in nanoseconds."""
        times = [self._data.stat().st_mtime_ns]
        for folder, _, _ in os.walk(self._data):
            with suppress(FileNotFoundError):
                times.append(os.stat(folder).st_mtime_ns)
        return max(times)


class Store(Protocol):
    """A server of an object store with the bucket."""

    url: str

    def start(self) -> None:
        """Start it, and wait until it answers."""

    def stop(self) -> None:
        """Kill it."""


AnyStore = TypeVar("AnyStore", bound=Store)


@contextmanager
def led_to(server: AnyStore) -> Iterator[AnyStore]:
    """The server runs for a block, and the environment leads to it."""
    server.start()
    os.environ |= {
        "CHAINLAKE_STORE_ENDPOINT": server.url,
        "CHAINLAKE_STORE_ACCESS_KEY": KEY,
        "CHAINLAKE_STORE_SECRET_KEY": SECRET,
        "CHAINLAKE_STORE_REGION": "us-east-1",
    }
    try:
        yield server
    finally:
        server.stop()


def serving(root: Path, cache: Path) -> AbstractContextManager[Server]:
    """A store of its own that runs for a block; the environment leads to it.

    Args:
        root: for its folder ``s3``.
        cache: of the program.
    """
    return led_to(Server(server_jar(cache), root / "s3", free_port(19_100)))


def server_jar(cache: Path) -> Path:
    """The program, fetched by Maven on first use.

    Raises:
        RuntimeError: it cannot be fetched, or is another one.
    """
    named = os.environ.get("CHAINLAKE_S3PROXY")
    jar = Path(named) if named else cache / "proof" / _JAR
    if not jar.is_file():
        jar.parent.mkdir(parents=True, exist_ok=True)
        goal = ["dependency:copy", f"-Dartifact={_COORDINATE}", f"-DoutputDirectory={jar.parent}"]
        subprocess.run(["mvn", "-q", "-B", *goal, "-Dmdep.useBaseVersion=true"], check=True, timeout=600)
    if hashlib.sha256(jar.read_bytes()).hexdigest() != _SHA256:
        raise RuntimeError(f"{jar} is not the expected file: its SHA-256 differs from {_SHA256}")
    return jar
