"""A PostgreSQL of the system, with a cluster of its own on the loopback address."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chainlake.env.ports import free_port

_ACCOUNT = "postgres"


def installed() -> Path | None:
    """The folder of its newest programs; None if the system has none."""
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return tools[-1] if tools else None


@contextmanager
def serving(folder: Path, tools: Path, name: str) -> Iterator[str]:
    """A server that runs for a block; its URL.

    Args:
        folder: for its data and log; all folders above it are open to every account.
        tools: the folder of its programs.
        name: of its user and database.
    """
    folder.mkdir()
    password = secrets.token_hex(16)
    (folder / "password").write_text(password)
    as_owner: list[str] = []
    if os.geteuid() == 0:
        # The server refuses to run as root.
        shutil.chown(folder, _ACCOUNT)
        as_owner = ["runuser", "-u", _ACCOUNT, "--"]
    port = free_port(15432)
    data = folder / "data"
    make = ["-D", str(data), "-U", name, f"--pwfile={folder / 'password'}", "-A", "scram-sha-256"]
    _run([*as_owner, str(tools / "initdb"), "-N", *make])
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c fsync=off"
    start = ["-D", str(data), "-l", str(folder / "log"), "-o", options, "-w", "start"]
    _run([*as_owner, str(tools / "pg_ctl"), *start])
    try:
        named = {**os.environ, "PGPASSWORD": password}
        create = [str(tools / "createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", name, name]
        subprocess.run(create, env=named, check=True)
        yield f"postgresql+psycopg2://{name}:{password}@127.0.0.1:{port}/{name}"
    finally:
        _run([*as_owner, str(tools / "pg_ctl"), "-D", str(data), "-m", "fast", "-w", "stop"])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
