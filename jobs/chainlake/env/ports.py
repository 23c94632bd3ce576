"""Ports on the loopback interface: finds free ones, and checks who owns a server before it gets a secret."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from chainlake.errors import InfrastructureError

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


class ForeignServer(InfrastructureError):
    """Another user of the machine listens on a port of ours, which is possible once our server has ended."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"port {port} of {HOST} is held by another user of this machine, so nothing was sent to it",
            hint="Start Airflow again: it takes another port.",
        )


def require_own(port: int) -> None:
    """Check that no other user listens on ``port``; on systems other than Linux, nothing can be checked.

    Raises:
        ForeignServer: another user does.
    """
    if any(owner != os.geteuid() for owner in _listeners(port)):
        raise ForeignServer(port)


def _listeners(port: int) -> list[int]:
    """User ids of the processes that listen on ``port`` of this machine."""
    owners = []
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            # Number, local address, remote address, state (0A: listening), queues, timer, retransmits, user id.
            words = line.split()
            if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                owners.append(int(words[7]))
    return owners


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
