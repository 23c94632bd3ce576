"""A table sorted by one of its columns, so that the rows of some values are found without reading all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa


class ByValue:
    """Looks up rows by the value of a column.

    Args:
        parts: tables of one schema, at least one of them.
        column: name of a string column without nulls.
    """

    def __init__(self, parts: Sequence[pa.Table], column: str):
        rows = pa.concat_tables(parts)
        encoded = rows[column].combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        self._rows = rows.take(pa.array(order)).combine_chunks()
        bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        names = encoded.dictionary.to_pylist()
        self._at = {name: (int(bounds[i]), int(bounds[i + 1])) for i, name in enumerate(names)}

    def of(self, values: Iterable[str]) -> pa.Table:
        """The rows of some values, one value after the other; rows of one value keep the order of the parts."""
        spans = [self._at[value] for value in values if value in self._at]
        return pa.concat_tables([self._rows.slice(0, 0), *(self._rows.slice(lo, hi - lo) for lo, hi in spans)])
