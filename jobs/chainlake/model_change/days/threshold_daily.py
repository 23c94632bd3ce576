"""One threshold monitor, day by day: rows of ``alerts.threshold`` and ``models.metrics``, and the state it keeps."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.days import US_PER_DAY, instant
from chainlake.model_change.config.threshold import ThresholdConfig
from chainlake.model_change.detectors.threshold import Collection, ThresholdMonitor
from chainlake.model_change.rounds.rounds import Chunk, Rounds
from chainlake.model_change.statistics import state as states
from chainlake.model_change.statistics.statistics import Array


class ThresholdRun:
    """Args: the monitor, its group (the empty one), and the snapshot to go on from (None: the monitor's start).

    Raises:
        ValueError: if the snapshot has another form; `states.loads` tells beforehand.
    """

    #: A mean is compared, no model fitted: there is no error to bound, and nothing that a last bit decides for long.
    eps: float | None = None
    near_ties = 0

    def __init__(self, config: ThresholdConfig, group: str, snapshot: str | None = None):
        self.config, self.k = config, len(config.groups[group])
        values = states.restored(snapshot)
        self.rounds = Rounds(config, group, values.get("rounds"))
        level = 0.0 if config.weighted else config.threshold
        self.monitor = ThresholdMonitor.start(level, self.k)
        if values:
            self.monitor.thresholds, self.monitor.below = values["thresholds"], values["below"]

    @property
    def warnings(self) -> list[str]:
        """What the values showed, one sentence each."""
        return self.rounds.remarks

    def snapshot(self) -> str:
        """The state after the last day, as JSON."""
        monitor = self.monitor
        # Below, everybody is asked, and the mean's return sets all thresholds anew.
        kept = np.full(self.k, monitor.level) if monitor.below else monitor.thresholds
        return states.dumps({"rounds": self.rounds.carried, "thresholds": kept, "below": monitor.below})

    def day(self, day: date, reduced: pa.Table) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Monitor one UTC day; arguments and result as `daily.GroupMonitor.day`, with rows of alerts.threshold."""
        self.rounds.day = day
        alerts: list[dict[str, Any]] = []
        found: list[tuple[Chunk, list[Collection], Array, Array]] = []
        for chunk in self.rounds.chunks(reduced):
            weight = chunk.x[:, :, 0]
            values = weight * (chunk.y - self.config.threshold) if self.config.weighted else chunk.y
            collections, up, down = self.monitor.feed(values)
            found.append((chunk, collections, up, down))
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
        return alerts, self._metrics(day, found) if found else None

    def _metrics(self, day: date, found: list[tuple[Chunk, list[Collection], Array, Array]]) -> dict[str, Any]:
        rounds = sum(len(chunk.ts) for chunk, *_ in found)
        up, down = sum(int(sent.sum()) for _, _, sent, _ in found), sum(int(sent.sum()) for *_, sent in found)
        return {
            "model": self.config.name,
            "group_id": "",
            "day": day,
            "rounds": rounds,
            "rounds_skipped": US_PER_DAY // self.config.round_us - rounds,
            "reports_up": up,
            "polls_down": down,
            "normalized_up": up / (self.k * rounds),
            "normalized_all": (up + down) / (self.k * rounds),
            "bytes": 8 * (up + down),
            "carried_share": float(sum(int(chunk.carried.sum()) for chunk, *_ in found)) / (self.k * rounds),
        }
