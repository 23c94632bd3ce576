"""The periodic baseline PER(T), which synchronises every T rounds whatever happens."""

from __future__ import annotations

import numpy as np

from chainlake.model_change.statistics.statistics import Array, norm


def errors_by_period(beta: Array, longest: int) -> Array:
    """Largest error of PER(T) for T = 1 .. ``longest``.

    Args:
        beta: (n + 1, m) exact models; row 0 is the round of the first synchronisation, which is not counted.

    Returns:
        (longest,) maxima over rows 1 .. n; NaN rows are left out.
    """
    rows = np.arange(1, len(beta))
    found = np.zeros(longest)
    for period in range(1, longest + 1):
        error = norm(beta[1:] - beta[rows - rows % period])
        found[period - 1] = np.nanmax(error) if np.isfinite(error).any() else 0.0
    return found


def best_periods(errors: Array, bound: float) -> tuple[int | None, int | None]:
    """(T*, T_mono): the longest period within ``bound``, and the longest up to which all are; None if there is none."""
    within = errors <= bound
    if not within.any():
        return None, None
    first_failure = int(np.argmin(within)) if not within.all() else len(within)
    return int(np.flatnonzero(within)[-1]) + 1, first_failure or None
