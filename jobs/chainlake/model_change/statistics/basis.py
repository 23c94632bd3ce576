"""Internal coordinates: before rows are summed they are centred, and their columns made nearly independent.

Sums of raw rows with a large mean, or of columns that are nearly multiples of each other, lose the digits that decide;
sums of z = R (x - centre), with R lower triangular, keep them. A `Basis` is made from the window at an anchor and from
nothing else. The constraints are not invariant under such a map, so models and drifts are mapped back before any test:
to the features' own units, or to those of a `Measure` for metric ``prediction``. In internal order, the constant column
comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainlake.model_change.statistics.residuals import residuals
from chainlake.model_change.statistics.statistics import Array, Moments, Shape, apply, pooled

#: If other columns leave less than this share of a column unexplained, only the unexplained part is summed.
_ALIKE = 1 / 64
#: Smaller shares are mere rounding: such a column is not used to explain others.
_NOTHING = 1e-13
#: A column whose spread is at most this share of its mean counts as constant.
_ROUNDING = 4 * np.finfo(float).eps


@dataclass(frozen=True)
class Measure:
    """The coordinates x' = L^-1 (x - centre) of metric ``prediction``, frozen at the first window.

    In them, the norm of a change of models is the root mean squared change of predictions over that window's rows.

    Args:
        centre: (m,) means of the first window in internal order; 0 for the constant, and all 0 if there is none.
        factor: (m, m) Cholesky factor L of the centred mean of x x^T, in internal order.
    """

    centre: Array
    factor: Array

    @classmethod
    def from_window(cls, basis: Basis, a: Array, rows: int) -> Measure:
        """From the basis of a window, its pooled sums (m, m), and its number of rows."""
        return cls(basis.inner_centre, basis.unmix @ np.linalg.cholesky(a / rows))

    def original(self, beta: Array, intercept: int | None) -> Array:
        """(n, m) models in these coordinates, converted to the features' own units."""
        found = np.linalg.solve(self.factor.T, beta[..., None])[..., 0]
        if intercept is not None:
            found[:, 0] -= apply(self.centre[None], found)[:, 0]
        return found[:, np.argsort(_order(len(self.centre), intercept))]


@dataclass(frozen=True)
class Basis:
    """Coordinates of the sums since an anchor; part of the state.

    Args:
        centre: (m,) subtracted from x; zero at the constant, and all zero if there is none.
        centre_y: subtracted from y; zero without a constant.
        mix: (m, m) unit lower triangular R in internal order; None for the identity.
        intercept: index of the constant column, or None.
        measure: the coordinates in which distances are measured; None for the features' own.
        slopes: (m,) coefficients of x - centre, in internal order, of a model whose values are also subtracted from
            y; None where that is not needed.
    """

    centre: Array
    centre_y: float
    mix: Array | None
    intercept: int | None
    measure: Measure | None = None
    slopes: Array | None = None

    @classmethod
    def from_window(
        cls, rows: tuple[Array, Array, Array], *, moments: Moments, intercept: int | None, ridge: Array | None
    ) -> tuple[Basis, tuple[Array, Array]]:
        """Coordinates from the rows x (n, k, m), y (n, k), gap (n,) of one window, and from nothing else.

        Returns:
            the coordinates, and in them the window's sums of every node, as `Moments.dense` gives them.
        """
        x, y, gap = rows
        m = x.shape[2]
        basis = cls(np.zeros(m), 0.0, None, intercept)
        if intercept is not None:
            centre = _mean(x.reshape(-1, m))
            centre[intercept] = 0.0
            basis = cls(centre, float(_mean(y.reshape(-1, 1))[0]), None, intercept)
            if moments.phi:
                a, c = (pooled(v[None])[0] for v in moments.dense(basis.rows(x), basis.response(x, y), gap))
                centre[basis.order] += np.concatenate([[0.0], a[1:, 0] / a[0, 0]])
                basis = cls(centre, basis.centre_y + float(c[0] / a[0, 0]), None, intercept)
        sums = moments.dense(basis.rows(x), basis.response(x, y), gap)
        # Coordinates found from rounded sums are rounded themselves: a second pass removes what the first one left.
        for _ in range(2):
            a, penalty = pooled(sums[0][None])[0], basis.ridge(ridge)
            mix = _elimination(a if penalty is None else a + penalty)
            if mix is None:
                break
            basis = cls(basis.centre, basis.centre_y, mix if basis.mix is None else mix @ basis.mix, intercept)
            sums = moments.dense(basis.rows(x), basis.response(x, y), gap)
        return basis, sums

    @property
    def m(self) -> int:
        """Number of columns."""
        return len(self.centre)

    @cached_property
    def order(self) -> Array:
        """Places of the features in internal order."""
        return _order(self.m, self.intercept)

    @cached_property
    def inner_centre(self) -> Array:
        """`centre` in internal order."""
        result: Array = self.centre[self.order]
        return result

    @cached_property
    def unmix(self) -> Array:
        """R^-1."""
        return np.eye(self.m) if self.mix is None else np.linalg.inv(self.mix)

    @property
    def constant(self) -> Array:
        """What must be added to an internal model to get the model of the uncentred response."""
        found = np.zeros(self.m) if self.slopes is None else self.unmix.T @ self.slopes
        if self.intercept is not None:
            found[0] += self.centre_y
        return found

    @property
    def shape(self) -> Shape:
        """What is needed to tell whether sums in these coordinates determine a model."""
        floor = (_ROUNDING * self.inner_centre) ** 2
        return Shape(None if self.mix is None else self.unmix, self.intercept is not None, floor)

    def same(self, other: Basis) -> bool:
        """Whether both have the same coordinates."""
        if self is other:
            return True
        alike = _alike(self.mix, other.mix) and _alike(self.slopes, other.slopes)
        return alike and self.centre_y == other.centre_y and np.array_equal(self.centre, other.centre)

    def rows(self, x: Array) -> Array:
        """Raw rows (..., m) as z."""
        z: Array = x - self.centre
        if self.intercept:
            z = z[..., self.order]
        if self.mix is not None:
            for j in range(self.m - 1, 0, -1):
                for i in np.flatnonzero(self.mix[j, :j]):
                    z[..., j] += self.mix[j, i] * z[..., i]
        return z

    def centred(self, y: Array) -> Array:
        """y minus its centre."""
        return y - self.centre_y

    def response(self, x: Array, y: Array) -> Array:
        """What is summed for the responses of raw rows: y minus its centre and the values of the slopes' model."""
        if self.slopes is None:
            return self.centred(y)
        with np.errstate(over="ignore", invalid="ignore"):  # the sums are checked for what is not finite
            return residuals(x[..., self.order], y, self.inner_centre, self.centre_y, self.slopes)

    def inside(self, x: Array, y: Array, gap: Array) -> tuple[Array, Array, Array, Array]:
        """For raw rows and their gaps: z, what is summed for y, the gaps, and y minus its centre."""
        u = self.response(x, y)
        return self.rows(x), u, gap, u if self.slopes is None else self.centred(y)

    def inner_slopes(self, beta: Array) -> Array:
        """(n, m) internal models as coefficients of the features about their centre, in internal order."""
        found = beta.copy() if self.mix is None else apply(self.mix.T, beta)
        if self.slopes is not None:
            found += self.slopes
        return found

    def _measured(self, beta: Array, centre: Array | float) -> Array:
        """(n, m) internal models as coefficients of x - ``centre``, in internal order."""
        found = self.inner_slopes(beta)
        if self.intercept is not None:
            found[:, 0] += self.centre_y + apply((centre - self.inner_centre)[None], found)[:, 0]
        return found

    def original(self, beta: Array) -> Array:
        """(n, m) internal models in the features' own units."""
        found = self._measured(beta, 0.0)
        return found[:, np.argsort(self.order)] if self.intercept else found

    def monitored(self, beta: Array) -> Array:
        """(n, m) internal models in the coordinates in which distances are measured."""
        if self.measure is None:
            return self.original(beta)
        return apply(self.measure.factor.T, self._measured(beta, self.measure.centre))

    @cached_property
    def beta_map(self) -> Array:
        """K with (change of the monitored model) = K (change of the internal model)."""
        found = np.eye(self.m) if self.mix is None else self.mix.T.copy()
        if self.intercept is not None:
            found[0] += ((0.0 if self.measure is None else self.measure.centre) - self.inner_centre) @ found
        return found[np.argsort(self.order)] if self.measure is None else self.measure.factor.T @ found

    @cached_property
    def row_map(self) -> Array:
        """J = K^-T with x' = J z."""
        if self.measure is None:
            return self.feature_map
        return np.linalg.solve(self.measure.factor, self._shifted(self.measure.centre))

    @property
    def moves(self) -> bool:
        """Whether internal and monitored coordinates differ."""
        return self.measure is not None or self.mix is not None or self.intercept is not None

    @property
    def feature_map(self) -> Array:
        """The matrix that maps z back to x."""
        return self._shifted(0.0)[np.argsort(self.order)]

    def _shifted(self, centre: Array | float) -> Array:
        """B with x - ``centre`` = B z, in internal order."""
        found = self.unmix.copy()
        if self.intercept is not None:
            found += np.outer(self.inner_centre - centre, found[0])
        return found

    def seen_from(self, other: Basis) -> Array:
        """P with (row in these coordinates) = P (row in those of ``other``)."""
        found = other._shifted(self.inner_centre)
        return found if self.mix is None else self.mix @ found

    def ridge(self, p: Array | None) -> Array | None:
        """The ridge matrix P, given for original coefficients, for internal ones: beta^T P beta keeps its value."""
        if p is None:
            return None
        inside = np.eye(self.m)
        if self.intercept is not None:
            inside[:, 0] -= self.inner_centre
        if self.mix is not None:
            inside = self.mix @ inside
        result: Array = inside @ p[np.ix_(self.order, self.order)] @ inside.T
        return result


def _alike(one: Array | None, other: Array | None) -> bool:
    return one is other if one is None or other is None else bool(np.array_equal(one, other))


def _order(m: int, intercept: int | None) -> Array:
    """The features' places, the constant's first."""
    first = [] if intercept is None else [intercept]
    return np.array([*first, *(i for i in range(m) if i != intercept)], dtype=np.int64)


def _mean(rows: Array) -> Array:
    """Means of the columns; the mean of a column with only one value is exactly that value."""
    result: Array = rows[0] + (rows - rows[0]).mean(axis=0)
    return result


def _elimination(a: Array) -> Array | None:
    """R with R a R^T diagonal, as far as rounding allows; None if no column of ``a`` is close to the others."""
    m = len(a)
    scale = np.sqrt(np.where(np.diag(a) > 0, np.diag(a), 1.0))
    unit = a / np.outer(scale, scale)
    low = np.eye(m)
    for i in range(m - 1):
        if unit[i, i] > _NOTHING:
            low[i + 1 :, i] = unit[i + 1 :, i] / unit[i, i]
            unit[i + 1 :, i + 1 :] -= np.outer(low[i + 1 :, i], unit[i, i + 1 :])
    alike = (np.diag(a) > 0) & (np.diag(unit) < _ALIKE)
    return np.linalg.inv(low) * np.outer(scale, 1 / scale) if alike.any() else None
