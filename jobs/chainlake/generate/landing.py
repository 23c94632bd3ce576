"""Landing files as gzip members whose bytes do not depend on the machine."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_STORED = 65_535


class GzipFile:
    """A ``.gz`` file written as a stream, without a name or a time in its header.

    By default the content is *stored* in the format's uncompressed blocks: compressed bytes differ between versions of
    zlib, but stored ones do not, and writing is as fast as the disk. Every gzip reader accepts such a file.

    Args:
        path: path of the file, which appears under this name only when it is complete.
        compress: compress at zlib's level 6 instead; the content is the same everywhere, but the bytes may not be.
    """

    def __init__(self, path: Path, compress: bool = False) -> None:
        self.path = path
        self._part = path.with_name(f".{path.name}.part")
        self._file = self._part.open("wb")
        self._file.write(_HEADER)
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS) if compress else None
        self._crc = 0
        self._size = 0

    def write(self, data: bytes) -> None:
        """Append content (uncompressed bytes)."""
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        if self._deflate is not None:
            self._file.write(self._deflate.compress(data))
            return
        view = memoryview(data)
        for start in range(0, len(data), _STORED):
            piece = view[start : start + _STORED]
            self._file.write(struct.pack("<BHH", 0, len(piece), len(piece) ^ 0xFFFF))
            self._file.write(piece)

    def close(self) -> None:
        """Write the trailer and give the file its name."""
        self._file.write(self._deflate.flush() if self._deflate is not None else b"\x01\x00\x00\xff\xff")
        self._file.write(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))
        self._file.close()
        self._part.replace(self.path)

    def __enter__(self) -> GzipFile:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()
            self._part.unlink(missing_ok=True)
