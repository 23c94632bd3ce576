"""Residuals that are right to the last bit even where the model explains nearly all of the response.

When a feature jumps, the response may jump with it, and the sums of what the other features explain drown in the
rounding of that jump. So the jump's share is subtracted from the response itself, in twice the precision.
"""

from __future__ import annotations

import numpy as np

from chainlake.model_change.statistics.statistics import Array, Factors, apply

#: The upper half of a double's digits.
_UPPER = np.int64(-(1 << 27))
#: A slope is lost to rounding if the rounding of its sums may exceed this many units in its last place.
_DROWNED = 2.0**16
#: Slopes that explain a smaller share of the response's size than this need no digits.
_NOTHING = 2.0**-40


def residuals(x: Array, y: Array, centre: Array, centre_y: float, slopes: Array) -> Array:
    """``y - centre_y - slopes @ (x - centre)`` for x (..., m), y (...), rounded once; all m columns in one order."""
    whole, rest = _sum(y, -centre_y)
    for i in np.flatnonzero(slopes):
        upper, lower = _sum(x[..., i], -centre[i])
        product, more = _product(upper, slopes[i])
        whole, left = _sum(whole, -product)
        rest = rest + (left - more - lower * slopes[i])
    result: Array = whole + rest
    return result


def _sum(a: Array, b: Array | float) -> tuple[Array, Array]:
    """``a + b`` and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: float) -> tuple[Array, Array]:
    """``a * b`` and its rounding error."""
    product = a * b
    a_high, b_high = _high(a), float(_high(np.array([b]))[0])
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _high(values: Array) -> Array:
    return (np.ascontiguousarray(values).view(np.int64) & _UPPER).view(np.float64)


def spread_of(squares: Array, a: Array, c: Array) -> Array:
    """Sums of squares (n,) of a response about its mean, from sums a (n, m, m), c (n, m); column 0 is the constant."""
    with np.errstate(all="ignore"):
        result: Array = squares - c[:, 0] ** 2 / a[:, 0, 0]
    return result


def lost_to_rounding(found: Factors, slopes: Array, held: Array, mix: Array | None, constant: bool) -> Array:
    """In which of n windows rounding of the sums shows in a slope: (n,) bool.

    Args:
        found: factors of the sums of z z^T.
        slopes: (n, m) coefficients of the features about their centre, NaN where there is no model.
        held: (m + 1, n) the largest sums of squares, since the sums were begun, of each column and of what was left of
            the response.
        mix: (m, m) R of the coordinates; None for the identity.
        constant: whether the first column is the constant.
    """
    with np.errstate(all="ignore"):
        size = np.abs(slopes.T)
        error = np.sqrt(held[:-1]) * np.sqrt(held[-1]) / found.own
        if mix is not None:
            error = apply(np.abs(mix.T), error.T).T
        response = np.maximum(np.sqrt(held[-1]), (size * np.sqrt(held[:-1])).max(axis=0))
        floor = _NOTHING * response / np.sqrt(found.own)
        bad = error > _DROWNED * np.maximum(size, floor)
    result: Array = found.good & bad[int(constant) :].any(axis=0)
    return result


def clear(
    found: Factors, slopes: Array, held: Array, peak: Array, mix: Array | None, constant: bool, summed: bool
) -> int:
    """How many rounds come before the first one in which a slope is `lost_to_rounding`.

    Args:
        found, slopes, mix, constant: as for `lost_to_rounding`.
        held: (m + 1, n) sums of squares of each column and of what is left of the response.
        peak: (m + 1,) the largest such sums before these rounds.
        summed: whether the sums were started again at the first round.
    """
    n: int = held.shape[1]
    # If no slope is lost to the rounding of the largest sums of all rounds, none is in any round; most blocks end here.
    whole = np.maximum(peak, held.max(axis=1, initial=0.0))[:, None]
    if not lost_to_rounding(found, slopes, whole, mix, constant)[1 if summed else 0 :].any():
        return n
    since = np.maximum.accumulate(np.concatenate([peak[:, None], held], axis=1), axis=1)[:, 1:]
    bad = lost_to_rounding(found, slopes, since, mix, constant)
    bad[:1] &= not summed
    return int(np.argmax(bad)) if bad.any() else n
