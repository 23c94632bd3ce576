"""Converts Arrow tables to the pandas frames on which suites run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def nullable(table: pa.Table) -> pd.DataFrame:
    """The table as a frame with types that lose nothing: integers and booleans can be null, and NaN differs from null.

    Times become UTC without a zone, so that messages show all times in the same form.
    """
    import pandas as pd

    types = {
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    plain = pa.schema(
        [pa.field(f.name, pa.timestamp("us") if pa.types.is_timestamp(f.type) else f.type) for f in table.schema]
    )
    return table.cast(plain).to_pandas(types_mapper=types.get)
