"""The monitor as a library: a model and events in; changes, metrics and state out, without Spark or a lake."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.days import day_of_us, day_start_us
from jobs.errors import UsageError
from jobs.model_change.definitions import Config, load_definition, parse_definition, result_table, start
from jobs.model_change.reduce import reduce_rows
from jobs.model_change.series import SeriesConfig
from schemas.models import ALERTS, CHANGES, METRICS


@dataclass(frozen=True)
class MonitorResult:
    """What a model found.

    Args:
        changes: as in ``models.changes``; no rows for a threshold monitor.
        metrics: as in ``models.metrics``.
        alerts: as in ``alerts.threshold``; no rows for a model.
        state: per group, as JSON.
        next_day: the day that a call with this state goes on from.
        warnings: what is allowed in a model but seldom meant, and what its first windows showed.
        near_ties: rounds in which a node's value lay within 1e-9 of eps, so that another machine's last bit could
            have decided otherwise (spec 6.7).
    """

    changes: pa.Table
    metrics: pa.Table
    alerts: pa.Table
    state: dict[str, str]
    next_day: date
    warnings: tuple[str, ...]
    near_ties: int


def monitor(
    model: Config | dict[str, Any] | str | Path,
    rows: pa.Table | list[dict[str, Any]],
    *,
    key: str = "key",
    until: date | None = None,
    after: MonitorResult | None = None,
) -> MonitorResult:
    """Run a model, or a threshold monitor, over events.

    Args:
        model: a checked model, the content of its YAML, the YAML text, or the path of its file.
        rows: events: ``ts`` (UTC timestamps or microseconds), the key column, the model's columns; any order.
        key: name of the key column.
        until: first day not to run; default: the day after the last event.
        after: result of an earlier call to go on from; rows before its ``next_day`` are ignored.

    Returns:
        the result; it does not depend on how the days were divided over calls.

    Raises:
        DefinitionError: for a wrong model. InputError: for rows without its columns.
    """
    config = _config(model)
    table = result_table(config)
    reduced = reduce_rows(config, rows, key)
    first = after.next_day if after else config.start
    last = day_of_us(pc.max(reduced["round_us"]).as_py()) + timedelta(days=1) if len(reduced) else first
    end = until or max(last, first)
    if end < first:
        raise UsageError(f"until {end} lies before {first}, where the monitor goes on")
    found: list[dict[str, Any]] = []
    metrics: list[dict[str, Any]] = []
    state = {}
    warnings, near_ties = list(config.warnings), 0
    for group in config.groups:
        run = start(config, group, after.state[group] if after else None)
        for day, part in by_day(reduced, first, end):
            rows_of_day, row = run.day(day, part)
            found += rows_of_day
            metrics += [row] if row else []
        state[group] = run.snapshot()
        warnings += run.warnings
        near_ties += run.near_ties
    return MonitorResult(
        pa.Table.from_pylist(found if table is CHANGES else [], schema=CHANGES.arrow()),
        pa.Table.from_pylist(metrics, schema=METRICS.arrow()),
        pa.Table.from_pylist(found if table is ALERTS else [], schema=ALERTS.arrow()),
        state,
        end,
        tuple(warnings),
        near_ties,
    )


def by_day(reduced: pa.Table, first: date, end: date) -> list[tuple[date, pa.Table]]:
    """Every day of ``[first, end)`` with its rows, also days without rows."""
    table = reduced.sort_by("round_us")
    us = table["round_us"].to_numpy()
    days = [first + timedelta(days=i) for i in range((end - first).days)]
    cuts = us.searchsorted([day_start_us(day) for day in (*days, end)]) if days else []
    return [(day, table.slice(cuts[i], cuts[i + 1] - cuts[i])) for i, day in enumerate(days)]


def _config(model: Config | dict[str, Any] | str | Path) -> Config:
    if isinstance(model, SeriesConfig):
        return model
    if isinstance(model, Path) or (isinstance(model, str) and "\n" not in model and model.endswith((".yaml", ".yml"))):
        return load_definition(model)
    return parse_definition(model)
