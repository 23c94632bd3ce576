"""The local tests of a node's drift against the reference model of the last synchronisation (spec 2.1-2.4, 3.2).

All are convex and contain (0, 0): if no node violates, the pooled model lies within ``eps`` of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from jobs.model_change.basis import Basis
from jobs.model_change.statistics import Array, norm

#: A value up to this much above eps (relative) is still equal to it (spec 2.4).
TIE = 1e-9


@dataclass
class Reference:
    """A reference model and the matrices that tests need, in monitored coordinates.

    Args:
        a: (m, m) internal average of the nodes' sums (plus ridge / k).
        beta: (m,) internal model.
        basis: the internal coordinates.
        k: number of nodes.
    """

    a: Array
    beta: Array
    basis: Basis
    k: int
    inverse: Array = field(init=False)
    left: Array = field(init=False)
    right: Array = field(init=False)
    monitored: Array = field(init=False)

    def __post_init__(self) -> None:
        inverse = np.linalg.inv(self.a)
        self.inverse = (inverse + inverse.T) / 2
        self.left = self.basis.beta_map @ self.inverse
        self.right = self.basis.row_map.T
        self.monitored = self.basis.monitored(self.beta[None])[0]

    def movement(self, d_a: Array) -> Array:
        """M = Ahat0^-1 D of (n, m, m) drifts; one product per drift, so that no block size shows in the bits."""
        return np.matmul(np.matmul(self.left, d_a), self.right)

    def shift(self, rows: Array) -> Array:
        """K Ahat0^-1 times each of (n, m) vectors."""
        return np.matmul(self.left, rows[:, :, None])[:, :, 0]

    def unexplained(self, d_a: Array, d_c: Array) -> Array:
        """r = d - D beta0 of (n, m, m), (n, m) drifts, internal."""
        return d_c - np.matmul(d_a, self.beta[:, None])[:, :, 0]

    def drift_of_c(self, d_a: Array, d_c: Array) -> Array:
        """d of the uncentred response."""
        return d_c + np.matmul(d_a, self.basis.constant[:, None])[:, :, 0]


#: (reference, drifts D (n, m, m), d (n, m), eps) -> (value, norm term), each (n,).
Evaluator = Callable[[Reference, Array, Array, float], tuple[Array, Array]]


def _spectral(m: Array) -> Array:
    """Largest singular value; by the eigenvalues of M^T M, which costs half of an SVD and loses nothing at the top."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(np.matmul(np.swapaxes(m, 1, 2), m))[:, -1], 0.0))


def _rising(m: Array) -> Array:
    """lambda_max(-(M + M^T)/2)."""
    return np.linalg.eigvalsh(-(m + np.swapaxes(m, 1, 2)) / 2)[:, -1]


def vector_part(name: str, ref: Reference, d_a: Array, d_c: Array) -> Array:
    """The part of the value that needs no matrix norm, for paper, residual and onesided: (n,)."""
    if name == "paper":
        moved = ref.shift(np.matmul(d_a, (ref.beta + ref.basis.constant)[:, None])[:, :, 0])
        return norm(ref.shift(ref.drift_of_c(d_a, d_c))) + norm(moved)
    return norm(ref.shift(ref.unexplained(d_a, d_c)))


def _normed(name: str, term: Callable[[Array], Array]) -> Evaluator:
    def evaluate(ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
        size = term(ref.movement(d_a))
        return eps * size + vector_part(name, ref, d_a, d_c), size

    return evaluate


def _energy(ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
    j = ref.basis.row_map
    values, vectors = np.linalg.eigh(j @ ref.a @ j.T)
    root = (vectors / np.sqrt(values)) @ vectors.T @ j
    e = np.matmul(np.matmul(root, d_a), root.T)
    size = _rising(e)
    moved = np.matmul(root, ref.unexplained(d_a, d_c)[:, :, None])[:, :, 0]
    return norm(moved) / np.sqrt(values[0]) + eps * size, size


def _matfrac(ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
    j = ref.basis.row_map
    s = np.matmul(np.matmul(j, ref.a + d_a), j.T)
    r = np.matmul(j, ref.unexplained(d_a, d_c)[:, :, None])[:, :, 0]
    value = np.full(len(s), np.inf)
    smallest = np.linalg.eigvalsh((s + np.swapaxes(s, 1, 2)) / 2)[:, 0]
    good = smallest > 0
    if good.any():
        solved = np.linalg.solve(s[good], r[good][:, :, None])[:, :, 0]
        energy = np.sum(r[good] * solved, axis=1)
        value[good] = np.sqrt(np.maximum(energy, 0.0) / smallest[good])
    return value, np.full(len(s), -np.inf)


EVALUATORS: dict[str, Evaluator] = {
    "paper": _normed("paper", _spectral),
    "residual": _normed("residual", _spectral),
    "onesided": _normed("onesided", _rising),
    "energy": _energy,
    "matfrac": _matfrac,
}


def violates(value: Array, size: Array, eps: float) -> Array:
    """The normative test of spec 2.4; NaN is a violation."""
    return ~((value <= eps * (1 + TIE)) & (size < 1 - TIE))


def clear_cut(name: str, ref: Reference, d_a: Array, d_c: Array, eps: float) -> tuple[Array, Array]:
    """Which drifts cheap bounds decide: (surely fine, surely violating), each (n,) bool (spec 6.6 step 4).

    The bounds are fast big products whose last bits depend on the block, so a margin keeps every decision that a last
    bit could turn for the exact evaluation.
    """
    if name not in ("paper", "residual", "onesided"):
        none = np.zeros(len(d_a), dtype=bool)
        return none, none
    n, m, _ = d_a.shape
    # (D K_left^T) are the transposed rows of left D, and D is symmetric: one product for all drifts.
    moved = (d_a.reshape(-1, m) @ ref.left.T).reshape(n, m, m)
    if ref.basis.inverse_l is None and ref.basis.intercept is not None:
        moved = np.matmul(ref.right.T, moved)
    frobenius = np.sqrt(np.einsum("nij,nij->n", moved, moved))
    lower = frobenius / np.sqrt(m)
    if name == "onesided":
        lower = -np.einsum("nii->n", moved) / m
    if name == "paper":
        h = np.sqrt(((ref.drift_of_c(d_a, d_c) @ ref.left.T) ** 2).sum(axis=1))
        h = h + np.sqrt((((d_a @ (ref.beta + ref.basis.constant)) @ ref.left.T) ** 2).sum(axis=1))
    else:
        h = np.sqrt((((d_c - d_a @ ref.beta) @ ref.left.T) ** 2).sum(axis=1))
    # The margin is of the size of the bounds themselves, so that rounding in large cancelling terms is covered too.
    margin = 1e-7 * (eps + h + eps * frobenius)
    return (h + eps * frobenius <= eps - margin) & (frobenius < 1 - 1e-7), h + eps * lower > eps + margin
