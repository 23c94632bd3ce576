"""The sign test: whose counters point away from those of the other machines, round after round.

``S(m, t)`` is the mean, over the other machines, of the unit vector from their point to that of m; ``v_m`` is its mean
over the rounds of a window. Machines that are alike have small ``v``. p bounds the chance of a ``v`` as large as m's if
m were like the others; the bound uses only that S is bounded, and nothing about distributions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.model_change.statistics.statistics import Array

#: Two points whose squared distance is less than this share of their squared norms are compared coordinate by
#: coordinate.
_CLOSE = 1e-6


@dataclass(frozen=True)
class Scores:
    """The scores of M machines.

    Args:
        v: (M, C) mean direction away from the others.
        size: (M,) its length.
        gamma: (M,) how far that is above the mean length; 0 if it is not.
        p: (M,) bound on the chance; it may exceed 1.
    """

    v: Array
    size: Array
    gamma: Array
    p: Array

    @classmethod
    def of(cls, v: Array, rounds: int) -> Scores:
        """The scores of mean directions ``v`` over this many rounds."""
        machines = len(v)
        size = np.sqrt((v**2).sum(axis=1))
        gamma = above_mean(size)
        return cls(v, size, gamma, bound(gamma, machines, rounds))


def above_mean(size: Array) -> Array:
    """How far each length is above the mean over the last axis; 0 where it is not."""
    found: Array = np.maximum(0.0, size - size.mean(axis=-1, keepdims=True))
    return found


def bound(gamma: Array, machines: int, rounds: int) -> Array:
    """The bound p for a machine that is ``gamma`` above the mean length."""
    found: Array = (machines + 1) * np.exp(-rounds * machines * gamma**2 / (2 * (np.sqrt(machines) + 2) ** 2))
    return found


def standardised(x: Array) -> Array:
    """Counters (T, M, C) scaled to mean 0 and variance 1 over all rounds and machines; one that never varies is 0."""
    centred = x - x.mean(axis=(0, 1))
    spread = centred.std(axis=(0, 1))
    # All that is left of a counter that never varies is the rounding of its mean.
    still = spread <= 1e-12 * np.abs(x).max(axis=(0, 1), initial=0.0)
    result: Array = np.where(still, 0.0, centred / np.where(still, 1.0, spread))
    return result


def directions(x: Array) -> Array:
    """S (T, M, C) of counters (T, M, C); coincident points contribute nothing."""
    pairs, found = _Pairs.of(x), np.empty_like(x)
    for t, points in enumerate(x):
        found[t] = pairs.directions(points)
    return found


@dataclass(frozen=True)
class _Pairs:
    """Memory that every round uses anew: fresh pages of it would take as long as half of the products.

    Args:
        centred, pulled: (M, C).
        weight: (M, M) of pairs.
    """

    centred: Array
    pulled: Array
    weight: Array

    @classmethod
    def of(cls, x: Array) -> _Pairs:
        """For rounds (T, M, C)."""
        return cls(np.empty(x.shape[1:]), np.empty(x.shape[1:]), np.empty((x.shape[1], x.shape[1])))

    def directions(self, points: Array) -> Array:
        """S (M, C) of a round's points, in memory that the next round overwrites."""
        centred, apart = self.centred, self.weight
        np.subtract(points, points.mean(axis=0), out=centred)
        squares = np.einsum("mc,mc->m", centred, centred)
        np.matmul(centred, centred.T, out=apart)
        apart *= -2.0
        apart += squares[:, None]
        apart += squares
        np.fill_diagonal(apart, np.inf)
        # The difference of large squares says little about a small distance.
        some = apart.min(initial=np.inf) <= 2 * _CLOSE * squares.max()
        close = apart <= _CLOSE * (squares[:, None] + squares) if some else np.zeros((0, 0), dtype=bool)
        if some:
            apart[close] = np.inf
        weight = np.sqrt(apart, out=apart)
        np.reciprocal(weight, out=weight)
        np.matmul(weight, centred, out=self.pulled)
        total: Array = np.multiply(weight.sum(axis=1)[:, None], centred, out=centred)
        total -= self.pulled
        for m in np.flatnonzero(close.any(axis=1)):
            off = points[m] - points[close[m]]
            length = np.sqrt((off**2).sum(axis=1))
            total[m] += (off[length > 0] / length[length > 0, None]).sum(axis=0)
        total /= len(points) - 1
        return total


def rolled(s: Array, rounds: int) -> Array:
    """Mean directions (n - rounds + 1, M, C) of all windows of this many rounds, from what enters and what leaves.

    Each window follows from the one before it: one round enters, and the oldest leaves.
    """
    means = np.empty((len(s) - rounds + 1, *s.shape[1:]))
    means[0] = s[:rounds].mean(axis=0)
    for i in range(1, len(means)):
        means[i] = means[i - 1] + s[i + rounds - 1] / rounds - s[i - 1] / rounds
    return means


def sketch(counters: int, dimensions: int, seed: int) -> Array:
    """A matrix (k, C) that maps C counters to k dimensions: entries of one size with random signs.

    The signs depend on the seed alone, and are the same on every machine and with every version of NumPy.
    """
    bits = np.empty(dimensions * counters, dtype=np.int64)
    state = (seed * 2 + 1) & _MASK
    for i in range(len(bits)):
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        bits[i] = state >> 63
    matrix: Array = (2.0 * bits.reshape(dimensions, counters) - 1.0) / np.sqrt(dimensions)
    return matrix


_MASK = 2**64 - 1


def r_squared(wanted: Array, found: Array) -> float:
    """The share of the spread of ``wanted`` that a line through ``found`` explains."""
    a, b = wanted - wanted.mean(), found - found.mean()
    spread = float((a * a).sum() * (b * b).sum())
    return float((a * b).sum() ** 2 / spread) if spread > 0 else 0.0
