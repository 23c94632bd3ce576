"""Which events are of one series: small whole numbers for the values of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.values.arrow import MINUS_ONE, ZERO, numpy_of


def codes_of(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """A small whole number for each value of a column, and how many numbers there are.

    Args:
        column: of any type; NaN is null, and the two zeros are equal.

    Returns:
        shape (rows,), equal for equal values, -1 for null.
    """
    if pa.types.is_null(column.type):
        return np.full(len(column), -1), 0
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries().combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        values, number = codes_of(pa.chunked_array([column.dictionary]))
        if number == 1 and not column.null_count and len(values) == 1:
            return np.zeros(len(column), np.int64), 1
        codes = numpy_of(pc.fill_null(column.indices.cast(pa.int64()), MINUS_ONE))
        return np.append(values, -1)[codes], number
    if pa.types.is_floating(column.type):
        null, zero = pa.nulls(1, column.type)[0], ZERO.cast(column.type)
        column = pc.add(pc.if_else(pc.is_nan(column), null, column), zero)
    if pa.types.is_int64(column.type) and not column.null_count and len(column):
        numbers = numpy_of(column)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < len(numbers):
            return numbers - low if low else numbers, high - low + 1
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return numpy_of(pc.fill_null(encoded.indices.cast(pa.int64()), MINUS_ONE)), len(encoded.dictionary)


def series_of(events: pa.Table, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray | None]:
    """A number per row, equal for rows that are equal in some columns.

    Args:
        events: the events; a column that they lack is null.
        names: of the columns.

    Returns:
        the numbers, shape (rows,); and which rows have a value in all of the columns, or None if all have.
    """
    group = np.zeros(len(events), np.int64)
    known: np.ndarray | None = None
    for name in names:
        column = events[name] if name in events.column_names else pa.chunked_array([pa.nulls(len(events))])
        codes, number = codes_of(column)
        if number > 1 or column.null_count or len(codes) and int(codes.min()) < 0:
            group = codes + 1 if name == names[0] else group * (number + 1) + codes + 1
        if len(codes) and int(codes.min()) < 0:
            known = codes >= 0 if known is None else known & (codes >= 0)
    return group, known
