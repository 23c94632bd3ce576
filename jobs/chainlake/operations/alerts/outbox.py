"""What there is to tell of a definition: the messages that the change feed of its table makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from chainlake.catalog.models import LoadedModel
from chainlake.catalog.patterns import CompiledPattern
from chainlake.definitions.alerting import Alerts
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.days.definitions import result_table
from chainlake.schemas.models import ALERTS, CHANGES, FAULT_SCORES, ZONE_EVENTS

Row = Mapping[str, Any]
#: Columns of the feed that are not the table's.
_OF_THE_FEED = ("change", "version", "committed_at")
#: Of each table of findings the kinds of rows that are told; what only says that all went on is not.
_KINDS = {
    CHANGES.path_name: ("change", "unidentifiable", "recovered"),
    ALERTS.path_name: ("below", "recovered"),
    ZONE_EVENTS.path_name: ("outside", "inside"),
}


@dataclass(frozen=True)
class Outbox:
    """A definition that has alerts.

    Args:
        kind, name: ``pattern`` or ``model``, and its name.
        description, source: what its messages say of it.
        alerts: where and when.
        table: ``schema.name`` of the table whose changes are told.
        key: columns that tell its rows apart.
        told: whether a row of the table is one that is told.
    """

    kind: str
    name: str
    description: str
    source: str
    alerts: Alerts
    table: str
    key: tuple[str, ...]
    told: Callable[[Row], bool]

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
    told = partial(_told, config, table.path_name, table.key[0])
    said = (config.name, config.description, item.source.name)
    return Outbox("model", *said, config.alerts, table.path_name, tuple(table.key), told)


def _told(config: SeriesConfig, table: str, owner: str, row: Row) -> bool:
    """Whether a row is of this model, and a change that a person wants to know of."""
    if row[owner] != config.name:
        return False
    if table == FAULT_SCORES.path_name:
        return bool(row["flagged"])
    if row["kind"] == "sync" and isinstance(config, ModelConfig) and config.detector == "local":
        # It has no other word for a change: a sync in which eps was really passed.
        return bool(row["exceeded"])
    return row["kind"] in _KINDS[table]


def messages(outbox: Outbox, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """A message for each change of a row that is told, oldest version first, in an order that never changes.

    Args:
        outbox: whose.
        rows: of the feed, with what changed rows were before.
    """
    before = {(row["version"], _id(outbox, row)): row for row in rows if row["change"] == "before"}
    changed = [row for row in rows if row["change"] != "before"]
    for row in sorted(changed, key=lambda row: (row["version"], row["change"], _id(outbox, row))):
        kind = _kind(outbox, row, before.get((row["version"], _id(outbox, row))))
        if kind is None or (kind == "withdrawn" and not outbox.alerts.withdrawn):
            continue
        yield {
            # A row can be withdrawn and found again: these are three messages, so the version is part of the id.
            "id": f"{_id(outbox, row)}:{kind}:{row['version']}",
            "kind": kind,
            outbox.kind: outbox.name,
            "description": outbox.description,
            "source": outbox.source,
            "published": _plain(row["committed_at"]),
            "match" if outbox.kind == "pattern" else "change": {
                name: _plain(value) for name, value in row.items() if name not in _OF_THE_FEED
            },
        }


def _kind(outbox: Outbox, row: Row, was: Row | None) -> str | None:
    """What became of a row, as far as it is told: one that no longer is a change is withdrawn, though its row stays."""
    now = outbox.told(row)
    if row["change"] != "changed" or was is None:
        return str(row["change"]) if now else None
    if outbox.told(was):
        return "changed" if now else "withdrawn"
    return "added" if now else None


def _id(outbox: Outbox, row: Row) -> str:
    return ":".join(str(_plain(row[column])) for column in outbox.key)


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such numbers.
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
