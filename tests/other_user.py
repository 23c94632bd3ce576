"""Act for another user of this machine: a fork of the tests that has given up their rights."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

#: ``nobody``.
_OTHER = 65534


def as_other_user(work: Callable[[], Any]) -> Any:
    """What ``work`` returns, as JSON knows it, when another user does it; skips the test where we are not root."""
    return follow(*start_as_other_user(lambda tell: tell(work())))


def start_as_other_user(work: Callable[[Callable[[Any], None]], None]) -> tuple[int, int]:
    """Start ``work`` for another user; it tells values, one after another. Returns pid and where they are read."""
    if os.geteuid() != 0:
        pytest.skip("only root can act for another user")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(_OTHER)
            os.setuid(_OTHER)
            work(lambda value: _write(writing, value))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    return pid, reading


def _write(descriptor: int, value: Any) -> None:
    with os.fdopen(os.dup(descriptor), "w") as pipe:
        pipe.write(json.dumps(value) + "\n")


def follow(pid: int, reading: int) -> Any:
    """The last value that was told; the process must have ended well."""
    with os.fdopen(reading) as pipe:
        told = pipe.read().splitlines()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, told
    return json.loads(told[-1]) if told else None
