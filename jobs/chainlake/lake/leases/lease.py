"""A lease: a lock in the store, held by the process that made its newest generation, as long as that process shows
signs of life.

For generation N, ``<lake>/chainlake-locks/<purpose>/`` holds the folder ``N`` with a file that only one writer can make
and that names the holder; ``N.beat``, which the holder rewrites every few seconds; and ``N.free`` once it has let go. A
process that finds the newest generation free, or without a new beat for :func:`lease_seconds` by its own clock, makes
the next one, checks that none is newer, and removes the older ones. Only holders of newer generations remove older
ones, so a number that comes back is never the newest. No other machine's clock is consulted.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass

from chainlake.env.variables import value_of
from chainlake.lake.errors import LockLost
from chainlake.lake.leases import conditional
from chainlake.lake.leases.machine import LockHolder, guarded, holder_text, is_dead, own_holder
from chainlake.paths import Home
from chainlake.storage.errors import StoreFailed
from chainlake.storage.port import Storage
from chainlake.storage.resolve import storage_of

#: The environment variable for how many seconds a lease is good without a new beat.
VARIABLE = "CHAINLAKE_LEASE_SECONDS"
_DEFAULT_S = 60.0
#: Beats within that time, so that one that is late or that the store did not take does no harm.
_BEATS = 4


def lease_seconds() -> float:
    """How many seconds a lease is good without a new beat."""
    return float(value_of(VARIABLE) or _DEFAULT_S)


@dataclass(frozen=True)
class _Seen:
    """The state of a lock, from one listing of its folder.

    Args:
        top: the newest generation, 0 if there is none.
        free: whether its holder has let go.
        beat: modification time and size of the beat file; changes with every beat.
        older: older generations that are not yet removed.
    """

    top: int
    free: bool
    beat: tuple[float, int] | None
    older: tuple[int, ...]


class Watch:
    """What this process has seen of one lock: since when its newest generation has shown no new beat.

    Args:
        home: the installation; its lake is in a store.
        purpose: the lock's name.
    """

    def __init__(self, home: Home, purpose: str) -> None:
        self.folder = f"{home.lake}/{conditional.FOLDER}/{purpose.replace('/', '.')}"
        self.files: Storage = storage_of(self.folder)
        self._last: tuple[int, tuple[float, int] | None] | None = None
        self._since = 0.0
        self._signed: tuple[int, LockHolder | None] = 0, None

    def look(self) -> _Seen:
        """The lock's state now."""
        folders, files = self.files.listed(self.folder)
        generations = sorted(int(name) for name in folders if name.isdigit())
        top = generations[-1] if generations else 0
        beside = {file.path: file for file in files}
        beat = beside.get(f"{top}.beat")
        seen = _Seen(
            top,
            f"{top}.free" in beside,
            None if beat is None else (beat.modified, beat.size),
            tuple(generations[:-1]),
        )
        if self._last != (top, seen.beat):
            self._last, self._since = (top, seen.beat), time.monotonic()
        return seen

    def alive(self, seen: _Seen) -> bool:
        """Whether someone holds the lock, as far as this process can know."""
        if not seen.top or seen.free:
            return False
        return time.monotonic() - self._since < lease_seconds() and not is_dead(self.signed(seen.top))

    def signed(self, generation: int) -> LockHolder | None:
        """The process that made a generation."""
        if self._signed[0] != generation or self._signed[1] is None:
            self._signed = generation, conditional.read(f"{self.folder}/{generation}")
        return self._signed[1]

    def holder(self) -> str:
        """A description of who holds the lock, or held it last."""
        top = self.look().top
        return holder_text(self.signed(top) if top else None)


class StoreLock:
    """See ``chainlake.lake.locks.RemoteLock``.

    Args:
        watch: what was seen of the lock.
        purpose: the lock's name.
    """

    def __init__(self, watch: Watch, purpose: str) -> None:
        self._watch, self._purpose = watch, purpose
        self._lease: _Lease | None = None

    def take(self) -> bool:
        """See ``RemoteLock.take``."""
        self._lease = _Lease.take(self._watch, self._purpose)
        return self._lease is not None

    def holder(self) -> str:
        """See ``RemoteLock.holder``."""
        return self._watch.holder()

    def held(self) -> bool:
        """See ``RemoteLock.held``."""
        return self._watch.alive(self._watch.look())

    def require(self) -> None:
        """See ``RemoteLock.require``."""
        assert self._lease is not None
        self._lease.require()

    def close(self) -> None:
        """See ``RemoteLock.close``."""
        if self._lease is not None:
            self._lease.release()


class _Lease:
    """A lock that this process holds, from :meth:`take` to :meth:`release`.

    Args:
        watch: what was seen of the lock.
        purpose: the lock's name.
        generation: the one that was made here.
    """

    def __init__(self, watch: Watch, purpose: str, generation: int) -> None:
        self._watch, self.purpose, self._generation = watch, purpose, generation
        self._proven = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease {purpose}", daemon=True)

    @classmethod
    def take(cls, watch: Watch, purpose: str) -> _Lease | None:
        """Take the lock if nobody holds it; ``None`` if someone does."""
        seen = watch.look()
        if watch.alive(seen):
            return None
        generation = seen.top + 1
        made = time.monotonic()
        if not conditional.make(f"{watch.folder}/{generation}", own_holder(purpose)):
            return None
        after = watch.look()
        if after.top != generation:
            # The number was used long ago; the holder of a newer generation has removed it meanwhile.
            conditional.remove(f"{watch.folder}/{generation}")
            return None
        lease = cls(watch, purpose, generation)
        lease._proven = made
        for old in after.older:
            lease._forget(old)
        lease._thread.start()
        return lease

    def require(self) -> None:
        """Make sure that this process still holds the lock, right before a commit under it.

        Raises:
            LockLost: it does not, or nobody can tell.
        """
        if not self._own():
            raise LockLost.of(guarded(self.purpose), self._watch.holder())

    def release(self) -> None:
        """Let go; if the store is unreachable, the lease runs out instead."""
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(StoreFailed):
            if self._own():
                mine = f"{self._watch.folder}/{self._generation}"
                self._watch.files.take(f"{mine}/{conditional.ENTRY}", f"{mine}.free")

    def _own(self) -> bool:
        asked = time.monotonic()
        if asked - self._proven >= lease_seconds():
            # Others may have taken this holder for dead and be about to make the next generation.
            return False
        return self._watch.look().top == self._generation

    def _beat(self) -> None:
        number = 0
        while not self._ended.wait(lease_seconds() / _BEATS):
            number += 1
            asked = time.monotonic()
            try:
                if not self._own():
                    return
                # Its length differs from the last one's, for stores whose times are whole seconds.
                self._watch.files.write(f"{self._watch.folder}/{self._generation}.beat", b"." * (1 + number % 7))
            except Exception:  # the store is unreachable: a later beat may get through, or else the lease runs out
                continue
            self._proven = asked

    def _forget(self, generation: int) -> None:
        old = f"{self._watch.folder}/{generation}"
        conditional.remove(old)
        for end in ("beat", "free"):
            self._watch.files.remove(f"{old}.{end}")
