"""Locks between steps: files on this machine, leases in the store that holds the lake, or locks in a database.

If all processes run on one machine, a lock is a file under ``CHAINLAKE_HOME/locks``. If the lake is in a store, where
several machines may work on it, the locks are in the store too (``chainlake.lake.leases.lease``), or in the database
that ``CHAINLAKE_LOCKS`` names (``chainlake.lake.leases.postgres``). Either way, commits are fenced by their turns, so a
lost lock costs work but no rows.

A Spark commit can land after the Python process that asked for it has died, so a lock that guards Spark commits is held
by the JVM itself: ``java.nio`` ``FileChannel.lock``, which excludes Python's ``fcntl.lockf`` too and is freed when the
JVM ends. Such a file says nothing to other machines, so where these need to be kept out, their lock is taken first.
Both kinds of file locks are per process, not per thread: a second channel on the same file in one JVM throws, and
closing *any* descriptor of the file in one process frees that process's lock. So each file has an in-process mutex in
front of it, and only the holder of the mutex touches the file.

Locks are taken in this order: ``source-…`` or ``table-…`` first, ``ops`` always innermost.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chainlake.env.own_folders import NotWritable
from chainlake.env.processes.waiting import Notice
from chainlake.env.variables import value_of
from chainlake.lake.errors import LockBusy, NoLock
from chainlake.lake.leases.conditional import require_conditional_writes
from chainlake.lake.leases.lease import StoreLock, Watch
from chainlake.lake.leases.machine import UNKNOWN, guarded, holder_text, own_holder
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A holder may be ingesting a long backlog; longer than this means something hangs.
WAIT_SECONDS = 1800.0
_POLL_SECONDS, _REMOTE_POLL_SECONDS = 0.05, 0.5
#: The environment variable that names a database for the locks.
VARIABLE = "CHAINLAKE_LOCKS"
#: How long a thread waits for another one before it checks whether to report the wait.
_TURN_SECONDS = 0.5


class RemoteLock(Protocol):
    """A lock that other machines see too."""

    def take(self) -> bool:
        """Take it if it is free; return whether it was."""

    def holder(self) -> str:
        """A description of who holds it, or held it last."""

    def held(self) -> bool:
        """Whether someone holds it."""

    def require(self) -> None:
        """Make sure that this process still holds it.

        Raises:
            LockLost: it does not.
        """

    def close(self) -> None:
        """Let go of it if this process holds it."""


_guard = threading.Lock()
_registry: dict[str, threading.Lock] = {}
#: For locks seen by other machines, by name: what was seen of those in a store, and those that this process holds.
_watches: dict[str, Watch] = {}
_kept: dict[str, RemoteLock] = {}


@contextmanager
def jvm_lock(spark: SparkSession, home: Home, purpose: str, *, wait_s: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock ``purpose`` in the session's JVM, among all writers of the lake.

    Args:
        spark: the session that will commit.
        home: the installation.
        purpose: ``source-<name>`` or ``table-<schema>.<name>``.
        wait_s: give up after this many seconds.

    Raises:
        LockBusy: someone else held it the whole time; the message says who.
    """
    path = _path(home, purpose)
    with ExitStack() as stack:
        if _remote(home):
            wait_s = stack.enter_context(_remote_lock(home, purpose, wait_s))
        wait = _Wait(lambda: _holder(path), purpose, wait_s)
        stack.enter_context(_mutex(path, wait))
        jvm = spark._jvm
        assert jvm is not None
        _require_usable(path)
        file = jvm.java.io.RandomAccessFile(str(path), "rw")
        channel = file.getChannel()
        try:
            while channel.tryLock() is None:
                wait.pause(_POLL_SECONDS)
            _sign(path, purpose)
            yield
        finally:
            file.close()


@contextmanager
def local_lock(home: Home, purpose: str, *, wait_s: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock ``purpose`` in this process, with a file on this machine; otherwise like :func:`jvm_lock`."""
    path = _path(home, purpose)
    wait = _Wait(lambda: _holder(path), purpose, wait_s)
    with _mutex(path, wait):
        handle = _opened(path)
        try:
            while not _try(handle):
                wait.pause(_POLL_SECONDS)
            os.ftruncate(handle, 0)
            os.pwrite(handle, _signature(purpose), 0)
            yield
        finally:
            os.close(handle)


@contextmanager
def file_lock(home: Home, purpose: str, *, wait_s: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock ``purpose`` in this process, for work that needs no JVM, among all writers of the lake.

    Args:
        home: the installation.
        purpose: ``source-<name>``, ``table-<schema>.<name>``, ``ops``.
        wait_s: give up after this many seconds.

    Raises:
        LockBusy: someone else held it the whole time; the message says who.
        StoreFailed: the lake's store cannot be used for locks and commits.
    """
    lock: AbstractContextManager[float | None] = (
        _remote_lock(home, purpose, wait_s) if _remote(home) else local_lock(home, purpose, wait_s=wait_s)
    )
    with lock:
        yield


@contextmanager
def _remote_lock(home: Home, purpose: str, wait_s: float) -> Iterator[float]:
    """Hold the lock that other machines see too; yields how many seconds of ``wait_s`` are left."""
    name = _name(home, purpose)
    wait = _Wait(lambda: "another part of this process", purpose, wait_s)
    with _mutex(name, wait):
        lock = _open(home, purpose)
        wait = _Wait(lock.holder, purpose, wait.left_s())
        try:
            while not lock.take():
                wait.pause(_REMOTE_POLL_SECONDS)
            with _guard:
                _kept[name] = lock
            yield wait.left_s()
        finally:
            with _guard:
                _kept.pop(name, None)
            lock.close()


def require_locks() -> None:
    """Make sure that this process still holds every lock that it took; called right before a commit.

    A lock on a file is held as long as the process lives; one in a store or a database can be lost.

    Raises:
        LockLost: one is no longer held.
    """
    with _guard:
        held_here = list(_kept.values())
    for lock in held_here:
        lock.require()


def holder(home: Home, purpose: str) -> str:
    """A description of who holds the lock, or held it last."""
    if not _remote(home):
        return _holder(_path(home, purpose))
    lock = _open(home, purpose)
    try:
        return lock.holder()
    finally:
        lock.close()


def held(home: Home, purpose: str) -> bool:
    """Whether a living process holds the lock, this one included."""
    mutex = _mutex_of(_name(home, purpose) if _remote(home) else _path(home, purpose))
    # Opening and closing the file while this process holds the lock would free it.
    if not mutex.acquire(blocking=False):
        return True
    try:
        return _held_elsewhere(home, purpose) if _remote(home) else _held_by_file(_path(home, purpose))
    finally:
        mutex.release()


def _held_elsewhere(home: Home, purpose: str) -> bool:
    lock = _open(home, purpose)
    try:
        return lock.held()
    finally:
        lock.close()


def _held_by_file(path: Path) -> bool:
    if not path.exists():
        return False
    handle = _opened(path)
    try:
        return not _try(handle)
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    """Open a lock's file.

    Raises:
        NoLock: something else is in its place, or it belongs to another user.
    """
    _require_usable(path)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise NoLock.of(path, str(error.strerror)) from None


def _require_usable(path: Path) -> None:
    if _only_read(path.parent):
        raise NoLock.read_only(path)
    if (why := _in_the_way(path)) is not None:
        raise NoLock.of(path, why)


def _only_read(place: Path) -> bool:
    return place.exists() and bool(os.statvfs(place).f_flag & os.ST_RDONLY)


def is_read_only(home: Home) -> bool:
    """Whether nobody can change the lake from here: it, or the home, is on a read-only disk."""
    return _only_read(home.root) or (storage_of(home.lake).on_disk and _only_read(Path(home.lake)))


def _in_the_way(path: Path) -> str | None:
    """Why a lock cannot be taken; ``None`` if it can, or if its file does not exist yet."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "it is a broken link" if path.is_symlink() else None
    except OSError as error:
        return str(error.strerror)
    if not stat.S_ISREG(mode):
        return "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file"
    return None if os.access(path, os.R_OK | os.W_OK) else "it belongs to another user"


def unusable(home: Home) -> list[NoLock]:
    """Locks of this machine that nobody can take, because something else is in the place of their file.

    There are none on a read-only disk, where nothing is wrong with them.
    """
    if not home.locks.is_dir() or _only_read(home.locks):
        return []
    found = [(path, _in_the_way(path)) for path in sorted(home.locks.glob("*.lock"))]
    return [NoLock.of(path, why) for path, why in found if why is not None]


def _remote(home: Home) -> bool:
    """Whether other machines see the locks too."""
    return bool(os.environ.get(VARIABLE)) or not storage_of(home.lake).on_disk


def _open(home: Home, purpose: str) -> RemoteLock:
    """A lock that other machines see too, not yet taken."""
    if not storage_of(home.lake).on_disk:
        require_conditional_writes(home)
    url = value_of(VARIABLE)
    if not url:
        with _guard:
            watch = _watches.setdefault(_name(home, purpose), Watch(home, purpose))
        return StoreLock(watch, purpose)
    url = url.replace("postgresql+psycopg2://", "postgresql://", 1)
    from chainlake.lake.leases.postgres import Session

    return Session(url, home, purpose)


def _name(home: Home, purpose: str) -> str:
    return f"{home.lake} {purpose}"


def _path(home: Home, purpose: str) -> Path:
    try:
        home.locks.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritable.home(home.locks, error) from None
    return home.locks / f"{purpose.replace('/', '.')}.lock"


class _Wait:
    """The wait for one lock: says who holds it, and gives up in the end."""

    def __init__(self, holder: Callable[[], str], purpose: str, wait_s: float) -> None:
        self._holder, self._purpose = holder, purpose
        self._deadline = time.monotonic() + wait_s
        self._notice = Notice(lambda: f"{guarded(purpose)}, in use by {holder()}")

    def left_s(self) -> float:
        """Seconds until it gives up."""
        return max(0.0, self._deadline - time.monotonic())

    def turn(self) -> None:
        """To be called in each turn of the wait."""
        self._notice.turn()

    def pause(self, seconds: float) -> None:
        """One turn of a wait for another process."""
        if not self.left_s():
            raise LockBusy.held(guarded(self._purpose), self._holder())
        self.turn()
        time.sleep(seconds)

    def ours(self) -> LockBusy:
        """The error if the wait was for this process itself."""
        return LockBusy.held_here(guarded(self._purpose))


def _mutex_of(path: Path | str) -> threading.Lock:
    with _guard:
        return _registry.setdefault(os.path.realpath(path), threading.Lock())


@contextmanager
def _mutex(path: Path | str, wait: _Wait) -> Iterator[None]:
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
    return json.dumps(own_holder(purpose)).encode()


def _sign(path: Path, purpose: str) -> None:
    # The JVM holds the lock here, so opening and closing the file in this process does not free it.
    path.write_bytes(_signature(purpose))


def _holder(path: Path) -> str:
    try:
        return holder_text(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return UNKNOWN
