"""Arrow tables as the pandas frames that suites run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def nullable(table: pa.Table) -> pd.DataFrame:
    """The table with types in which nothing is lost: integers and booleans with nulls, NaN apart from null.

    Times become UTC without a zone, so that messages show them alike.
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
