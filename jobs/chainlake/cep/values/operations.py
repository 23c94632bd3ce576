"""What the functions of the language compute, on columns of values (docs/semantics.md#functions)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from chainlake.cep.values.aggregates import Function, Members, aggregate
from chainlake.cep.values.texts import Words
from chainlake.cep.values.values import NULL, Lists, Value, as_float, both, is_whole, not_null
from chainlake.days import day_of, instant

#: How many elements of lists are copied at a time.
_LIST_BLOCK = 1 << 20
_SECOND = 1_000_000
_HOUR = 3_600 * _SECOND
_DAY = 24 * _HOUR
#: One day after the year 1 begins and one day before the year 9999 ends: between them, every zone has a date.
_FIRST, _END = -62_135_596_800 * _SECOND + _DAY, 253_402_300_800 * _SECOND - _DAY


def choose(where: Any, one: Value, other: Value) -> Value:
    """``one`` where the condition holds, ``other`` elsewhere; if either has doubles, the result has.

    Args:
        where: a boolean per row, or one for all rows.
        one, other: of the same kind; a null column goes with any.
    """
    if "null" in (one.kind, other.kind) and one.kind == other.kind:
        return NULL
    kind = other.kind if one.kind == "null" else one.kind
    floating = _is_float(one) or _is_float(other)
    x, y = (_filled(value, floating) for value in (one, other))
    values = np.where(where, x, y)
    if floating:
        ticks, known = _ticks(values, kind)
        return _shaped(ticks, known, kind)
    valid = [value.kind != "null" if value.valid is None else value.valid for value in (one, other)]
    if all(item is True for item in valid):
        return _shaped(values, None, kind)
    return _shaped(values, np.broadcast_to(np.where(where, valid[0], valid[1]), values.shape), kind)


def coalesce(args: tuple[Value, ...]) -> Value:
    """The first value that is not null."""
    found = args[-1]
    for value in reversed(args[:-1]):
        found = choose(not_null(value), value, found)
    return found


def least(args: tuple[Value, ...]) -> Value:
    """The least value; null if any is."""
    return _extreme(args, np.minimum)


def greatest(args: tuple[Value, ...]) -> Value:
    """The greatest value; null if any is."""
    return _extreme(args, np.maximum)


def _extreme(args: tuple[Value, ...], better: np.ufunc) -> Value:
    found = args[0]
    for value in args[1:]:
        if "null" in (found.kind, value.kind):
            return NULL
        floating = _is_float(found) or _is_float(value)
        values = better(_filled(found, floating), _filled(value, floating))
        values, valid = _ticks(values, found.kind) if floating else (values, both(found.valid, value.valid))
        found = _shaped(values, valid, found.kind)
    return found


def floor(args: tuple[Value, ...]) -> Value:
    """The largest whole number that is not greater."""
    return _whole(args[0], np.floor)


def ceil(args: tuple[Value, ...]) -> Value:
    """The smallest whole number that is not less."""
    return _whole(args[0], np.ceil)


def _whole(value: Value, to: np.ufunc) -> Value:
    if value.kind == "null" or is_whole(value):
        return value
    return _shaped(to(value.values), value.valid, value.kind)


def rounded(args: tuple[Any, ...]) -> Value:
    """The value rounded to a number of digits; halves go away from zero."""
    value, digits = args[0], args[1] if len(args) > 1 else 0
    if value.kind == "null":
        return NULL
    if is_whole(value):
        return value if digits >= 0 else _rounded_whole(value, 10**-digits)
    x = as_float(value)
    with np.errstate(all="ignore"):
        if digits >= 0:
            found = _nearest(x * 10.0**digits) / 10.0**digits
        else:
            found = _nearest(x / 10.0**-digits) * 10.0**-digits
    # A number so large that the computation overflows has no such digits.
    return _shaped(np.where(np.isfinite(found), found, x), None, value.kind)


def _nearest(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _rounded_whole(value: Value, unit: int) -> Value:
    x = np.asarray(value.values).astype(object)
    size = abs(x)
    found = (size + unit // 2) // unit * unit
    return _shaped(_narrowed(np.where(x < 0, -found, found)), value.valid, value.kind)


def _narrowed(values: np.ndarray) -> np.ndarray:
    """Python integers as int64 where they all fit."""
    largest = max((abs(value) for value in values.ravel().tolist()), default=0)
    return values.astype(np.int64) if largest < 2**63 else values


def square_root(args: tuple[Value, ...]) -> Value:
    """The square root; null for a negative number."""
    return _real(np.sqrt, args)


def logarithm(args: tuple[Value, ...]) -> Value:
    """The natural logarithm; null for a number that is not greater than 0."""
    return _real(np.log, args)


def exponential(args: tuple[Value, ...]) -> Value:
    """e to the power of the value; null beyond all doubles."""
    return _real(np.exp, args)


def power(args: tuple[Value, ...]) -> Value:
    """The first value to the power of the second; null where that is not a finite number."""
    return _real(np.power, args)


def _real(function: np.ufunc, args: tuple[Value, ...]) -> Value:
    if any(value.kind == "null" for value in args):
        return NULL
    x = [as_float(value) for value in args]
    with np.errstate(all="ignore"):
        found = function(*x)
    # 1 ** NaN and NaN ** 0 are numbers for IEEE, and null here.
    known = np.isfinite(found)
    for one in x:
        known = known & (one == one)
    return _shaped(np.where(known, found, np.nan), None, "number")


def modulo(args: tuple[Value, ...]) -> Value:
    """The remainder of the division, with the sign of the dividend; null for a divisor of 0."""
    if any(value.kind == "null" for value in args):
        return NULL
    one, other = args
    if not (is_whole(one) and is_whole(other)):
        return _real(np.fmod, args)
    x, y = np.asarray(one.values), np.asarray(other.values)
    good = y != 0
    if x.dtype == object or y.dtype == object:
        by = np.where(good, abs(y), 1)
        found = _narrowed(np.where(x < 0, -(abs(x) % by), abs(x) % by))
    else:
        # The processor cannot divide the least number by -1; the remainder of a division by 1 is the same.
        found = np.fmod(x, np.where(good & (y != -1), y, 1))
    return _shaped(found, both(both(one.valid, other.valid), None if good.all() else good), "number")


def of_lists(function: Function, value: Value) -> Value:
    """An aggregate over each list of a column; null for a list that is null."""
    if value.kind == "null":
        return NULL
    lists, rows = value.values, len(value.values.rows)
    size = max(1, _LIST_BLOCK // max(1, lists.matrix.shape[1]))
    parts = [_of_some(function, lists, lists.rows[start : start + size]) for start in range(0, max(rows, 1), size)]
    values = np.concatenate([part.values for part in parts])
    known = both(value.valid, np.concatenate([np.broadcast_to(not_null(part), part.values.shape) for part in parts]))
    return choose(known, Value(values, None, "number"), NULL)


def _of_some(function: Function, lists: Lists, rows: np.ndarray) -> Value:
    matrix, lengths = lists.matrix[rows], lists.lengths[rows]
    flat = matrix[np.arange(matrix.shape[1]) < lengths[:, None]]
    return aggregate(function, Value(flat, None, "number"), Members.of_sizes(lengths))


def seconds(args: tuple[Value, ...]) -> Value:
    """A difference of times, in seconds."""
    value = args[0]
    if value.kind in ("null", "number"):
        return value
    return _shaped(as_float(value) / _SECOND, None, "number")


def hour(args: tuple[Any, ...]) -> Value:
    """The hour of the day in a zone, 0 to 23."""
    return _of_clock(args, lambda local: local // _HOUR % 24)


def minute(args: tuple[Any, ...]) -> Value:
    """The minute of the hour in a zone, 0 to 59."""
    return _of_clock(args, lambda local: local // (60 * _SECOND) % 60)


def weekday(args: tuple[Any, ...]) -> Value:
    """The day of the week in a zone, from 1 for Monday to 7 for Sunday."""
    # The first day of 1970 was a Thursday.
    return _of_clock(args, lambda local: (local // _DAY + 3) % 7 + 1)


def date(args: tuple[Any, ...]) -> Value | Words:
    """The date in a zone, as text."""
    value, zone = args
    if value.kind == "null":
        return NULL
    local, valid = _local(value, zone)
    days, index = np.unique(local // _DAY, return_inverse=True)
    words = [day_of(int(day)).isoformat() for day in days]
    return Words(words, index.reshape(-1), valid)


def _of_clock(args: tuple[Any, ...], part: Callable[[np.ndarray], np.ndarray]) -> Value:
    value, zone = args
    if value.kind == "null":
        return NULL
    local, valid = _local(value, zone)
    return Value(part(local), valid, "number")


def _local(value: Value, zone: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Times as a clock in a zone shows them, in ticks, and which are valid; 0 where there is no such date."""
    ticks = np.atleast_1d(np.asarray(value.values))
    valid = np.ones(len(ticks), bool) if value.valid is None else value.valid
    with np.errstate(invalid="ignore"):
        valid = valid & (ticks >= _FIRST) & (ticks < _END)
        ticks = np.floor(np.where(valid, ticks, 0)).astype(np.int64) if ticks.dtype != np.int64 else ticks
    ticks = np.where(valid, ticks, 0)
    hours, index = _distinct(ticks // _HOUR)
    begins = np.array([_offset(int(hour) * _HOUR, zone) for hour in hours], np.int64)
    ends = np.array([_offset(int(hour) * _HOUR + _HOUR - 1, zone) for hour in hours], np.int64)
    offsets = begins[index]
    for row in np.flatnonzero((begins != ends)[index]):
        offsets[row] = _offset(int(ticks[row]), zone)
    return ticks + offsets, None if valid.all() else valid


def _distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different numbers, and for each number its place among them."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if high - low > 4 * len(numbers) + 1000:
        found, index = np.unique(numbers, return_inverse=True)
        return found, index.reshape(-1)
    there = np.zeros(high - low + 1, bool)
    there[numbers - low] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[numbers - low]


def _offset(tick: int, zone: str) -> int:
    """How far the clock of a zone is ahead of UTC, in ticks."""
    delta = instant(tick).astimezone(ZoneInfo(zone)).utcoffset()
    return (delta or timedelta()) // timedelta(microseconds=1)


def _is_float(value: Value) -> bool:
    if isinstance(value.values, np.ndarray):
        return bool(value.values.dtype.kind == "f")
    return isinstance(value.values, float)


def _filled(value: Value, floating: bool) -> Any:
    """The values, as doubles with NaN for null if asked for."""
    if value.kind == "null":
        return np.nan if floating else 0
    return as_float(value) if floating else value.values


def _ticks(values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Doubles as they are, but times and durations as whole ticks, rounded down, and which of these are not null."""
    if kind == "number":
        return values, None
    known = np.abs(values) < 2.0**63
    return np.floor(np.where(known, values, 0.0)).astype(np.int64), known


def _shaped(values: Any, valid: np.ndarray | None, kind: str) -> Value:
    """A column, or one value for all rows as a Python scalar, as constants are."""
    if isinstance(values, np.ndarray) and values.ndim:
        return Value(values, None if valid is None else np.broadcast_to(valid, values.shape), kind)
    plain = values.item() if isinstance(values, np.ndarray | np.generic) else values
    if valid is not None and not bool(np.all(valid)):
        return NULL
    return Value(plain, None, kind)
