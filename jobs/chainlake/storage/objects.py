"""Files in an object store, through delta-rs' own client, so that tables and all other files are accessed in the same
way.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chainlake.env.own_folders import MARKER, TEXT
from chainlake.storage.errors import store_error
from chainlake.storage.port import File, Stamp

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem


#: How many bytes of a file are in memory at a time.
_CHUNK = 8 << 20


@dataclass(frozen=True)
class ObjectStorage:
    """See ``chainlake.storage.port.Storage``.

    Args:
        root: ``scheme://bucket``.
    """

    root: str
    on_disk: bool = field(default=False, init=False)
    whole_files: bool = field(default=True, init=False)

    @cached_property
    def _handler(self) -> Any:
        from deltalake.fs import DeltaStorageHandler

        return DeltaStorageHandler(f"{self.root}/" if self.root.endswith("://") else self.root, {})

    @cached_property
    def _files(self) -> FileSystem:
        from pyarrow.fs import PyFileSystem

        return PyFileSystem(self._handler)

    def _key(self, path: str) -> str:
        return path.removeprefix(self.root).strip("/")

    def reach(self, path: str) -> None:
        """See ``Storage.reach``."""
        self._listed(path)

    def arrow(self, path: str) -> tuple[FileSystem | None, str]:
        """See ``Storage.arrow``."""
        with _translated(path):
            return self._files, self._key(path)

    def absolute(self, path: str) -> str:
        """See ``Storage.absolute``."""
        return path

    def size(self, path: str) -> int | None:
        """See ``Storage.size``."""
        with _translated(path):
            try:
                # This takes one request; asking for the file's kind takes two.
                return int(self._handler._handler.open_input_file(self._key(path)).size())
            except FileNotFoundError:
                return None

    def folders(self, path: str) -> list[str]:
        """See ``Storage.folders``."""
        return sorted(info.base_name for info in self._listed(path) if not info.is_file)

    def names(self, path: str) -> list[str]:
        """See ``Storage.names``."""
        return sorted(info.base_name for info in self._listed(path))

    def files(self, path: str) -> list[File]:
        """See ``Storage.files``."""
        key = self._key(path)
        above = len(key) + 1 if key else 0
        found = (info for info in self._listed(path, recursive=True) if info.is_file)
        return sorted(
            (File(info.path[above:], info.size, info.mtime_ns / 1e9) for info in found), key=lambda file: file.path
        )

    def listed(self, path: str) -> tuple[list[str], list[File]]:
        """See ``Storage.listed``."""
        found = self._listed(path)
        folders = [info.base_name for info in found if not info.is_file]
        return folders, [File(info.base_name, info.size, info.mtime_ns / 1e9) for info in found if info.is_file]

    def _listed(self, path: str, recursive: bool = False) -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        with _translated(path):
            found: list[FileInfo] = self._files.get_file_info(
                FileSelector(self._key(path), allow_not_found=True, recursive=recursive)
            )
        return found

    def stamp(self, path: str) -> Stamp:
        """See ``Storage.stamp``."""
        with _translated(path):
            (info,) = self._files.get_file_info([self._key(path)])
        if not info.is_file:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return Stamp(info.size, info.mtime_ns)

    def opened(self, path: str) -> io.RawIOBase:
        """See ``Storage.opened``."""
        with _translated(path):
            return _Object(path, self._handler._handler.open_input_file(self._key(path)))

    def read(self, path: str) -> bytes | None:
        """See ``Storage.read``."""
        with _translated(path):
            try:
                with self._stream(path) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def _stream(self, path: str) -> NativeFile:
        # The bytes are read as they are; otherwise Arrow would decompress a file whose name looks compressed.
        return self._files.open_input_stream(self._key(path), compression=None)

    def write(self, path: str, data: bytes) -> None:
        """See ``Storage.write``."""
        with _translated(path):
            stream = self._handler._handler.open_output_stream(self._key(path), None)
            stream.write(data)
            stream.close()

    def make_folder(self, path: str) -> None:
        """See ``Storage.make_folder``."""

    def own_folder(self, path: str) -> None:
        """See ``Storage.own_folder``."""
        if not self._listed(path):
            self.write(f"{path}/{MARKER}", TEXT.encode())

    def sweep(self, path: str, age_s: float) -> bool:
        """See ``Storage.sweep``."""
        long_ago = time.time() - age_s
        newest: dict[str, float] = {}
        files = [file for file in self.files(path) if file.path != MARKER]
        for file in files:
            name = file.path.partition("/")[0]
            newest[name] = max(newest.get(name, 0.0), file.modified)
        old = [file for file in files if newest[file.path.partition("/")[0]] < long_ago]
        if old and self.size(f"{path}/{MARKER}") is None:
            return False
        for file in old:
            self.remove(f"{path}/{file.path}")
        return True

    def take(self, path: str, place: str) -> None:
        """See ``Storage.take``."""
        with _translated(place):
            if path.startswith(f"{self.root}/"):
                # A copy within the store passes no byte through this process.
                self._handler._handler.copy_file(self._key(path), self._key(place))
                return
            written = self._handler._handler.open_output_stream(self._key(place), None)
            with open(path, "rb") as read:
                while chunk := read.read(_CHUNK):
                    written.write(chunk)
            written.close()

    def bring(self, path: str, folder: str) -> str:
        """See ``Storage.bring``."""
        place = os.path.join(folder, f"{uuid.uuid4().hex}-{os.path.basename(path)}")
        with _translated(path), self._stream(path) as read, open(place, "wb") as written:
            shutil.copyfileobj(read, written, _CHUNK)
        return place

    def move(self, path: str, place: str) -> None:
        """See ``Storage.move``."""
        if self.size(path) is not None:
            self.take(path, place)
            self.remove(path)
            return
        for file in self.files(path)[::-1]:
            self.take(f"{path}/{file.path}", f"{place}/{file.path}")
        self.remove_all(path)

    def remove(self, path: str) -> None:
        """See ``Storage.remove``."""
        with _translated(path):
            try:
                self._handler.delete_file(self._key(path))
            except FileNotFoundError:
                # Another process was faster.
                return

    def remove_all(self, path: str, but: Sequence[str] = ()) -> None:
        """See ``Storage.remove_all``."""
        kept = set(but)
        for file in self.files(path)[::-1]:
            if file.path not in kept:
                self.remove(f"{path}/{file.path}")


class _Object(io.RawIOBase):
    """A file in a store; since mostly the next bytes are wanted next, each request fetches a large piece."""

    def __init__(self, path: str, file: Any) -> None:
        self._path, self._file = path, file
        self._size = int(file.size())
        self._at = 0
        self._piece, self._from = b"", 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if place < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self._path)
        self._at = place
        return place

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if self._at >= self._size:
            return 0
        if not self._from <= self._at < self._from + len(self._piece):
            with _translated(self._path):
                self._file.seek(self._at)
                self._piece, self._from = bytes(self._file.read(min(_CHUNK, self._size - self._at))), self._at
        begin = self._at - self._from
        given = self._piece[begin : begin + len(buffer)]
        buffer[: len(given)] = given
        self._at += len(given)
        return len(given)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turn errors of the store into ours."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:  # delta-rs raises several kinds of errors for a store's answers
        known = store_error(error, path)
        if known is None:
            raise
        raise known from error
