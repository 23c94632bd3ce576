"""Tells when the mean over k sensors is below a threshold, although few report (docs/monitors.md#threshold-monitor).

Every sensor j holds a threshold tau_j; their sum is always k T. A sensor whose reading is below its own threshold
reports. The coordinator then collects further readings until the slack of some covers the lack of others, and
redistributes the slack. So silence proves that the mean is not below T, and no alert is missed or false.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chainlake.model_change.statistics.statistics import Array
from chainlake.schemas.models import AlertKind

#: Number of rounds tested together right after a report; doubled while no sensor reports.
_SHORT = 16


@dataclass(frozen=True)
class Collection:
    """A round in which the coordinator did something worth a row.

    Args:
        at: the round's place.
        violators: sensors below their threshold, ascending.
        collected: all sensors whose values are known, in the order in which they came.
        balanced: whether the collected values prove that the mean is not below T.
        signal: ``below``, ``recovered`` or None.
        thresholds: (k,) in force afterwards.
    """

    at: int
    violators: tuple[int, ...]
    collected: tuple[int, ...]
    balanced: bool
    signal: AlertKind | None
    thresholds: Array


@dataclass
class ThresholdMonitor:
    """One monitor over time.

    Args:
        level: T.
        thresholds: (k,) tau; all are T at the start.
        below: whether the last signal was ``below``.
    """

    level: float
    thresholds: Array
    below: bool = False

    @classmethod
    def start(cls, level: float, k: int) -> ThresholdMonitor:
        """The monitor of ``k`` sensors before its first round."""
        return cls(level, np.full(k, level))

    def feed(self, values: Array) -> tuple[list[Collection], Array, Array]:
        """Take the next rounds.

        Args:
            values: (n, k) readings, finite.

        Returns:
            the rounds worth a row, and (n,) messages up and down.
        """
        n, k = values.shape
        found: list[Collection] = []
        up, down = np.zeros(n, np.int64), np.zeros(n, np.int64)
        at, size = 0, _SHORT
        while at < n:
            if not self.below:
                loud = np.flatnonzero((values[at : at + size] < self.thresholds).any(axis=1))
                if not len(loud):
                    at, size = at + size, size * 2
                    continue
                at += int(loud[0])
            found += self._polled(at, values[at], up, down) if self.below else self._reported(at, values[at], up, down)
            at, size = at + 1, _SHORT
        return found, up, down

    def _excess(self, v: Array) -> float:
        """By how much the sum of all sensors' readings exceeds k T."""
        return math.fsum([*v.tolist(), *[-self.level] * len(v)])

    def _polled(self, at: int, v: Array, up: Array, down: Array) -> list[Collection]:
        """A round while the mean is below: all sensors are asked."""
        k = len(v)
        up[at], down[at] = k, k
        spare = self._excess(v)
        if spare < 0:
            return []
        down[at] += k
        self.below, self.thresholds = False, _raised(v - spare / k, [self.level] * k)
        return [Collection(at, (), tuple(range(k)), True, "recovered", self.thresholds)]

    def _reported(self, at: int, v: Array, up: Array, down: Array) -> list[Collection]:
        """A round in which some sensor reports: poll others in ascending order until the slack covers the deficit."""
        k = len(v)
        violators = tuple(int(j) for j in np.flatnonzero(v < self.thresholds))
        collected = list(violators)
        others = [j for j in range(k) if j not in violators]
        while True:
            spare = self._excess(v) if len(collected) == k else math.fsum([*v[collected], *-self.thresholds[collected]])
            if spare >= 0 or len(collected) == k:
                break
            collected.append(others.pop(0))
        up[at], down[at] = len(collected), len(collected) - len(violators)
        if spare < 0:
            self.below = True
            return [Collection(at, violators, tuple(collected), False, "below", self.thresholds)]
        down[at] += len(collected)
        self.thresholds = self.thresholds.copy()
        # The sum over all sensors is known to be k T: so what thresholds had lost to rounding is regained.
        held = [self.level] * k if len(collected) == k else self.thresholds[collected].tolist()
        self.thresholds[collected] = _raised(v[collected] - spare / len(collected), held)
        return [Collection(at, violators, tuple(collected), True, None, self.thresholds)]


def _raised(thresholds: Array, held: list[float]) -> Array:
    """The thresholds, raised where rounding requires it, so that their sum is not below that of the ones held before.

    Next to a far-off reading, a threshold's rounding can outweigh everything else; if their sum fell, silence would no
    longer prove anything. A sum that is slightly high costs a message, and only lasts until all sensors are collected.
    """
    lack = math.fsum([*held, *-thresholds])
    while lack > 0:
        thresholds[0] = np.nextafter(thresholds[0] + lack, np.inf)
        lack = math.fsum([*held, *-thresholds])
    return thresholds
