"""Zip archives whose members have names that are said to be UTF-8 and are not."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from typing import BinaryIO, cast

_UTF8 = 0x800
_ENTRY = b"PK\x01\x02"
_END = b"PK\x05\x06"
#: Bytes of the end record and of the longest comment after it.
_TAIL = 22 + 65_535


def open_archive(raw: io.BufferedReader) -> zipfile.ZipFile:
    """The archive; names that are no UTF-8 are read as code page 437, like those that are not said to be.

    Raises:
        Exception: whatever ``zipfile`` raises for a damaged archive.
    """
    try:
        return zipfile.ZipFile(raw)
    except UnicodeDecodeError:
        # One such name would keep the rows of every member away.
        return zipfile.ZipFile(cast(BinaryIO, _Overlaid(raw, _other_flags(raw))))


def _other_flags(raw: io.BufferedReader) -> dict[int, bytes]:
    """Position → flags without that of UTF-8, for members whose names are none: in the list, and before the member."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - _TAIL))
    tail = raw.read()
    length, start = struct.unpack_from("<II", tail, tail.rindex(_END) + 12)
    raw.seek(start)
    listed = raw.read(length)
    found: dict[int, bytes] = {}
    at = 0
    while listed[at : at + 4] == _ENTRY:
        (flags,) = struct.unpack_from("<H", listed, at + 8)
        lengths = struct.unpack_from("<HHH", listed, at + 28)
        if flags & _UTF8 and not _is_utf8(listed[at + 46 : at + 46 + lengths[0]]):
            (member,) = struct.unpack_from("<I", listed, at + 42)
            found[start + at + 8] = found[member + 6] = struct.pack("<H", flags & ~_UTF8)
        at += 46 + sum(lengths)
    return found


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Overlaid(io.RawIOBase):
    """A file some bytes of which read as others, given by position."""

    def __init__(self, raw: io.BufferedReader, others: dict[int, bytes]) -> None:
        self._raw = raw
        self._others = {at + n: value for at, piece in others.items() for n, value in enumerate(piece)}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        at = self._raw.tell()
        read = self._raw.readinto(buffer)
        for place, value in self._others.items():
            if at <= place < at + read:
                buffer[place - at] = value
        return read
