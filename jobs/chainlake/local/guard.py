"""No orphan, even after ``kill -9`` of the launcher: a small process that outlives it and ends what is left.

Everything a launcher starts carries its home in the environment variable ``CHAINLAKE_LAUNCHED_FOR`` (children and
grandchildren inherit it, the JVM too). The guard waits for the end of a pipe that only the launcher holds open.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil

from chainlake.paths import PROJECT

MARK = "CHAINLAKE_LAUNCHED_FOR"
#: How long processes get to end by themselves after SIGTERM before they are killed.
GRACE_S = 3.0


def _children_first(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Newest first, so that a supervisor has no time to restart or report what was ended below it."""
    return sorted(processes, key=lambda process: process.pid, reverse=True)


def launched_for(home: str) -> list[psutil.Process]:
    """All processes that a launcher for ``home`` started, directly or not; never this process itself."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == home:
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            # Gone in the meantime, or another user's: not ours in either case.
            found += []
    return found


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
        # Whatever was being started while we looked is found by the next look.
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
    """Start the guard for ``home``; keep the returned process and call :func:`dismiss` after a clean stop."""
    return subprocess.Popen(
        [sys.executable, "-m", "chainlake.local.guard", home],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=PROJECT,
    )


def dismiss(guard: subprocess.Popen[bytes]) -> None:
    """Tell the guard that everything was stopped; returns when it has ended."""
    assert guard.stdin is not None
    try:
        guard.stdin.write(b"bye\n")
        guard.stdin.close()
    except BrokenPipeError:
        # Somebody killed the guard: nothing to dismiss.
        return
    guard.wait()


def main(home: str) -> None:
    """Wait for the launcher's word or its end; without the word, end what it left."""
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    if sys.stdin.buffer.read() != b"bye\n":
        # A moment for the database to shut down cleanly on its own death signal.
        time.sleep(0.2)
        end_all(home)


if __name__ == "__main__":
    main(sys.argv[1])
