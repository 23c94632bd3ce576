"""How exact models fit the rounds that they end with."""

from __future__ import annotations

import numpy as np

from chainlake.model_change.statistics.basis import Basis
from chainlake.model_change.statistics.records import Trace
from chainlake.model_change.statistics.statistics import Array, pooled


def fit(inside: tuple[Array, Array, Array], beta: Array, basis: Basis, trace: Trace, rows: slice) -> None:
    """Note in ``trace`` how models fit their rounds.

    Args:
        inside: z (n, k, m), u (n, k) and y about its centre (n, k) of the rounds.
        beta: (n, m) their internal models.
        basis: the coordinates.
        trace: gets the sums.
        rows: the rounds' places in it.
    """
    z, u, y = inside
    with np.errstate(over="ignore", invalid="ignore"):  # a barely determined model can predict anything
        predicted = z[:, :, 0] * beta[:, 0, None]
        for i in range(1, z.shape[2]):
            predicted += z[:, :, i] * beta[:, i, None]
        squares = ((u - predicted) ** 2, y, y**2)
    trace.centre_y[rows] = basis.centre_y
    trace.sse[rows], trace.sum_y[rows], trace.sum_yy[rows] = (pooled(v[:, :, None])[:, 0] for v in squares)
