"""What is computed from all events bound to one name (docs/semantics.md#conditions).

Members come in (ts, id) order, and sums run through them in this order. So a result depends neither on what else is in
the arrays nor on how the work was cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from chainlake.cep.values.values import NULL, Value, arithmetic, as_float, not_null, take


@dataclass(frozen=True)
class Members:
    """The members of some sets, and what an aggregate goes by beside their values.

    Of events they are made in one place, ``View.value`` in ``chainlake.cep.conditions.evaluate``.

    Args:
        offsets: set g holds the members ``offsets[g]:offsets[g + 1]``, in (ts, id) order; a set may be empty.
        places: place of each member in the stream, or None if (ts, id) is the order of the stream.
    """

    offsets: np.ndarray
    places: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """How many members each set has."""
        return np.diff(self.offsets)

    @classmethod
    def of_sizes(cls, sizes: np.ndarray) -> Members:
        """Sets one behind the other, of values that have no place in the stream, such as those of a list."""
        return cls(np.concatenate([[0], np.cumsum(sizes)]))

    def only(self, good: np.ndarray) -> Members:
        """The sets without the members that are not ``good``."""
        sizes = np.diff(np.concatenate([[0], np.cumsum(good)])[self.offsets])
        return replace(self.of_sizes(sizes), places=None if self.places is None else self.places[good])


@dataclass(frozen=True)
class Function:
    """An aggregate.

    Args:
        name: one of ``chainlake.cep.language.ast.AGGREGATES``.
        distinct: for ``COUNT``, whether equal values count once.
        share: for ``PERCENTILE``, from 0 to 1.
    """

    name: str
    distinct: bool = False
    share: float | None = None


def aggregate(function: Function, value: Value | None, members: Members) -> Value:
    """An aggregate over each set; nulls are skipped except by FIRST and LAST, and a set without values gives null.

    Args:
        function: the aggregate.
        value: one entry per member, or None for ``COUNT(name)``.
        members: the sets.
    """
    sizes = members.sizes
    if value is None:
        return Value(sizes.astype(np.int64), None, "number")
    if value.kind == "null":
        return Value(np.zeros(len(sizes), np.int64), None, "number") if function.name == "COUNT" else NULL
    if function.name in ("FIRST", "LAST"):
        return _end(function.name == "LAST", value, members)
    good = np.broadcast_to(not_null(value), (int(members.offsets[-1]),))
    count = np.diff(np.concatenate([[0], np.cumsum(good)])[members.offsets])
    if function.name == "COUNT":
        return Value(_distinct(value, good, members) if function.distinct else count, None, "number")
    if function.name in ("SUM", "AVG"):
        total = _running(np.add, np.where(good, value.values, 0).astype(np.float64), members.offsets)
        with np.errstate(all="ignore"):
            found = total / count if function.name == "AVG" else total
        return Value(np.where(count == 0, np.nan, found), None, value.kind)
    if function.name in ("MIN", "MAX"):
        return _extreme(function.name == "MIN", value, good, count, members.offsets)
    if not good.all():
        value, members = take(value, np.flatnonzero(good)), members.only(good)
    return _OF_VALUES[function.name](function, value, members)


def _end(last: bool, value: Value, members: Members) -> Value:
    """The value of the first or last member in the order of the stream, null included."""
    offsets, full = members.offsets, members.sizes > 0
    at = np.where(full, offsets[1:] - 1 if last else offsets[:-1], 0)
    if members.places is not None and full.any():
        best = (np.maximum if last else np.minimum).reduceat(members.places, offsets[:-1][full])
        # Places differ within a set, so exactly one member has the best of its set.
        at[full] = np.flatnonzero(members.places == np.repeat(best, members.sizes[full]))
    if not full.any():
        return Value(np.zeros(len(at), value.values.dtype), np.zeros(len(at), bool), value.kind)
    found = take(value, at)
    if full.all():
        return found
    return Value(found.values, full if found.valid is None else found.valid & full, found.kind)


def _distinct(value: Value, good: np.ndarray, members: Members) -> np.ndarray:
    """How many different values each set has."""
    sets = np.repeat(np.arange(len(members.sizes)), members.sizes)[good]
    codes = np.unique(value.values[good], return_inverse=True)[1]
    order = np.lexsort((codes, sets))
    sets, codes = sets[order], codes[order]
    new = np.ones(len(sets), bool)
    new[1:] = (sets[1:] != sets[:-1]) | (codes[1:] != codes[:-1])
    return np.bincount(sets[new], minlength=len(members.sizes)).astype(np.int64)


def _extreme(low: bool, value: Value, good: np.ndarray, count: np.ndarray, offsets: np.ndarray) -> Value:
    floating = value.values.dtype.kind == "f"
    empty = (np.inf if low else -np.inf) if floating else (2**63 - 1 if low else -(2**63))
    best = _running(np.minimum if low else np.maximum, np.where(good, value.values, empty), offsets)
    if floating:
        return Value(np.where(count == 0, np.nan, best), None, value.kind)
    return Value(np.where(count > 0, best, 0), count > 0, value.kind)


def _running(function: np.ufunc, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Left-to-right reduction of each set, so that a sum has one value whatever else is in the array; 0 if empty."""
    sizes = np.diff(offsets)
    most = int(sizes.max(initial=0))
    # The largest sets come first, so that each step looks only at the sets that have that many members. 16-bit numbers
    # are sorted in a tenth of the time.
    order = np.argsort((-sizes).astype(np.int16 if most < 2**15 else np.int64), kind="stable")
    starts, longer = offsets[:-1][order], np.searchsorted(-sizes[order], -np.arange(most))
    found = np.zeros(len(sizes), values.dtype)
    for step, many in enumerate(longer.tolist()):
        at = values[starts[:many] + step]
        if step:
            function(found[:many], at, out=found[:many])
        else:
            found[:many] = at
    result = np.empty_like(found)
    result[order] = found
    return result


def _deviation(function: Function, value: Value, members: Members) -> Value:
    """The sample's standard deviation of each set; NaN for fewer than two values."""
    offsets, sizes = members.offsets, members.sizes
    sets = np.repeat(np.arange(len(sizes)), sizes)
    # Differences from the set's first value are exact for values that are close to each other, and only there does a
    # small deviation must be distinguished from none.
    first = take(value, offsets[:-1][sets])
    halves = as_float(arithmetic("-", value, first)) if value.values.dtype.kind in "iO" else _halves(value, first)
    with np.errstate(all="ignore"):
        scale = np.frexp(_running(np.maximum, np.abs(halves), offsets))[1]
        d = np.ldexp(halves, -scale[sets])
        d = d - (_running(np.add, d, offsets) / sizes)[sets]
        # Rounding leaves a small mean, which is subtracted too.
        left = _running(np.add, d, offsets)
        squares = _running(np.add, d * d, offsets) - left * left / sizes
        found = np.ldexp(np.sqrt(np.maximum(squares, 0.0) / (sizes - 1)), scale)
        whole = found if value.values.dtype.kind in "iO" else found * 2.0
        return Value(np.where(sizes > 1, whole, np.nan), None, value.kind)


def _halves(value: Value, first: Value) -> np.ndarray:
    """Half of each difference, since the whole difference can exceed all doubles."""
    found: np.ndarray = value.values / 2 - first.values / 2
    return found


def _quantile(function: Function, value: Value, members: Members) -> Value:
    """The value below which a share of each set's values lies, interpolated between two of them; NaN for none."""
    share = Fraction(1, 2) if function.share is None else Fraction(repr(function.share))
    offsets, sizes = members.offsets, members.sizes
    sets = np.repeat(np.arange(len(sizes)), sizes)
    ranks = np.unique(value.values, return_inverse=True)[1] if value.values.dtype.kind == "O" else value.values
    ordered = take(value, np.lexsort((ranks, sets)))
    found = np.full(len(sizes), np.nan)
    for size in np.unique(sizes[sizes > 0]).tolist():
        some = np.flatnonzero(sizes == size)
        below, rest = divmod(share * (size - 1), 1)
        at = offsets[:-1][some] + int(below)
        low = take(ordered, at)
        found[some] = as_float(low)
        if rest:
            found[some] = _between(low, take(ordered, at + 1), float(rest))
    return Value(found, None, value.kind)


def _between(low: Value, high: Value, part: float) -> np.ndarray:
    if low.values.dtype.kind in "iO":
        return np.asarray(as_float(low) + as_float(arithmetic("-", high, low)) * part)
    x, y = low.values, high.values
    if part == 0.5:
        return np.asarray(x / 2 + y / 2)
    with np.errstate(all="ignore"):
        wide = y - x
        near = x + wide * part if part < 0.5 else y - wide * (1.0 - part)
        # The distance of two doubles can exceed all doubles.
        found: np.ndarray = np.where(np.isinf(wide), x * (1.0 - part) + y * part, near)
    return found


#: Aggregates of values without nulls, one set directly after another.
_OF_VALUES: dict[str, Callable[[Function, Value, Members], Value]] = {
    "STDDEV": _deviation,
    "MEDIAN": _quantile,
    "PERCENTILE": _quantile,
}
