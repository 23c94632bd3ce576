"""Which definitions have alerts, and which rows of their tables are reported; ``messages`` makes the messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from chainlake.catalog.models import LoadedModel
from chainlake.catalog.patterns import CompiledPattern
from chainlake.definitions.alerting import Alerts
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.days.definitions import result_table
from chainlake.schemas.models import ALERTS, CHANGES, FAULT_SCORES, ZONE_EVENTS, AlertKind, ChangeKind, ZoneKind

Row = Mapping[str, Any]
#: For each table of findings, the kinds of rows that are reported; those that mean nothing to a person are not.
_KINDS: dict[str, tuple[ChangeKind | AlertKind | ZoneKind, ...]] = {
    CHANGES.path_name: ("change", "unidentifiable", "recovered"),
    ALERTS.path_name: ("below", "recovered"),
    ZONE_EVENTS.path_name: ("outside", "inside"),
}


@dataclass(frozen=True)
class Outbox:
    """A definition that has alerts.

    Args:
        kind, name: ``pattern`` or ``model``, and its name.
        description, source: what messages say about it.
        alerts: where alerts go, and when.
        table: ``schema.name`` of the table whose changes are reported.
        key: columns that identify a row of it.
        is_reported: whether a row of the table is to be reported.
    """

    kind: str
    name: str
    description: str
    source: str
    alerts: Alerts
    table: str
    key: tuple[str, ...]
    is_reported: Callable[[Row], bool]

    @property
    def full_name(self) -> str:
        """``pattern/NAME`` or ``model/NAME``."""
        return f"{self.kind}/{self.name}"


def of_pattern(item: CompiledPattern) -> Outbox | None:
    """The outbox of a pattern, if it has alerts."""
    pattern, alerts = item.pattern, item.pattern.front.alerts
    if alerts is None:
        return None
    source = item.definition.source
    table = f"matches.{pattern.name}"
    return Outbox("pattern", pattern.name, pattern.description, source, alerts, table, ("match_id",), lambda _: True)


def of_model(item: LoadedModel) -> Outbox | None:
    """The outbox of a model, if it has alerts."""
    config = item.config
    if config.alerts is None:
        return None
    table = result_table(config)
    is_reported = partial(_is_reported, config, table.path_name, table.key[0])
    said = (config.name, config.description, item.source.name)
    return Outbox("model", *said, config.alerts, table.path_name, tuple(table.key), is_reported)


def _is_reported(config: SeriesConfig, table: str, owner: str, row: Row) -> bool:
    """Whether a row belongs to this model and shows a change that a person wants to know about."""
    if row[owner] != config.name:
        return False
    if table == FAULT_SCORES.path_name:
        return bool(row["flagged"])
    if row["kind"] == "sync" and isinstance(config, ModelConfig) and config.detector == "local":
        # The local detector's only sign of a change is a sync before which the error really exceeded eps.
        return bool(row["exceeded"])
    return row["kind"] in _KINDS[table]
