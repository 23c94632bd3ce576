"""The values of history columns: for each event, the last values of its key as a list (docs/semantics.md#histories)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.errors import UnfitColumn
from chainlake.cep.events.order import total_order
from chainlake.cep.events.series import series_of
from chainlake.cep.values.arrow import NAN, numpy_of
from chainlake.definitions.derived import History

#: The type of a history column.
LIST = pa.list_(pa.float64())


def add_histories(events: pa.Table, by: Sequence[str], histories: Sequence[History]) -> pa.Table:
    """``events`` with a column per history.

    "Last" is in the order of (ts, type, seq, event_id), whatever the order of the rows; ``seq``, the position among
    events of equal type, key and ts, may be missing. A value that is null or NaN does not count, and an event without a
    key has no history.

    Args:
        events: columns ``event_id``, ``type``, ``ts`` (timestamp; or whole seconds), those of ``by``, and attributes.
        by: the key: columns that together say which events share a history.
        histories: the columns to add.

    Raises:
        InputError: a column is missing, or its values are not numbers.
    """
    for column in (*by, *(one.of for one in histories)):
        if column not in events.column_names:
            raise UnfitColumn.no_history(column)
    per_tick = 1 if pa.types.is_timestamp(events.schema.field("ts").type) else 1_000_000
    ts = ticks_of(events["ts"], "ts")
    group, has_key = series_of(events, by)
    known = np.ones(len(events), bool) if has_key is None else has_key
    order = total_order(events, ts, group, by_type=True)
    ts, group, known = ts[order], group[order], known[order]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    for one in histories:
        values = _numbers(events, one.of)[order]
        at, found = _ends(values, group, ts, known, one.count, one.max_gap_us // per_tick)
        windows = found[at[at >= 0][:, None] + np.arange(1 - one.count, 1)] if len(found) else np.zeros((0, one.count))
        place = (np.cumsum(at >= 0) - 1)[back]
        has = (at >= 0)[back]
        # One list after another in the order of the rows, so that the offsets ascend.
        flat = windows[place[has]].ravel()
        offsets = np.concatenate([[0], np.cumsum(has) * one.count]).astype(np.int32)
        column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat), type=LIST, mask=pa.array(~has))
        events = events.append_column(pa.field(one.name, LIST), column)
    return events


def _ends(
    values: np.ndarray, group: np.ndarray, ts: np.ndarray, known: np.ndarray, count: int, gap: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where each event's history ends among the values that are there (-1 if it has none), and these values.

    All arrays are sorted by (group, ts).
    """
    there = np.flatnonzero(~np.isnan(values) & known)
    found, at = values[there], np.cumsum(~np.isnan(values) & known) - 1
    if not len(there):
        return np.full(len(values), -1), found
    begins = np.ones(len(there), bool)
    begins[1:] = (group[there[1:]] != group[there[:-1]]) | (ts[there[1:]] - ts[there[:-1]] > gap)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(there)), 0))
    last = np.maximum(at, 0)
    good = (at >= 0) & known & (group[there[last]] == group) & (ts - ts[there[last]] <= gap)
    good &= last - count + 1 >= first[last]
    return np.where(good, at, -1), found


def _numbers(events: pa.Table, name: str) -> np.ndarray:
    column = events[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_null(column.type)):
        raise UnfitColumn.no_numbers(name, column.type)
    return numpy_of(pc.fill_null(column.cast(pa.float64()), NAN))
