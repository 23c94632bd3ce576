"""Event ids as bytes: half the size of their hex digits, which would take most of a worker's memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

#: Bytes of an id of the lake, 128 bits.
SIZE = 16
PACKED = pa.binary(SIZE)

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_VALUES = np.full(256, 255, np.uint8)
_VALUES[_DIGITS] = np.arange(16)
#: The two digits of each byte, as they are in memory.
_PAIRS = np.stack([np.repeat(_DIGITS, 16), np.tile(_DIGITS, 16)], axis=1).copy().view(np.uint16).ravel()


def fixed_texts(column: pa.Array) -> tuple[np.ndarray, int] | None:
    """The bytes of all strings one after another and the length of each; None if lengths differ, or one is null."""
    if not isinstance(column, pa.StringArray) or column.null_count or not len(column):
        return None
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    length = int(ends[1] - ends[0])
    if not length or np.any(np.diff(ends) != length):
        return None
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]], length


def packed(column: pa.Array) -> pa.Array:
    """Ids of 32 lower-case hex digits as 16 bytes each; a column with any other text stays as it is."""
    found = fixed_texts(column)
    if found is None or found[1] != 2 * SIZE:
        return column
    values = _VALUES[found[0]]
    if values.max() > 15:
        return column
    octets = (values[0::2] << 4) | values[1::2]
    return pa.Array.from_buffers(PACKED, len(column), [None, pa.py_buffer(octets)])


def texts(column: pa.Array) -> pa.Array:
    """Ids as strings, whether they are packed or not."""
    if column.type != PACKED:
        return column
    return hex_array(_PAIRS[octets_of(column)].view(np.uint8), len(column))


def hex_array(digits: np.ndarray, n: int) -> pa.Array:
    """``n`` strings of 32 digits from their bytes, shape (32 n,)."""
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(2 * SIZE)
    return pa.Array.from_buffers(pa.string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(digits)])


def octets_of(column: pa.Array) -> np.ndarray:
    """The bytes of packed ids, shape (16 n,)."""
    data = np.frombuffer(column.buffers()[1], np.uint8)
    return data[SIZE * column.offset : SIZE * (column.offset + len(column))]
