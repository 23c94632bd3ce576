"""Opening landed files: plain, gzip, or the members of a zip archive; always as decompressed bytes."""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, cast

#: What reading a damaged or locked container raises; RuntimeError is an encrypted zip member.
DAMAGE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, lzma.LZMAError, RuntimeError, NotImplementedError)

_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_ZIP_EMPTY = b"PK\x05\x06"


def magic(path: Path) -> str:
    """``gzip``, ``zip`` or ``plain``, told by the first bytes and not by the name."""
    with path.open("rb") as stream:
        head = stream.read(4)
    if head[:2] == _GZIP:
        return "gzip"
    return "zip" if head in (_ZIP, _ZIP_EMPTY) else "plain"


def members(path: Path, pattern: str) -> list[str] | None:
    """Names of the files in the zip archive ``path`` that fit the glob, sorted; ``None`` if it is no archive.

    Raises:
        One of ``DAMAGE`` if it looks like an archive and cannot be read.
    """
    if magic(path) != "zip":
        return None
    with zipfile.ZipFile(path) as archive:
        names = {item.filename for item in archive.infolist() if not item.is_dir()}
    return sorted(name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name.rsplit("/", 1)[-1], pattern))


def gather(stream: BinaryIO, size: int) -> tuple[bytes, bool]:
    """Up to ``size`` bytes, and whether damage ended them; an empty answer without damage is the end.

    A plain ``read`` would throw away what it had decompressed before it met the damage.
    """
    read = getattr(stream, "read1", stream.read)
    parts: list[bytes] = []
    left = size
    try:
        while left > 0 and (part := read(left)):
            parts.append(part)
            left -= len(part)
    except DAMAGE:
        return b"".join(parts), True
    return b"".join(parts), False


@contextmanager
def open_bytes(path: Path, member: str | None) -> Iterator[BinaryIO]:
    """The decompressed bytes of a landed file, or of one member of an archive."""
    if member is not None:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            # A gzip inside a zip is what some vendors deliver.
            buffered = io.BufferedReader(cast(io.RawIOBase, stream))
            if buffered.peek(2)[:2] == _GZIP:
                with gzip.open(buffered) as inner:
                    yield cast(BinaryIO, inner)
            else:
                yield cast(BinaryIO, buffered)
    elif magic(path) == "gzip":
        with gzip.open(path) as stream:
            yield cast(BinaryIO, stream)
    else:
        with path.open("rb") as stream:
            yield stream
