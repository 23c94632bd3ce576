"""The current rows of ``ops.intervals`` as columns, because hundreds of thousands of days are judged at once."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np
import pyarrow as pa

from chainlake.lake.records import ops
from chainlake.paths import Home

_FEW = 20
_COLUMNS = (
    "table_name", "definition_hash", "engine_version", "input_fingerprint", "status", "rows", "published_version",
    "reason", "state_in", "state_out", "rows_checksum",
)  # fmt: skip
_PUBLISHED = ("rows", "published_version")


class Intervals:
    """Current rows, sorted by definition and day; one row of nulls is added at the end.

    Args:
        home: the installation.
        names: the definitions wanted; all that have rows if None.
    """

    def __init__(self, home: Home, names: Collection[str] | None) -> None:
        # Filtering by many names costs more than reading all rows.
        few = names is not None and len(names) <= _FEW
        only = [("definition", "in", sorted(names))] if names is not None and few else None
        columns = ["definition", "day", "written_at", *_COLUMNS]
        table = ops.current_table(home, "intervals", columns=columns, filters=only, encoded=True)
        codes = table["definition"].combine_chunks().dictionary_encode().indices.to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
        found = table["definition"].take(pa.array(starts, pa.int64())).to_pylist()
        self._span = dict(zip(found, pairwise([*starts, len(codes)]), strict=True))
        self.numbers = table["day"].cast("int32").to_numpy()
        self.written_us = np.append(table["written_at"].cast(pa.int64()).to_numpy(), 0)
        self.columns = {name: _objects(table[name].combine_chunks()) for name in _COLUMNS}
        #: ``rows`` and ``published_version`` as last published, also of days that a later attempt did not publish.
        self.published = {name: self.columns[name] for name in _PUBLISHED}
        unknown = np.flatnonzero(table["rows"].is_null().to_numpy())
        if len(unknown):
            self._fill(home, table, unknown)

    def _fill(self, home: Home, table: pa.Table, unknown: np.ndarray) -> None:
        """Take what was last published on some days from older rows, which are read for their definitions only."""
        keys = table.select(["definition", "day"]).take(pa.array(unknown)).to_pylist()
        names = sorted({key["definition"] for key in keys})
        only = [("definition", "in", names)] if len(names) <= _FEW else None
        log = ops.current_table(
            home, "intervals", columns=["definition", "day", "seq", *_PUBLISHED], filters=only, as_log=True
        )
        last = {}
        for row in log.filter(log["rows"].is_valid()).sort_by("seq").to_pylist():
            last[row["definition"], row["day"]] = row
        for name in _PUBLISHED:
            self.published[name] = self.columns[name].copy()
            for at, key in zip(unknown.tolist(), keys, strict=True):
                self.published[name][at] = last.get((key["definition"], key["day"]), {}).get(name)

    def of(self, name: str) -> slice:
        """The positions of a definition's rows; their days ascend."""
        return slice(*self._span.get(name, (0, 0)))

    @property
    def names(self) -> list[str]:
        """The wanted definitions that have rows."""
        return list(self._span)


def _objects(column: pa.Array) -> np.ndarray:
    """A column as Python values, with a ``None`` at the end; equal values share one object."""
    encoded = column.dictionary_encode()
    values = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    codes = np.append(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), -1)
    result: np.ndarray = values[codes]
    return result
