"""Locks between steps: one file per purpose under ``CHAINLAKE_HOME/locks``.

A Spark commit can land after the Python process that asked for it died, so a lock that guards Spark commits is held
by the JVM itself: ``java.nio`` ``FileChannel.lock``, which excludes Python's ``fcntl.lockf`` too and is freed when
the JVM ends. Both kinds are per process, not per thread: a second channel on the same file in one JVM throws, and
closing *any* descriptor of the file in one process frees that process's lock. So an in-process mutex per file stands
in front, and only who holds it touches the file.

Order: ``source-…`` or ``table-…`` first, ``ops`` always innermost.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.env.own_folders import NotWritable
from chainlake.env.waiting import Notice
from chainlake.lake.errors import LockBusy
from chainlake.paths import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A holder may be ingesting a long backlog; longer than this means something hangs.
WAIT_SECONDS = 1800.0
_POLL_SECONDS = 0.05
#: How long a thread waits for another one before it looks whether there is something to say.
_TURN_SECONDS = 0.5

_registry: dict[str, threading.Lock] = {}
_registry_guard = threading.Lock()


@contextmanager
def jvm_lock(spark: SparkSession, home: Home, purpose: str, *, wait_s: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock ``purpose`` in the session's JVM.

    Args:
        spark: the session that will commit.
        home: the installation.
        purpose: ``source-<name>`` or ``table-<schema>.<name>``.
        wait_s: give up after so many seconds.

    Raises:
        LockBusy: somebody else held it all the time; the message says who.
    """
    path = _path(home, purpose)
    wait = _Wait(path, purpose, wait_s)
    with _mutex(path, wait):
        jvm = spark._jvm
        assert jvm is not None
        file = jvm.java.io.RandomAccessFile(str(path), "rw")
        channel = file.getChannel()
        try:
            while channel.tryLock() is None:
                wait.pause()
            _sign(path, purpose)
            yield
        finally:
            file.close()


@contextmanager
def file_lock(home: Home, purpose: str, *, wait_s: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock ``purpose`` in this process, for work that needs no JVM; otherwise as :func:`jvm_lock`."""
    path = _path(home, purpose)
    wait = _Wait(path, purpose, wait_s)
    with _mutex(path, wait):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            while not _try(handle):
                wait.pause()
            os.ftruncate(handle, 0)
            os.pwrite(handle, _signature(purpose), 0)
            yield
        finally:
            os.close(handle)


def holder(home: Home, purpose: str) -> str:
    """Who holds the lock, or held it last, in words."""
    return _holder(_path(home, purpose))


def held(home: Home, purpose: str) -> bool:
    """Whether a living process holds the lock, this one included."""
    path = _path(home, purpose)
    mutex = _mutex_of(path)
    # To open and close the file while this process holds the lock would free it.
    if not mutex.acquire(blocking=False):
        return True
    try:
        if not path.exists():
            return False
        handle = os.open(path, os.O_RDWR)
        try:
            return not _try(handle)
        finally:
            os.close(handle)
    finally:
        mutex.release()


def _path(home: Home, purpose: str) -> Path:
    try:
        home.locks.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritable.home(home.locks, error) from None
    return home.locks / f"{purpose.replace('/', '.')}.lock"


class _Wait:
    """The wait for one lock: says who holds it, and gives up in the end."""

    def __init__(self, path: Path, purpose: str, wait_s: float) -> None:
        self._path, self._purpose = path, purpose
        self._deadline = time.monotonic() + wait_s
        self._notice = Notice(lambda: f"the lock '{purpose}', held by {_holder(path)}")

    def left_s(self) -> float:
        """Seconds until it gives up."""
        return max(0.0, self._deadline - time.monotonic())

    def turn(self) -> None:
        """Called in each turn of the wait."""
        self._notice.turn()

    def pause(self) -> None:
        """One turn of a wait for another process."""
        if not self.left_s():
            raise LockBusy.held(self._purpose, _holder(self._path))
        self.turn()
        time.sleep(_POLL_SECONDS)

    def ours(self) -> LockBusy:
        """The error of a wait that this process itself kept waiting."""
        return LockBusy.held_here(self._purpose)


def _mutex_of(path: Path) -> threading.Lock:
    with _registry_guard:
        return _registry.setdefault(os.path.realpath(path), threading.Lock())


@contextmanager
def _mutex(path: Path, wait: _Wait) -> Iterator[None]:
    mutex = _mutex_of(path)
    while not mutex.acquire(timeout=min(_TURN_SECONDS, wait.left_s())):
        if not wait.left_s():
            raise wait.ours()
        wait.turn()
    try:
        yield
    finally:
        mutex.release()


def _try(handle: int) -> bool:
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _signature(purpose: str) -> bytes:
    return json.dumps(
        {"purpose": purpose, "pid": os.getpid(), "host": os.uname().nodename, "since": datetime.now(UTC).isoformat()}
    ).encode()


def _sign(path: Path, purpose: str) -> None:
    # The JVM holds the lock here, so opening and closing the file in this process frees nothing.
    path.write_bytes(_signature(purpose))


def _holder(path: Path) -> str:
    try:
        known = json.loads(path.read_bytes())
        return f"process {known['pid']} on {known['host']} since {known['since']} for {known['purpose']}"
    except (OSError, ValueError, KeyError):
        return "an unknown process"
