"""The port through which files of the lake are read and written, wherever they lie.

A path is a text: absolute or relative on a local disk, ``scheme://bucket/key`` in a store. Whoever has a path asks
``chainlake.storage.door`` for its storage, and hands it the whole path.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


@dataclass(frozen=True)
class File:
    """A file that was listed.

    Args:
        path: relative to the folder that was listed, with ``/``.
        size: bytes.
        modified: seconds since 1970.
    """

    path: str
    size: int
    modified: float


@dataclass(frozen=True)
class Stamp:
    """What tells one state of a file from another one without reading it.

    Args:
        size: bytes.
        modified_ns: nanoseconds since 1970.
        number: that the file system gives to each file, 0 in a store.
        changed_ns: when anything of it was changed last, by the file system's own clock, which no program sets back as
            it can ``modified_ns``; 0 in a store.
    """

    size: int
    modified_ns: int
    number: int = 0
    changed_ns: int = 0


class Storage(Protocol):
    """Reads and writes files."""

    @property
    def on_disk(self) -> bool:
        """Whether paths mean something to other programs of this machine, and to no other machine."""

    @property
    def whole_files(self) -> bool:
        """Whether a file that is there is complete, whoever was killed while writing it."""

    def reach(self, path: str) -> None:
        """See to it that what lies at ``path`` could be read.

        Raises:
            StoreFailed: the store is away, refuses the key, or has no such bucket.
        """

    def arrow(self, path: str) -> tuple[FileSystem | None, str]:
        """How Arrow reads ``path``: its file system, ``None`` for its own choice, and the path there."""

    def absolute(self, path: str) -> str:
        """The path for a process that works in another folder."""

    def size(self, path: str) -> int | None:
        """Bytes of a file; ``None`` if there is none."""

    def folders(self, path: str) -> list[str]:
        """Names of the folders in a folder, sorted; none if there is no such folder."""

    def names(self, path: str) -> list[str]:
        """Names of all that lies in a folder, sorted; none if there is no such folder."""

    def files(self, path: str) -> list[File]:
        """All files under a folder, sorted by path; none if there is no such folder."""

    def listed(self, path: str) -> tuple[list[str], list[File]]:
        """The folders and the files that lie in a folder itself, at one moment; none if there is no such folder."""

    def stamp(self, path: str) -> Stamp:
        """The state of a file.

        Raises:
            OSError: there is none, or it cannot be asked for.
            StoreFailed: the store does not say.
        """

    def opened(self, path: str) -> io.RawIOBase:
        """The bytes of a file, from any place of it, unbuffered; what fails there fails as here.

        Raises:
            OSError: there is none, or it cannot be read.
            StoreFailed: the store does not give it.
        """

    def read(self, path: str) -> bytes | None:
        """A small file; ``None`` if there is none."""

    def write(self, path: str, data: bytes) -> None:
        """A small file, as a whole; what was there is replaced."""

    def make_folder(self, path: str) -> None:
        """A folder for files, with all above it; nothing where folders are only the names of files."""

    def own_folder(self, path: str) -> None:
        """A folder of ours, marked as such (``chainlake.env.own_folders``) where others could have made it, too."""

    def sweep(self, path: str, age_s: float) -> bool:
        """Remove what lies in a folder of ours and is older; ``False`` if it is not marked as ours and stays."""

    def take(self, path: str, place: str) -> None:
        """Have the file ``path``, of this storage or on a disk, at ``place``, too; nobody changes it afterwards."""

    def bring(self, path: str, folder: str) -> str:
        """Have the file ``path`` on a disk, in ``folder`` if it lies elsewhere; where it lies there."""

    def move(self, path: str, place: str) -> None:
        """Move a file, or a folder with all in it, within this storage; nothing if there is none."""

    def remove(self, path: str) -> None:
        """Remove a file, if there is one."""

    def remove_all(self, path: str, but: Sequence[str] = ()) -> None:
        """Remove a folder and all in it, if there is one; the last names of each folder first.

        Args:
            path: the folder.
            but: files that stay, relative to it.
        """
