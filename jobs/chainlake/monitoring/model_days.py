"""A model, its rounds and its published rows, from the lake without a JVM: what ``tune`` and ``picture`` start from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.days import Days, day_number
from chainlake.definitions.errors import UnknownDefinition
from chainlake.definitions.source import load_sources
from chainlake.errors import InputError, UsageError
from chainlake.lake.delta import tables
from chainlake.lake.records.chained import begins
from chainlake.lake.records.event_days import EventDays, pin
from chainlake.lake.records.staleness import judge, status_rows
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.rounds.reduce import reduce_rows, reduced_schema
from chainlake.monitoring.states import KeptStates
from chainlake.paths import Home

#: Days of events that are in memory at a time.
_STRETCH = 31


@dataclass(frozen=True)
class Model:
    """A model of the installation; ``config`` is ``loaded.config``, known to be no threshold monitor."""

    loaded: LoadedModel
    config: ModelConfig


@dataclass(frozen=True)
class Published:
    """Rows of ``models.changes`` and ``models.metrics`` of a model and some days, all of them up to date."""

    changes: pa.Table
    metrics: pa.Table


class NotLinear(UsageError):
    """A threshold monitor is given to a verb for linear models."""

    @classmethod
    def of(cls, name: str) -> NotLinear:
        """For its name."""
        return cls(f"{name} is a threshold monitor", hint="This verb is for linear models.")


class NoEvents(InputError):
    """No events of a model's nodes were ingested on some days."""

    @classmethod
    def of(cls, source: str, model: str, days: Days) -> NoEvents:
        """For the source, the model and the days."""
        return cls(
            f"{source} has no events of {model}'s nodes on {days}",
            hint=f"Run 'python -m jobs ingest {source} {days.start} {days.end}' first.",
        )


def find_model(home: Home, name: str) -> Model:
    """The model of this name.

    Raises:
        UsageError: there is none, or it is a threshold monitor. DefinitionError: its file is wrong.
    """
    loaded, broken = load_models(home, load_sources(home), only=[name])
    if broken:
        raise broken[0].error
    if not loaded:
        raise UnknownDefinition.model(name, sorted(file.stem for file in (home.config / "models").glob("*.yaml")))
    config = loaded[0].config
    if not isinstance(config, ModelConfig):
        raise NotLinear.of(name)
    return Model(loaded[0], config)


def read_rounds(home: Home, model: Model, days: Days) -> pa.Table:
    """The rounds of some days, as `chainlake.model_change.rounds.reduce.reduce_rows` gives them; those before its start
    too.

    Raises:
        InputError: the source has no events on these days.
    """
    source = model.loaded.source
    config = replace(model.config, start=min(model.config.start, days.start))
    pinned = pin(home, source.name, days)
    parts = []
    for start in range(0, len(days) if pinned.version is not None else 0, _STRETCH):
        lo = days.start + timedelta(days=start)
        hi = min(lo + timedelta(days=_STRETCH), days.end)
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


def beginning(home: Home, model: Model, first: date) -> tuple[date, dict[str, str]]:
    """Where to go on from, so that ``first`` comes out as published: a day, and the state per group before it."""
    event_days = EventDays.load(home, model.loaded.source.name)
    kept = KeptStates(home, [model.loaded.config.name])
    (judged,) = judge(home, [model.loaded.definition])
    begun = begins(model.loaded.definition, event_days) or first
    for at in np.flatnonzero(judged.numbers < day_number(first))[::-1].tolist():
        day, digest = judged.day(at), judged.noted("state_out")[at]
        if day < begun or judged.state[at] != "done":
            continue
        state = kept.at_end_of(day, model.loaded, digest)
        if state is not None:
            return day + timedelta(days=1), state
    return begun, {}


def published(home: Home, model: Model, days: Days) -> Published | None:
    """What is published of the days; None if any of them is missing or stale."""
    config, definition = model.config, model.loaded.definition
    rows = [row for row in status_rows(home, [definition], days) if row.day in days]
    if not rows or any(row.state != "done" for row in rows) or not tables.exists(home, "models", "metrics"):
        return None

    def of(name: str, day: str) -> pa.Table:
        wanted = [("model", "=", config.name), (day, ">=", days.start), (day, "<", days.end)]
        return tables.arrow(home, "models", name, filters=wanted)

    return Published(of("changes", "event_date"), of("metrics", "day"))
