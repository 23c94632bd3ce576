"""Between Arrow and NumPy without ``pa.array``, ``pa.scalar`` and ``to_numpy``.

The first call of any of these imports pandas, which takes longer than matching a small file does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def int64_array(values: np.ndarray) -> pa.Array:
    """Whole numbers as an Arrow array that shares their memory."""
    return whole_array(np.ascontiguousarray(values, np.int64))


def whole_array(values: np.ndarray) -> pa.Array:
    """Contiguous whole numbers of any size as an Arrow array that shares their memory."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def int64_scalar(value: int) -> pa.Scalar:
    """A whole number as an Arrow scalar."""
    return int64_array(np.array([value]))[0]


def text_array(texts: Sequence[str | None]) -> pa.Array:
    """Strings as an Arrow array; None is null."""
    data = [b"" if text is None else text.encode() for text in texts]
    offsets = np.zeros(len(data) + 1, np.int64)
    offsets[1:] = np.cumsum([len(one) for one in data])
    known = pa.py_buffer(np.packbits([text is not None for text in texts], bitorder="little")) if data else None
    buffers = [known, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(pa.large_string(), len(data), buffers).cast(pa.string())


def numpy_of(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """A column of numbers or booleans without nulls as a NumPy array; it may be read-only."""
    if pa.types.is_boolean(column.type):
        return numpy_of(column.cast(pa.uint8())).view(bool)
    if isinstance(column, pa.Array):
        return np.from_dlpack(column)
    if column.num_chunks == 1:
        return np.from_dlpack(column.chunk(0))
    parts = [np.from_dlpack(chunk) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, column.type.to_pandas_dtype())


ZERO, MINUS_ONE = int64_array(np.array([0, -1]))
NO_TEXT = pa.nulls(1, pa.string())[0]
FALSE = ZERO.cast(pa.bool_())
TRUE = MINUS_ONE.cast(pa.bool_())
NAN = pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(np.array([np.nan]))])[0]


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, decoded if it is dictionary-encoded."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


#: A number that is not 0, whatever its exponent.
_NOT_ZERO = r"^[^eE]*[1-9]"


def vanished(texts: pa.ChunkedArray | pa.Array, values: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """The rows whose text is a number other than 0 but whose double is 0, being closer to 0 than any double."""
    rows = np.flatnonzero(numpy_of(pc.fill_null(pc.equal(values, ZERO.cast(pa.float64())), FALSE)))
    if not len(rows):
        return rows
    written = texts.take(int64_array(rows))
    # Most zeros are written in the same few ways.
    ways = pc.unique(written)
    found: np.ndarray = rows[
        numpy_of(pc.is_in(written, value_set=ways.filter(pc.match_substring_regex(ways, _NOT_ZERO))))
    ]
    return found
