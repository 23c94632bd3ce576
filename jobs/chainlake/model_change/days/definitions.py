"""The kinds of file in ``dags/config/models/``: linear models, and threshold monitors (``kind: threshold``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainlake.model_change.config.model import ModelConfig, checked_model
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.threshold import ThresholdConfig, checked_threshold
from chainlake.model_change.days.daily import GroupMonitor
from chainlake.model_change.days.threshold_daily import ThresholdRun
from chainlake.schemas.models import ALERTS, CHANGES
from chainlake.schemas.table import Table

Config = ModelConfig | ThresholdConfig
KINDS = ("model", "threshold")


def load_definition(path: str | Path) -> Config:
    """The model or threshold monitor in one YAML file; its name is the file's stem.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    return _checked(Path(path).stem, Settings.read(Path(path)))


def parse_definition(content: dict[str, Any] | str, name: str = "model") -> Config:
    """A model or threshold monitor from a mapping or a YAML text.

    Raises:
        DefinitionError: as `load_definition`.
    """
    return _checked(name, Settings.of(content))


def _checked(name: str, top: Settings) -> Config:
    kind = top.choice("kind", KINDS, "model")
    return checked_threshold(name, top) if kind == "threshold" else checked_model(name, top)


def start(config: Config, group: str, snapshot: str | None = None) -> GroupMonitor | ThresholdRun:
    """What runs a group of a definition day by day, from a snapshot or from its start."""
    if isinstance(config, ThresholdConfig):
        return ThresholdRun(config, group, snapshot)
    return GroupMonitor(config, group, snapshot)


def result_table(config: Config) -> Table:
    """The table that a definition's findings are published in."""
    return ALERTS if isinstance(config, ThresholdConfig) else CHANGES
