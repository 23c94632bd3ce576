"""S3Proxy, a server of an object store that keeps to conditional writes: fetched once, checked, started and stopped."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from chainlake.env.java import java_home
from chainlake.env.processes.child import die_with_parent

_JAR = "s3proxy-4.1.0-jar-with-dependencies.jar"
_COORDINATE = "org.gaul:s3proxy:4.1.0:jar:jar-with-dependencies"
#: What it takes, and the bucket that it has.
KEY, SECRET, BUCKET = "chainlake", "chainlake-secret", "lake"
_SHA256 = "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d"


@dataclass
class Server:
    """S3Proxy on a port of its own.

    Args:
        jar: the program.
        folder: its data and settings.
        port: on the loopback address.
        authorization: what it asks of who comes.
    """

    jar: Path
    folder: Path
    port: int
    authorization: str = "aws-v2-or-v4"
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        (self.folder / "data" / BUCKET).mkdir(parents=True, exist_ok=True)
        settings = {
            "s3proxy.endpoint": self.url,
            "s3proxy.authorization": self.authorization,
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.folder / "data"),
            "jclouds.identity": "none",
            "jclouds.credential": "none",
        }
        conf = self.folder / "s3proxy.conf"
        conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java = Path(os.environ.get("JAVA_HOME") or java_home(), "bin", "java")
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [java, "-Xmx400m", "-jar", self.jar, "--properties", conf],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent(signal.SIGKILL),
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"S3Proxy did not start: see {self.folder / 'server.log'}")

    def stop(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


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
