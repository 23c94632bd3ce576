"""Missing measurements: the last known value is carried forward."""

from __future__ import annotations

import numpy as np

from chainlake.model_change.statistics.statistics import Array


def fill_forward(values: Array, last: Array, age: Array) -> tuple[Array, Array, Array, Array]:
    """Replace missing values by the last known one, entry by entry.

    Args:
        values: (n, ...) with NaN where nothing was reported.
        last: (...) last known values from before, NaN where there are none.
        age: (...) rounds since those were reported.

    Returns:
        (n, ...) filled values; (n, ...) rounds since each was reported; the last values and ages to continue from.
    """
    seen = ~np.isnan(values)
    at = np.where(seen, np.arange(1, len(values) + 1).reshape((-1,) + (1,) * (values.ndim - 1)), 0)
    at = np.maximum.accumulate(at, axis=0)
    stacked = np.concatenate([last[None], values])
    filled = np.take_along_axis(stacked, at, axis=0)
    rows = np.arange(1, len(values) + 1).reshape((-1,) + (1,) * (values.ndim - 1))
    ages = rows - at + np.where(at == 0, age[None], 0)
    if not len(values):
        return filled, ages, last, age
    return filled, ages, filled[-1], ages[-1]


def fill(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Carry x (n, k, m) and y (n, k) forward field by field; also returns which rounds are complete, (n,) bool."""
    nothing = [np.full(v.shape[1:], np.nan) for v in (x, y)]
    x, y = (
        fill_forward(v, start, np.zeros(start.shape, np.int64))[0] for v, start in zip((x, y), nothing, strict=True)
    )
    return x, y, ~(np.isnan(x).any(axis=(1, 2)) | np.isnan(y).any(axis=1))
