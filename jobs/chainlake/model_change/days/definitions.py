"""The kinds of file in ``dags/config/models/``: what reads each kind, and where its findings go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chainlake.model_change.config.model import ModelConfig, checked_model
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.config.threshold import ThresholdConfig, checked_threshold
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
from chainlake.model_change.faults.config import FaultsConfig, checked_faults
from chainlake.model_change.learning.config import LearningConfig, checked_learning
from chainlake.model_change.zones.config import ZonesConfig, checked_zones
from chainlake.model_change.zones.design import METHODS
from chainlake.schemas.models import ALERTS, CHANGES, FAULT_SCORES, LEARNERS, ZONE_EVENTS
from chainlake.schemas.table import Table

Config = SeriesConfig


@dataclass(frozen=True)
class Kind:
    """A kind of definition.

    Args:
        config: the type of its checked files.
        read: makes such a value of a file's name and content.
        table: where its findings are published.
        knobs: settings that ``tune`` can try, by name.
        figures: makes the figures that ``tune`` compares from rows of the table.
    """

    config: type[SeriesConfig]
    read: Callable[[str, Settings], SeriesConfig]
    table: Table
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    figures: Callable[[Sequence[Mapping[str, Any]]], dict[str, float]] = by_kind


KINDS: dict[str, Kind] = {
    "model": Kind(ModelConfig, checked_model, CHANGES),
    "threshold": Kind(
        ThresholdConfig, checked_threshold, ALERTS, {"threshold": Knob("threshold", any_number)}
    ),
    "safe_zones": Kind(
        ZonesConfig, checked_zones, ZONE_EVENTS,
        {"rounds": Knob("design_rounds", at_least(10)), "every": Knob("design_every", at_least(1)),
         "method": Knob("design_method", one_of(METHODS))},
    ),
    "shared_learning": Kind(
        LearningConfig, checked_learning, LEARNERS,
        {"radius": Knob("radius", above_zero), "every": Knob("every", at_least(1)),
         "learning_rate": Knob("learning_rate", above_zero)},
        losses,
    ),
    "latent_faults": Kind(
        FaultsConfig, checked_faults, FAULT_SCORES,
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


def result_table(config: Config) -> Table:
    """The table in which a definition's findings are published."""
    return kind_of(config).table
