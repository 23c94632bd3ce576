"""The monitor as a library: a model and events in; changes, metrics and state out; no Spark and no lake."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import day_of_us
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.days.definitions import Config, load_definition, parse_definition, result_table
from chainlake.model_change.days.replay import GroupRun, run_days
from chainlake.model_change.errors import EndsBefore, OtherState
from chainlake.model_change.rounds.reduce import last_ts, reduce_rows
from chainlake.model_change.rounds.rows import FindingRow, MetricRow
from chainlake.schemas.models import ALERTS, CHANGES, METRICS


@dataclass(frozen=True)
class MonitorResult:
    """What a model found.

    Args:
        found: rows of the kind's table, such as ``models.zone_events``.
        changes: rows as in ``models.changes``; none for kinds other than linear models.
        metrics: rows as in ``models.metrics``.
        alerts: rows as in ``alerts.threshold``; none for kinds other than threshold monitors.
        state: the state of each group, as JSON.
        next_day: the day from which a call with this state continues.
        definition_hash: hash of the model that the state belongs to.
        warnings: what is allowed in a model but rarely intended, and what its first windows showed.
        near_ties: rounds in which a node's value lay within 1e-9 of eps, so that a difference in the last bit, as on
            another machine, could have decided otherwise.
    """

    found: pa.Table
    changes: pa.Table
    metrics: pa.Table
    alerts: pa.Table
    state: dict[str, str]
    next_day: date
    definition_hash: str
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
    """Run a model, or a monitor of another kind, over events.

    Example:
        >>> import chainlake as cl
        >>> model = {
        ...     "source": "road", "start": "2025-10-01", "nodes": ["s1"], "response": "speed", "features": ["flow"],
        ...     "round": {"length": "1 min"}, "window": {"sliding": 8}, "eps": 0.5, "intercept": False,
        ... }
        >>> def speed(minute, flow):
        ...     return (2.0 if minute < 20 else 3.0) * flow
        >>> midnight = 1_759_276_800_000_000
        >>> rows = [
        ...     {"key": "s1", "ts": midnight + minute * 60_000_000, "flow": 1.0 + minute % 5,
        ...      "speed": speed(minute, 1 + minute % 5)}
        ...     for minute in range(40)
        ... ]
        >>> found = cl.monitor(model | {"detector": "exact"}, rows).changes
        >>> [(row["kind"], f"{row['ts']:%H:%M}") for row in found.to_pylist()]
        [('init', '00:07'), ('change', '00:24')]

    Args:
        model: a checked model, the content of its YAML, the YAML text, or the path of its file.
        rows: events in any order, with ``ts`` (UTC timestamps or microseconds), the key column and the model's columns.
        key: name of the key column.
        until: first day not to run; by default the day after the last event.
        after: result of an earlier call with the same model, to continue from; rows before its ``next_day`` are
            ignored.

    Returns:
        the result, which does not depend on how the days were divided among calls.

    Raises:
        DefinitionError: the model is wrong. InputError: rows lack its columns or a time, or ``after`` is of another
            model. UsageError: ``until`` is before the day to continue from.
    """
    config = _config(model)
    if after is not None and after.definition_hash != config.definition_hash:
        raise OtherState.of(config.name)
    table = result_table(config)
    reduced = reduce_rows(config, rows, key)
    first = after.next_day if after else config.start
    # If no event has a key of the model, the days are run nevertheless, with a warning at their end.
    seen = pc.max(reduced["round_us"]).as_py() if len(reduced) else last_ts(rows)
    end = until or (first if seen is None else max(first, day_of_us(seen) + timedelta(days=1)))
    if end < first:
        raise EndsBefore.of(end, first)
    found: list[FindingRow] = []
    metrics: list[MetricRow] = []
    state = {}
    warnings, near_ties = list(config.warnings), 0
    for group in config.groups:
        snapshot = after.state[group] if after else None
        gave = run_days(GroupRun(config, group, first, end, snapshot), reduced, every_state=False)
        found += gave.found
        metrics += gave.metrics
        warnings += gave.warnings
        near_ties += gave.near_ties
        state[group] = gave.states[end - timedelta(days=1)]
    rows_of = pa.Table.from_pylist(found, schema=table.arrow())
    return MonitorResult(
        rows_of,
        rows_of if table is CHANGES else CHANGES.arrow().empty_table(),
        pa.Table.from_pylist(metrics, schema=METRICS.arrow()),
        rows_of if table is ALERTS else ALERTS.arrow().empty_table(),
        state,
        end,
        config.definition_hash,
        tuple(warnings),
        near_ties,
    )


def _config(model: Config | dict[str, Any] | str | Path) -> Config:
    if isinstance(model, SeriesConfig):
        return model
    if isinstance(model, Path) or (isinstance(model, str) and "\n" not in model and model.endswith((".yaml", ".yml"))):
        return load_definition(model)
    return parse_definition(model)
