"""The programs that a proof starts and ends, and how it waits for them: as long as they work, on a busy machine, too.

A wait ends with an error when the program has ended, when all programs of the proof together stand still, or when they
have used more CPU time than they could need; never since a time of the clock has passed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from chainlake.env.processes.child import die_with_parent
from chainlake.paths import PROJECT

#: Who waits looks so often whether it is there, and so often how much CPU time was used.
_LOOK_S, _COUNT_S = 0.2, 5.0
#: The programs stand still if they used less than so many seconds of CPU time within so many of the clock.
_LEAST_CPU_S, _STILL_S = 2.0, 300.0
#: A wait in which more CPU time is used never ends.
_MOST_CPU_S = 1800.0
#: Seconds between SIGTERM and SIGKILL.
_GRACE_S = 60.0
#: Characters of the end of a log that an error tells.
_TOLD = 2000

_running: list[Program] = []


class Stuck(Exception):
    """What a proof waits for does not come."""

    @classmethod
    def of(cls, program: Program, what: str, why: str) -> Stuck:
        """For the program that is waited for."""
        return cls(f"{program.name}: {what}: {why}; the end of {program.log}:\n{program.said()[-_TOLD:]}")


class Program:
    """A program with all that it starts; it ends when this process does.

    Args:
        command: it and its arguments.
        log: the file that gets all that it says.
        environment: all of it.
        cwd: its working directory.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str], cwd: Path = PROJECT) -> None:
        self.name, self.log = log.stem, log
        self._command, self._environment, self._cwd = command, dict(environment), cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._from = 0

    def start(self) -> None:
        """Start it, or start it again."""
        with open(self.log, "ab") as log:
            self._from = log.tell()
            self._process = subprocess.Popen(
                self._command, cwd=self._cwd, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=die_with_parent(signal.SIGKILL),
            )  # fmt: skip
        _running.append(self)

    def stop(self, sig: signal.Signals = signal.SIGTERM) -> None:
        """End it and all that it started; nothing if it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        _running.remove(self)
        for one in (sig, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, one)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)

    @property
    def pid(self) -> int:
        """Its process, while it runs."""
        return self._started().pid

    def said(self) -> str:
        """All that it has said since it was started."""
        with open(self.log, "rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    def until(self, ready: Callable[[], bool], what: str) -> None:
        """Wait for something that the program does.

        Args:
            ready: whether it is done.
            what: what is waited for, in words.

        Raises:
            Stuck: it does not come.
        """
        process = self._started()

        def look() -> bool:
            if ready():
                return True
            if process.poll() is not None:
                raise Stuck.of(self, what, f"it has ended with {process.returncode}")
            return False

        self._wait(look, what)

    def finish(self) -> tuple[int, str]:
        """Wait for its end; its exit code and what it said.

        Raises:
            Stuck: it does not end.
        """
        process = self._started()
        self._wait(lambda: process.poll() is not None, "its end")
        said, code = self.said(), process.returncode
        self.stop()
        return code, said

    def cpu_s(self) -> float:
        """Seconds of CPU time that it and all that it started have used."""
        used = 0.0
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self._started().pid)
            for one in (first, *first.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    used += sum(one.cpu_times()[:4])
        return used

    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        begun = counted = moved = time.monotonic()
        first = mark = _cpu_s()
        while not done():
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if now - counted < _COUNT_S:
                continue
            counted, used = now, _cpu_s()
            if used >= mark + _LEAST_CPU_S:
                mark, moved = used, now
            if now - moved > _STILL_S:
                raise Stuck.of(self, what, f"nothing has worked for {now - moved:.0f} s")
            if used - first > _MOST_CPU_S:
                raise Stuck.of(self, what, f"not there after {used - first:.0f} s of CPU time, {now - begun:.0f} s")


def _cpu_s() -> float:
    return sum(program.cpu_s() for program in _running)


@contextmanager
def running(program: Program) -> Iterator[Program]:
    """The program, started, and ended at the end of the block."""
    program.start()
    try:
        yield program
    finally:
        program.stop()


def run(command: Sequence[str], log: Path, environment: Mapping[str, str], cwd: Path = PROJECT) -> tuple[int, str]:
    """Run a program to its end; its exit code and what it said.

    Raises:
        Stuck: it does not end.
    """
    with running(Program(command, log, environment, cwd)) as program:
        return program.finish()


def listens(port: int) -> Callable[[], bool]:
    """Whether something listens on a port of the loopback address, to be asked again and again."""

    def ask() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return ask
