"""A model, its rounds and its published rows, read from the lake without a JVM for ``tune`` and ``picture``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.days import Days, day_number
from chainlake.definitions.errors import UnknownDefinition
from chainlake.definitions.source import load_sources
from chainlake.errors import InputError
from chainlake.lake.delta import tables
from chainlake.lake.records.chained import begins
from chainlake.lake.records.event_days import EventDays, pin
from chainlake.lake.records.staleness import judge, status_rows
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.days.definitions import result_table
from chainlake.model_change.rounds.reduce import reduce_rows, reduced_schema
from chainlake.monitoring.states import KeptStates
from chainlake.paths import Home
from chainlake.schemas.models import METRICS
from chainlake.schemas.table import Table

#: How many days of events are in memory at a time.
_BATCH = 31


_Config = TypeVar("_Config", bound=SeriesConfig)


@dataclass(frozen=True)
class Model(Generic[_Config]):
    """A model of the installation; ``config`` is ``loaded.config`` with its exact type."""

    loaded: LoadedModel
    config: _Config


@dataclass(frozen=True)
class Published:
    """Published rows of some days, all up to date: of the table of the model's kind, and of ``models.metrics``."""

    found: pa.Table
    metrics: pa.Table


class NoEvents(InputError):
    """No events of a model's nodes were ingested for the days."""

    @classmethod
    def of(cls, source: str, model: str, days: Days) -> NoEvents:
        """For the source, the model and the days."""
        return cls(
            f"{source} has no events of {model}'s nodes on {days}",
            hint=f"Run 'chainlake ingest {source} {days.start} {days.end}' first.",
        )


def find_model(home: Home, name: str) -> Model[SeriesConfig]:
    """The model of this name, of whatever kind.

    Raises:
        UsageError: there is none. DefinitionError: its file is wrong.
    """
    loaded, broken = load_models(home, load_sources(home), only=[name])
    if broken:
        raise broken[0].error
    if not loaded:
        raise UnknownDefinition.model(name, sorted(file.stem for file in (home.config / "models").glob("*.yaml")))
    return Model(loaded[0], loaded[0].config)


def linear(model: Model[SeriesConfig]) -> Model[ModelConfig] | None:
    """The same model if it is a linear one."""
    return Model(model.loaded, model.config) if isinstance(model.config, ModelConfig) else None


def read_rounds(home: Home, model: Model[Any], days: Days) -> pa.Table:
    """The rounds of some days, as `chainlake.model_change.rounds.reduce.reduce_rows` gives them, including days before
    the model's start.

    Raises:
        InputError: the source has no events on these days.
    """
    source = model.loaded.source
    config = replace(model.config, start=min(model.config.start, days.start))
    pinned = pin(home, source.name, days)
    parts = []
    for start in range(0, len(days) if pinned.version is not None else 0, _BATCH):
        lo = days.start + timedelta(days=start)
        hi = min(lo + timedelta(days=_BATCH), days.end)
        events = tables.arrow(
            home,
            "events",
            source.name,
            columns=list(dict.fromkeys(("event_id", source.key, "ts", *config.reduction.stored(config.columns)))),
            filters=[("event_date", ">=", lo), ("event_date", "<", hi), (source.key, "in", list(config.all_keys))],
            version=pinned.version,
        )
        parts.append(reduce_rows(config, events, source.key))
    rounds = pa.concat_tables(parts) if parts else reduced_schema(config.columns).empty_table()
    if not len(rounds):
        raise NoEvents.of(source.name, config.name, days)
    return rounds


def beginning(home: Home, model: Model[Any], first: date) -> tuple[date, dict[str, str]]:
    """Where to start so that ``first`` comes out as published: a day, and the state of each group before it."""
    event_days = EventDays.load(home, model.loaded.source.name)
    kept = KeptStates(home, [model.loaded.config.name])
    (judged,) = judge(home, [model.loaded.definition])
    begun = begins(model.loaded.definition, event_days) or first
    for at in np.flatnonzero(judged.numbers < day_number(first))[::-1].tolist():
        day, digest = judged.day(at), judged.recorded("state_out")[at]
        if day < begun or judged.state[at] != "done":
            continue
        state = kept.at_end_of(day, model.loaded, digest)
        if state is not None:
            return day + timedelta(days=1), state
    return begun, {}


def published(home: Home, model: Model[Any], days: Days) -> Published | None:
    """What is published for the days; None if any of them is missing or stale."""
    config, definition = model.config, model.loaded.definition
    rows = [row for row in status_rows(home, [definition], days) if row.day in days]
    if not rows or any(row.state != "done" for row in rows) or not tables.exists(home, "models", "metrics"):
        return None

    def of(table: Table) -> pa.Table:
        if not tables.exists(home, table.schema, table.name):
            return table.arrow().empty_table()
        rows = tables.arrow(home, table.schema, table.name, filters=[(table.key[0], "=", config.name)])
        day = pc.cast(rows[table.day_column], pa.date32(), safe=False)
        return rows.filter(pc.and_(pc.greater_equal(day, days.start), pc.less(day, days.end)))

    return Published(of(result_table(config)), of(METRICS))
