"""Zones that show whether a counter's variance over all machines is still between two limits, without any message.

Machine i knows ``V_i``, the mean and the mean square of its last T values. The variance is a function of the mean of
these vectors, and each limit has a convex zone (the lower one exactly; the upper one the half-plane that touches the
parabola at the point nearest to the reference). So if every machine's vector is in both zones, so is their mean, and
the variance is within the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.model_change.statistics.statistics import Array

#: Number of rounds tested together right after a reference is set; doubled while it holds, up to ``_NUMBERS`` values.
_SHORT = 8
_NUMBERS = 4_000_000


@dataclass(frozen=True)
class Tangent:
    """The half-plane ``square <= slope * mean + intercept`` that touches ``square = mean^2 + H`` at ``at``."""

    at: float
    square: float
    slope: float
    intercept: float


def tangent(mean: float, square: float, high: float) -> Tangent:
    """The half-plane for variances up to ``high`` that touches the parabola at the point nearest to a reference.

    Args:
        mean, square: mean and mean square of the reference.
        high: H.
    """
    roots = np.roots([2.0, 0.0, 1.0 + 2.0 * (high - square), -mean])
    real = roots[np.abs(roots.imag) <= 1e-9 * np.maximum(1.0, np.abs(roots))].real
    distance = (real - mean) ** 2 + (real**2 + high - square) ** 2
    p = float(real[int(np.argmin(distance))])
    for _ in range(3):  # NumPy's roots are accurate to all but some bits
        p -= (2 * p**3 + (1 + 2 * (high - square)) * p - mean) / (6 * p**2 + 1 + 2 * (high - square))
    return Tangent(p, p**2 + high, 2 * p, high - p**2)


def inside(mean: Array, square: Array, low: float, plane: Tangent) -> Array:
    """Whether vectors are in both zones: with a variance of at least ``low``, and below the half-plane."""
    held: Array = (square - mean**2 >= low) & (square <= plane.slope * mean + plane.intercept)
    return held


@dataclass
class Normaliser:
    """Mean and variance of every counter over all machines, kept for as long as their zones say that they hold.

    Args:
        low, high: limits of the variance, as shares of the reference's.
        centre, variance: (C,) mean and variance of the reference.
        means, squares: (M, C) the machines' vectors at the reference, of values minus ``centre``.
    """

    low: float
    high: float
    centre: Array | None = None
    variance: Array | None = None
    means: Array | None = None
    squares: Array | None = None

    def advance(self, x: Array, window: int) -> Array:
        """Take the next rounds.

        Args:
            x: (window - 1 + n, M, C) values; those before the first new round come first.
            window: T.

        Returns:
            (n, C) the first machine that left its zones in a round, -1 for none, and M where the reference was set for
            the first time.
        """
        n, machines, counters = len(x) - window + 1, x.shape[1], x.shape[2]
        resyncs = np.full((max(n, 0), counters), -1, dtype=np.int64)
        if n <= 0:
            return resyncs
        begun = self.centre is not None
        if not begun:
            self.centre, self.variance = np.zeros(counters), np.zeros(counters)
            self.means, self.squares = np.zeros((machines, counters)), np.zeros((machines, counters))
        for c in range(counters):
            at = 0
            if not begun:
                self._refer(x[:window, :, c], c)
                resyncs[0, c], at = machines, 1
            while at < n:
                left = self._left(x[at:, :, c], window, c)
                if left is None:
                    break
                at += left[0]
                resyncs[at, c] = left[1]
                self._refer(x[at : at + window, :, c], c)
                at += 1
        return resyncs

    def _refer(self, rows: Array, c: int) -> None:
        """Set the reference of a counter from the (T, M) values of a window."""
        assert self.centre is not None and self.variance is not None
        assert self.means is not None and self.squares is not None
        centre = float(rows.mean())
        off = rows - centre
        self.centre[c], self.variance[c] = centre, float((off**2).mean())
        self.means[:, c], self.squares[:, c] = off.mean(axis=0), (off**2).mean(axis=0)

    def _left(self, rows: Array, window: int, c: int) -> tuple[int, int] | None:
        """The first round in which some machine is outside its zones, and the first such machine."""
        assert self.centre is not None and self.variance is not None
        assert self.means is not None and self.squares is not None
        variance, n = float(self.variance[c]), len(rows) - window + 1
        # With the reference's mean subtracted from the values, the half-plane is square <= H.
        plane = Tangent(0.0, self.high * variance, 0.0, self.high * variance)
        at, size = 0, _SHORT
        while at < n:
            off = rows[at : at + size + window - 1] - self.centre[c]
            mean, square = _windows(off, window), _windows(off**2, window)
            held = inside(mean - self.means[:, c], variance + square - self.squares[:, c], self.low * variance, plane)
            wrong = np.flatnonzero(~held.all(axis=1))
            if len(wrong):
                return at + int(wrong[0]), int(np.argmin(held[wrong[0]]))
            at, size = at + size, min(2 * size, max(_SHORT, _NUMBERS // (window * rows.shape[1])))
        return None


def _windows(values: Array, window: int) -> Array:
    """Means over all windows of (T - 1 + n, M) values, each summed by itself, so that chunks change no bit."""
    view = np.lib.stride_tricks.sliding_window_view(values, window, axis=0)
    means: Array = np.ascontiguousarray(view).mean(axis=-1)
    return means
