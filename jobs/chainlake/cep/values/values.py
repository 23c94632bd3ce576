"""Columns of values with null, and what the language computes with them (docs/semantics.md#conditions).

Null is NaN in float columns and a false entry of ``valid`` in all others. A comparison with NaN is false in NumPy for
all operators but ``!=``, so for floats "unknown counts as not TRUE" comes for free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: Elements of two list columns that ``Corr`` holds in memory at a time.
_LIST_BLOCK = 1 << 20


class Lists(NamedTuple):
    """A column of number lists: rows of ``matrix`` (NaN after ``lengths`` entries), picked by ``rows``."""

    matrix: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray


class Value(NamedTuple):
    """A column of values, or one value for all rows.

    Args:
        values: array of float64, int64 (whole numbers, µs, or codes of strings in the sorted vocabulary) or bool; a
            ``Lists``; or a Python scalar. Whole numbers beyond int64 are Python integers (dtype object).
        valid: which entries are not null; None if all are (NaN in floats is null all the same).
        kind: number, string, bool, time, duration, list or null.
    """

    values: Any
    valid: np.ndarray | None
    kind: str


NULL = Value(0, None, "null")


def take(value: Value, index: np.ndarray | slice) -> Value:
    """``value`` at the rows ``index``."""
    if isinstance(value.values, np.ndarray):
        if isinstance(index, slice):
            return Value(value.values[index], None if value.valid is None else value.valid[index], value.kind)
        # Takes half as long as indexing.
        valid = None if value.valid is None else value.valid.take(index)
        return Value(value.values.take(index), valid, value.kind)
    if isinstance(value.values, Lists):
        lists = value.values
        picked = Lists(lists.matrix, lists.lengths, lists.rows[index])
        return Value(picked, None if value.valid is None else value.valid[index], value.kind)
    return value


def both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Where both are valid."""
    if one is None:
        return other
    return one if other is None else one & other


def as_float(value: Value) -> Any:
    """The values as float64 with NaN for null."""
    if not isinstance(value.values, np.ndarray):
        return float(value.values)
    if value.valid is not None:
        return np.where(value.valid, value.values.astype(np.float64), np.nan)
    return value.values.astype(np.float64, copy=False)


_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


def compare(op: str, left: Value, right: Value) -> Any:
    """Where ``left op right`` is TRUE: a bool array, or one bool.

    Values of different kinds are never equal; the check of the pattern has refused to order them.
    """
    if "null" in (left.kind, right.kind):
        return False
    if left.kind != right.kind:
        return False if op == "=" else not_null(left) & not_null(right)
    x, y = left.values, right.values
    if _is_objects(x) != _is_objects(y) and not (is_whole(left) and is_whole(right)):
        x, y = as_float(left), as_float(right)
    truth = _COMPARE[op](x, y)
    if op == "!=":
        truth = truth & not_nan(left) & not_nan(right)
    valid = both(left.valid, right.valid)
    return truth if valid is None else truth & valid


def not_nan(value: Value) -> Any:
    """Where a value is not NaN."""
    if isinstance(value.values, np.ndarray) and value.values.dtype.kind == "f":
        return ~np.isnan(value.values)
    return value.values == value.values if isinstance(value.values, float) else True


def not_null(value: Value) -> Any:
    """Where a value is not null."""
    if value.kind == "null":
        return False
    good = not_nan(value)
    return good if value.valid is None else value.valid & good


def member(value: Value, items: list[Any], negated: bool) -> Any:
    """Where ``value [NOT] IN items`` is TRUE; ``items`` holds only values of the same kind.

    An item equals a value where ``compare`` says so: whole numbers exactly, a double and any other number as doubles.
    """
    known = not_null(value)
    doubles = [item for item in items if isinstance(item, float)]
    others = [item for item in items if not isinstance(item, float)]
    if isinstance(value.values, np.ndarray):
        inside = np.isin(value.values, np.array(others)) if others else np.zeros(len(value.values), bool)
        if doubles:
            inside = inside | np.isin(as_float(value), np.array(doubles))
        return (~inside if negated else inside) & known
    found = any(_COMPARE["="](value.values, np.array(some)).any() for some in (doubles, others) if some)
    return (found != negated) & known


def is_whole(value: Value) -> bool:
    """Whether all entries are whole numbers or ticks."""
    if isinstance(value.values, np.ndarray):
        return value.values.dtype.kind in "iO"
    return isinstance(value.values, int)


def _is_objects(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "O"


def _size(side: np.ndarray | int) -> int:
    """The largest absolute value of whole numbers."""
    if isinstance(side, np.ndarray):
        return max(-int(side.min(initial=0)), int(side.max(initial=0)))
    return abs(side)


def _add(op: str, x: Any, y: Any, valid: np.ndarray | None) -> Any:
    """``x + y`` or ``x - y`` of whole numbers, exactly: in int64, or in Python integers where that is too small."""
    if _size(x) + _size(y) >= 2**63 and (isinstance(x, np.ndarray) or isinstance(y, np.ndarray)):
        x, y = (side.astype(object) if isinstance(side, np.ndarray) else side for side in (x, y))
        result = x + y if op == "+" else x - y
        known = result if valid is None else np.where(valid, result, 0)
        return known.astype(np.int64) if _size(known) < 2**63 else known
    return x + y if op == "+" else x - y


def arithmetic(op: str, left: Value, right: Value) -> Value:
    """``left op right``: sums and differences of whole numbers and ticks are exact, all else is computed in doubles.

    Division by zero gives null.
    """
    if "null" in (left.kind, right.kind):
        return NULL
    kind = result_kind(op, left.kind, right.kind)
    if op in "+-" and is_whole(left) and is_whole(right):
        valid = both(left.valid, right.valid)
        return Value(_add(op, left.values, right.values, valid), valid, kind)
    if op in "+-" and "number" not in (left.kind, right.kind):
        values = left.values + right.values if op == "+" else left.values - right.values
        return Value(values, both(left.valid, right.valid), kind)
    x, y = as_float(left), as_float(right)
    with np.errstate(all="ignore"):
        if op == "/":
            if isinstance(y, float):
                y = np.nan if y == 0 else y
            else:
                y = np.where(y == 0, np.nan, y)
            return Value(x / y, None, kind)
        return Value(x + y if op == "+" else x - y if op == "-" else x * y, None, kind)


def result_kind(op: str, left: str, right: str) -> str:
    """The kind of ``left op right`` for kinds that the check let through."""
    if left == right == "number":
        return "number"
    if op == "/":
        return "number" if left == right else "duration"
    if op == "-":
        return "duration" if left == right else left
    return "time" if "time" in (left, right) else "duration"


def negative(value: Value) -> Value:
    """``- value``."""
    if is_whole(value):
        return Value(_add("-", 0, value.values, value.valid), value.valid, value.kind)
    return Value(-value.values, value.valid, value.kind)


def absolute(value: Value) -> Value:
    """``Abs(value)``."""
    if value.kind == "null":
        return NULL
    size = abs(value.values)
    if isinstance(size, np.ndarray) and size.dtype.kind == "i" and (size < 0).any():  # of -2**63
        size = abs(value.values.astype(object))
    return Value(size, value.valid, value.kind)


def correlation(left: Value, right: Value) -> Value:
    """Pearson's correlation of two lists; null if one is null, constant or shorter than 2, or if lengths differ."""
    if "null" in (left.kind, right.kind):
        return NULL
    x, y = left.values, right.values
    result = np.full(len(x.rows), np.nan)
    lengths = x.lengths[x.rows]
    usable = (lengths == y.lengths[y.rows]) & (lengths >= 2)
    valid = both(left.valid, right.valid)
    if valid is not None:
        usable &= valid
    for length in np.unique(lengths[usable]):
        rows = np.flatnonzero(usable & (lengths == length))
        size = max(1, _LIST_BLOCK // int(length))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            result[some] = _pearson(x.matrix[x.rows[some], :length], y.matrix[y.rows[some], :length])
    return Value(result, None, "number")


def _pearson(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    constant = (x.min(axis=1) == x.max(axis=1)) | (y.min(axis=1) == y.max(axis=1))
    with np.errstate(all="ignore"):
        dx, dy = _deviations(x), _deviations(y)
        r = (dx * dy).sum(axis=1) / np.sqrt((dx * dx).sum(axis=1) * (dy * dy).sum(axis=1))
    # By the Cauchy-Schwarz inequality, only rounding can lead beyond 1.
    return np.where(constant, np.nan, np.clip(r, -1.0, 1.0))


def _deviations(x: np.ndarray) -> np.ndarray:
    """The rows of ``x`` about their means, each row scaled by a power of two so that squares stay in range."""
    # Halved first, since the difference of two doubles can exceed all doubles; tiny values lose no digit, since they
    # have been scaled up.
    x = _scaled(x) / 2
    d = x - x[:, :1]
    d = d - d.mean(axis=1, keepdims=True)
    # The mean of large values may be rounded by more than they differ, so the mean that is left is subtracted too.
    d = d - d.mean(axis=1, keepdims=True)
    return _scaled(d)


def _scaled(rows: np.ndarray) -> np.ndarray:
    """The rows, each multiplied by the power of two that brings its largest value below 1."""
    found: np.ndarray = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])
    return found
