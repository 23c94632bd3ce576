"""Runs a step in a warm Spark driver, if a keeper of drivers is running."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Sequence
from typing import TypedDict

from chainlake.env.ports import HOST, require_own
from chainlake.errors import InfrastructureError

#: Environment variable of the tasks with ``PORT:TOKEN`` of the keeper.
ADDRESS = "CHAINLAKE_DRIVERS"

#: Longest line of a step's output, bytes.
LINE_BYTES = 1 << 24


class Request(TypedDict):
    """What a task asks the keeper for, once: see :func:`run_in_driver`."""

    token: str
    arguments: list[str]
    fresh: bool


class Answer(TypedDict, total=False):
    """What the keeper says: a line of the output each, and at last the exit code and the process id of the driver."""

    line: str
    code: int
    driver: int


def run_in_driver(
    address: str, arguments: Sequence[str], on_line: Callable[[str], None], *, fresh: bool = False
) -> int | None:
    """Run ``chainlake ARGUMENTS…`` in a driver of the keeper as soon as it is this step's turn.

    The step ends when this process ends, however that happens, and when this process loses its own parent.

    Args:
        address: the address that :func:`chainlake.local.drivers.keeper.start_keeper` gave.
        arguments: the verb and its arguments.
        on_line: called for every line of the step's output.
        fresh: use a driver that has run nothing before and ends with the step.

    Returns:
        the exit code, or the negative signal number if a signal ended the driver; ``None`` if there is no keeper.

    Raises:
        InfrastructureError: the keeper ended in the middle, or another user now has its port.
    """
    supervisor = os.getppid()
    port, _, token = address.partition(":")
    require_own(int(port))
    try:
        connection = socket.create_connection((HOST, int(port)), timeout=5.0)
    except OSError:
        return None
    with connection:
        request: Request = {"token": token, "arguments": list(arguments), "fresh": fresh}
        try:
            connection.sendall(json.dumps(request).encode() + b"\n")
        except ConnectionError:
            return None
        connection.settimeout(1.0)
        rest = b""
        while True:
            if os.getppid() != supervisor:
                on_line("the supervisor of this task is gone: ending")
                raise SystemExit(1)
            try:
                block = connection.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:
                block = b""
            if not block:
                raise KeeperGone.lost()
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                answer: Answer = json.loads(line)
                if "code" in answer:
                    return answer["code"]
                on_line(answer["line"])


class KeeperGone(InfrastructureError):
    """The process that keeps the Spark drivers is not running."""

    @classmethod
    def lost(cls) -> KeeperGone:
        """The keeper ended during a step."""
        return cls("the keeper of the Spark drivers is gone", hint="Run this again.")

    @classmethod
    def not_started(cls) -> KeeperGone:
        """The keeper did not start."""
        return cls("the keeper of the Spark drivers could not be started", hint="See the lines above.")
