"""The processes of a running launcher, by what they are."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from chainlake.local import guard
from chainlake.paths import Home

#: The tree of processes is looked at this often while a point is waited for.
_LOOK_S = 0.25
_GONE = (psutil.NoSuchProcess, psutil.ZombieProcess)


class Victims:
    """The processes as they are now.

    Args:
        home: the installation.
        launcher: pid of the launcher.
    """

    def __init__(self, home: Home, launcher: int) -> None:
        self._launcher = [psutil.Process(launcher)]
        self._all = all_of(home)
        self._known: dict[int, tuple[psutil.Process, str, int]] = {}
        for process in self._all:
            with contextlib.suppress(*_GONE):
                self._known[process.pid] = (process, " ".join(process.cmdline()), process.ppid())
        workers = self._lines("airflow worker -- LocalExecutor")
        #: The processes that run the code of tasks.
        self._task = self._children(workers)
        self._scheduler = [self._known[pid][0] for pid in {worker.ppid() for worker in workers} if pid in self._known]
        drivers = self._of_module("chainlake.local.drivers.driver")
        self._driver = [driver for driver in drivers if self._children([driver])] or drivers
        self._below_driver = self._below(self._driver)

    @property
    def keeper(self) -> int:
        """Pid of the keeper of the Spark drivers."""
        return self._of_module("chainlake.local.drivers.keeper")[0].pid

    @property
    def step(self) -> list[psutil.Process]:
        """What works on the lake: the drivers that have a JVM, and all below."""
        return self._driver + self._below_driver

    def chosen(self, target: str) -> tuple[list[psutil.Process], list[psutil.Process]]:
        """The processes that are ``target``, and all that must end with them."""
        if target == "driver":
            return self._driver, self.step + self._task
        if target == "jvm":
            java = [p for p in self._below_driver if self._known[p.pid][1].split(" ")[0].endswith("java")]
            return java, self.step + self._task
        if target == "task":
            return self._task, self.step + self._task
        if target == "scheduler":
            return self._scheduler, self._scheduler + self._below(self._scheduler) + self.step
        assert target == "launcher"
        return self._launcher, self._launcher + self._all

    def _lines(self, text: str) -> list[psutil.Process]:
        return [process for process, line, _ in self._known.values() if line.startswith(text)]

    def _of_module(self, name: str) -> list[psutil.Process]:
        """Those that Python runs as a module, whatever its arguments."""
        return [process for process, line, _ in self._known.values() if f" -m {name} " in f"{line} "]

    def _children(self, parents: Iterable[psutil.Process]) -> list[psutil.Process]:
        pids = {process.pid for process in parents}
        return [process for process, _, parent in self._known.values() if parent in pids]

    def _below(self, parents: Iterable[psutil.Process]) -> list[psutil.Process]:
        found: list[psutil.Process] = []
        more = self._children(parents)
        while more:
            found += more
            more = self._children(more)
        return found


class Family:
    """The processes below one, known beforehand so that they can be stopped at once.

    Args:
        ancestor: pid of the one above all, which is not among them.
    """

    def __init__(self, ancestor: int) -> None:
        self._ancestor = ancestor
        self._pids: list[int] = []
        self._looked = 0.0

    def look(self) -> None:
        """Take in who has been started; does nothing if it was done a moment ago."""
        if time.monotonic() - self._looked < _LOOK_S:
            return
        children: dict[int, list[int]] = {}
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            # psutil would take ten times as long.
            with contextlib.suppress(OSError):
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(pid)
        found = [self._ancestor]
        for pid in found:
            found += children.get(pid, [])
        self._pids = found[1:]
        self._looked = time.monotonic()

    def freeze(self) -> None:
        """Stop them all."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let those that are left go on."""
        self._send(signal.SIGCONT)

    def _send(self, sig: signal.Signals) -> None:
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)


def all_of(home: Home) -> list[psutil.Process]:
    """Every process of the launcher for ``home``, its database and its guard too; not the launcher itself."""
    named = []
    for process in psutil.process_iter():
        with contextlib.suppress(*_GONE):
            if any(str(home.root) in word for word in process.cmdline()):
                # The children of the database do not say whose they are.
                named += [process, *process.children()]
    marked = guard.launched_for(str(home.root))
    return list({process.pid: process for process in (*marked, *named)}.values())


def send(processes: Iterable[psutil.Process], sig: signal.Signals) -> None:
    """Send a signal to processes; those that have ended in the meantime do not count."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(sig)


def wait_gone(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait until the processes have ended; returns those that have not."""
    left = list(processes)
    end = time.monotonic() + timeout_s
    while left and time.monotonic() < end:
        left = [process for process in left if _lives(process)]
        time.sleep(0.05)
    return left


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def described(process: psutil.Process) -> str:
    """A process in words, for a report."""
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:120] or process.name()}"
    except psutil.NoSuchProcess:
        return f"{process.pid} (gone)"
