"""Opening landed files: plain, gzip, or the members of a zip archive; always as decompressed bytes.

Whatever goes wrong here is one of two things. ``NotReadable``: the file system did not return the bytes, but may do so
another time. ``Damaged``: it did, but they are not a complete container. The libraries that decompress raise a dozen
classes for both, ``OSError`` among them, so they are distinguished by whether the file itself failed, not by class.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, cast

from chainlake.definitions.formats.globs import is_ignored
from chainlake.storage.errors import StoreFailed
from chainlake.storage.resolve import storage_of

_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_ZIP_EMPTY = b"PK\x05\x06"
#: The bit in the second byte of a zip entry's flags that says that its name is UTF-8.
_UTF8 = 0x08
#: The most bytes from the record that ends a zip archive's directory to the end of its comment.
_LONGEST_TAIL = 22 + 0xFFFF
#: How many bytes are requested from the file system at a time.
_BUFFER = 1 << 18
#: How many decompressed bytes are requested at a time. It must never vary: how many bytes come before damage depends on
#: it, and so does the checksum of damaged content.
_PIECE = 1 << 17


class NotReadable(Exception):
    """A file cannot be opened or read for now; nothing is known about its content.

    Args:
        error: what the file system or the store said.
    """

    def __init__(self, error: OSError | StoreFailed) -> None:
        said = error.what if isinstance(error, StoreFailed) else error.strerror
        super().__init__(said or f"{type(error).__name__}: {error}")

    def __reduce__(self) -> tuple[type[NotReadable], tuple[OSError]]:
        return NotReadable, (OSError(None, str(self)),)


class Damaged(Exception):
    """A file's bytes were read, but are not a complete archive or compressed stream, or need a password."""


@contextmanager
def open_bytes(path: str, member: str | None) -> Iterator[Content]:
    """The decompressed bytes of a landed file, or of one member of an archive.

    Raises:
        NotReadable: the file system does not return the file, now or later while it is read.
        Damaged: it cannot be decompressed, now or later while it is read.
    """
    kept = _kept.get()
    with ExitStack() as stack:
        if member is None or kept is None:
            raw = stack.enter_context(_opened(path))
            with _distinguished():
                if member is None:
                    stream = _plain(raw, stack)
                else:
                    stream = _member(stack.enter_context(_archive(raw)), member, stack)
        else:
            with _distinguished():
                stream = _member(kept.archive(path), member, stack)
        yield Content(stream)


@contextmanager
def archives_stay_open() -> Iterator[None]:
    """Within this block, an archive's directory is read only once for members that are opened one after the other.

    Reading a directory of thousands of members for each member takes longer than reading the members.
    """
    with _KeptArchive() as kept:
        token = _kept.set(kept)
        try:
            yield
        finally:
            _kept.reset(token)


class _KeptArchive:
    """The archive that was opened last."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._mark: tuple[Any, ...] = ()
        self._archive: zipfile.ZipFile | None = None
        self._raw: io.BufferedReader | None = None

    def __enter__(self) -> _KeptArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def archive(self, path: str) -> zipfile.ZipFile:
        """The archive ``path`` as it is now.

        Raises:
            NotReadable: the file system does not return the file.
        """
        try:
            mark = (path, storage_of(path).stamp(path))
        except (OSError, StoreFailed) as error:
            raise NotReadable(error) from error
        if self._archive is None or mark != self._mark:
            self._stack.close()
            self._archive = None
            # It must live as long as the archive, which reads from the file under it: ending it would close that file.
            self._raw = self._stack.enter_context(_opened(path))
            self._archive, self._mark = self._stack.enter_context(_archive(self._raw)), mark
        return self._archive


_kept: ContextVar[_KeptArchive | None] = ContextVar("kept", default=None)


class Content:
    """A stream of decompressed bytes, and the checksum of those that were read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._digest = hashlib.blake2b(digest_size=16)
        self._damaged = False
        self._ahead = b""

    def read(self, size: int = _PIECE) -> bytes:
        """The next bytes, at most ``size``; none at the end.

        Raises:
            NotReadable: the file system does not return them.
            Damaged: they cannot be decompressed.
        """
        if not self._ahead:
            self._ahead = self._piece()
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def _piece(self) -> bytes:
        try:
            data: bytes = self._read(_PIECE)
        except (NotReadable, MemoryError):
            raise
        except Exception as error:  # decompressors raise many kinds of errors on bad bytes
            self._damaged = True
            raise _damaged(error) from error
        self._digest.update(data)
        return data

    def checksum(self) -> str:
        """Checksum of what was read so far; it differs between damaged and complete content with the same bytes."""
        digest = self._digest.copy()
        if self._damaged:
            digest.update(b"\0damaged")
        return digest.hexdigest()


def gather(stream: Content, size: int) -> tuple[bytes, bool]:
    """Up to ``size`` bytes, and whether damage ended them; no bytes and no damage mean the end.

    Raises:
        NotReadable: the file system does not return them.
    """
    parts: list[bytes] = []
    left = size
    try:
        while left > 0 and (part := stream.read(left)):
            parts.append(part)
            left -= len(part)
    except Damaged:
        return b"".join(parts), True
    return b"".join(parts), False


def members(path: str, pattern: str) -> Counter[str] | None:
    """The names in the zip archive ``path`` that match the glob, with how many files have each; ``None`` if it is no
    archive.

    Names that are ignored in a folder are ignored here, too, such as the files that a Mac adds beside each file.

    Raises:
        NotReadable: the file system does not return the file.
        Damaged: it looks like an archive but cannot be read.
    """
    with _opened(path) as raw:
        if _magic(raw) != "zip":
            return None
        with _distinguished(), _archive(raw) as archive:
            names = [item.filename for item in archive.infolist() if not item.is_dir()]
    return Counter(
        name
        for name in sorted(names)
        if not is_ignored(name) and (fnmatchcase(name, pattern) or fnmatchcase(name.rsplit("/", 1)[-1], pattern))
    )


def checksum_of(path: str) -> str:
    """Checksum of a file's bytes as they are, not decompressed.

    Raises:
        NotReadable: the file system does not return the file.
    """
    digest = hashlib.blake2b(digest_size=16)
    with _opened(path) as raw:
        while chunk := raw.read(_BUFFER):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def _opened(path: str) -> Iterator[io.BufferedReader]:
    """A file whose every failure raises ``NotReadable``, which no container library mistakes for its own error."""
    try:
        file = storage_of(path).opened(path)
    except (OSError, StoreFailed) as error:
        raise NotReadable(error) from error
    with file:
        yield io.BufferedReader(_Steady(file), _BUFFER)


class _Steady(io.RawIOBase):
    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file
        #: Positions of bytes that are returned with the bit ``_UTF8`` cleared.
        self.cleared: Sequence[int] = ()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int | None:  # type: ignore[override]
        try:
            begin = self._file.tell()
            number = self._file.readinto(buffer)
        except (OSError, StoreFailed) as error:
            raise NotReadable(error) from error
        for place in self.cleared:
            if begin <= place < begin + (number or 0):
                buffer[place - begin] &= ~_UTF8
        return number

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        # Seeking before the start of the file is the fault of a damaged archive, not of the file system, so errors
        # pass.
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _archive(raw: io.BufferedReader) -> zipfile.ZipFile:
    """Open a zip archive; names that claim to be UTF-8 but are not are read in the code page of old archives."""
    first = raw.peek(4)[:4]
    try:
        archive = zipfile.ZipFile(raw)
    except UnicodeDecodeError:
        file = cast(_Steady, raw.raw)
        file.cleared = _misnamed(raw)
        raw = io.BufferedReader(file, _BUFFER)
        archive = zipfile.ZipFile(raw)
    begin = min(
        (item.header_offset for item in archive.infolist()), default=0 if first == _ZIP_EMPTY else archive.start_dir
    )
    if begin or _ZIP in _after(raw):
        raise zipfile.BadZipFile(
            "it holds members that its directory does not list, such as two archives joined to one"
        )
    return archive


def _after(raw: io.BufferedReader) -> bytes:
    """What follows the end of an archive's directory: a comment, or something appended to the file."""
    raw.seek(max(0, raw.seek(0, os.SEEK_END) - _LONGEST_TAIL))
    tail = raw.read()
    return tail[tail.rindex(_ZIP_EMPTY) + 22 :]


def _misnamed(raw: io.BufferedReader) -> list[int]:
    """Positions where an archive wrongly says that a name is UTF-8: in its directory, and at the members."""
    size = raw.seek(0, os.SEEK_END)
    tail_at = raw.seek(max(0, size - _LONGEST_TAIL))
    tail = raw.read()
    end = tail.rindex(b"PK\x05\x06")
    length, offset = struct.unpack_from("<II", tail, end + 12)
    begin = tail_at + end - length
    raw.seek(begin)
    directory = raw.read(length)
    found, at = [], 0
    while directory[at : at + 4] == b"PK\x01\x02":
        name, extra, comment = struct.unpack_from("<HHH", directory, at + 28)
        (member,) = struct.unpack_from("<I", directory, at + 42)
        try:
            directory[at + 46 : at + 46 + name].decode("utf-8")
        except UnicodeDecodeError:
            found += [begin + at + 9, begin - offset + member + 7]
        at += 46 + name + extra + comment
    return found


@contextmanager
def _distinguished() -> Iterator[None]:
    try:
        yield
    except (NotReadable, MemoryError):
        raise
    except Exception as error:  # an archive that is truncated or wrong can raise any error
        raise _damaged(error) from error


def _damaged(error: Exception) -> Damaged:
    if isinstance(error, EOFError):
        return Damaged("its compressed data end too early, as in a file that was copied only in part")
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return Damaged(f"its compressed data are broken ({error})")
    return Damaged(f"{type(error).__name__}: {error}")


def _magic(raw: io.BufferedReader) -> str:
    """``gzip``, ``zip`` or ``plain``, judged by the first bytes, not the name."""
    head = raw.peek(4)[:4]
    if head[:2] == _GZIP:
        return "gzip"
    return "zip" if head in (_ZIP, _ZIP_EMPTY) else "plain"


def _member(archive: zipfile.ZipFile, member: str, stack: ExitStack) -> BinaryIO:
    stream = stack.enter_context(archive.open(member))
    # Some vendors deliver a gzip inside a zip.
    raw: io.BufferedReader[Any] = io.BufferedReader(cast(io.RawIOBase, stream))
    return _unzipped(raw, stack) if raw.peek(2)[:2] == _GZIP else raw


def _plain(raw: io.BufferedReader, stack: ExitStack) -> BinaryIO:
    return _unzipped(raw, stack) if _magic(raw) == "gzip" else raw


def _unzipped(raw: io.BufferedReader[Any], stack: ExitStack) -> BinaryIO:
    return cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=raw)))
