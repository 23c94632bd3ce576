"""Child processes that never outlive their parent.

``SparkSubmitOperator`` leaves the driver running after a timeout or when a worker dies. Here the kernel ends the child
when its parent dies (``PR_SET_PDEATHSIG``), and the parent ends it in ``finally`` (SIGTERM, then SIGKILL).
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from chainlake.env.processes.waiting import Notice
from chainlake.errors import InfrastructureError

_PR_SET_PDEATHSIG = 1
#: Seconds between SIGTERM and SIGKILL.
GRACE_S = 5.0
# Loaded at import, since loading a library after a fork could deadlock in a process with threads.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Killed(InfrastructureError):
    """A child process did not end by itself: a signal ended it, which it could not say itself."""

    @classmethod
    def of(cls, number: int) -> Killed:
        """For the number of the signal."""
        return cls(
            f"the process was killed from outside, by signal {number}, perhaps because the machine is short of memory",
            hint="Nothing half is published: run the same command again. If it is killed again, give it less to do at "
            "once, or lower SPARK_DRIVER_MEMORY.",
        )


def die_with_parent(sig: int = signal.SIGKILL) -> Callable[[], None]:
    """A ``preexec_fn`` that makes the kernel send ``sig`` to the child when the thread that started it ends.

    On systems other than Linux it does nothing, and :func:`run_child` and the guard do without it.
    """
    parent = os.getpid()

    def prepare() -> None:
        if _LIBC is None:
            return
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)
        if os.getppid() != parent:
            # The parent died between fork and prctl, so no signal would ever come.
            os._exit(0)

    return prepare


def stop_process(process: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> None:
    """End ``process`` with SIGTERM, then SIGKILL after ``grace_s`` seconds; returns when it is gone."""
    if process.poll() is not None:
        return
    process.terminate()
    if not wait_until(lambda: process.poll() is not None, grace_s, what=f"process {process.pid} to end"):
        process.kill()
        process.wait()


def run_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    on_line: Callable[[str], None],
    watch_parent: bool = True,
) -> int:
    """Run ``command`` in this process group, hand each line of its output to ``on_line``, and return its exit code.

    The child ends when this process ends, however that happens; when this function is left by an exception (a timeout
    or SIGTERM of the task); and when this process loses its own parent (a killed scheduler), since an unsupervised
    task must not continue writing.

    Args:
        command: program and arguments.
        env: the whole environment of the child.
        cwd: its working directory.
        on_line: called for every line of stdout and stderr together, without the line end.
        watch_parent: also end when this process loses its own parent; commands given in a shell should outlive it.

    Returns:
        the exit code, or the negative signal number if a signal ended the child.
    """
    supervisor = os.getppid()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=dict(env),
        cwd=cwd,
        preexec_fn=die_with_parent(),
    )
    assert process.stdout is not None
    rest = b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if watch_parent and os.getppid() != supervisor:
                    on_line("the supervisor of this task is gone: ending")
                    raise SystemExit(1)
                if selector.select(timeout=1.0):
                    block = os.read(process.stdout.fileno(), 65536)
                    if not block:
                        break
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        on_line(line.decode(errors="replace"))
                elif process.poll() is not None:
                    # A grandchild may hold the pipe open, but the child itself has ended.
                    break
        if rest:
            on_line(rest.decode(errors="replace"))
        return process.wait()
    finally:
        stop_process(process)
        process.stdout.close()


def wait_until(
    condition: Callable[[], bool], timeout_s: float, every_s: float = 0.05, *, what: str = "what was asked to end"
) -> bool:
    """Poll ``condition`` until it holds or ``timeout_s`` seconds have passed; returns whether it held.

    Args:
        condition: what should become true.
        timeout_s: how many seconds to wait for it.
        every_s: pause between two polls, seconds.
        what: what is waited for; after a second, a message reports it.
    """
    end = time.monotonic() + timeout_s
    notice = Notice(lambda: what)
    while not condition():
        notice.turn()
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True
