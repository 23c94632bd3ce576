"""Work along the time axis, of one pattern or several, and how it is cut into parts of about equal work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Curve:
    """Estimated work by time of decision.

    Args:
        at: times, ascending, ticks.
        work: evaluations for all decisions before each of them; between two times it grows evenly.
    """

    at: np.ndarray
    work: np.ndarray

    @property
    def total(self) -> float:
        """The whole work, in evaluations."""
        return float(self.work[-1])

    def cut(self, spans: Sequence[tuple[int, int]], pieces: int) -> list[tuple[int, int]]:
        """Bounds of about ``pieces`` parts of equal work, at least one per span."""
        inner = self.at[_nearest(self.work, pieces if self.total else 1)]
        bounds = []
        for lo, hi in spans:
            cuts = np.unique([lo, *inner[(inner > lo) & (inner < hi)].tolist(), hi]).tolist()
            bounds += list(zip(cuts[:-1], cuts[1:], strict=True))
        return bounds

    def between(self, bounds: Sequence[tuple[int, int]]) -> list[float]:
        """The work of each part."""
        return [float(hi - lo) for lo, hi in np.interp(np.array(bounds), self.at, self.work)]


def sum_of(curves: Sequence[Curve]) -> Curve:
    """The work of several patterns."""
    at = np.unique(np.concatenate([one.at for one in curves]))
    return Curve(at, np.sum([np.interp(at, one.at, one.work) for one in curves], axis=0))


def _nearest(total: np.ndarray, pieces: int) -> np.ndarray:
    """Indices of edges that cut a running total into ``pieces``, each as near to its share as cells allow."""
    shares = total[-1] * np.arange(1, pieces) / pieces
    above = np.clip(np.searchsorted(total, shares), 1, len(total) - 1)
    return np.unique(np.where(total[above] - shares > shares - total[above - 1], above - 1, above))
