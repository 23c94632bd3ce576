"""How far names of neighbours can get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.cep.search.strict.form import ANY_NUMBER
from chainlake.cep.search.strict.runs import Runs


@dataclass
class Ends:
    """Where the first and the last name may begin and end, for some matches whose other names are bound.

    Args:
        earliest: the first place at which the first name may begin.
        high: the last one.
        low: the first place at which the last name may end.
        latest: the last one.
        near: whether there are places, and ``high`` and ``low`` lie in one window.
    """

    earliest: np.ndarray
    high: np.ndarray
    low: np.ndarray
    latest: np.ndarray
    near: np.ndarray

    @property
    def fit(self) -> np.ndarray:
        """For which of them there is a place for both."""
        found: np.ndarray = (self.earliest <= self.high) & (self.low <= self.latest) & self.near
        return found

    def at(self, rows: np.ndarray) -> Ends:
        """Those of some matches."""
        return Ends(self.earliest[rows], self.high[rows], self.low[rows], self.latest[rows], self.near[rows])


def fitting(runs: Runs, ends: Ends) -> tuple[Runs, Ends]:
    """The matches that have a place for both, with their places."""
    fit = ends.fit
    if fit.all():
        return runs, ends
    rows = np.flatnonzero(fit)
    return runs.at(rows), ends.at(rows)


class Stops:
    """The last places before marked ones.

    Args:
        marked: which places are.
    """

    def __init__(self, marked: np.ndarray) -> None:
        self._places = np.append(np.flatnonzero(marked), len(marked))
        self._before = np.cumsum(marked)

    def of(self, places: np.ndarray) -> np.ndarray:
        """For some places the one before the next marked one behind it; the last one of all if there is none."""
        found: np.ndarray = self._places[self._before[places]] - 1
        return found


def no_more(stop: np.ndarray, begin: np.ndarray, most: int) -> np.ndarray:
    """The last places up to ``stop`` of sets that begin somewhere and have so many events at most."""
    return stop if most == ANY_NUMBER else np.minimum(stop, begin + (most - 1))
