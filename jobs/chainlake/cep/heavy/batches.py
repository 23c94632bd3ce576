"""Calls a function of pairs batch by batch, and checks whatever it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainlake.cep.heavy.calling import Outcome, outcome
from chainlake.cep.heavy.errors import FunctionFailed
from chainlake.cep.language.declared.function import Heavy

#: How many pairs a batch has, at least and at most.
LEAST, MOST = 256, 4096
#: After a batch that took at most this many seconds, the next one has twice as many pairs.
_SHORT = 0.25


def in_order(function: Heavy, columns: list[np.ndarray]) -> np.ndarray:
    """What a function gives; a symmetric one is always called with the smaller half of its arguments first, so that not
    even the last digit of a result depends on the order in which events were bound."""
    half = len(columns) // 2
    if function.symmetric and 2 * half == len(columns):
        swap = np.zeros(len(columns[0]), bool)
        tied = np.ones(len(columns[0]), bool)
        for one, other in zip(columns[:half], columns[half:], strict=True):
            if one.dtype.kind == "O" and any(isinstance(x, np.ndarray) for x in (*one[:1], *other[:1])):
                one, other = (_listed(side) for side in (one, other))
            swap |= tied & np.asarray(one > other, bool)
            tied &= np.asarray(one == other, bool)
        for at in range(half):
            one, other = columns[at], columns[at + half]
            if one.dtype != other.dtype:
                one, other = (side.astype(np.result_type(one, other)) for side in (one, other))
            columns[at], columns[at + half] = np.where(swap, other, one), np.where(swap, one, other)
    return evaluated(function, columns)


def evaluated(function: Heavy, columns: Sequence[np.ndarray]) -> np.ndarray:
    """What the function gives for each row of the columns, which have no missing values.

    Raises:
        FunctionFailed: it raises an error, does not give a known value for each row, or takes too long.
    """
    rows = len(columns[0])
    found = np.empty(rows, bool if function.result == "bool" else np.float64)
    at, size = 0, LEAST
    while at < rows:
        part = [column[at : at + size] for column in columns]
        came = _called(function, part)
        if came.error is not None:
            raise _example(function, part, came.error) from came.error
        if not came.done or came.seconds > function.longest:
            raise FunctionFailed.too_slow(function, _row(part, 0), len(part[0]), came.seconds, came.done)
        found[at : at + size] = _checked(function, part, came.gave)
        at += size
        size = min(MOST, 2 * size) if came.seconds <= _SHORT else size
    return found


def _called(function: Heavy, columns: Sequence[np.ndarray]) -> Outcome:
    """The outcome of a call with copies of the columns, which the function may change."""
    if function.code is None:
        raise FunctionFailed.without_code(function)
    call, copies = function.code.call, [_copy(column) for column in columns]
    made = _of_columns if function.vectorised else _row_by_row
    return outcome(lambda: made(call, copies), function.longest)


def _of_columns(call: Callable[..., Any], columns: Sequence[np.ndarray]) -> np.ndarray:
    gave = call(*columns)
    return gave if isinstance(gave, np.ma.MaskedArray) else np.asarray(gave)


def _row_by_row(call: Callable[..., Any], columns: Sequence[np.ndarray]) -> np.ndarray:
    """What a function of single values gives, row by row."""
    found = np.empty(len(columns[0]), object)
    for at, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        found[at] = call(*values)
    return found


def _checked(function: Heavy, columns: Sequence[np.ndarray], found: np.ndarray) -> np.ndarray:
    """What a function gave, or an error unless that is one known value of its kind for each row."""
    rows, kinds = len(columns[0]), "b" if function.result == "bool" else "fiu"
    if found.shape != (rows,):
        shape = "one value" if found.shape == () else f"an array of shape {found.shape}"
        raise FunctionFailed.no_column(function, _row(columns, 0), shape, rows)
    hidden = np.ma.getmaskarray(found) if isinstance(found, np.ma.MaskedArray) else np.zeros(rows, bool)
    found = np.ma.getdata(found)
    if found.dtype == object:
        hidden = hidden | np.array([_missing(one) for one in found.tolist()], bool)
    elif found.dtype.kind == "f" and function.total:
        hidden = hidden | np.isnan(found)
    if hidden.any():
        raise FunctionFailed.unknown(function, _row(columns, int(np.flatnonzero(hidden)[0])))
    if found.dtype == object and not function.vectorised:
        for at, one in enumerate(found.tolist()):
            value = np.asarray(one)
            if value.shape != () or value.dtype.kind not in kinds:
                raise FunctionFailed.wrong_type(function, _row(columns, at), type(one).__name__)
        return found.astype(bool if function.result == "bool" else np.float64)
    if found.dtype.kind not in kinds:
        raise FunctionFailed.wrong_type(function, _row(columns, 0), str(found.dtype))
    return found


def _missing(value: Any) -> bool:
    """Whether an object stands for no value: None, a NaN, or a masked one."""
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.getmaskarray(value).any())
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _copy(column: np.ndarray) -> np.ndarray:
    """A copy of a column and of the arrays in it."""
    copied = column.copy()
    if copied.dtype == object:
        for at, one in enumerate(copied):
            if isinstance(one, np.ndarray):
                copied[at] = one.copy()
    return copied


def _example(function: Heavy, columns: Sequence[np.ndarray], error: BaseException) -> FunctionFailed:
    """The error with a pair that raises one, found by bisection; the first pair if no pair raises one on its own."""
    low, high = 0, len(columns[0])
    while high - low > 1:
        middle = (low + high) // 2
        came = _called(function, [column[low:middle] for column in columns])
        if not came.done:
            break
        if came.error is not None:  # the same error, or one like it
            error, high = came.error, middle
        else:
            low = middle
    return FunctionFailed.raised(function, _row(columns, low), error)


def _row(columns: Sequence[np.ndarray], at: int) -> list[Any]:
    return [column[at] for column in columns]


def _listed(arrays: np.ndarray) -> np.ndarray:
    found = np.empty(len(arrays), object)
    for at, one in enumerate(arrays):
        found[at] = one.tolist()
    return found
