"""Machines of one kind, day by day: rows of ``models.fault_scores`` and ``models.metrics``, and their state."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.days import instant
from chainlake.model_change.faults.config import FaultsConfig
from chainlake.model_change.faults.sign import (
    Scores,
    above_mean,
    bound,
    directions,
    r_squared,
    rolled,
    sketch,
    standardised,
)
from chainlake.model_change.faults.variance import Normaliser
from chainlake.model_change.rounds.rows import Coefficient, DayRows, FaultRow, MetricFigures, MetricRow
from chainlake.model_change.rounds.series_run import SeriesRun
from chainlake.model_change.statistics.statistics import Array

#: How many counters a machine's row names.
_TOP = 5


class FaultsRun(SeriesRun[FaultsConfig]):
    """Machines of one kind on their way through their days.

    Args:
        config: the machines.
        group: their group.
        snapshot: the state to continue from; None: the start.

    Raises:
        ValueError: the snapshot is of another version; `states.loads` gives None for such a one.
    """

    def __init__(self, config: FaultsConfig, group: str, snapshot: str | None = None):
        super().__init__(config, group, snapshot)
        self.counters = len(config.feature_names)
        #: The last rounds, one fewer than the window has; none if the window is the day.
        self.history = np.zeros((0, self.k, self.counters))
        self.normaliser = None if config.low is None or config.high is None else Normaliser(config.low, config.high)
        if self.values:
            self.history = self.values["history"]
            if self.normaliser is not None and self.values["centre"] is not None:
                for name in _KEPT:
                    setattr(self.normaliser, name, self.values[name])

    def snapshot(self) -> str:
        """The state after the last day, as JSON."""
        more = {} if self.normaliser is None else {name: getattr(self.normaliser, name) for name in _KEPT}
        return self.kept(history=self.history, **more)

    def day(self, day: date, reduced: pa.Table) -> DayRows:
        """Compare the machines on one UTC day; like `daily.GroupMonitor.day`, with rows of models.fault_scores."""
        chunks = self.chunks(day, reduced)
        if not chunks:
            return DayRows([], None)
        ts = np.concatenate([chunk.ts for chunk in chunks])
        x = np.concatenate([self.history, *(chunk.x for chunk in chunks)])
        length = self.config.length or len(x)
        # The last rounds of the window before the day, and the day's own.
        x = x[-(len(ts) + length - 1) :]
        resyncs = None if self.normaliser is None else self.normaliser.advance(x, length)
        if self.config.length is not None:
            self.history = x[-(length - 1) :].copy()
        if len(x) < length:
            return DayRows([], self.metrics(day, chunks, None))
        scaled = self._scaled(x, length)
        s = directions(scaled)
        scores = Scores.of(s[-length:].mean(axis=0), length)
        first = self._first_flagged(s, length, ts)
        sketched = self._sketched(scaled[-length:])
        rows: list[FaultRow] = []
        features = self.config.feature_names
        for j, name in enumerate(self.names):
            top = np.argsort(-np.abs(scores.v[j]), kind="stable")[:_TOP]
            counters: list[Coefficient] = [{"feature": features[c], "value": float(scores.v[j, c])} for c in top]
            rows.append(
                {
                    "model": self.config.name,
                    "group_id": self.group,
                    "day": day,
                    "machine": name,
                    "rounds": length,
                    "v_norm": float(scores.size[j]),
                    "gamma": float(scores.gamma[j]),
                    "p": float(scores.p[j]),
                    "flagged": bool(scores.p[j] < self.config.alpha),
                    "first_flagged": first[j],
                    "top_counters": counters,
                    "p_sketch": None if sketched is None else float(sketched.p[j]),
                    "resyncs": None if resyncs is None else int((resyncs == j).sum()),
                }
            )
        return DayRows(rows, self._metrics(day, chunks, resyncs, scores, sketched))

    def _scaled(self, x: Array, length: int) -> Array:
        """The counters on one scale: that of the window that ends with the day, or of the reference in force."""
        normaliser = self.normaliser
        if normaliser is None or normaliser.centre is None or normaliser.variance is None:
            if self.config.length is None:
                return standardised(x)
            window = x[-length:]
            centre, variance = window.mean(axis=(0, 1)), window.var(axis=(0, 1))
        else:
            centre, variance = normaliser.centre, normaliser.variance
        still = variance <= 1e-24 * (x**2).max(axis=(0, 1))
        scaled: Array = np.where(still, 0.0, (x - centre) / np.sqrt(np.where(still, 1.0, variance)))
        return scaled

    def _first_flagged(self, s: Array, length: int, ts: Array) -> list[Any]:
        """For each machine, the first round of the day whose window flags it; None where none does."""
        means = rolled(s, length)
        size = np.sqrt((means**2).sum(axis=2))
        flagged = bound(above_mean(size), self.k, length) < self.config.alpha
        starts = ts[len(ts) - len(means) :]
        return [instant(int(starts[int(np.argmax(one))])) if one.any() else None for one in flagged.T]

    def _sketched(self, window: Array) -> Scores | None:
        """The scores computed from a sketch of the counters."""
        if self.config.sketch is None:
            return None
        matrix = sketch(self.counters, self.config.sketch, self.config.seed)
        return Scores.of(directions(window @ matrix.T).mean(axis=0), len(window))

    def _metrics(
        self, day: date, chunks: list[Any], resyncs: Array | None, scores: Scores, sketched: Scores | None
    ) -> MetricRow:
        more: MetricFigures = {"changes": int((scores.p < self.config.alpha).sum())}
        sent = None
        if resyncs is not None:
            count = int((resyncs >= 0).sum())
            # Every machine sends the mean and the mean square of the counter, and gets the new reference.
            sent = count * self.k, count * self.k
            more["syncs"], more["bytes"] = count, 8 * 2 * 2 * count * self.k
        if sketched is not None:
            more["r2"] = r_squared(scores.size, sketched.size)
        return self.metrics(day, chunks, sent, **more)


_KEPT = ("centre", "variance", "means", "squares")
