"""Pseudo-random integers as pure functions of (seed, stream, indices).

Everything that the generator draws is an integer from a counter-based hash (SplitMix64's finaliser), never a float from
a library's generator. So the same seed gives the same bytes on every machine and with every version of NumPy, and any
block of any day can be made without the ones before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_STEP = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * _M1
    x = (x ^ (x >> np.uint64(27))) * _M2
    result: np.ndarray = x ^ (x >> np.uint64(31))
    return result


def below(n: int, seed: int, stream: int, *indices: Any) -> np.ndarray:
    """Integers in ``[0, n)``, one for each element of the broadcast indices.

    Args:
        n: exclusive upper bound, at most 2**31.
        seed: the run's seed, any non-negative integer.
        stream: what the numbers are for; streams are independent of each other.
        indices: integers or integer arrays that broadcast together.
    Returns:
        int64 array of the broadcast shape (0-dimensional for scalars).
    """
    with np.errstate(over="ignore"):
        state = _mix(np.asarray(seed & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64) + _STEP * np.uint64(stream + 1))
        for index in indices:
            state = _mix(state ^ (np.asarray(index, dtype=np.int64).astype(np.uint64) + _STEP))
    return ((state >> np.uint64(33)) % np.uint64(n)).astype(np.int64)


def smooth(period: int, amplitude: int, seed: int, stream: int, key: Any, t: Any) -> np.ndarray:
    """For each key, a curve of straight lines between random points.

    Args:
        period: steps of ``t`` between two random points.
        amplitude: values lie in ``[-amplitude, amplitude]``; the slope is at most ``2 * amplitude / period`` per step.
        seed, stream: as in :func:`below`.
        key, t: integer arrays that broadcast together: which curve, and the position on it.
    Returns:
        int64 array of the broadcast shape.
    """
    t = np.asarray(t, dtype=np.int64)
    knot, rest = np.floor_divide(t, period), np.mod(t, period)
    left = below(2 * amplitude + 1, seed, stream, key, knot) - amplitude
    right = below(2 * amplitude + 1, seed, stream, key, knot + 1) - amplitude
    result: np.ndarray = np.floor_divide(left * (period - rest) + right * rest, period)
    return result
