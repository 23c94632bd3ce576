"""Moto, a second server of an object store that keeps to conditional writes: installed once, started and stopped.

It holds everything in memory and looks at no key, so that nothing can be shown with it of outages and refusals.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from chainlake.env.ports import free_port
from tests.proof.processes import Program, listens
from tests.proof.s3proxy import BUCKET, led_to

_PACKAGE = "moto[s3,server]==5.2.5"


class Moto:
    """Moto on a port of its own, with one bucket.

    Args:
        program: its server.
        folder: for its log.
        port: on the loopback address.
    """

    def __init__(self, program: Path, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._port = port
        folder.mkdir(parents=True)
        command = [str(program), "-H", "127.0.0.1", "-p", str(port)]
        self._program = Program(command, folder / "moto.log", os.environ)

    def start(self) -> None:
        """Start it, wait until it answers, and make the bucket."""
        self._program.start()
        self._program.until(listens(self._port), "an answer")
        asked = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        asked.request("PUT", f"/{BUCKET}")
        answer = asked.getresponse()
        asked.close()
        if answer.status != 200:
            raise RuntimeError(f"{self.url} made no bucket: {answer.status} {answer.reason}")

    def stop(self) -> None:
        """Kill it, and with it all that it holds."""
        self._program.stop(signal.SIGKILL)


def serving(root: Path, cache: Path) -> AbstractContextManager[Moto]:
    """A store of its own that runs for a block; the environment leads to it.

    Args:
        root: for its folder ``moto``.
        cache: of the program.
    """
    return led_to(Moto(_installed(cache), root / "moto", free_port(19_200)))


def _installed(cache: Path) -> Path:
    """The program, installed from PyPI in a folder of its own on first use, or the one that is named."""
    named = os.environ.get("CHAINLAKE_MOTO")
    if named:
        return Path(named)
    folder = cache / "proof" / "moto-5.2.5"
    program = folder / "bin" / "moto_server"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", _PACKAGE]
        subprocess.run(pip, check=True, timeout=1200)
    return program
