"""The local tests of a node's drift against the reference model of the last synchronisation.

See docs/monitors.md#local-tests.

Each test describes a convex set that contains (0, 0): if no node violates it, the pooled model lies within ``eps`` of
the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from chainlake.model_change.statistics.basis import Basis
from chainlake.model_change.statistics.statistics import Array, norm

#: A value that exceeds eps by no more than this (relative) still counts as equal to it.
TIE = 1e-9
#: Matrices with entries up to this size can be multiplied by themselves within the range of doubles.
_LARGE = 1e100


@dataclass
class Reference:
    """A reference model, with the matrices that tests of drifts need.

    Args:
        a: (m, m) internal average of the nodes' sums (plus ridge / k).
        beta: (m,) internal model.
        monitored: (m,) the same model in the coordinates in which distances are measured.
        basis: the coordinates of ``a`` and ``beta``.
        now: the coordinates of the drifts.

    ``left`` and ``right`` give M = left D right. ``whole`` is the model of the uncentred response in the coordinates of
    the drifts, and ``constant`` is the difference between it and the model of the centred response.
    """

    a: Array
    beta: Array
    monitored: Array
    basis: Basis
    now: Basis
    left: Array = field(init=False)
    right: Array = field(init=False)
    constant: Array = field(init=False)
    whole: Array = field(init=False)
    into: Array | None = field(init=False)

    def __post_init__(self) -> None:
        inverse = np.linalg.inv(self.a)
        self.left = self.basis.beta_map @ ((inverse + inverse.T) / 2)
        self.right = self.now.row_map.T
        self.constant = self.now.constant
        self.whole = self.beta + self.basis.constant
        self.into = None if self.now.same(self.basis) else self.basis.seen_from(self.now)
        if self.into is not None:
            self.left, self.whole = self.left @ self.into, self.into.T @ self.whole

    @property
    def roots(self) -> tuple[Array, Array]:
        """Two maps: into coordinates in which the average is the identity (D becomes root D root^T, r becomes root r),
        and from changes of models there to changes of monitored models."""
        scale = np.sqrt(np.diag(self.a))
        root = np.linalg.inv(np.linalg.cholesky(self.a / np.outer(scale, scale))) / scale
        return root if self.into is None else root @ self.into, self.basis.beta_map @ root.T

    def carried(self, a: Array, c: Array) -> tuple[Array, Array]:
        """Sums a (..., m, m) and c (..., m), given in the reference's coordinates, in those of the drifts."""
        if self.into is None:
            return a, c
        move = self.now.seen_from(self.basis)
        if self.basis.slopes is None and self.now.slopes is None:
            moved = c + a[..., 0] * (self.basis.centre_y - self.now.centre_y)
        else:
            moved = c + np.matmul(a, self.basis.constant - move.T @ self.now.constant)
        moved = np.matmul(moved, move.T)
        return np.matmul(np.matmul(move, a), move.T), moved

    def movement(self, d_a: Array) -> Array:
        """M = Ahat0^-1 D of (n, m, m) drifts; one product per drift, so that bits do not depend on the block size."""
        result: Array = np.matmul(np.matmul(self.left, d_a), self.right)
        return result

    def shift(self, rows: Array) -> Array:
        """K Ahat0^-1 times each of the (n, m) vectors."""
        result: Array = np.matmul(self.left, rows[:, :, None])[:, :, 0]
        return result

    def unexplained(self, d_a: Array, d_c: Array) -> Array:
        """r = d - D beta0 of (n, m, m) and (n, m) drifts, internal."""
        result: Array = d_c - np.matmul(d_a, (self.whole - self.constant)[:, None])[:, :, 0]
        return result

    def drift_of_c(self, d_a: Array, d_c: Array) -> Array:
        """d of the uncentred response."""
        result: Array = d_c + np.matmul(d_a, self.constant[:, None])[:, :, 0]
        return result


#: (reference, drifts D (n, m, m), d (n, m), eps) -> (value, norm term), each (n,).
Evaluator = Callable[[Reference, Array, Array, float], tuple[Array, Array]]


def _spectral(m: Array) -> Array:
    """Largest singular value, from the eigenvalues of M^T M: half the cost of an SVD, and as exact at the top."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(np.matmul(np.swapaxes(m, 1, 2), m))[:, -1], 0.0))


def _rising(m: Array) -> Array:
    """lambda_max(-(M + M^T)/2)."""
    return np.linalg.eigvalsh(-(m + np.swapaxes(m, 1, 2)) / 2)[:, -1]


def _bounded(term: Callable[[Array], Array], m: Array) -> Array:
    """``term``, which scales with its argument, of matrices of any size; infinite where numbers leave all doubles."""
    large = np.abs(m).max(axis=(1, 2))
    if (large < _LARGE).all():
        return term(m)
    found, usable = np.full(len(m), np.inf), np.isfinite(large)
    scale = np.maximum(large[usable], 1.0)
    found[usable] = term(m[usable] / scale[:, None, None]) * scale
    return found


def vector_part(name: str, ref: Reference, d_a: Array, d_c: Array) -> Array:
    """The part of the test's value that needs no matrix norm, for paper, residual and onesided: (n,)."""
    if name == "paper":
        moved = ref.shift(np.matmul(d_a, ref.whole[:, None])[:, :, 0])
        result: Array = norm(ref.shift(ref.drift_of_c(d_a, d_c))) + norm(moved)
        return result
    return norm(ref.shift(ref.unexplained(d_a, d_c)))


def _normed(name: str, term: Callable[[Array], Array]) -> Evaluator:
    def evaluate(ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):  # what leaves the range of doubles exceeds eps
            size = _bounded(term, ref.movement(d_a))
            return eps * size + vector_part(name, ref, d_a, d_c), size

    return evaluate


def _energy(ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
    # Any root of A gives the same eigenvalues of A^-1/2 D A^-1/2 and the same norm of A^-1/2 r, and the smallest
    # eigenvalue of A follows from its root in monitored coordinates: so no large mean enters.
    root, own = ref.roots
    with np.errstate(over="ignore", invalid="ignore"):
        size = _bounded(_rising, np.matmul(np.matmul(root, d_a), root.T))
        moved = np.matmul(root, ref.unexplained(d_a, d_c)[:, :, None])[:, :, 0]
        return norm(moved) * _spectral(own[None])[0] + eps * size, size


def _matfrac(ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
    # In coordinates in which the average is the identity, S = I + E, and what S loses through E decides.
    root, own = ref.roots
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.matmul(np.matmul(root, d_a), root.T)
        r = np.matmul(root, ref.unexplained(d_a, d_c)[:, :, None])[:, :, 0]
    value = np.full(len(e), np.inf)
    usable = np.flatnonzero(np.isfinite(e).all(axis=(1, 2)) & np.isfinite(r).all(axis=1))
    s = np.eye(e.shape[1]) + (e[usable] + np.swapaxes(e[usable], 1, 2)) / 2
    values, vectors = np.linalg.eigh(s)
    good = values[:, 0] > 0
    usable, values, vectors = usable[good], values[good], vectors[good]
    if len(usable):
        turned = np.matmul(np.swapaxes(vectors, 1, 2), r[usable][:, :, None])[:, :, 0]
        # lambda_min of S in monitored coordinates is the reciprocal of the largest eigenvalue of its inverse there.
        spread = np.matmul(own, vectors) / np.sqrt(values)[:, None, :]
        value[usable] = norm(turned / np.sqrt(values)) * _spectral(spread)
    return value, np.full(len(value), -np.inf)


EVALUATORS: dict[str, Evaluator] = {
    "paper": _normed("paper", _spectral),
    "residual": _normed("residual", _spectral),
    "onesided": _normed("onesided", _rising),
    "energy": _energy,
    "matfrac": _matfrac,
}


def violates(value: Array, size: Array, eps: float) -> Array:
    """Whether a local test fails; NaN is a violation."""
    return ~((value <= eps * (1 + TIE)) & (size < 1 - TIE))


def clear_cut(name: str, ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
    """Which drifts are decided by cheap bounds: (surely fine, surely violating), each (n,) bool.

    The bounds come from large, fast products whose last bits depend on the block. A margin leaves every decision that a
    last bit could change to the exact evaluation.
    """
    if name not in ("paper", "residual", "onesided"):
        none = np.zeros(len(d_a), dtype=bool)
        return none, none
    n, m, _ = d_a.shape
    # D left^T is the transpose of left D, since D is symmetric: so one product serves all drifts.
    moved = (d_a.reshape(-1, m) @ ref.left.T).reshape(n, m, m)
    if ref.now.moves:
        moved = np.matmul(ref.right.T, moved)
    frobenius = np.sqrt(np.einsum("nij,nij->n", moved, moved))
    lower = frobenius / np.sqrt(m)
    if name == "onesided":
        lower = -np.einsum("nii->n", moved) / m
    if name == "paper":
        h = np.sqrt(((ref.drift_of_c(d_a, d_c) @ ref.left.T) ** 2).sum(axis=1))
        h = h + np.sqrt((((d_a @ ref.whole) @ ref.left.T) ** 2).sum(axis=1))
    else:
        h = np.sqrt((((d_c - d_a @ (ref.whole - ref.constant)) @ ref.left.T) ** 2).sum(axis=1))
    # The margin scales with the bounds themselves, so that it also covers rounding in large terms that cancel.
    margin = 1e-7 * (eps + h + eps * frobenius)
    return (h + eps * frobenius <= eps - margin) & (frobenius < 1 - 1e-7), h + eps * lower > eps + margin
