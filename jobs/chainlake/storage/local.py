"""Files in folders on this machine."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.env import own_folders
from chainlake.storage.port import File, Stamp

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


@dataclass(frozen=True)
class LocalStorage:
    """See ``chainlake.storage.port.Storage``."""

    on_disk: bool = field(default=True, init=False)
    whole_files: bool = field(default=False, init=False)

    def reach(self, path: str) -> None:
        """See ``Storage.reach``."""

    def arrow(self, path: str) -> tuple[FileSystem | None, str]:
        """See ``Storage.arrow``."""
        return None, path

    def absolute(self, path: str) -> str:
        """See ``Storage.absolute``."""
        return os.path.abspath(path)

    def size(self, path: str) -> int | None:
        """See ``Storage.size``."""
        return os.stat(path).st_size if os.path.isfile(path) else None

    def folders(self, path: str) -> list[str]:
        """See ``Storage.folders``."""
        try:
            with os.scandir(path) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def names(self, path: str) -> list[str]:
        """See ``Storage.names``."""
        # Only names are read: with thousands of entries, asking for their sizes would take time.
        return sorted(os.listdir(path)) if os.path.isdir(path) else []

    def files(self, path: str) -> list[File]:
        """See ``Storage.files``."""
        found = []
        for folder, _, names in os.walk(path):
            for name in names:
                place = Path(folder, name)
                known = place.lstat()
                found.append(File(place.relative_to(path).as_posix(), known.st_size, known.st_mtime))
        return sorted(found, key=lambda file: file.path)

    def listed(self, path: str) -> tuple[list[str], list[File]]:
        """See ``Storage.listed``."""
        folders, files = [], []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir():
                        folders.append(entry.name)
                    else:
                        known = entry.stat()
                        files.append(File(entry.name, known.st_size, known.st_mtime))
        except FileNotFoundError:
            return [], []
        return folders, files

    def stamp(self, path: str) -> Stamp:
        """See ``Storage.stamp``."""
        return stamp_of(os.stat(path))

    def opened(self, path: str) -> io.RawIOBase:
        """See ``Storage.opened``."""
        # What was listed as a file can be a pipe by now, and opening that normally would wait for a writer.
        file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise OSError(errno.EINVAL, "it is a pipe, socket or device now", path)
        return file

    def read(self, path: str) -> bytes | None:
        """See ``Storage.read``."""
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: str, data: bytes) -> None:
        """See ``Storage.write``."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        partial = f"{path}.{os.getpid()}.tmp"
        Path(partial).write_bytes(data)
        os.replace(partial, path)

    def make_folder(self, path: str) -> None:
        """See ``Storage.make_folder``."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def own_folder(self, path: str) -> None:
        """See ``Storage.own_folder``."""
        own_folders.own_folder(Path(path))

    def sweep(self, path: str, age_s: float) -> bool:
        """See ``Storage.sweep``."""
        return own_folders.sweep(Path(path), age_s)

    def take(self, path: str, place: str) -> None:
        """See ``Storage.take``."""
        try:
            os.link(path, place)
        except OSError:
            # The place is on another file system, or the file system has no hard links.
            shutil.copyfile(path, place)

    def bring(self, path: str, folder: str) -> str:
        """See ``Storage.bring``."""
        return path

    def move(self, path: str, place: str) -> None:
        """See ``Storage.move``."""
        if os.path.lexists(path):
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, place)

    def remove(self, path: str) -> None:
        """See ``Storage.remove``."""
        Path(path).unlink(missing_ok=True)

    def remove_all(self, path: str, but: Sequence[str] = ()) -> None:
        """See ``Storage.remove_all``."""
        kept = set(but)
        if not kept:
            shutil.rmtree(path, ignore_errors=True)
            return
        for place in sorted(Path(path).rglob("*"), reverse=True):
            if place.is_dir() and not place.is_symlink():
                if not any(place.iterdir()):
                    place.rmdir()
            elif place.relative_to(path).as_posix() not in kept:
                place.unlink()


def stamp_of(known: os.stat_result) -> Stamp:
    """The state of a file, from what the file system says about it."""
    return Stamp(known.st_size, known.st_mtime_ns, known.st_ino, known.st_ctime_ns)
