"""One threshold monitor, day by day: rows of ``alerts.threshold`` and ``models.metrics``, and its state."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa

from chainlake.days import instant
from chainlake.model_change.config.threshold import ThresholdConfig
from chainlake.model_change.detectors.threshold import ThresholdMonitor
from chainlake.model_change.rounds.rows import AlertRow, DayRows
from chainlake.model_change.rounds.series_run import SeriesRun


class ThresholdRun(SeriesRun[ThresholdConfig]):
    """A threshold monitor on its way through its days.

    Args:
        config: the monitor.
        group: its group, the empty one.
        snapshot: the state to continue from; None: the monitor's start.

    Raises:
        ValueError: the snapshot is of another version; `states.loads` gives None for such a one.
    """

    def __init__(self, config: ThresholdConfig, group: str, snapshot: str | None = None):
        super().__init__(config, group, snapshot)
        self.monitor = ThresholdMonitor.start(0.0 if config.weighted else config.threshold, self.k)
        if self.values:
            self.monitor.thresholds, self.monitor.below = self.values["thresholds"], self.values["below"]

    def snapshot(self) -> str:
        """The state after the last day, as JSON."""
        monitor = self.monitor
        # While the mean is below, all sensors are asked, and its return resets all thresholds: these do not matter.
        held = np.full(self.k, monitor.level) if monitor.below else monitor.thresholds
        return self.kept(thresholds=held, below=monitor.below)

    def day(self, day: date, reduced: pa.Table) -> DayRows:
        """Monitor one UTC day; arguments and result as `daily.GroupMonitor.day`, with rows of alerts.threshold."""
        alerts: list[AlertRow] = []
        up = down = 0
        chunks = self.chunks(day, reduced)
        for chunk in chunks:
            weight = chunk.x[:, :, 0]
            values = weight * (chunk.y - self.config.threshold) if self.config.weighted else chunk.y
            collections, sent, asked = self.monitor.feed(values)
            up, down = up + int(sent.sum()), down + int(asked.sum())
            for c in collections:
                if c.signal is not None:
                    speed, count = chunk.y[c.at], weight[c.at]
                    alerts.append(
                        {
                            "monitor": self.config.name,
                            "ts": instant(int(chunk.ts[c.at])),
                            "kind": c.signal,
                            "mean": float(np.sum(count * speed) / np.sum(count)) if np.sum(count) else None,
                            "n_collected": len(c.collected),
                        }
                    )
        return DayRows(alerts, self.metrics(day, chunks, (up, down), bytes=8 * (up + down)) if chunks else None)
