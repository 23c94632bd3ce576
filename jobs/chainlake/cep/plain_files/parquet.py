"""Parquet files as tables: one way for texts and times, however their writer stored them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import whole_us
from chainlake.cep.values.arrow import numpy_of, plain
from chainlake.cep.values.texts import masked


def read_parquet(file: Path) -> pa.Table:
    """The rows of a file; texts are strings, and timestamps microseconds, whose finer digits are cut off.

    What is a text to one writer is a dictionary to another (pandas, of categories) or a large string (Polars): what is
    asked of texts must not hang on that. Times of 96 bits, which old writers write, reach beyond nanoseconds.

    Raises:
        OSError, ArrowException: it is none, or damaged.
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
