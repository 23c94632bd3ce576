"""Columns of events as NumPy arrays: which kind of value each holds, times as whole µs, strings as codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.errors import UnfitColumn
from chainlake.cep.values.arrow import FALSE, MINUS_ONE, NAN, ZERO, numpy_of, plain
from chainlake.cep.values.values import NULL, Lists, Value

#: Whole numbers up to this size are exact as doubles.
_EXACT = 2**53


def kind_of(kind: pa.DataType) -> str | None:
    """The kind of value that a column of this Arrow type holds, or None if the language has none for it."""
    if pa.types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "time"
    if pa.types.is_duration(kind):
        return "duration"
    if is_list(kind):
        return "list" if kind_of(kind.value_type) in ("number", "null") else None
    return "null" if pa.types.is_null(kind) else None


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_whole(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds only whole numbers; databases also write them as decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) and kind.scale <= 0)


def ticks_of(column: pa.ChunkedArray | pa.Array, name: str) -> np.ndarray:
    """A column of timestamps (as whole µs, rounded down) or whole numbers (as they are) as int64.

    Raises:
        InputError: nulls, another type, or a number beyond int64.
    """
    if column.null_count:
        raise UnfitColumn.incomplete(name, column.null_count)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return whole_us(column)
    if not pa.types.is_integer(column.type):
        raise UnfitColumn.no_time(name, column.type)
    try:
        return numpy_of(column.cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise UnfitColumn.beyond(name, error) from None


def encoded(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """The codes (-1 for null) of a column of strings, and the strings they stand for."""
    column = plain(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64), []
    found = column.cast(pa.string()).dictionary_encode()
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    codes = numpy_of(pc.fill_null(found.indices.cast(pa.int64()), MINUS_ONE))
    return codes, found.dictionary.to_pylist()


def values_of(column: pa.ChunkedArray, kind: str, name: str) -> Value:
    """A column of an events table as values of this kind, which is not strings.

    Raises:
        InputError: a number beyond 64 bits, or a whole number in a list that no double equals.
    """
    if kind == "null":
        return NULL
    column = plain(column)
    if kind == "list":
        return _lists(column, name)
    valid = None if column.null_count == 0 else numpy_of(pc.is_valid(column))
    if kind == "number" and not is_whole(column.type):
        whole = filled(column if pa.types.is_float64(column.type) else column.cast(pa.float64()), NAN)
        return Value(numpy_of(whole), None, kind)
    if kind == "bool":
        return Value(numpy_of(filled(column, FALSE)), valid, kind)
    if kind == "time":
        return Value(whole_us(column), valid, kind)
    if kind == "duration":
        column = column.cast(pa.duration("us"), safe=False)
    try:
        whole = column if pa.types.is_int64(column.type) else column.cast(pa.int64())
        return Value(numpy_of(filled(whole, ZERO)), valid, kind)
    except pa.ArrowInvalid as error:
        raise UnfitColumn.beyond(name, error) from None


def _lists(column: pa.ChunkedArray, name: str) -> Value:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    valid = None if array.null_count == 0 else numpy_of(array.is_valid())
    lengths = numpy_of(filled(pc.list_value_length(array).cast(pa.int64()), ZERO))
    numbers = pc.list_flatten(array)
    try:
        flat = numpy_of(filled(numbers.cast(pa.float64()), NAN))
    except pa.ArrowInvalid:
        large = next(one for one in numbers.to_pylist() if one is not None and abs(one) > _EXACT)
        raise UnfitColumn.inexact(name, large) from None
    matrix = np.full((len(array), int(lengths.max(initial=0))), np.nan)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = flat
    return Value(Lists(matrix, lengths, np.arange(len(array))), valid, "list")


def whole_us(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Timestamps or dates in µs, rounded down; 0 for null."""
    unit = getattr(column.type, "unit", None)
    if unit == "ns":  # a cast would round towards zero, which is up before 1970
        return numpy_of(filled(column.cast(pa.int64()), ZERO)) // 1000
    if unit != "us":
        column = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False)
    return numpy_of(filled(_as_numbers(column), ZERO))


def _as_numbers(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """64-bit timestamps as whole numbers in the same memory; a cast would take ten times as long."""
    if isinstance(column, pa.Array):
        return column.view(pa.int64())
    if column.num_chunks == 1:
        return column.chunk(0).view(pa.int64())
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())


def filled(column: pa.ChunkedArray | pa.Array, value: pa.Scalar) -> pa.ChunkedArray | pa.Array:
    """The column with ``value`` for null; the same column, not copied, if it has none."""
    return pc.fill_null(column, value) if column.null_count else column
