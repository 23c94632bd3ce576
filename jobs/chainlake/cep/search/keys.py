"""The keys of a partitioned pattern: events of different keys are never in one match, nor counted by one limit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.clock import Clock
from chainlake.cep.events.columns import kind_of, ticks_of
from chainlake.cep.pattern import Pattern
from chainlake.cep.values.arrow import MINUS_ONE, numpy_of


def parts_by_key(pattern: Pattern, events: pa.Table) -> np.ndarray | None:
    """The part of each event, as in ``SearchOptions``, so that sets are counted key by key.

    Returns:
        A number per event; ``None`` for a pattern without a partition key or without sets, and where one part is
        enough. If there are more keys than 62-bit times can tell apart, some share a part.
    """
    key = pattern.partition_key
    if key is None or not any(branch.kleene for branch in pattern.branches):
        return None
    if not len(events) or not {key, "ts"} <= set(events.column_names) or kind_of(events[key].type) in (None, "null"):
        return None
    codes = numpy_of(pc.fill_null(_codes(events[key]), MINUS_ONE)) + 1
    if codes.min() == codes.max():
        return None
    ts = ticks_of(events["ts"], "ts")
    most = Clock.over(int(ts.min()), int(ts.max()), pattern.window_us).most_parts
    return codes % most if most > 1 else None


def _codes(column: pa.ChunkedArray) -> pa.Array:
    """A number for each value, the same for values that conditions take for equal; null for null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if kind_of(kind) == "string":
        column = column.cast(pa.string())
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        # Zero has two signs.
        column = pc.add(column.cast(pa.float64()), 0.0)
    elif pa.types.is_timestamp(kind):
        column = pc.floor_temporal(column, unit="microsecond")
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    return pa.chunked_array(column.chunks, column.type).combine_chunks().dictionary_encode().indices.cast(pa.int64())
