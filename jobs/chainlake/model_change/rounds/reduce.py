"""Reduces events to one row per key and round: the small table that everything later works on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import day_start_us
from chainlake.model_change.config.aggregates import over_events
from chainlake.model_change.config.expressions import expression_of
from chainlake.model_change.config.series import Reduction, SeriesConfig
from chainlake.model_change.errors import UnfitEvents


def reduced_schema(columns: Sequence[str]) -> pa.Schema:
    """Columns key, round_us (start of the round, microseconds), and the given columns as numbers."""
    numbers = [pa.field(name, pa.float64()) for name in columns]
    return pa.schema([pa.field("key", pa.string()), pa.field("round_us", pa.int64()), *numbers])


def reduce_rows(config: SeriesConfig, rows: pa.Table | list[dict[str, Any]], key: str) -> pa.Table:
    """Aggregate events of any order into rounds.

    Args:
        config: the model; events before its start, or with keys that it does not name, are left out.
        rows: events with ``ts`` (timestamp, or integer microseconds), the key column and the columns from which the
            model's are computed; dicts in a list may hold attributes under ``attrs``. Of several events of a key in a
            round, ``last`` means the latest by (ts, event_id), or by (ts, position) where there are no ids.
        key: name of the key column.

    Raises:
        InputError: the rows do not make a table, a column is missing or not a number, or an event has no ``ts`` or one
            that is not a time.
    """
    table = rows if isinstance(rows, pa.Table) else _tabled(rows)
    if not len(table):
        return reduced_schema(config.columns).empty_table()
    return reduce_events(
        config.reduction, table, key, config.all_keys, config.columns, since=day_start_us(config.start)
    )


def last_ts(rows: pa.Table | list[dict[str, Any]]) -> int | None:
    """The latest ``ts`` of events in microseconds, whatever their keys; None if there are none.

    Args:
        rows: as for :func:`reduce_rows`, which must have accepted them.
    """
    return int(_micros((rows if isinstance(rows, pa.Table) else _tabled(rows))["ts"]).max()) if len(rows) else None


def reduce_events(
    how: Reduction,
    events: pa.Table,
    key: str,
    keys: Sequence[str],
    columns: Sequence[str],
    *,
    since: int | None = None,
) -> pa.Table:
    """Aggregate events into rounds of the given keys.

    Args:
        how: the length of a round, and how several events in one are aggregated.
        events: as for :func:`reduce_rows`.
        key: name of the key column.
        keys: the keys wanted, each once.
        columns: columns of the rounds: those of events, and those of expressions.
        since: earliest ts wanted, microseconds.

    Returns:
        a table with the columns of :func:`reduced_schema`, by key in the order of ``keys``, then by time.

    Raises:
        InputError: as for :func:`reduce_rows`. DefinitionError: an expression does not fit the events' columns.
    """
    empty = how.missing_if_zero
    for name in ("ts", key, *how.stored(columns)):
        if name not in events.column_names:
            raise UnfitEvents.no_column(name, events.column_names)
    us = _micros(events["ts"])
    found = pc.index_in(pc.cast(events[key], pa.string()), value_set=pa.array(keys, pa.string()))
    code = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
    known = code >= 0
    if since is not None:
        known &= us >= since
    if empty:
        known &= _numbers(events, empty) != 0
    wanted = np.flatnonzero(known)
    if how.where is not None:
        wanted = wanted[_holds(how.where, events, wanted, us)]
    wanted = wanted[_in_order(events, wanted, code[wanted], us[wanted])]
    code, number = code[wanted], us[wanted] // how.round_us
    starts = np.flatnonzero(np.diff(number, prepend=number[:1] - 1) | np.diff(code, prepend=code[:1]))
    cells = [
        pa.array([keys[i] for i in code[starts]], pa.string()),
        pa.array(number[starts] * how.round_us, pa.int64()),
    ]
    for name in columns:
        cells.append(pa.array(over_events(how.aggregate, _values(events, name, wanted, us), starts), pa.float64()))
    return pa.Table.from_arrays(cells, schema=reduced_schema(columns))


def _holds(where: str, events: pa.Table, wanted: np.ndarray, us: np.ndarray) -> np.ndarray:
    """For which of the wanted events a condition is true."""
    from chainlake.cep.expressions import condition

    test = condition(where)
    return test.holds(_of(events, test.stored, wanted, us))


def _values(events: pa.Table, column: str, wanted: np.ndarray, us: np.ndarray) -> np.ndarray:
    """A column of the wanted events as numbers; NaN where there is no value."""
    text = expression_of(column)
    if text is None:
        found: np.ndarray = _numbers(events, column)[wanted]
        return found
    from chainlake.cep.expressions import value

    computed = value(text)
    return computed.numbers(_of(events, computed.stored, wanted, us))


def _of(events: pa.Table, names: Sequence[str], wanted: np.ndarray, us: np.ndarray) -> pa.Table:
    """Columns of the wanted events, and their times in microseconds."""
    rows = pa.array(wanted)
    columns = {name: events[name].take(rows) for name in names if name != "ts"}
    return pa.table({"ts": pa.array(us[wanted], pa.int64()), **columns})


def _in_order(events: pa.Table, wanted: np.ndarray, code: np.ndarray, us: np.ndarray) -> np.ndarray:
    """The order of the wanted events by key, ts, and event_id or position."""
    order = np.lexsort((us, code))
    if "event_id" not in events.column_names:
        return order
    same = (np.diff(code[order]) == 0) & (np.diff(us[order]) == 0)
    if not same.any():
        return order
    # Ids are compared only where several events share key and time, since sorting strings is slow.
    tied = np.flatnonzero(np.concatenate([[False], same]) | np.concatenate([same, [False]]))
    ids = events["event_id"].take(pa.array(wanted[order[tied]])).to_numpy(zero_copy_only=False).astype(str)
    rank = np.zeros(len(wanted), np.int64)
    rank[order[tied]] = np.unique(ids, return_inverse=True)[1]
    return np.lexsort((rank, us, code))


def _tabled(rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist([{**row, **row.get("attrs", {})} for row in rows])
    except pa.ArrowException as error:
        raise UnfitEvents.no_table(error) from None


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    try:
        result: np.ndarray = pc.cast(table[name], pa.float64()).to_numpy(zero_copy_only=False)
        return result
    except pa.ArrowException as error:
        raise UnfitEvents.no_number(name, error) from None


def _micros(column: pa.ChunkedArray) -> np.ndarray:
    """``ts`` in microseconds; nanoseconds are rounded down."""
    kind = column.type
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py() + 1
        raise UnfitEvents.without_time(row, column.null_count, len(column))
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return _whole(column) // 1000
    if pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False).astype(float)
        wrong = np.flatnonzero(~(np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2.0**63)))
        if len(wrong):
            row = int(wrong[0])
            raise UnfitEvents.parted_time(row + 1, values[row])
        return np.asarray(values, np.int64)
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        raise UnfitEvents.no_time(kind)
    try:
        column = pc.cast(column, pa.timestamp("us", tz=kind.tz)) if pa.types.is_timestamp(kind) else column
        return _whole(column)
    except pa.ArrowException as error:
        raise UnfitEvents.uncounted_time(error) from error


def _whole(column: pa.ChunkedArray) -> np.ndarray:
    numbers: np.ndarray = pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False)
    return numbers
