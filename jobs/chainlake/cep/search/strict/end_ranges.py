"""How far the first and last names of neighbours can reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.cep.search.strict.form import ANY_NUMBER
from chainlake.cep.search.strict.runs import Runs


@dataclass
class EndRanges:
    """Where the first name may begin and the last name may end, for some matches whose other names are bound.

    Args:
        earliest: the first place at which the first name may begin.
        high: the last place at which the first name may begin.
        low: the first place at which the last name may end.
        latest: the last place at which the last name may end.
        near: whether there are places, and ``high`` and ``low`` are in one window.
    """

    earliest: np.ndarray
    high: np.ndarray
    low: np.ndarray
    latest: np.ndarray
    near: np.ndarray

    @property
    def fit(self) -> np.ndarray:
        """Which matches have a place for both names."""
        found: np.ndarray = (self.earliest <= self.high) & (self.low <= self.latest) & self.near
        return found

    def at(self, rows: np.ndarray) -> EndRanges:
        """The ends of some of the matches."""
        return EndRanges(self.earliest[rows], self.high[rows], self.low[rows], self.latest[rows], self.near[rows])


def fitting(runs: Runs, ends: EndRanges) -> tuple[Runs, EndRanges]:
    """The matches that have a place for both names, with their ends."""
    fit = ends.fit
    if fit.all():
        return runs, ends
    rows = np.flatnonzero(fit)
    return runs.at(rows), ends.at(rows)


class RunEnds:
    """Finds the last places before marked ones.

    Args:
        marked: which places are marked.
    """

    def __init__(self, marked: np.ndarray) -> None:
        self._places = np.append(np.flatnonzero(marked), len(marked))
        self._before = np.cumsum(marked)

    def of(self, places: np.ndarray) -> np.ndarray:
        """For each place, the place before the next marked one after it; the very last place if there is none."""
        found: np.ndarray = self._places[self._before[places]] - 1
        return found


def no_more(stop: np.ndarray, begin: np.ndarray, most: int) -> np.ndarray:
    """The last places, up to ``stop``, of sets that begin at ``begin`` and have at most ``most`` events."""
    return stop if most == ANY_NUMBER else np.minimum(stop, begin + (most - 1))
