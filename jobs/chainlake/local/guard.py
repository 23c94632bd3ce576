"""Leaves no orphans, even after ``kill -9`` of the launcher: a small process outlives it and ends what is left.

Everything that a launcher starts carries its home in the environment variable ``CHAINLAKE_LAUNCHED_FOR``; children and
grandchildren inherit it, including the JVM. The guard waits for the end of a pipe that only the launcher holds open.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil

from chainlake.paths import PROJECT

MARK = "CHAINLAKE_LAUNCHED_FOR"
#: How many seconds processes get to end by themselves after SIGTERM before they are killed.
GRACE_S = 3.0


def _children_first(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Highest pid first, so that a supervisor has no time to restart or report the children that were ended."""
    return sorted(processes, key=lambda process: process.pid, reverse=True)


def launched_for(home: str) -> list[psutil.Process]:
    """All processes that a launcher for ``home`` started, directly or indirectly; never this process itself."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == home:
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            # It has gone in the meantime, or is another user's: not ours in either case.
            found += []
    return found


def is_launched_for(home: str) -> Callable[[int], bool]:
    """Whether a process, given by its pid, is one that a launcher for ``home`` started, directly or indirectly."""

    def launched(pid: int) -> bool:
        try:
            return bool(psutil.Process(pid).environ().get(MARK) == home)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            return False

    return launched


def end_all(home: str, grace_s: float = GRACE_S) -> int:
    """End everything that was launched for ``home``: SIGTERM, then SIGKILL until nothing is left.

    Returns:
        The number of processes that were still there.
    """
    processes = launched_for(home)
    count = len(processes)
    signals = [signal.SIGTERM] if grace_s > 0 else []
    for sig in [*signals, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL]:
        for process in _children_first(processes):
            _send(process, sig)
        psutil.wait_procs(processes, timeout=grace_s if sig == signal.SIGTERM else 2.0)
        # Processes that were being started during the last look are found by the next one.
        processes = launched_for(home)
        if not processes:
            break
    return count


def _send(process: psutil.Process, sig: signal.Signals) -> None:
    try:
        process.send_signal(sig)
    except psutil.NoSuchProcess:
        return


def start(home: str) -> subprocess.Popen[bytes]:
    """Start the guard for ``home``; keep the process returned, and call :func:`dismiss` after a clean stop."""
    return subprocess.Popen(
        [sys.executable, "-m", "chainlake.local.guard", home],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=PROJECT,
    )


def dismiss(guard: subprocess.Popen[bytes]) -> None:
    """Tell the guard that everything was stopped, and return when it has ended."""
    assert guard.stdin is not None
    try:
        guard.stdin.write(b"bye\n")
        guard.stdin.close()
    except BrokenPipeError:
        # The guard was killed: there is nothing to dismiss.
        return
    guard.wait()


def main(home: str) -> None:
    """Wait for the launcher's goodbye or its end; without the goodbye, end what it left."""
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    if sys.stdin.buffer.read() != b"bye\n":
        # This gives the database time to shut down cleanly on its own death signal.
        time.sleep(0.2)
        end_all(home)


if __name__ == "__main__":
    main(sys.argv[1])
