"""The Spark part of the monitor step: events to rounds, the kernel over them day by day, audit, publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.days import Days
from jobs.errors import AuditFailed
from jobs.lake import tables
from jobs.lake.event_days import EventDays, Pinned
from jobs.lake.publish import publish_models
from jobs.lake.rows import SMALL_ROWS
from jobs.lake.runs import phase
from jobs.lake.session import expect_rows, spark_session
from jobs.lake.staleness import fingerprint
from jobs.lake.types import frame_of
from jobs.model_catalog import load_models
from jobs.model_change.definitions import result_table
from jobs.model_change.reduce import reduce_rows, reduced_schema
from jobs.model_change.reduce_spark import reduce_events, reduced_frame, run_groups
from jobs.model_change.replay import GroupDays, run_days
from jobs.model_change.threshold_config import ThresholdConfig
from jobs.paths import Home
from jobs.quality import Audit, audit_models, warm_up
from jobs.quality.alerts import audit_alerts
from jobs.sources import Sources
from jobs.steps.common import REPAIR_HORIZON, discard, one_line, record_failure, staging_folder
from jobs.steps.monitor import STEP, Replay, stretches
from schemas.models import METRICS, STATE
from schemas.table import Table


def run_work(
    home: Home,
    source_name: str,
    days: Days,
    pinned: Pinned,
    work: Sequence[Replay],
    run_id: str,
    result: dict[str, Any],
    failures: list[tuple[str, BaseException]],
) -> None:
    """Run each model's days; add to ``result`` and ``failures``."""
    warm_up()
    long_running = max(len(item.fingerprints) for item in work) > REPAIR_HORIZON
    spark = spark_session(home, f"monitor {source_name} {days}", long_running=long_running)
    audit = Audit(home)
    for item in work:
        name = item.model.definition.name
        part = item
        try:
            for part in stretches(home, item, pinned.event_days):
                _run_model(spark, home, pinned, part, audit, run_id, result)
            result["models"] += 1
        except Exception as error:
            # Whatever stops one model must not stop the others; the step raises it once they have published.
            failures.append((name, error))
            if not isinstance(error, AuditFailed):
                record_failure(home, item.model.definition, part.fingerprints, error, run_id)
            print(f"{name} failed: {one_line(error)}", flush=True)
    print(f"Data Docs: {audit.build_docs()}", flush=True)


def _run_model(
    spark: SparkSession, home: Home, pinned: Pinned, item: Replay, audit: Audit, run_id: str, result: dict[str, Any]
) -> None:
    definition, config = item.model.definition, item.model.config
    table = result_table(config)
    log: dict[str, Any] = {"source": config.source, "step": STEP, "definition": definition.name, "days": item.days}
    path = staging_folder(home, run_id, config.name)

    with phase(home, run_id, phase="monitor", **log) as row:
        outcome, row.rows_in = _replay(spark, home, pinned, item)
        made = {
            t.path_name: pa.Table.from_pylist(outcome.rows[t.path_name], schema=t.arrow())
            for t in (table, METRICS, STATE)
        }
        found, metrics = made[table.path_name], made[METRICS.path_name]
        _stage(spark, table, found, f"{path}/{table.name}")
        _stage(spark, METRICS, metrics, f"{path}/{METRICS.name}")
        row.rows_out = len(found) + len(metrics)
        row.reason = "; ".join(outcome.remarks)[:1000] or None

    with phase(home, run_id, phase="audit", **log) as row:
        row.rows_in = len(found) + len(metrics)
        if isinstance(config, ThresholdConfig):
            passed = audit_alerts(audit, config.name, found, metrics, item.days, config.threshold)
        else:
            passed = audit_models(audit, config.name, found, metrics, item.days, outcome.eps)
        broken = {day: reason for day, reason in passed.items() if reason is not None}
        if broken:
            row.reason = "; ".join(f"{day}: {reason}" for day, reason in sorted(broken.items()))[:1000]

    with phase(home, run_id, phase="publish", **log) as row:
        published = publish_models(
            spark,
            home,
            definition,
            found,
            metrics,
            made[STATE.path_name],
            item.fingerprints,
            passed,
            run_id,
            recheck=lambda: _fingerprints_now(home, item),
            table=table,
        )
        row.rows_out = published.added + published.changed + published.withdrawn
    result["days"] += len(published.days_done)
    for name in ("added", "changed", "withdrawn"):
        result[name] += getattr(published, name)
    if broken:
        day, reason = min(broken.items())
        raise AuditFailed(
            f"the audit of {definition.name} failed on {len(broken)} of {len(item.days)} days, first {day}: {reason}",
            hint=f"Nothing from that day on was published; the staged rows are kept in {path}.",
        )
    discard(path)


@dataclass
class Outcome:
    """What a replay gave.

    Args:
        rows: rows by path name of their table.
        eps: the threshold in force per group where known.
        remarks: what the model should make its owner think about, one sentence each.
    """

    rows: dict[str, list[dict[str, Any]]]
    eps: dict[str, float]
    remarks: list[str]


def _replay(spark: SparkSession, home: Home, pinned: Pinned, item: Replay) -> tuple[Outcome, int]:
    """Run every group of a model over the days; also how many events the source has on them.

    Few events are read and reduced without a Spark job, which would cost seconds. Many are reduced by Spark, and many
    groups of them run by its workers.
    """
    config, days, key = item.model.config, item.days, item.model.source.key
    first, end = max(days.start, config.start), max(days.start, config.start, days.end)
    events = pinned.event_days.events(day for day in pinned.event_days.rows if first <= day < end)
    expect_rows(spark, events)
    reduced = reduced_schema(config).empty_table()
    groups: dict[str, GroupDays] = {}
    if pinned.version is not None and first < end and events <= SMALL_ROWS:
        read = sorted({"event_id", "ts", key, *config.columns, *filter(None, [config.missing_if_zero])})
        wanted = [("event_date", ">=", first), ("event_date", "<", end)]
        table = tables.arrow(home, "events", config.source, columns=read, filters=wanted, version=pinned.version)
        reduced = reduce_rows(config, table, key)
    elif pinned.version is not None and first < end:
        frame = tables.read(spark, home, "events", config.source, version=pinned.version)
        frame = frame.where((F.col("event_date") >= F.lit(first)) & (F.col("event_date") < F.lit(end)))
        if len(config.groups) > 1:
            groups = run_groups(reduced_frame(frame, config, key), config, first, end, item.snapshots)
        else:
            reduced = reduce_events(frame, config, key)
    for group in config.groups:
        if group not in groups:
            groups[group] = run_days(config, group, reduced, first, end, item.snapshots.get(group))
    return _together(item, groups), events


def _together(item: Replay, groups: Mapping[str, GroupDays]) -> Outcome:
    config = item.model.config
    outcome = Outcome({t.path_name: [] for t in (result_table(config), METRICS, STATE)}, {}, list(config.warnings))
    for group, gave in groups.items():
        outcome.rows[result_table(config).path_name] += gave.found
        outcome.rows[METRICS.path_name] += gave.metrics
        for day, state in gave.states.items():
            head = {"model": config.name, "group_id": group, "day": day, "fingerprint": item.fingerprints[day]}
            outcome.rows[STATE.path_name].append({**head, "state": state})
        if gave.eps is not None:
            outcome.eps[group] = gave.eps
        outcome.remarks += gave.warnings
    near_ties = sum(gave.near_ties for gave in groups.values())
    if near_ties:
        outcome.remarks.append(f"{near_ties} decisions within 1e-9 of eps could fall otherwise on another machine")
    return outcome


def _stage(spark: SparkSession, table: Table, rows: pa.Table, path: str) -> None:
    """Write the rows of a table to staging, where they stay after a failed audit; a local folder needs no Spark job."""
    if "://" not in path:
        Path(path).mkdir(parents=True)
        parquet.write_table(rows, f"{path}/part-0.parquet")
        return
    frame_of(spark, rows, table.arrow()).coalesce(1).write.parquet(path)


def _fingerprints_now(home: Home, item: Replay) -> dict[date, str]:
    """What the fingerprints are now: a day whose input or definition moved meanwhile is left to the next run."""
    source, definition = item.model.source, item.model.definition
    loaded, _ = load_models(home, Sources(source), only=item.model.config.name)
    if [m.definition.definition_hash for m in loaded] != [definition.definition_hash]:
        return {}
    now = EventDays.load(home, source.name)
    return {day: fingerprint(definition, day, now) for day in item.fingerprints}
