"""Internal coordinates: rows are centred (and, for metric ``prediction``, whitened) before they are summed.

Sums of raw rows with a large mean lose their digits; centred ones do not. The constraints are not invariant under
centring, so drifts and models are mapped back before any test (design §6). With x the raw row, z = R (x - centre) the
internal one and x' the monitored one (x itself for ``coefficient``, L^-1 x for ``prediction``, spec 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jobs.model_change.statistics import Array, apply


@dataclass(frozen=True)
class Basis:
    """Frozen in the first window and part of the state.

    Args:
        centre: (m,) subtracted from x; zero at the intercept, and everywhere without one.
        centre_y: subtracted from y.
        inverse_l: (m, m) inverse Cholesky factor of the centred reference mean of x x^T; None for ``coefficient``.
        intercept: index of the constant column, or None.
    """

    centre: Array
    centre_y: float
    inverse_l: Array | None
    intercept: int | None

    @classmethod
    def from_window(cls, x: Array, y: Array, *, intercept: int | None, prediction: bool, centre_y: bool) -> Basis:
        """Coordinates from the rows of the first window, x (n, k, m), y (n, k)."""
        m = x.shape[2]
        centre = np.zeros(m)
        mean_y = 0.0
        if intercept is not None:
            centre = x.mean(axis=(0, 1))
            centre[intercept] = 0.0
            mean_y = float(y.mean()) if centre_y else 0.0
        inverse_l = None
        if prediction:
            z = (x - centre).reshape(-1, m)
            inverse_l = np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z)))
        return cls(centre, mean_y, inverse_l, intercept)

    @property
    def m(self) -> int:
        return len(self.centre)

    def rows(self, x: Array) -> Array:
        """z of (..., m) raw rows."""
        z = x - self.centre
        return z if self.inverse_l is None else apply(self.inverse_l, z)

    def response(self, y: Array) -> Array:
        """y less its centre."""
        return y - self.centre_y

    @property
    def _shift(self) -> Array:
        """T^-1 with z = T^-1 x before whitening: the identity, less the centre in the intercept's column."""
        shift = np.eye(self.m)
        if self.intercept is not None:
            shift[:, self.intercept] -= self.centre
        return shift

    @property
    def to_internal(self) -> Array:
        """R with z = R x."""
        return self._shift if self.inverse_l is None else self.inverse_l @ self._shift

    @property
    def _constant(self) -> Array:
        """v with z^T v = 1: the internal coefficients of a constant 1 (zero without an intercept)."""
        unit = np.zeros(self.m)
        if self.intercept is None:
            return unit
        unit[self.intercept] = 1.0
        return unit if self.inverse_l is None else np.linalg.solve(self.inverse_l.T, unit)

    @property
    def constant(self) -> Array:
        """`_constant` times the centre of y: what an internal model lacks of the model of the uncentred response."""
        return self.centre_y * self._constant

    @property
    def beta_map(self) -> Array:
        """K with (change of the monitored model) = K (change of the internal model)."""
        return self._shift.T if self.inverse_l is None else np.eye(self.m)

    @property
    def row_map(self) -> Array:
        """J = K^-T with x' = J z."""
        if self.inverse_l is not None:
            return np.eye(self.m)
        inverse = np.eye(self.m)
        if self.intercept is not None:
            inverse[:, self.intercept] += self.centre
        return inverse

    def monitored(self, beta: Array) -> Array:
        """Monitored models of (n, m) internal ones."""
        if self.inverse_l is not None or self.intercept is None:
            return beta + self.constant
        # Only the intercept's row of K is not that of the identity.
        found = beta + self.constant
        found[:, self.intercept] = apply(self.beta_map[self.intercept, None], found)[:, 0]
        return found

    def original(self, beta: Array) -> Array:
        """Models in the features' own units of (n, m) internal ones."""
        return apply(self.to_internal.T, beta + self.constant)

    def ridge(self, p: Array | None) -> Array | None:
        """The ridge matrix P of the original coefficients for internal ones: beta^T P beta is the same number."""
        return None if p is None else self.to_internal @ p @ self.to_internal.T
