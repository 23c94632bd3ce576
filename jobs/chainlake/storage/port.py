"""The port through which files are read and written, wherever they are.

A path is a string: absolute or relative on a local disk, ``scheme://bucket/key`` in a store. To use a path, get
its storage from ``chainlake.storage.resolve``, and pass the whole path to it.
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
    """A file in a listing.

    Args:
        path: relative to the listed folder, with ``/``.
        size: size in bytes.
        modified: modification time, seconds since 1970.
    """

    path: str
    size: int
    modified: float


@dataclass(frozen=True)
class Stamp:
    """What distinguishes one state of a file from another without reading it.

    Args:
        size: size in bytes.
        modified_ns: modification time, nanoseconds since 1970.
        number: the file's inode number; 0 in a store.
        changed_ns: when anything about it was last changed, ns since 1970, by the file system's own clock; unlike
            ``modified_ns``, no program can set it. 0 in a store.
    """

    size: int
    modified_ns: int
    number: int = 0
    changed_ns: int = 0


class Storage(Protocol):
    """Reads and writes files."""

    @property
    def on_disk(self) -> bool:
        """Whether paths are valid for other programs on this machine, but not on other machines."""

    @property
    def whole_files(self) -> bool:
        """Whether a file that exists is complete, even if its writer was killed."""

    def reach(self, path: str) -> None:
        """Make sure that what is at ``path`` can be read.

        Raises:
            StoreFailed: the store does not answer, refuses the key, or has no such bucket.
        """

    def arrow(self, path: str) -> tuple[FileSystem | None, str]:
        """How Arrow reads ``path``: its file system, ``None`` for its own choice, and the path there."""

    def absolute(self, path: str) -> str:
        """The path for a process with another working directory."""

    def size(self, path: str) -> int | None:
        """Size of a file in bytes; ``None`` if there is none."""

    def folders(self, path: str) -> list[str]:
        """Names of the folders in a folder, sorted; none if there is no such folder."""

    def names(self, path: str) -> list[str]:
        """Names of everything in a folder, sorted; none if there is no such folder."""

    def files(self, path: str) -> list[File]:
        """All files under a folder, sorted by path; none if there is no such folder."""

    def listed(self, path: str) -> tuple[list[str], list[File]]:
        """The folders and the files directly in a folder, from one listing; none if there is no such folder."""

    def stamp(self, path: str) -> Stamp:
        """The state of a file.

        Raises:
            OSError: there is none, or its state cannot be read.
            StoreFailed: the store does not say.
        """

    def opened(self, path: str) -> io.RawIOBase:
        """Open a file for unbuffered reading with seeking; reading raises the same errors.

        Raises:
            OSError: there is none, or it cannot be read.
            StoreFailed: the store does not return it.
        """

    def read(self, path: str) -> bytes | None:
        """Read a small file; ``None`` if there is none."""

    def write(self, path: str, data: bytes) -> None:
        """Write a small file as a whole, replacing any that was there."""

    def make_folder(self, path: str) -> None:
        """Make a folder with its parents; in a store, where folders are only parts of names, do nothing."""

    def own_folder(self, path: str) -> None:
        """Make a folder of ours, marked as such (``chainlake.env.own_folders``) if others could have made it."""

    def sweep(self, path: str, age_s: float) -> bool:
        """Remove what is older than ``age_s`` from a folder of ours; ``False`` if it is not marked as ours."""

    def take(self, path: str, place: str) -> None:
        """Copy or link the file ``path``, of this storage or on a disk, to ``place``; nobody changes it afterwards."""

    def bring(self, path: str, folder: str) -> str:
        """Make sure that the file ``path`` is on a disk, in ``folder`` if it is elsewhere; return its path there."""

    def move(self, path: str, place: str) -> None:
        """Move a file, or a folder with everything in it, within this storage, if there is one."""

    def remove(self, path: str) -> None:
        """Remove a file, if there is one."""

    def remove_all(self, path: str, but: Sequence[str] = ()) -> None:
        """Remove a folder and everything in it, if there is one; in a store, later names first.

        Args:
            path: the folder.
            but: files that stay, relative to it.
        """
