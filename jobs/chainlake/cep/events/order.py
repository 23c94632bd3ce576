"""The order of events, (ts, seq, event_id), and that of small whole numbers, such as the codes of keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.errors import UnfitColumn
from chainlake.cep.values.arrow import ZERO, int64_array, numpy_of, plain

_BITS = 16


def by_number(codes: np.ndarray) -> np.ndarray:
    """The rows, sorted stably by whole numbers from 0 up.

    Arrow sorts 16-bit numbers by counting, which takes a fraction of the time of comparisons.
    """
    most = int(codes.max(initial=0))
    order = _counted(codes)
    shift = _BITS
    while most >> shift:
        order = order[_counted((codes >> shift)[order])]
        shift += _BITS
    return order


def total_order(
    events: pa.Table,
    ts: np.ndarray,
    group: np.ndarray | None = None,
    *,
    by_type: bool = False,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """Rows of events in the order of (ts, seq, event_id), which no two events share.

    Args:
        events: columns ``event_id`` and, if there is one, ``seq``; a seq that is missing is 0.
        ts: the time of each row, in ticks.
        group: a whole number from 0 up per row, compared before ``ts``; None for one group.
        by_type: whether the type is compared before ``seq``.
        rows: the rows of ``events`` to order; None for all. ``ts`` and ``group`` have one entry for each of them, and
            the result holds indices into ``rows``.

    Raises:
        InputError: ``seq`` does not hold whole numbers.
    """
    order = moved_order(events, ts, group, by_type=by_type, rows=rows)
    return np.arange(len(ts)) if order is None else order


def moved_order(
    events: pa.Table,
    ts: np.ndarray,
    group: np.ndarray | None = None,
    *,
    by_type: bool = False,
    rows: np.ndarray | None = None,
) -> np.ndarray | None:
    """As ``total_order``, but ``None`` if the rows are in that order, so that nothing has to be gathered."""
    if in_order(ts, group):
        return None
    if group is None:
        order = np.argsort(ts, kind="stable")
        times = ts[order]
        same = times[1:] == times[:-1]
    else:
        order = by_number(group)
        times, one = ts[order], np.diff(group[order]) == 0
        if np.any((times[1:] < times[:-1]) & one):
            order = np.lexsort((ts, group))
            times = ts[order]
        same = (times[1:] == times[:-1]) & one
    if same.any():
        # Only rows that share their time are compared by the other columns, since comparing strings is slow.
        tied = np.append(same, False) | np.insert(same, 0, False)
        at = order[tied]
        run = np.cumsum(np.insert(~same, 0, True))[tied]
        few = events.select([name for name in ("event_id", "type", "seq") if name in events.column_names])
        few = few.take(int64_array(at if rows is None else rows[at]))
        keys: dict[str, pa.ChunkedArray | pa.Array] = {"run": int64_array(run)}
        if by_type:
            keys["type"] = plain(few["type"])
        keys["seq"] = _seq(few)
        if "event_id" in few.column_names:
            keys["id"] = plain(few["event_id"])
        # ``by_number`` may have returned memory of Arrow, which is read-only.
        order = order.copy()
        order[tied] = at[numpy_of(pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys]))]
    return order


def in_order(ts: np.ndarray, group: np.ndarray | None = None) -> bool:
    """Whether each row is later than the one before it, or of a later group, as ``total_order`` sorts them."""
    if group is None:
        return bool(np.all(ts[1:] > ts[:-1]))
    later = ts[1:] > ts[:-1]
    later &= group[1:] == group[:-1]
    later |= group[1:] > group[:-1]
    return bool(later.all())


def _seq(events: pa.Table) -> pa.ChunkedArray | pa.Array:
    if "seq" not in events.column_names or pa.types.is_null(events["seq"].type):
        return int64_array(np.zeros(len(events), np.int64))
    column = events["seq"]
    if not pa.types.is_integer(column.type):
        raise UnfitColumn.seq(column.type)
    return pc.fill_null(column.cast(pa.int64()), ZERO)


def _counted(numbers: np.ndarray) -> np.ndarray:
    """The rows, sorted by the lowest 16 bits of their numbers."""
    lowest = np.ascontiguousarray(numbers).astype(np.uint16, copy=False)
    column = pa.Array.from_buffers(pa.uint16(), len(lowest), [None, pa.py_buffer(lowest)])
    found: np.ndarray = numpy_of(pc.array_sort_indices(column)).view(np.int64)
    return found
