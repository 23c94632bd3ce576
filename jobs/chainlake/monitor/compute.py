"""The computation of the monitor step: one read of the events for many models, their rounds, every group's kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from chainlake.lake.commits.rows import SMALL_ROWS
from chainlake.lake.delta import tables
from chainlake.lake.records.event_days import Pinned
from chainlake.lake.spark.session import expect_rows
from chainlake.model_change.days.definitions import result_table
from chainlake.model_change.days.replay import GroupDays, GroupRun
from chainlake.model_change.rounds.reduce import reduce_rows, reduced_schema
from chainlake.monitor.reduce_spark import run_groups
from chainlake.monitor.replay import Replay
from chainlake.paths import Home
from chainlake.schemas.models import METRICS, STATE


@dataclass
class Outcome:
    """What a replay gave.

    Args:
        item: the replay.
        found: rows of the definition's table.
        metrics: rows of ``models.metrics``.
        states: rows of ``models.state``.
        eps: the threshold in force per group where known.
        remarks: what the model should make its owner think about, one sentence each.
    """

    item: Replay
    found: pa.Table
    metrics: pa.Table
    states: pa.Table
    eps: dict[str, float]
    remarks: list[str]


def compute(
    spark: SparkSession, home: Home, pinned: Pinned, items: Sequence[Replay]
) -> tuple[list[Outcome | Exception], int]:
    """Run every group of every model over its days.

    Few events are read and reduced without a Spark job, which would cost seconds. Many are reduced by Spark and their
    groups run by its workers.

    Args:
        spark: the session.
        home: the installation.
        pinned: the source's events.
        items: replays of models of one source, not none.

    Returns:
        for each model what it gave, or what stopped it; and the events that its source has on the days.
    """
    runs, owners = [], []
    for at, item in enumerate(items):
        config = item.model.config
        first = max(item.days.start, config.start)
        for group in config.groups:
            end = max(first, item.days.end)
            runs.append(GroupRun(config, group, first, end, item.snapshots.get(group)))
            owners.append(at)
    first, end = min(run.first for run in runs), max(run.end for run in runs)
    events = pinned.event_days.events(day for day in pinned.event_days.rows if first <= day < end)
    expect_rows(spark, events)
    key = items[0].model.source.key
    if pinned.version is None or events <= SMALL_ROWS:
        gave = _on_the_driver(home, pinned, runs, key)
    else:
        frame = tables.read(spark, home, "events", items[0].model.config.source, version=pinned.version)
        frame = frame.where((F.col("event_date") >= F.lit(first)) & (F.col("event_date") < F.lit(end)))
        gave = run_groups(frame, runs, key)
    mine: list[dict[str, GroupDays]] = [{} for _ in items]
    failed: dict[int, Exception] = {}
    for run, one, owner in zip(runs, gave, owners, strict=True):
        if isinstance(one, Exception):
            failed.setdefault(owner, one)
        else:
            mine[owner][run.group] = one
    return [failed.get(at) or _together(item, mine[at]) for at, item in enumerate(items)], events


def _on_the_driver(home: Home, pinned: Pinned, runs: Sequence[GroupRun], key: str) -> list[GroupDays | Exception]:
    """`run_groups` for so few events that they are read at once."""
    first, end = min(run.first for run in runs), max(run.end for run in runs)
    events: _ByKey | None = None
    if pinned.version is not None and first < end:
        named = {name for run in runs for name in (*run.config.columns, run.config.missing_if_zero) if name}
        table = tables.arrow(
            home,
            "events",
            runs[0].config.source,
            columns=sorted({"event_id", "ts", key} | named),
            filters=[("event_date", ">=", first), ("event_date", "<", end)],
            version=pinned.version,
        )
        events = _ByKey(table, key)
    gave: list[GroupDays | Exception] = []
    for run in runs:
        try:
            reduced = reduced_schema(run.config).empty_table()
            if events is not None:
                reduced = reduce_rows(run.config, events.of(run.config.keys(run.group)), key)
            gave.append(run.over(reduced))
        except Exception as error:
            # What stops one model must not stop the others; whoever asked raises it.
            gave.append(error)
    return gave


class _ByKey:
    """Events in the order of their key, so that those of some keys are found without a look at all others."""

    def __init__(self, events: pa.Table, key: str):
        encoded = events[key].cast(pa.string()).combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        self._events = events.take(pa.array(order)).combine_chunks()
        bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        names = encoded.dictionary.to_pylist()
        self._at = {name: (int(bounds[i]), int(bounds[i + 1])) for i, name in enumerate(names)}

    def of(self, keys: Iterable[str]) -> pa.Table:
        """The events of some keys."""
        spans = [self._at[name] for name in keys if name in self._at]
        return pa.concat_tables([self._events.slice(0, 0), *(self._events.slice(lo, hi - lo) for lo, hi in spans)])


def _together(item: Replay, groups: dict[str, GroupDays]) -> Outcome:
    config = item.model.config
    found, metrics, states, eps = [], [], [], {}
    remarks = list(config.warnings)
    for group, gave in groups.items():
        found += gave.found
        metrics += gave.metrics
        for day, state in gave.states.items():
            head = {"model": config.name, "group_id": group, "day": day, "fingerprint": item.fingerprints[day]}
            states.append({**head, "state": state})
        if gave.eps is not None:
            eps[group] = gave.eps
        remarks += gave.warnings
    near_ties = sum(gave.near_ties for gave in groups.values())
    if near_ties:
        remarks.append(f"{near_ties} decisions within 1e-9 of eps could fall otherwise on another machine")
    return Outcome(
        item,
        pa.Table.from_pylist(found, schema=result_table(config).arrow()),
        pa.Table.from_pylist(metrics, schema=METRICS.arrow()),
        pa.Table.from_pylist(states, schema=STATE.arrow()),
        eps,
        remarks,
    )
