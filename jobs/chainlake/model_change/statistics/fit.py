"""How well an exact model fits the last round of its window."""

from __future__ import annotations

import numpy as np

from chainlake.model_change.statistics.basis import Basis
from chainlake.model_change.statistics.records import Trace
from chainlake.model_change.statistics.statistics import Array, pooled


def fit(inside: tuple[Array, Array, Array], beta: Array, basis: Basis, trace: Trace, rows: slice) -> None:
    """Note in ``trace`` how well models fit their rounds.

    Args:
        inside: z (n, k, m), u (n, k) and y minus its centre (n, k) of the rounds.
        beta: (n, m) the rounds' internal models.
        basis: their coordinates.
        trace: gets the sums.
        rows: the places of the rounds in the trace.
    """
    z, u, y = inside
    with np.errstate(over="ignore", invalid="ignore"):  # a barely determined model can predict anything
        predicted = z[:, :, 0] * beta[:, 0, None]
        for i in range(1, z.shape[2]):
            predicted += z[:, :, i] * beta[:, i, None]
        squares = ((u - predicted) ** 2, y, y**2)
    trace.centre_y[rows] = basis.centre_y
    trace.sse[rows], trace.sum_y[rows], trace.sum_yy[rows] = (pooled(v[:, :, None])[:, 0] for v in squares)
