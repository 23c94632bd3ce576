"""What a model leaves of responses, to the last bit of it, where the model explains nearly all of them.

After a jump of a feature the response may jump by as much, and the sums of what the other features explain drown in the
rounding of that: so the jump's share is taken from the response itself, in numbers of twice the precision.
"""

from __future__ import annotations

import numpy as np

from chainlake.model_change.statistics.statistics import Array, Factors, apply

#: The upper half of a double's digits.
_UPPER = np.int64(-(1 << 27))
#: A slope is drowned where the rounding of its sums may be more than so many units of its last place.
_DROWNED = 2.0**16
#: Slopes that explain a smaller share than this of the response's size need no digits.
_NOTHING = 2.0**-40


def residuals(x: Array, y: Array, centre: Array, centre_y: float, slopes: Array) -> Array:
    """``y - centre_y - slopes @ (x - centre)`` of x (..., m), y (...), rounded once; x, centre, slopes in one order."""
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
    """Squares (n,) of a response about its mean, of sums a (n, m, m), c (n, m) whose first column is the constant."""
    with np.errstate(all="ignore"):
        result: Array = squares - c[:, 0] ** 2 / a[:, 0, 0]
    return result


def drowned(found: Factors, slopes: Array, held: Array, mix: Array | None, constant: bool) -> Array:
    """In which of n windows the rounding of the sums shows in a slope: (n,) bool.

    Args:
        found: factors of the sums of z z^T.
        slopes: (n, m) coefficients of the features about their centre, NaN where there is no model.
        held: (m + 1, n) the largest sums of squares of each column, and of what was left of the response, since the
            sums were begun.
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
    """How many rounds come before the first one with a slope that is `drowned`.

    Args:
        found, slopes, mix, constant: as for `drowned`.
        held: (m + 1, n) sums of squares of each column and of what is left of the response.
        peak: (m + 1,) the largest before these rounds.
        summed: whether the sums were begun anew at the first round.
    """
    n: int = held.shape[1]
    # The largest of all rounds says it of none only where none is drowned; most blocks end here.
    whole = np.maximum(peak, held.max(axis=1, initial=0.0))[:, None]
    if not drowned(found, slopes, whole, mix, constant)[1 if summed else 0 :].any():
        return n
    since = np.maximum.accumulate(np.concatenate([peak[:, None], held], axis=1), axis=1)[:, 1:]
    bad = drowned(found, slopes, since, mix, constant)
    bad[:1] &= not summed
    return int(np.argmax(bad)) if bad.any() else n
