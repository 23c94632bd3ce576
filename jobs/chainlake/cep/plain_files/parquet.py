"""Reads Parquet files as tables: strings and times have one type each, however their writer stored them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import whole_us
from chainlake.cep.values.arrow import numpy_of, plain
from chainlake.cep.values.texts import masked


def read_parquet(file: Path) -> pa.Table:
    """The rows of a file; text becomes strings, timestamps become microseconds, and finer digits are cut off.

    Some writers store text as strings, others as dictionaries (pandas categories) or large strings (Polars), which
    must not change results. 96-bit times, which old writers use, can exceed the range of nanoseconds.

    Raises:
        OSError, ArrowException: it is not a Parquet file, or is damaged.
    """
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    for index, name in enumerate(table.column_names):
        column = plain(table.column(index))
        kind = column.type
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            column = column.cast(pa.string())
        elif pa.types.is_timestamp(kind) and kind.unit == "ns":
            ticks = masked(whole_us(column), numpy_of(pc.is_valid(column)))
            column = ticks.cast(pa.timestamp("us", tz=kind.tz))
        table = table.set_column(index, name, column)
    return table
