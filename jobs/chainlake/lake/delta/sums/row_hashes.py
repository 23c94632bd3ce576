"""A 64-bit hash per row, computed on Arrow columns; checksums of published rows are made of these.

The hash of a row is a sum over its columns, each with multipliers made from the column's name. So neither the order of
the columns nor a column that was added later and is null changes it. Equal values have equal hashes whatever file,
batch or encoding they come from; 0.0 and -0.0 are equal, and so are all NaNs. The hash protects against damage, not
against someone who wants two rows to look alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
#: How many bytes of text are laid out as 64-bit words at a time.
_SLAB_OCTETS = 1 << 24
#: Strings that all have the same length, of up to this many bytes, such as ids, are hashed in place.
_LAID_OUT = 256


def row_hashes(rows: pa.Table | pa.RecordBatch, volatile: Collection[str] = ()) -> np.ndarray:
    """A hash per row, over all columns except the volatile ones.

    Args:
        rows: rows of a data table, with its types.
        volatile: columns that are left out.

    Returns:
        uint64, shape (rows,).

    Raises:
        TypeError: a column is of a type that no data table has.
    """
    with np.errstate(over="ignore"):
        total = np.zeros(len(rows), np.uint64)
        for name in rows.schema.names:
            if name not in volatile:
                total += _of_column(_whole(rows.column(name)), name)
        return _mixed(total)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _of_column(column: pa.Array, path: str) -> np.ndarray:
    """What a column adds to the sum: 0 where it is null."""
    scale, shift = _multipliers(path, 2)
    found = _values(column, path) * scale + shift
    if column.null_count:
        found[pc.is_null(column).to_numpy(zero_copy_only=False)] = 0
    return found


def _values(column: pa.Array, path: str) -> np.ndarray:
    """A 64-bit word per value; any word where the value is null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        words = np.append(_values(column.dictionary, path), np.uint64(0))
        codes: np.ndarray = column.indices.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False)
        found: np.ndarray = words[codes]
        return found
    if pa.types.is_struct(kind):
        total = np.zeros(len(column), np.uint64)
        for field, part in zip(kind, column.flatten(), strict=True):
            total += _of_column(part, f"{path}.{field.name}")
        return _mixed(total)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_lists(column, path)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _of_texts(column)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _values(column.cast(pa.string()), path)
    if pa.types.is_floating(kind):
        # 0.0 and -0.0 get the same word, and so do all NaNs.
        numbers: np.ndarray = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        nan = np.isnan(numbers)
        if nan.any():
            numbers[nan] = np.nan
        return numbers.view(np.uint64)
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return _values(column.cast(pa.int32()), path)
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        whole: np.ndarray = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return whole.view(np.uint64)
    raise TypeError(f"no hash for {kind}")


def _of_lists(column: pa.Array, path: str) -> np.ndarray:
    """A word per list, from its elements, their order and their number."""
    offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    elements = column.values.slice(offsets[0], offsets[-1] - offsets[0]) if len(offsets) else column.values
    offsets = offsets - offsets[0]
    lengths = np.diff(offsets)
    # Elements under a null list belong to no row but are summed too; the caller clears the words of null lists.
    position = np.arange(len(elements), dtype=np.uint64) - np.repeat(offsets[:-1], lengths).astype(np.uint64)
    terms = _of_column(elements, f"{path}[]") * (_mixed(position * _GOLDEN + _GOLDEN) | np.uint64(1))
    sums = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
    return _mixed(sums[offsets[1:]] - sums[offsets[:-1]] + lengths.astype(np.uint64) * _GOLDEN)


def _of_texts(column: pa.Array) -> np.ndarray:
    _, offset_buffer, data_buffer = column.buffers()
    if not len(column):
        return np.empty(0, np.uint64)
    ends = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    lengths = np.diff(ends)
    length = int(lengths[0])
    if 0 < length <= _LAID_OUT and bool((lengths == length).all()):
        return _of_octets(data[ends[0] : ends[-1]].reshape(len(column), length))
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) * 2 < len(column):
        # There are few different strings, such as keys, so each is hashed once.
        words = np.append(_of_texts(encoded.dictionary), np.uint64(0))
        repeated: np.ndarray = words[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)]
        return repeated
    found = np.empty(len(column), np.uint64)
    starts = ends[:-1]
    for length in np.unique(lengths).tolist():
        alike = np.flatnonzero(lengths == length)
        slab = max(1, _SLAB_OCTETS // max(length, 1) // 8)
        for at in range(0, len(alike), slab):
            some = alike[at : at + slab]
            found[some] = _of_octets(data[starts[some][:, None] + np.arange(length)])
    return found


def _of_octets(octets: np.ndarray) -> np.ndarray:
    """A word per string; ``octets`` are strings of one length, shape (rows, length)."""
    n, length = octets.shape
    count = -(-length // 8)
    if length % 8:
        padded = np.zeros((n, count * 8), np.uint8)
        padded[:, :length] = octets
        octets = padded
    words = np.ascontiguousarray(octets).view(np.uint64).reshape(n, count)
    total = np.full(n, np.uint64(length) * _GOLDEN, np.uint64)
    for number, factor in enumerate(_multipliers("", count)):
        total += words[:, number] * factor
    return _mixed(total)


@lru_cache(maxsize=1024)
def _multipliers(path: str, count: int) -> tuple[np.uint64, ...]:
    """Odd numbers that depend on the path alone; a larger ``count`` only adds more."""
    seed = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")
    with np.errstate(over="ignore"):
        made = _mixed(np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    return tuple(made)


def _mixed(words: np.ndarray) -> np.ndarray:
    """Words mixed so that every bit of the input affects every bit of the output."""
    words = (words ^ (words >> np.uint64(30))) * _MIX_1
    words = (words ^ (words >> np.uint64(27))) * _MIX_2
    mixed: np.ndarray = words ^ (words >> np.uint64(31))
    return mixed
