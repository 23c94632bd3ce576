"""Values of earlier events, ``PREV(b.x, 2, 10 min)``, as columns (docs/semantics.md#earlier-events)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.order import moved_order, total_order
from chainlake.cep.events.series import series_of
from chainlake.cep.values.arrow import int64_array, plain
from chainlake.cep.values.texts import masked

#: Columns that, beside the key, say which event is earlier.
ORDERED_BY = ("event_id", "type", "ts", "seq")
#: Attributes that have another name as columns.
STORED = {"id": "event_id"}


class Earlier(Protocol):
    """Which earlier value is asked for."""

    @property
    def attr(self) -> str:
        """The attribute."""

    @property
    def steps(self) -> int:
        """How many events earlier."""

    @property
    def ticks(self) -> int:
        """The longest time, in ticks, between neighbours on the way back."""

    @property
    def of_any_type(self) -> bool:
        """Whether neighbours may have any type."""


def add_previous(
    events: pa.Table, key: str | None, wanted: Sequence[tuple[str, Earlier]], strict: bool = True
) -> pa.Table:
    """``events`` with a column per earlier value.

    "Earlier" is in the order of (ts, seq, event_id) among the events of the same type and key, whatever the order of
    the rows. A seq that is missing is 0; an event without a key has no earlier one.

    Args:
        events: columns ``event_id``, ``type``, ``ts`` (timestamp or ticks), and attributes; missing ones are
            null.
        key: the column that says which events are of one series, or None.
        wanted: the names of the columns to add, and which earlier value each holds.
        strict: whether ``ts`` is a time.

    Raises:
        InputError: ``seq`` or the key cannot be used.
    """
    ts = ticks_of(events["ts"], "ts")
    for any_type in sorted({one.of_any_type for _, one in wanted}):
        group, known = _numbers(events, key, any_type)
        order = moved_order(events, ts, group)
        times, ordered = (ts, group) if order is None else (ts[order], group[order])
        for column, one in wanted:
            if one.of_any_type != any_type:
                continue
            before = _steps_back(ordered, times, one)
            if order is not None:
                back, before = before, np.empty(len(order), np.int64)
                before[order] = np.where(back < 0, -1, order[back])
            if known is not None:
                before[~known] = -1
            events = events.append_column(column, _taken(_attribute(events, one.attr, strict), before))
    return events


def places(events: pa.Table, key: str | None) -> pa.Array:
    """The number of each event in the order of (ts, seq, event_id), among all of them or those of its key.

    Args:
        events: as for ``add_previous``.
        key: the column that says which events are numbered together, or None for all.

    Returns:
        whole numbers, null for events without a key.
    """
    ts = ticks_of(events["ts"], "ts")
    group, known = (None, None) if key is None else _numbers(events, key, any_type=True)
    order, found = moved_order(events, ts, group), np.arange(len(ts))
    if group is not None:
        begins, sizes = _groups(group if order is None else group[order])
        found -= np.repeat(begins, sizes)
    if order is not None:
        at, found = found, np.empty(len(ts), np.int64)
        found[order] = at
    return int64_array(found) if known is None else masked(found, known)


def last_of_each(events: pa.Table, key: str | None, steps: int) -> pa.Table:
    """The last ``steps`` events of each type and key, in the order of ``events``; they include those of each key."""
    group, known = _numbers(events, key, any_type=False)
    order = total_order(events, ticks_of(events["ts"], "ts"), group)
    begins, sizes = _groups(group[order])
    keep = np.arange(len(group)) >= np.repeat(begins + sizes - steps, sizes)
    rows = np.sort(order[keep if known is None else keep & known[order]])
    return events.take(int64_array(rows))


def positions(events: pa.Table, key: str) -> pa.Array:
    """The position of each event among those of its type, key and ``ts``, in the order of the rows: its ``seq``."""
    if not len(events):
        return int64_array(np.zeros(0, np.int64))
    ts, group = ticks_of(events["ts"], "ts"), series_of(events, ["type", key])[0]
    order = np.lexsort((ts, group))
    begins = np.ones(len(order), bool)
    begins[1:] = (group[order][1:] != group[order][:-1]) | (ts[order][1:] != ts[order][:-1])
    at, found = np.arange(len(order)), np.empty(len(order), np.int64)
    found[order] = at - np.maximum.accumulate(np.where(begins, at, 0))
    return int64_array(found)


def _steps_back(group: np.ndarray, ts: np.ndarray, one: Earlier) -> np.ndarray:
    """For each event, in the order of the streams, the place of the earlier event; -1 if none is in reach."""
    begins = np.ones(len(group), bool)
    begins[1:] = (group[1:] != group[:-1]) | (ts[1:] - ts[:-1] > one.ticks)
    before = np.arange(-one.steps, len(group) - one.steps)
    if one.steps == 1:
        before[begins] = -1
        return before
    first = np.maximum.accumulate(np.where(begins, before, -one.steps)) + one.steps
    return np.where(before >= first, before, -1)


def _groups(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each number begins in whole numbers of which equal ones stand together, and how many there are of it."""
    begins = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if len(group) else np.zeros(0, int)
    return begins, np.diff(np.append(begins, len(group)))


def _numbers(events: pa.Table, key: str | None, any_type: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """The number of each row's stream, and whether the row is in one (None if all are)."""
    return series_of(events, ([] if any_type else ["type"]) + ([] if key is None else [key]))


def _attribute(events: pa.Table, attr: str, strict: bool) -> pa.ChunkedArray | pa.Array:
    """The column that conditions know by this name."""
    stored = STORED.get(attr, attr)
    if stored not in events.column_names:
        return pa.nulls(len(events))
    column = plain(events[stored])
    if attr == "ts" and strict and pa.types.is_integer(column.type):
        return column.cast(pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return column


def _taken(column: pa.ChunkedArray | pa.Array, rows: np.ndarray) -> pa.ChunkedArray | pa.Array:
    """The values at some rows; null at -1."""
    return column.take(masked(rows, rows >= 0))
