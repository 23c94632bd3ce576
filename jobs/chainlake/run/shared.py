"""Whether all executors see the folders of the process that asked for the work, and it theirs.

On a cluster a worker may have a folder of the same name that is another one. Its files would be committed by a process
that has never seen them, and what it should read would not be there. So before anything is done the driver writes a
random word into each folder, and each executor reads it and answers by a file that the driver reads.
"""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from chainlake.errors import InfrastructureError
from chainlake.paths import Home
from chainlake.storage.door import storage_of

#: How the names of our files begin: hidden, so that no reader of a folder takes them for its own.
_NAME = ".chainlake-seen-"
#: Items for each core: an executor that is slow to start is to get one, too.
_ITEMS_PER_CORE = 2
#: A task that ends at once would leave its core to the next one, and another executor without any.
_PAUSE_S = 0.2


class NotShared(InfrastructureError):
    """A worker and this process do not see the same files in a folder."""

    @classmethod
    def of(cls, host: str, folder: str) -> NotShared:
        """For the worker's machine and the folder."""
        return cls(
            f"the worker on {host} does not see the files that this process has in {folder}, or the other way round; "
            "nothing was done",
            hint="Put CHAINLAKE_HOME on a disk that all machines share under one path, or set CHAINLAKE_LAKE to an "
            "object store (docs/object-store.md).",
        )


@dataclass(frozen=True)
class _Answer:
    """What a worker saw.

    Args:
        host: its machine.
        unseen: folders in which it did not find the word.
        wrote: the files with which it answered.
    """

    host: str
    unseen: tuple[str, ...]
    wrote: tuple[str, ...]


@dataclass(frozen=True)
class _Look:
    """A task: look for the word, and answer.

    Args:
        word: what the driver wrote.
        read: the folders in which it did.
        answered: those in which workers write.
    """

    word: str
    read: tuple[str, ...]
    answered: tuple[str, ...]

    def __call__(self, number: int) -> _Answer:
        time.sleep(_PAUSE_S)
        unseen = tuple(
            folder
            for folder in self.read
            if storage_of(folder).read(f"{folder}/{_NAME}{self.word}") != _text(self.word)
        )
        wrote = []
        for folder in self.answered:
            path = f"{folder}/{_NAME}{self.word}-{number}-{uuid.uuid4().hex}"
            storage_of(folder).write(path, _text(self.word))
            wrote.append(path)
        return _Answer(platform.node(), unseen, tuple(wrote))


def _text(word: str) -> bytes:
    return word.encode()


class _Workers(Protocol):
    """What is asked here of ``chainlake.run.tasks.Tasks``."""

    @property
    def parallelism(self) -> int: ...

    def map(self, work: Callable[[int], _Answer], items: Sequence[int]) -> list[_Answer]: ...


def require_shared(tasks: _Workers, home: Home) -> None:
    """See to it that whoever works for ``tasks`` sees the lake, the staging and the landing of this process.

    Raises:
        NotShared: one does not.
    """
    word = uuid.uuid4().hex
    written = [storage_of(folder).absolute(folder) for folder in (home.lake, home.staging)]
    read = list(written)
    landing = home.landed_all
    # What is landed need not be writable here; a file that a worker does not find there waits, and the run says so.
    if storage_of(landing).on_disk and os.access(landing, os.W_OK):
        read.append(os.path.abspath(landing))
    made: list[str] = []
    try:
        for folder in read:
            storage_of(folder).make_folder(folder)
            made.append(f"{folder}/{_NAME}{word}")
            storage_of(folder).write(made[-1], _text(word))
        items = range(_ITEMS_PER_CORE * tasks.parallelism)
        told = tasks.map(_Look(word, tuple(read), tuple(written)), items)
        made += [path for answer in told for path in answer.wrote]
        _require(told, word)
    finally:
        for path in made:
            storage_of(path).remove(path)


def _require(told: Sequence[_Answer], word: str) -> None:
    for answer in told:
        for folder in answer.unseen:
            raise NotShared.of(answer.host, folder)
        for path in answer.wrote:
            if storage_of(path).read(path) != _text(word):
                raise NotShared.of(answer.host, os.path.dirname(path))
