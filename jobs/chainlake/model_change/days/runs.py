"""What runs a group of each kind of model, day by day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Protocol

import pyarrow as pa

from chainlake.model_change.days.daily import GroupMonitor
from chainlake.model_change.days.definitions import Config, kind_name
from chainlake.model_change.days.threshold_daily import ThresholdRun
from chainlake.model_change.faults.days import FaultsRun
from chainlake.model_change.learning.days import LearningRun
from chainlake.model_change.rounds.rows import DayRows
from chainlake.model_change.zones.days import ZonesRun


class Run(Protocol):
    """A group of a definition on its way through its days."""

    @property
    def eps(self) -> float | None:
        """The bound in force; None if it is not known yet."""

    @property
    def near_ties(self) -> int:
        """Rounds that a difference in the last bit, as on another machine, could have decided otherwise."""

    @property
    def warnings(self) -> list[str]:
        """What the values showed, one sentence each."""

    def snapshot(self) -> str:
        """The state after the last day, as canonical JSON."""

    def day(self, day: date, reduced: pa.Table) -> DayRows:
        """One UTC day's rows of the kind's table and of ``models.metrics``; days come in order, without gaps."""


#: By kind, what makes the run of a checked file, a group and a snapshot (None: the start).
RUNS: dict[str, Callable[[Any, str, str | None], Run]] = {
    "model": GroupMonitor,
    "threshold": ThresholdRun,
    "safe_zones": ZonesRun,
    "shared_learning": LearningRun,
    "latent_faults": FaultsRun,
}


def start(config: Config, group: str, snapshot: str | None = None) -> Run:
    """What runs a group of a definition day by day, from a snapshot or from its start."""
    return RUNS[kind_name(config)](config, group, snapshot)
