"""Peak memory and CPU time of a Spark application on one machine: JVMs, Python workers, other Python."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from types import TracebackType

import psutil

KINDS = ("jvm", "worker", "python")
_SECONDS = 0.25
#: What Spark's Python workers are forked from: its own daemon, or ours. They have its command line.
_DAEMONS = {"pyspark.daemon", "chainlake.lake.spark.worker_daemon"}


class PeakMemory:
    """A context that watches this process (or another one) and everything that it starts.

    For each kind, ``peak`` is the largest resident memory that a single process had (the kernel's high-water mark), and
    ``together`` the largest sum over all processes of the kind seen at one time, both in MB. Memory that processes
    share counts in each. ``cpu`` is what the processes of each kind had spent when they were last seen, in seconds.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = psutil.Process(root)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = dict.fromkeys(KINDS, 0)
        self.together = dict.fromkeys(KINDS, 0)
        self._spent: dict[int, tuple[str, float]] = {}

    @property
    def cpu(self) -> dict[str, float]:
        """CPU seconds by kind."""
        return {kind: sum(spent for mine, spent in self._spent.values() if mine == kind) for kind in KINDS}

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS):
            self._look()

    def _look(self) -> None:
        now = dict.fromkeys(KINDS, 0)
        try:
            processes = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return  # the watched process has ended
        for process in processes:
            try:
                words = process.cmdline()
                resident = process.memory_info().rss // 2**20
                highest = int(high_water_mb(process.pid))
                times = process.cpu_times()
            except (psutil.Error, OSError):
                continue  # the process has ended in the meantime
            kind = _kind(words)
            if kind is not None:
                now[kind] += resident
                self.peak[kind] = max(self.peak[kind], highest)
                self._spent[process.pid] = kind, times.user + times.system
        self.together = {kind: max(most, now[kind]) for kind, most in self.together.items()}


def cpu_seconds(watched: Sequence[int] = ()) -> float:
    """CPU seconds so far of this process, of those that are watched, and of all that they started."""
    total = 0.0
    for pid in (os.getpid(), *watched):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            try:
                total += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                # It has ended since; what it spent is in its parent's times of children.
                continue
    return total


def _kind(words: list[str]) -> str | None:
    if not words:
        return None
    if words[0].rsplit("/", 1)[-1] == "java":
        return "jvm"
    if not _DAEMONS.isdisjoint(words):
        return "worker"
    return "python" if "python" in words[0].rsplit("/", 1)[-1] else None


def high_water_mb(pid: int | str) -> float:
    """The largest resident memory that a process (``self``: this one) has ever had, in MB."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        line = next((line for line in status if line.startswith("VmHWM")), "VmHWM: 0 kB")
    return int(line.split()[1]) / 1_024
