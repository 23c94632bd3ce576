"""Ids of events, and the hashes of their contents and rows, on Arrow columns.

An id is the first 128 bits of a SHA-256, as 32 hex digits. Numbers are hashed by their bits, not their text, because
the text of a number differs between languages and their versions. The hashes are those of Spark's ``xxhash64``, which
lakes of all versions use for their checksums; a test compares them with Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.definitions.source import Source
from chainlake.env.databases import cursor
from chainlake.schemas.table import Table

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
)  # fmt: skip
#: Separates the parts of a hashed text; their lengths are hashed too, so no two lists of parts share one string.
SEPARATOR = "\x1f"
#: The seed of Spark's ``xxhash64``.
_SEED = 42
#: How many rows are hashed at a time: what is computed of so many stays in the processor's cache.
_SLAB = 16_384


def content_hashes(source: Source, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Two hashes of each row's attributes, int64, which tell whether two rows of one (type, key, ts) are equal."""
    return _both([rows[a.name] for a in source.attributes], len(rows))


def event_hashes(table: Table, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Two hashes of each row's non-volatile columns, int64, for the checksum of a day."""
    return _both([rows[name] for name in table.non_volatile], len(rows))


def event_ids(source: Source, rows: pa.Table) -> pa.ChunkedArray:
    """The id of each row, made from source, type, key and µs since 1970; in a multiset, also from content and copy.

    Args:
        source: says what identifies an event.
        rows: type, key, ts, and for a multiset ``_c1``, ``_c2`` and ``_copy``.
    """
    key = '"' + source.key.replace('"', '""') + '"'
    parts = ["type", key, "CAST(epoch_us(ts) AS VARCHAR)"]
    if source.identity == "multiset":
        parts += ["hex(_c1)", "hex(_c2)", "CAST(_copy AS VARCHAR)"]
    same = SEPARATOR.join(f"{len(part.encode())}{SEPARATOR}{part}" for part in (source.identity, source.name))
    pieces = ", ".join(piece for part in parts for piece in (f"CAST(strlen({part}) AS VARCHAR)", part))
    wanted = ["type", source.key, "ts", *(name for name in ("_c1", "_c2", "_copy") if name in rows.column_names)]
    with cursor() as connection:
        connection.register("given", rows.select(wanted))
        text = f"concat_ws('{SEPARATOR}', '{same}', {pieces})"
        found = connection.sql(f"SELECT substr(sha256({text}), 1, 32) AS event_id FROM given").to_arrow_table()
    return found["event_id"]


def _both(columns: Sequence[pa.Array | pa.ChunkedArray], n: int) -> tuple[np.ndarray, np.ndarray]:
    plain = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    found = np.empty((2, n), np.int64)
    for at in range(0, n, _SLAB):
        slab = slice(at, min(n, at + _SLAB))
        found[:, slab] = spark_xxhash64((1, 2), [column[slab] for column in plain], slab.stop - at)
    return found[0], found[1]


def spark_xxhash64(numbers: Sequence[int], columns: Sequence[pa.Array], n: int) -> np.ndarray:
    """Spark's ``xxhash64(number, c IS NULL of each column as int …, each column …)`` for several numbers.

    Args:
        numbers: ints, one per hash of a row.
        columns: columns of the types that attributes have, or of dates.
        n: number of rows.

    Returns:
        int64, shape (numbers, n).

    Raises:
        TypeError: a column is of another type.
    """
    with np.errstate(over="ignore"):
        hashes = _of_int(np.array(numbers, np.uint64)[:, None], np.array([_SEED], np.uint64))
        nulls = [_nulls(column) for column in columns]
        for mask in nulls:
            hashes = _of_int(np.zeros(1, np.uint64) if mask is None else mask.astype(np.uint64), hashes)
        hashes = np.broadcast_to(hashes, (len(numbers), n)).copy()
        for column, mask in zip(columns, nulls, strict=True):
            found = _of_column(column, hashes)
            # A null leaves the hash so far unchanged.
            hashes = found if mask is None else np.where(mask, hashes, found)
    return hashes.view(np.int64)


def _nulls(column: pa.Array) -> np.ndarray | None:
    return pc.is_null(column).to_numpy(zero_copy_only=False) if column.null_count else None


def _of_column(column: pa.Array, seeds: np.ndarray) -> np.ndarray:
    kind = column.type
    if pa.types.is_string(kind):
        return _of_texts(column, seeds)
    if pa.types.is_boolean(kind):
        return _of_int(column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64), seeds)
    if pa.types.is_date32(kind) or pa.types.is_int32(kind):
        days = column.cast(pa.int32()).fill_null(0).to_numpy()
        return _of_int(days.view(np.uint32).astype(np.uint64), seeds)
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        return _of_long(column.cast(pa.int64()).fill_null(0).to_numpy().view(np.uint64), seeds)
    if pa.types.is_float64(kind):
        # 0.0 and -0.0 get the same hash, and so do all NaNs.
        numbers = column.fill_null(0.0).to_numpy() + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return _of_long(numbers.view(np.uint64), seeds)
    raise TypeError(f"no hash for {kind}")


def _rotated(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _mixed(hashes: np.ndarray) -> np.ndarray:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    mixed: np.ndarray = hashes ^ (hashes >> np.uint64(32))
    return mixed


def _with_word(hashes: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Hash eight more bytes."""
    return _rotated(hashes ^ (_rotated(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _with_half(hashes: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Hash four more bytes."""
    return _rotated(hashes ^ (halves * _P1), 23) * _P2 + _P3


def _of_int(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    return _mixed(_with_half(seeds + (_P5 + np.uint64(4)), values))


def _of_long(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    return _mixed(_with_word(seeds + (_P5 + np.uint64(8)), values))


def _of_texts(column: pa.Array, seeds: np.ndarray) -> np.ndarray:
    _, offset_buffer, data = column.buffers()
    ends = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    several = np.unique(lengths).tolist()
    if len(several) == 1:
        return _of_octets(data, starts, several[0], seeds)
    found = np.empty_like(seeds)
    for length in several:
        rows = np.flatnonzero(lengths == length)
        found[:, rows] = _of_octets(data, starts[rows], length, seeds[:, rows])
    return found


def _of_octets(data: pa.Buffer | None, starts: np.ndarray, length: int, seeds: np.ndarray) -> np.ndarray:
    """Hash strings of one length, which begin at ``starts`` in ``data``."""
    words, at = _words(data, np.uint64), 0
    if length >= 32:
        lanes = [seeds + (_P1 + _P2), seeds + _P2, seeds.copy(), seeds - _P1]
        while at <= length - 32:
            lanes = [_rotated(v + words[starts + (at + 8 * i)] * _P2, 31) * _P1 for i, v in enumerate(lanes)]
            at += 32
        hashes = sum((_rotated(v, bits) for v, bits in zip(lanes, (1, 7, 12, 18), strict=True)), np.zeros(1, np.uint64))
        for v in lanes:
            hashes = (hashes ^ (_rotated(v * _P2, 31) * _P1)) * _P1 + _P4
    else:
        hashes = seeds + _P5
    hashes = hashes + np.uint64(length)
    while at <= length - 8:
        hashes, at = _with_word(hashes, words[starts + at]), at + 8
    if at <= length - 4:
        hashes, at = _with_half(hashes, _words(data, np.uint32)[starts + at].astype(np.uint64)), at + 4
    octets = _words(data, np.uint8)
    for place in range(at, length):
        hashes = _rotated(hashes ^ (octets[starts + place].astype(np.uint64) * _P5), 11) * _P1
    return _mixed(hashes)


def _words(data: pa.Buffer | None, kind: type[np.unsignedinteger[Any]]) -> np.ndarray:
    """The whole numbers that begin at each byte of ``data``: overlapping, and without a copy."""
    octets = data.size if data is not None else 0
    return np.ndarray((max(0, octets - np.dtype(kind).itemsize + 1),), kind, data, 0, (1,))
