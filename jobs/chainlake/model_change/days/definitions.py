"""The kinds of file in ``dags/config/models/``: what reads each kind, what runs it, and where its findings go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from chainlake.model_change.config.model import ModelConfig, checked_model
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.config.threshold import ThresholdConfig, checked_threshold
from chainlake.model_change.days.daily import GroupMonitor
from chainlake.model_change.days.knobs import (
    Knob,
    above_zero,
    any_number,
    at_least,
    by_kind,
    flagged,
    losses,
    one_of,
)
from chainlake.model_change.days.threshold_daily import ThresholdRun
from chainlake.model_change.faults.config import FaultsConfig, checked_faults
from chainlake.model_change.faults.days import FaultsRun
from chainlake.model_change.learning.config import LearningConfig, checked_learning
from chainlake.model_change.learning.days import LearningRun
from chainlake.model_change.rounds.rows import DayRows
from chainlake.model_change.zones.config import ZonesConfig, checked_zones
from chainlake.model_change.zones.days import ZonesRun
from chainlake.model_change.zones.design import METHODS
from chainlake.schemas.models import ALERTS, CHANGES, FAULT_SCORES, LEARNERS, ZONE_EVENTS
from chainlake.schemas.table import Table

Config = SeriesConfig


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


@dataclass(frozen=True)
class Kind:
    """A kind of definition.

    Args:
        config: the type of its checked files.
        read: makes such a value of a file's name and content.
        start: makes the run of such a value, a group and a snapshot (None: the start).
        table: where its findings are published.
        knobs: settings that ``tune`` can try, by name.
        figures: makes the figures that ``tune`` compares from rows of the table.
    """

    config: type[SeriesConfig]
    read: Callable[[str, Settings], SeriesConfig]
    start: Callable[[Any, str, str | None], Run]
    table: Table
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    figures: Callable[[Sequence[Mapping[str, Any]]], dict[str, float]] = by_kind


KINDS: dict[str, Kind] = {
    "model": Kind(ModelConfig, checked_model, GroupMonitor, CHANGES),
    "threshold": Kind(
        ThresholdConfig, checked_threshold, ThresholdRun, ALERTS, {"threshold": Knob("threshold", any_number)}
    ),
    "safe_zones": Kind(
        ZonesConfig, checked_zones, ZonesRun, ZONE_EVENTS,
        {"rounds": Knob("design_rounds", at_least(10)), "every": Knob("design_every", at_least(1)),
         "method": Knob("design_method", one_of(METHODS))},
    ),
    "shared_learning": Kind(
        LearningConfig, checked_learning, LearningRun, LEARNERS,
        {"radius": Knob("radius", above_zero), "every": Knob("every", at_least(1)),
         "learning_rate": Knob("learning_rate", above_zero)},
        losses,
    ),
    "latent_faults": Kind(
        FaultsConfig, checked_faults, FaultsRun, FAULT_SCORES,
        {"alpha": Knob("alpha", above_zero), "window": Knob("length", at_least(2))}, flagged,
    ),
}  # fmt: skip
_OF = {kind.config: name for name, kind in KINDS.items()}


def load_definition(path: str | Path) -> Config:
    """The definition in one YAML file; its name is the file's stem.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    return _checked(Path(path).stem, Settings.read(Path(path)))


def parse_definition(content: dict[str, Any] | str, name: str = "model") -> Config:
    """A definition from a mapping or a YAML text.

    Raises:
        DefinitionError: as `load_definition`.
    """
    return _checked(name, Settings.of(content))


def _checked(name: str, top: Settings) -> Config:
    return KINDS[top.choice("kind", tuple(KINDS), "model")].read(name, top)


def kind_name(config: Config) -> str:
    """What the definition's file says under ``kind``."""
    return _OF[type(config)]


def kind_of(config: Config) -> Kind:
    """The kind of a definition."""
    return KINDS[kind_name(config)]


def start(config: Config, group: str, snapshot: str | None = None) -> Run:
    """What runs a group of a definition day by day, from a snapshot or from its start."""
    return kind_of(config).start(config, group, snapshot)


def result_table(config: Config) -> Table:
    """The table in which a definition's findings are published."""
    return kind_of(config).table
