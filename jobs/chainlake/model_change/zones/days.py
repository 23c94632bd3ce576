"""One group under safe zones, day by day: rows of ``models.zone_events`` and ``models.metrics``, and its state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial

import numpy as np
import pyarrow as pa

from chainlake.days import day_number, instant
from chainlake.model_change.errors import UnsafeZones
from chainlake.model_change.rounds.rounds import Chunk
from chainlake.model_change.rounds.rows import DayRows, Zone, ZoneRow
from chainlake.model_change.rounds.series_run import SeriesRun
from chainlake.model_change.statistics.statistics import Array
from chainlake.model_change.zones.config import ZonesConfig
from chainlake.model_change.zones.design import coverage, designed
from chainlake.model_change.zones.monitor import Collection, ZoneMonitor
from chainlake.model_change.zones.region import supports_fit
from chainlake.schemas.models import ZoneKind


class ZonesRun(SeriesRun[ZonesConfig]):
    """A group under safe zones on its way through its days; arguments as for `SeriesRun`.

    Zones are designed before the first round of a UTC day: the first day with enough rounds before it, then every
    ``design_every`` days, and the day after the mean has left the region. If the mean is outside at that time, they
    are designed when it is back.

    Raises:
        ValueError: the snapshot is of another version; `states.loads` gives None for such a one.
    """

    def __init__(self, config: ZonesConfig, group: str, snapshot: str | None = None):
        super().__init__(config, group, snapshot)
        self.monitor = ZoneMonitor.start(config.region.limits, self.k)
        self.history = np.zeros((0, self.k, len(config.feature_names)))
        #: Whether zones have to be designed as soon as possible.
        self.due = config.design_rounds > 0
        if self.values:
            self.monitor.levels, self.monitor.outside = self.values["levels"], self.values["outside"]
            self.history, self.due = self.values["history"], self.values["due"]

    def snapshot(self) -> str:
        """The state after the last day, as JSON."""
        monitor = self.monitor
        # While the mean is outside, all nodes are asked, and its return resets all levels: these do not matter.
        levels = np.tile(monitor.limits, (self.k, 1)) if monitor.outside else monitor.levels
        return self.kept(levels=levels, outside=monitor.outside, history=self.history, due=self.due)

    def day(self, day: date, reduced: pa.Table) -> DayRows:
        """Monitor one UTC day; arguments and result as `daily.GroupMonitor.day`, with rows of models.zone_events."""
        config = self.config
        chunks = self.chunks(day, reduced)
        if config.design_rounds and day_number(day) % config.design_every == 0:
            self.due = True
        rows: list[ZoneRow] = []
        up = down = 0
        if chunks and not self.monitor.outside and self._designed(chunks[0], 0, rows) is not None:
            down = self.k
        reported = crossed = 0
        for chunk in chunks:
            returned = partial(self._designed, chunk, rows=rows)
            collections, sent, asked = self.monitor.feed(config.region.facets(chunk.x), returned)
            up, down = up + int(sent.sum()), down + int(asked.sum())
            reported += sum(bool(collection.violators) for collection in collections)
            crossed += sum(collection.kind != "balanced" for collection in collections)
            rows += [self._row(chunk, collection) for collection in collections]
            if config.design_rounds:
                self.history = np.concatenate([self.history, chunk.x])[-config.design_rounds :]
        if crossed and config.design_rounds:
            self.due = True
        if not chunks:
            return DayRows(rows, None)
        size = 8 * (up * len(config.feature_names) + down * len(config.region.below))
        return DayRows(rows, self.metrics(day, chunks, (up, down), syncs=reported, changes=crossed, bytes=size))

    def _designed(self, chunk: Chunk, at: int, rows: list[ZoneRow]) -> Array | None:
        """Design zones before a round if it is time to, and add a row that says so."""
        config, monitor = self.config, self.monitor
        history = np.concatenate([self.history, chunk.x[:at]])[-config.design_rounds :]
        if not self.due or len(history) < config.design_rounds:
            return None
        facets = config.region.facets(history)
        levels = designed(facets, monitor.limits, config.design_method)
        if not supports_fit(config.region, levels):
            raise UnsafeZones.of(config.name, config.file)
        monitor.levels, self.due = levels, False
        shares = [coverage(facets[:, i], levels[i]) for i in range(self.k)]
        rows.append({**self._place(chunk, at, "design"), "zones": self._zones(range(self.k), levels, shares)})
        return levels

    def _row(self, chunk: Chunk, collection: Collection) -> ZoneRow:
        config = self.config
        zones = None if collection.kind == "outside" else self._zones(collection.collected, collection.levels)
        mean = chunk.x[collection.at].mean(axis=0)
        return {
            **self._place(chunk, collection.at, collection.kind),
            "violators": [self.names[j] for j in collection.violators] or None,
            "collected": len(collection.collected),
            "facets": [config.region.names[f] for f in collection.facets] or None,
            "excess": collection.excess if collection.violators else None,
            "mean": [{"feature": n, "value": float(v)} for n, v in zip(config.feature_names, mean, strict=True)],
            "zones": zones,
        }

    def _place(self, chunk: Chunk, at: int, kind: ZoneKind) -> ZoneRow:
        ts = instant(int(chunk.ts[at]))
        return {"model": self.config.name, "group_id": self.group, "ts": ts, "kind": kind,
                "round": int(chunk.number[at]), "event_date": ts.date()}  # fmt: skip

    def _zones(self, nodes: Sequence[int], levels: Array, shares: list[float] | None = None) -> list[Zone]:
        return [
            {"node": self.names[j], "coverage": None if shares is None else shares[j], "levels": levels[j].tolist()}
            for j in sorted(nodes)
        ]
