"""Free ports on the loopback interface."""

from __future__ import annotations

import socket

from jobs.errors import InfrastructureError

HOST = "127.0.0.1"


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections are still closing counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(first: int, tries: int = 200) -> int:
    """The first free port at or after ``first``.

    Raises:
        InfrastructureError: ``tries`` ports in a row are taken.
    """
    for port in range(first, first + tries):
        if _is_free(port):
            return port
    raise InfrastructureError(
        f"no free port between {first} and {first + tries - 1} on {HOST}", hint="End the programs that hold them."
    )
