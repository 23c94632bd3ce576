"""What runs of every kind but linear models share: their rounds, their state, their row of ``models.metrics``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Generic, TypeVar, Unpack

import pyarrow as pa

from chainlake.days import US_PER_DAY
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.rounds.rounds import Chunk, Rounds
from chainlake.model_change.rounds.rows import MetricFigures, MetricRow
from chainlake.model_change.statistics import state as states

_Config = TypeVar("_Config", bound=SeriesConfig)


class SeriesRun(Generic[_Config]):
    """A group on its way through its days.

    Args:
        config: the monitor.
        group: its group.
        snapshot: the state to continue from; None: the monitor's start.

    Raises:
        ValueError: the snapshot is of another version; `states.loads` gives None for such a one.
    """

    #: A difference in the last bit, as on another machine, decides nothing here for long.
    near_ties = 0

    def __init__(self, config: _Config, group: str, snapshot: str | None = None):
        self.config, self.group = config, group
        self.names = [node.name for node in config.groups[group]]
        self.values = states.restored(snapshot)
        self.rounds = Rounds(config, group, self.values.get("rounds"))

    @property
    def k(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @property
    def eps(self) -> float | None:
        """The bound in force."""
        return self.config.bound

    @property
    def warnings(self) -> list[str]:
        """What the values showed, one sentence each."""
        return self.rounds.remarks

    def kept(self, **values: Any) -> str:
        """The state as JSON: what rounds pass on, and what the kind adds."""
        return states.dumps({"rounds": self.rounds.carried, **values})

    def chunks(self, day: date, reduced: pa.Table) -> list[Chunk]:
        """The complete rounds of a UTC day; days must come in order, without gaps."""
        self.rounds.day = day
        return self.rounds.chunks(reduced)

    def metrics(
        self, day: date, chunks: Sequence[Chunk], sent: tuple[int, int] | None, **more: Unpack[MetricFigures]
    ) -> MetricRow:
        """The row of ``models.metrics`` of a day.

        Args:
            day: the day.
            chunks: its rounds, at least one chunk.
            sent: messages up and down; None for a kind that saves no messages.
            more: other columns.
        """
        rounds = sum(len(chunk.ts) for chunk in chunks)
        row: MetricRow = {
            "model": self.config.name,
            "group_id": self.group,
            "day": day,
            "rounds": rounds,
            "rounds_skipped": US_PER_DAY // self.config.round_us - rounds,
            "carried_share": float(sum(int(chunk.carried.sum()) for chunk in chunks)) / (self.k * rounds),
        }
        if sent is not None:
            up, down = sent
            row["reports_up"], row["polls_down"] = up, down
            row["normalized_up"] = up / (self.k * rounds)
            row["normalized_all"] = (up + down) / (self.k * rounds)
        return {**row, **more}
