"""Least-squares statistics of windows: dense sums, their per-round changes, models, identifiability (docs/monitors.md).

Every function gives the same bits for a round, whatever block of rounds it is called with: sums run in a fixed order,
and small matrices are handled one by one (LAPACK), never as one big product whose kernel depends on the block's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Array = np.ndarray
#: Rounds per step of a dense sum; part of the order in which it adds.
_STEP = 256
#: Smallest ratio of the extreme eigenvalues of the unit-diagonal matrix at which a model is identifiable.
_IDENTIFIABLE = 1e-12
#: Pivots of identifiable unit-diagonal matrices are larger than this, since none is below the smallest eigenvalue.
_PIVOT = 1e-13
#: Smaller sums of squares have lost digits at the lower end of the range of doubles, and determine nothing.
_SMALLEST = 1e-300
#: Sums begin again where what decides is a smaller share than this of the most that they have held since they began:
#: three digits of sixteen are then lost, and some more to the additions of a day.
_SHARE = 2.0**-10


def outer(left: Array, right: Array) -> Array:
    """``left[..., i] * right[..., j]`` for two (..., m) arrays; (..., m) and (...) give (..., m)."""
    result: Array = left[..., :, None] * right[..., None, :] if right.ndim == left.ndim else left * right[..., None]
    return result


def apply(matrix: Array, rows: Array) -> Array:
    """``matrix @ row`` for every row of a (..., m) array, added in a fixed order."""
    total: Array = rows[..., 0, None] * matrix[:, 0]
    for i in range(1, matrix.shape[1]):
        total += rows[..., i, None] * matrix[:, i]
    return total


def norm(rows: Array) -> Array:
    """Euclidean norm over the last axis, added in a fixed order."""
    total = rows[..., 0] ** 2
    for i in range(1, rows.shape[-1]):
        total = total + rows[..., i] ** 2
    result: Array = np.sqrt(total)
    return result


class Moments:
    """Window sums of ``x x^T`` and ``x y`` per node, for ordinary or AR(1) generalised least squares.

    Args:
        phi: AR(1) coefficient in [0, 1); None or 0 for ordinary least squares. The generalised sums have the scaled
            form of docs/monitors.md#errors-correlated-in-time, (1 - phi^2) X^T S^-1 X, with phi^g across a gap of g
            rounds.
    """

    def __init__(self, phi: float | None):
        self.phi = phi or 0.0
        self.start_weight = 1.0 - self.phi**2

    def _steps(self, values: Array, gap: Array) -> tuple[Array, Array]:
        """Quasi-differences of ``values`` from round 1 on, and their weights; ``gap``: rounds since the one before."""
        power = self.phi ** gap[1:].astype(float)
        shape = (-1,) + (1,) * (values.ndim - 1)
        return values[1:] - power.reshape(shape) * values[:-1], self.start_weight / (1.0 - power**2)

    def dense(self, x: Array, y: Array, gap: Array) -> tuple[Array, Array]:
        """Sums over all given rounds: x (n, k, m), y (n, k), gap (n,) -> (k, m, m), (k, m)."""
        if not self.phi:
            return self._sum(x, x), self._sum(x, y)
        z, weight = self._steps(x, gap)
        u, _ = self._steps(y, gap)
        first = self.start_weight
        weighted = z * weight[:, None, None]
        return first * outer(x[0], x[0]) + self._sum(weighted, z), first * outer(x[0], y[0]) + self._sum(weighted, u)

    @staticmethod
    def _sum(left: Array, right: Array) -> Array:
        total = np.zeros(left.shape[1:] + right.shape[2:])
        for lo in range(0, len(left), _STEP):
            total += np.add.reduce(outer(left[lo : lo + _STEP], right[lo : lo + _STEP]), axis=0)
        return total

    def changes(self, x: Array, y: Array, gap: Array, window: int | None, n: int) -> tuple[Array, Array]:
        """What each of the last ``n`` rounds adds to the window sums, minus what leaves the window.

        Args:
            x, y, gap: earlier rounds (``window`` if it slides, at least one with a phi), then the ``n`` new ones.
            window: length W of a sliding window; None for an infinite one.

        Returns:
            (n, k, m, m) and (n, k, m).
        """
        if not self.phi:
            h = len(x) - n
            return self._plain(x, x, window, h), self._plain(x, y, window, h)
        return self._whitened(x, x, gap, window, n), self._whitened(x, y, gap, window, n)

    def square_changes(self, y: Array, gap: Array, window: int | None, n: int) -> Array:
        """`changes` of the sums of ``y y`` over all nodes: (n,)."""
        if self.phi:
            return pooled(self._whitened(y[:, :, None], y, gap, window, n))[:, 0]
        squares = pooled((y * y)[:, :, None])[:, 0]
        h = len(y) - n
        return squares[h:] - (0.0 if window is None else squares[h - window : len(y) - window])

    def _whitened(self, x: Array, y: Array, gap: Array, window: int | None, n: int) -> Array:
        """`changes` of the sums of x with y, or of x with x, for correlated rounds."""
        h = len(x) - n
        z, weight = self._steps(x, gap)
        u = z if y is x else self._steps(y, gap)[0]
        weighted = z * weight[:, None, None]
        change = outer(weighted[h - 1 :], u[h - 1 :])
        if window is not None:
            change -= outer(weighted[h - window : h - window + n], u[h - window : h - window + n])
            rows = slice(h - window, h - window + n + 1)
            ends = self.start_weight * outer(x[rows], y[rows])
            change += ends[1:] - ends[:-1]
        return change

    def squares(self, y: Array, gap: Array) -> float:
        """The sum of ``y y`` over all rounds and nodes given, as `dense` weighs them."""
        return float(pooled(self.dense(y[:, :, None], y, gap)[1][None])[0, 0])

    def total_changes(self, x: Array, y: Array, gap: Array, window: int | None, n: int) -> tuple[Array, Array]:
        """`changes` summed over nodes: (n, 1, m, m) and (n, 1, m); one small product per round where that suffices."""
        if x.shape[1] == 1:
            return self.changes(x, y, gap, window, n)
        if self.phi:
            a, c = self.changes(x, y, gap, window, n)
            return pooled(a)[:, None], pooled(c)[:, None]
        h = len(x) - n
        both = np.concatenate([x, y[:, :, None]], axis=2)
        change = np.matmul(np.swapaxes(x[h:], 1, 2), both[h:])
        if window is not None:
            leaving = slice(h - window, len(x) - window)
            change -= np.matmul(np.swapaxes(x[leaving], 1, 2), both[leaving])
        return change[:, None, :, :-1], change[:, None, :, -1]

    @staticmethod
    def _plain(left: Array, right: Array, window: int | None, h: int) -> Array:
        change = outer(left[h:], right[h:])
        if window is not None:
            change -= outer(left[h - window : len(left) - window], right[h - window : len(left) - window])
        return change


def pooled(values: Array) -> Array:
    """Sum over nodes (axis 1) in node order."""
    total = values[:, 0].copy()
    for j in range(1, values.shape[1]):
        total += values[:, j]
    return total


def running(carry: Array, changes: Array) -> Array:
    """``carry`` plus the running sums of ``changes``: the same bits in one piece or in many."""
    changes[0] += carry
    return np.add.accumulate(changes, axis=0, out=changes)


@dataclass(frozen=True)
class Shape:
    """What is needed besides internal sums to tell whether they determine a model.

    Args:
        unmix: (m, m) unit lower triangular map of internal columns to the centred features; None for the identity.
        constant: whether the first column is the constant, so that all others are judged by their spread.
        floor: (m,) mean squares up to which a column is mere rounding; used only with a constant.
    """

    unmix: Array | None = None
    constant: bool = False
    floor: Array | None = None


class Factors(NamedTuple):
    """``a = S L D L^T S`` of (n, m, m) matrices; S is the root of the diagonal, so that L D L^T has a unit diagonal.

    Args:
        good: (n,) whether a matrix determines a model.
        usable: (n,) whether it is finite and its diagonal not too small; others get the factors of the identity.
        sound: (n,) whether it has these factors; others may be indefinite or spoilt by rounding, their L, D useless.
        low: (m, m, n) L below its diagonal.
        pivots: (m, n) D.
        scale: (m, n) S.
        own: (m, n) the part of each column's sum of squares that the columns before it do not explain.
    """

    good: Array
    usable: Array
    sound: Array
    low: Array
    pivots: Array
    scale: Array
    own: Array

    def first(self, n: int) -> Factors:
        """The factors of the first ``n`` matrices."""
        return Factors(*(v[..., :n] for v in self))


def identifiable(a: Array, shape: Shape | None = None) -> Array:
    """Whether each of (n, m, m) matrices determines a model: (n,) bool."""
    return factors(a, shape or Shape()).good


def solve(a: Array, c: Array) -> Array:
    """Models from sums (n, m, m) and (n, m); rows of NaN where `identifiable` says no."""
    return solved(factors(a, Shape()), a, c)


def solved(found: Factors, a: Array, c: Array) -> Array:
    """`solve` for matrices with known factors."""
    good, sound, low, pivots, scale = found.good, found.sound, found.low, found.pivots, found.scale
    m = a.shape[-1]
    beta = np.where(good, np.moveaxis(c, 0, -1), 0.0) / scale
    for i in range(m):
        beta[i + 1 :] -= low[i + 1 :, i] * beta[i]
    beta /= pivots
    for i in range(m - 1, 0, -1):
        beta[:i] -= low[i, :i] * beta[i]
    beta /= scale
    beta[:, ~good] = np.nan
    rough = np.flatnonzero(good & ~sound)
    if len(rough):
        beta[:, rough] = np.linalg.solve(a[rough], c[rough][:, :, None])[:, :, 0].T
    return np.ascontiguousarray(beta.T)


def factors(a: Array, shape: Shape) -> Factors:
    """Factors of (n, m, m) matrices, all at once, and which of them determine a model.

    Every step works on all matrices element by element. For small matrices this is several times faster than LAPACK,
    which takes them one by one, and depends just as little on the block's size.
    """
    m, n = a.shape[-1], len(a)
    # Only the lower triangles of the symmetric matrices are read, and of ``low`` only that is ever written or read.
    low, work = np.empty((m, m, n)), np.empty((m, n))
    usable = np.ones(n, dtype=bool)
    for j in range(m):
        low[j:, j] = a[:, j:, j].T
        usable &= (low[j, j] > _SMALLEST) & np.isfinite(low[j:, j]).all(axis=0)
    if not usable.all():
        low[:, :, ~usable] = np.eye(m)[:, :, None]
    spread = low[np.arange(m), np.arange(m)]
    if shape.constant:
        spread[1:] = np.maximum(spread[1:] - low[1:, 0] ** 2 / spread[0], 0.0)
    scale = np.sqrt(low[np.arange(m), np.arange(m)])
    for j in range(m):
        low[j:, j] /= scale[j:]
        low[j:, j] /= scale[j]
    pivots = np.empty_like(scale)
    sound = np.ones(n, dtype=bool)
    # Only matrices with a bad pivot can overflow, and those count as not sound.
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(m):
            sound &= low[i, i] > _PIVOT
            pivots[i] = np.where(sound, low[i, i], 1.0)
            column = low[i + 1 :, i] / pivots[i]
            for j in range(i + 1, m):
                low[j:, j] -= np.multiply(column[j - i - 1 :], low[j, i], out=work[j:])
            low[i + 1 :, i] = column
    if not sound.all():
        low[:, :, ~sound] = 0.0
    found = Factors(usable, usable, sound, low, pivots, scale, scale * scale * pivots)
    return found._replace(good=_determining(a, found, spread, shape))


def _determining(a: Array, found: Factors, spread: Array, shape: Shape) -> Array:
    """(n,) which matrices determine a model; ``spread``: (m, n) squares of each column, about its mean if centred."""
    m = a.shape[-1]
    good = found.usable.copy()
    own = found.own
    if shape.constant and shape.floor is not None:
        good &= ~found.sound | (own[1:] > shape.floor[1:, None] * a[:, 0, 0]).all(axis=0)
    if shape.unmix is not None:
        spread = np.matmul(np.abs(shape.unmix), np.sqrt(spread)) ** 2
    first = 1 if shape.constant else 0
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = np.prod(own[first:] / spread[first:], axis=0)
    # With trace m, the product of the other eigenvalues is at most e, so the smallest is at least det / e and the
    # largest at most m: only matrices that this cannot decide need their eigenvalues.
    doubtful = good & ~(found.sound & (determinant > 10 * m * _IDENTIFIABLE))
    if doubtful.any():
        good[doubtful] = _by_eigenvalues(a[doubtful], shape)
    return good


def _by_eigenvalues(a: Array, shape: Shape) -> Array:
    """`identifiable` from the eigenvalues of unit-diagonal matrices, those of centred features with a constant."""
    if shape.constant:
        a = a[:, 1:, 1:] - a[:, 1:, :1] * a[:, :1, 1:] / a[:, :1, :1]
    if shape.unmix is not None:
        unmix = shape.unmix[1:, 1:] if shape.constant else shape.unmix
        a = np.matmul(np.matmul(unmix, a), unmix.T)
    root = np.sqrt(np.maximum(np.einsum("nii->ni", a), 0.0))
    good: Array = (root > 0).all(axis=1)
    if good.any() and a.shape[-1]:
        values = np.linalg.eigvalsh(a[good] / (root[good, :, None] * root[good, None, :]))
        good[good] = values[:, 0] >= _IDENTIFIABLE * values[:, -1]
    return good


def lasting(found: Factors, held: Array, left: Array, peak: Array, summed: bool) -> tuple[int, Array]:
    """How many rounds come before the first one whose sums have lost too many digits to values that are gone.

    Args:
        found: factors of the sums of x x^T over all nodes.
        held: (m + 1, n) the diagonals of these sums, and the sums of y y.
        left: (m + 1, n) the part of each that counts: what the columns before it do not explain, and the spread of y.
        peak: (m + 1,) the largest of ``held`` since the sums were begun.
        summed: whether the sums were begun again at the first round.

    Returns:
        the number of rounds, and ``peak`` after them.
    """
    whole, n = np.maximum(peak, held.max(axis=1)), held.shape[1]
    if found.sound.all() and np.isfinite(whole).all() and (left >= _SHARE * whole[:, None]).all():
        return n, whole
    held = np.maximum.accumulate(np.concatenate([peak[:, None], held], axis=1), axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        low = ~(left >= _SHARE * held[:, 1:])
    # Where a column's squares are all zero, nothing is solved and there are no factors to judge by.
    lost = found.usable & (low[:-1].any(axis=0) | ~found.sound) | low[-1] | ~np.isfinite(held[:, 1:]).all(axis=0)
    lost[0] &= not summed
    n = int(np.argmax(lost)) if lost.any() else n
    return n, held[:, n].copy()


def fit_phi(x: Array, y: Array, gap: Array, beta: Array) -> float:
    """Pooled AR(1) coefficient of the residuals of one window, limited to [0, 0.999]."""
    e = y - apply(beta[None, :], x)[..., 0]
    pairs = gap[1:] == 1
    past = float(np.sum(e[:-1][pairs] ** 2))
    return min(max(float(np.sum(e[1:][pairs] * e[:-1][pairs])) / past, 0.0), 0.999) if past > 0 else 0.0


def window_constant(k: int) -> float:
    """Smallest W/m at which ‖M‖ is at most 1/3 for ``k`` nodes (docs/monitors.md#window-size)."""
    root = k**-0.5
    s = k * ((6 + root) - (36 + 12 * root) ** 0.5)
    result: float = 1.0 / s**2
    return result
