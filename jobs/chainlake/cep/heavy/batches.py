"""A function of pairs, called batch by batch; whatever it gives is looked at before it is believed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainlake.cep.heavy.errors import FunctionFailed
from chainlake.cep.language.declared.function import Heavy

#: Pairs of a batch, at least and at most.
LEAST, MOST = 256, 4096
#: Seconds of a batch up to which the next one has twice as many pairs.
_SHORT = 0.25


def evaluated(function: Heavy, columns: Sequence[np.ndarray]) -> np.ndarray:
    """What the function gives for each row of the columns, which have no missing values.

    Raises:
        FunctionFailed: it raises an error, gives something else than a known value for each row, or takes too long.
    """
    rows = len(columns[0])
    found = np.empty(rows, bool if function.result == "bool" else np.float64)
    at, size = 0, LEAST
    while at < rows:
        part = [column[at : at + size] for column in columns]
        began = time.perf_counter()
        found[at : at + size] = _batch(function, part)
        took = time.perf_counter() - began
        if took > function.longest:
            raise FunctionFailed.too_slow(function, _row(part, 0), len(part[0]), took)
        at += size
        size = min(MOST, 2 * size) if took <= _SHORT else size
    return found


def _batch(function: Heavy, columns: Sequence[np.ndarray]) -> np.ndarray:
    if function.code is None:
        raise FunctionFailed.without_code(function)
    rows = len(columns[0])
    try:
        gave = function.code.call(*(column.copy() for column in columns))
    except (Exception, SystemExit) as error:  # whatever somebody else's code raises is told with an example
        raise _example(function, columns, error) from error
    found = np.ma.filled(gave, np.nan) if isinstance(gave, np.ma.MaskedArray) and gave.dtype.kind == "f" else gave
    found = np.asarray(found)
    if found.shape != (rows,):
        told = "one value" if found.shape == () else f"an array of shape {found.shape}"
        raise FunctionFailed.no_column(function, _row(columns, 0), told, rows)
    if found.dtype == object:
        missing = [at for at, one in enumerate(found.tolist()) if one is None or one != one]
        if missing:
            raise FunctionFailed.unknown(function, _row(columns, missing[0]))
    if found.dtype.kind not in ("b" if function.result == "bool" else "fiu"):
        raise FunctionFailed.wrong_type(function, _row(columns, 0), str(found.dtype))
    if function.total and found.dtype.kind == "f" and np.isnan(found).any():
        raise FunctionFailed.unknown(function, _row(columns, int(np.flatnonzero(np.isnan(found))[0])))
    return found


def _example(function: Heavy, columns: Sequence[np.ndarray], error: BaseException) -> FunctionFailed:
    """The error with a pair that raises one, found by halves; the first pair, if none does by itself."""
    low, high = 0, len(columns[0])
    while function.code is not None and high - low > 1:
        middle = (low + high) // 2
        try:
            function.code.call(*(column[low:middle].copy() for column in columns))
        except (Exception, SystemExit) as other:  # the same error, or one like it
            error, high = other, middle
        else:
            low = middle
    return FunctionFailed.raised(function, _row(columns, low), error)


def _row(columns: Sequence[np.ndarray], at: int) -> list[Any]:
    return [column[at] for column in columns]
