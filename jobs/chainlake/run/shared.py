"""Checks that all executors see the folders of the driver, and the driver theirs.

On a cluster, a worker may have a different folder with the same name. Its files would be committed by a process that
has never seen them, and what it should read would not be there. So before anything is done, the driver writes a random
word into each folder; each executor reads it, and answers with a file that the driver reads.
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
from chainlake.storage.resolve import storage_of

#: Prefix of our files' names, which makes them hidden, so that no reader of a folder takes them for its own.
_NAME = ".chainlake-seen-"
#: Number of items for each core, so that an executor that is slow to start gets one, too.
_ITEMS_PER_CORE = 2
#: Pause of a task, seconds: if it ended at once, its core could take the next task, and another executor get none.
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
    """The answer of a worker.

    Args:
        host: name of its machine.
        unseen: folders in which it did not find the word.
        wrote: files that it wrote as its answer.
    """

    host: str
    unseen: tuple[str, ...]
    wrote: tuple[str, ...]


@dataclass(frozen=True)
class _Look:
    """A task that looks for the word, and answers.

    Args:
        word: the word that the driver wrote.
        read: the folders in which the driver wrote it.
        answered: the folders in which workers write.
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
    """The part of ``chainlake.run.tasks.Tasks`` that is used here."""

    @property
    def parallelism(self) -> int: ...

    def map(self, work: Callable[[int], _Answer], items: Sequence[int]) -> list[_Answer]: ...


def require_shared(tasks: _Workers, home: Home) -> None:
    """Make sure that all workers of ``tasks`` see the lake, the staging and the landing folder of this process.

    Raises:
        NotShared: a worker does not.
    """
    word = uuid.uuid4().hex
    written = [storage_of(folder).absolute(folder) for folder in (home.lake, home.staging)]
    read = list(written)
    landing = home.landed_all
    # The landing folder need not be writable; if a worker does not find a file there, it waits, and the run reports
    # that.
    if storage_of(landing).on_disk and os.access(landing, os.W_OK):
        read.append(os.path.abspath(landing))
    made: list[str] = []
    try:
        for folder in read:
            storage_of(folder).make_folder(folder)
            made.append(f"{folder}/{_NAME}{word}")
            storage_of(folder).write(made[-1], _text(word))
        items = range(_ITEMS_PER_CORE * tasks.parallelism)
        answers = tasks.map(_Look(word, tuple(read), tuple(written)), items)
        made += [path for answer in answers for path in answer.wrote]
        _require(answers, word)
    finally:
        for path in made:
            storage_of(path).remove(path)


def _require(answers: Sequence[_Answer], word: str) -> None:
    for answer in answers:
        for folder in answer.unseen:
            raise NotShared.of(answer.host, folder)
        for path in answer.wrote:
            if storage_of(path).read(path) != _text(word):
                raise NotShared.of(answer.host, os.path.dirname(path))
