"""Events to one row per key and round: the small table that everything after works on."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import day_start_us
from chainlake.errors import InputError
from chainlake.model_change.config.series import SeriesConfig


def reduced_schema(config: SeriesConfig) -> pa.Schema:
    """key, round_us (start of the round, microseconds), and the model's event columns as numbers."""
    columns = [pa.field(name, pa.float64()) for name in config.columns]
    return pa.schema([pa.field("key", pa.string()), pa.field("round_us", pa.int64()), *columns])


def reduce_rows(config: SeriesConfig, rows: pa.Table | list[dict[str, Any]], key: str) -> pa.Table:
    """Aggregate events of any order into rounds.

    Args:
        config: the model; events before its start and of keys it does not name are left out.
        rows: events with ``ts`` (timestamp, or integer microseconds), the key column and the model's columns; lists of
            dicts may hold attributes under ``attrs``. Of several events of a key in a round, ``last`` means the latest
            by (ts, event_id), or by (ts, position) where there are no ids.
        key: name of the key column.

    Raises:
        InputError: if the rows make no table, a column is missing or not a number, or an event has no ``ts`` or one
            that is no time.
    """
    table = rows if isinstance(rows, pa.Table) else _tabled(rows)
    if not len(table):
        return reduced_schema(config).empty_table()
    empty = config.missing_if_zero
    for name in ("ts", key, *config.columns, *([empty] if empty else [])):
        if name not in table.column_names:
            raise InputError(f"the events have no column '{name}'", key=name, hint=f"They have {table.column_names}.")
    us = _micros(table["ts"])
    keys = pc.index_in(pc.cast(table[key], pa.string()), value_set=pa.array(config.all_keys, pa.string()))
    code = pc.fill_null(keys, -1).to_numpy(zero_copy_only=False)
    known = (code >= 0) & (us >= day_start_us(config.start))
    if empty:
        known &= _numbers(table, empty) != 0
    wanted = np.flatnonzero(known)
    number = us[wanted] // config.round_us
    tie = np.arange(len(wanted))
    if "event_id" in table.column_names:
        tie = np.argsort(
            np.argsort(table["event_id"].to_numpy(zero_copy_only=False)[wanted].astype(str), kind="stable")
        )
    order = np.lexsort((tie, us[wanted], number, code[wanted]))
    wanted, number = wanted[order], number[order]
    group_key = code[wanted]
    starts = (
        np.flatnonzero(np.concatenate([[True], (np.diff(number) != 0) | (np.diff(group_key) != 0)]))
        if len(wanted)
        else np.zeros(0, np.int64)
    )
    columns = [
        pa.array([config.all_keys[i] for i in group_key[starts]], pa.string()),
        pa.array(number[starts] * config.round_us, pa.int64()),
    ]
    for name in config.columns:
        values = _numbers(table, name)[wanted]
        columns.append(pa.array(_aggregate(config.aggregate, values, starts), pa.float64()))
    return pa.Table.from_arrays(columns, schema=reduced_schema(config))


def _tabled(rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist([{**row, **row.get("attrs", {})} for row in rows])
    except pa.ArrowException as error:
        raise InputError(
            f"the events do not make a table: {error}", hint="Give every column values of one type in all rows."
        ) from None


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    try:
        result: np.ndarray = pc.cast(table[name], pa.float64()).to_numpy(zero_copy_only=False)
        return result
    except pa.ArrowException as error:
        raise InputError(f"the column '{name}' is not a number: {error}", key=name) from None


def _micros(column: pa.ChunkedArray) -> np.ndarray:
    """Microseconds of ``ts``, parts of one rounded down."""
    kind = column.type
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py() + 1
        raise InputError(
            f"row {row} of the events has no 'ts'",
            key="ts",
            hint=f"Rows count from 1; {column.null_count} of {len(column)} have none. Give each a time, or drop it.",
        )
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        result: np.ndarray = column.cast(pa.int64()).to_numpy(zero_copy_only=False) // 1000
        return result
    if pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False).astype(float)
        wrong = np.flatnonzero(~(np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2.0**63)))
        if len(wrong):
            row = int(wrong[0])
            _no_time(f"the 'ts' of row {row + 1}, {values[row]}, is no whole number of microseconds")
        result: np.ndarray = values.astype(np.int64)
        return result
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        _no_time(f"'ts' is of type {kind}")
    try:
        column = pc.cast(column, pa.timestamp("us", tz=kind.tz)) if pa.types.is_timestamp(kind) else column
        result: np.ndarray = pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False)
        return result
    except pa.ArrowException as error:
        _no_time(f"a 'ts' cannot be counted in microseconds: {error}")


def _no_time(what: str) -> NoReturn:
    raise InputError(what, key="ts", hint="Give UTC timestamps, or whole microseconds since 1970.")


def _aggregate(how: str, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Per segment, missing values left out; NaN where all are missing. Sums add in event order."""
    n = len(starts)
    segment = np.repeat(np.arange(n), np.diff(np.concatenate([starts, [len(values)]])))
    known = ~np.isnan(values)
    segment, values = segment[known], values[known]
    found = np.full(n, np.nan)
    count = np.bincount(segment, minlength=n)
    if how in ("mean", "sum"):
        total = np.bincount(segment, weights=values, minlength=n)
        has = count > 0
        found[has] = total[has] / count[has] if how == "mean" else total[has]
    elif how in ("min", "max"):
        found[count > 0] = np.inf if how == "min" else -np.inf
        (np.minimum if how == "min" else np.maximum).at(found, segment, values)
    elif how == "last":
        found[segment] = values
    else:
        found[segment[::-1]] = values[::-1]
    return found
