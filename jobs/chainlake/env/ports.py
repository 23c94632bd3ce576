"""Ports on the loopback interface: finds free ones, and checks who owns a server before it gets a secret."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from chainlake.errors import InfrastructureError
from chainlake.terminal import one_line

HOST = "127.0.0.1"


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers do the same: a port whose last connections are still closing counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


@dataclass(frozen=True)
class Listener:
    """Who listens on a port.

    Args:
        user: id of the user who opened it.
        pids: the processes that hold it, as far as this process may see: none of another user's.
    """

    user: int
    pids: frozenset[int]

    def __str__(self) -> str:
        """Who it is, for people: the processes with their commands, or else the user."""
        if not self.pids:
            return f"a process of user {self.user}"
        return ", ".join(f"process {pid} ({_command(pid)})" for pid in sorted(self.pids))


class ForeignServer(InfrastructureError):
    """Another program listens on a port of ours: before our server has bound it, or after our server has ended."""

    def __init__(self, port: int, listener: Listener) -> None:
        whose = "another user of this machine" if listener.user != os.geteuid() else "another program"
        super().__init__(
            f"port {port} of {HOST} is held by {whose}, {listener}, so nothing was sent to it",
            hint="Start Airflow again: it takes another port.",
        )


def require_own(port: int, ours: Callable[[int], bool] | None = None) -> None:
    """Check that nobody else listens on ``port``; on systems other than Linux, nothing can be checked.

    Args:
        port: a port of this machine.
        ours: whether a process, given by its pid, is one that we started; by default, every process of this user is.

    Raises:
        ForeignServer: another user does, or a process that is not ours.
    """
    for listener in foreign(port, ours):
        raise ForeignServer(port, listener)


def foreign(port: int, ours: Callable[[int], bool] | None = None) -> list[Listener]:
    """Those who listen on ``port`` and should not; the arguments are those of :func:`require_own`."""
    found = []
    for listener in _listeners(port, with_pids=ours is not None):
        if ours is None:
            wrong = listener.user != os.geteuid()
        else:
            wrong = not any(ours(pid) for pid in listener.pids)
        if wrong:
            found.append(listener)
    return found


def _listeners(port: int, *, with_pids: bool) -> list[Listener]:
    """Who listens on ``port`` of this machine; processes are looked for only where they are asked for."""
    users: dict[str, int] = {}
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            # Number, local address, remote address, state (0A: listening), queues, timer, retransmits, user id, probes,
            # inode.
            words = line.split()
            if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                users[words[9]] = int(words[7])
    pids = _holders(users) if users and with_pids else {}
    return [Listener(user, frozenset(pids.get(inode, ()))) for inode, user in users.items()]


def _holders(inodes: Collection[str]) -> dict[str, set[int]]:
    """The processes that hold each of these sockets, as far as this process may look into them."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[str, set[int]] = {}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        # A process may end, close a file, or be another user's, who lets nobody look.
        with contextlib.suppress(OSError):
            for entry in folder.iterdir():
                with contextlib.suppress(OSError):
                    if inode := wanted.get(os.readlink(entry)):
                        found.setdefault(inode, set()).add(int(folder.parent.name))
    return found


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended since"
    return one_line(" ".join(word.decode(errors="replace") for word in words).strip()[:80])


class NoFreePort(InfrastructureError):
    """All ports that were tried are taken."""

    @classmethod
    def of(cls, first: int, tries: int) -> NoFreePort:
        """For the ports that were tried."""
        what = f"no free port between {first} and {first + tries - 1} on {HOST}"
        return cls(what, hint="End the programs that hold them.")


def free_port(first: int, tries: int = 200) -> int:
    """The first free port at or after ``first``.

    Raises:
        InfrastructureError: ``tries`` ports in a row are taken.
    """
    for port in range(first, first + tries):
        if _is_free(port):
            return port
    raise NoFreePort.of(first, tries)
