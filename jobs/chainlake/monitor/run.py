"""The Spark part of the monitor step: many models' days computed, audited and published together.

A commit, an audit and a scan of the events cost seconds each, however little they are about: so models share them.
They fail separately all the same: a model whose computation or audit fails is left out of what the others publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from chainlake.catalog.models import load_models
from chainlake.days import Days
from chainlake.definitions.source import Sources
from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.commits.publish import ModelOutput, Published, publish_models
from chainlake.lake.commits.publish import Run as PublishingRun
from chainlake.lake.records.event_days import EventDays, Pinned
from chainlake.lake.records.runs import phases
from chainlake.lake.records.staleness import fingerprint
from chainlake.lake.spark.session import spark_session
from chainlake.lake.spark.types import frame_of
from chainlake.model_change.config.threshold import ThresholdConfig
from chainlake.model_change.days.definitions import result_table
from chainlake.monitor.compute import Outcome, compute
from chainlake.monitor.replay import STEP, Replay, stretches
from chainlake.paths import Home
from chainlake.quality import Audit, audit_models, warm_up
from chainlake.quality.alerts import ALERTS_GATE, audit_alerts
from chainlake.quality.models import CHANGES_GATE, Gated, audit_together
from chainlake.run.common import REPAIR_HORIZON, discard, one_line, record_failure, staging_folder
from chainlake.run.ports import open_ports
from chainlake.schemas.models import CHANGES, METRICS
from chainlake.schemas.table import Table

#: Groups times days that are computed and published together: what they give must fit into the driver.
_TOGETHER = 4_000
#: Events above which a run lasts long enough for the optimising compiler.
_MANY_EVENTS = 5_000_000


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
    """Run the days of models, as many as fit together; add to ``result`` and ``failures``."""
    warm_up()
    events = pinned.event_days.events({day for item in work for day in item.fingerprints})
    long_running = max(len(item.fingerprints) for item in work) > REPAIR_HORIZON or events > _MANY_EVENTS
    spark = spark_session(home, f"monitor {source_name} {days}", long_running=long_running)
    step = _Step(spark, home, source_name, pinned, Audit(home), run_id)
    waiting = {item.model.definition.name: stretches(home, item, pinned.event_days) for item in work}
    while waiting:
        parts = []
        for name, more in list(waiting.items()):
            part = next(more, None)
            if part is None:
                del waiting[name]
                result["models"] += 1
            else:
                parts.append(part)
        for batch in _batches(parts):
            for name, error in step.run(batch, result).items():
                # Whatever stops one model must not stop the others; the caller raises it once they have published.
                del waiting[name]
                failures.append((name, error))
                print(f"{name} failed: {one_line(error)}", flush=True)
    print(f"Data Docs: {step.audit.build_docs()}", flush=True)


def _batches(parts: Sequence[Replay]) -> Iterator[list[Replay]]:
    """Replays in order, cut so that each batch but a single model's is small enough."""
    batch: list[Replay] = []
    size = 0
    for part in parts:
        mine = len(part.model.config.groups) * len(part.days)
        if batch and size + mine > _TOGETHER:
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += mine
    if batch:
        yield batch


class _Step:
    """One application: what its batches share."""

    def __init__(self, spark: SparkSession, home: Home, source: str, pinned: Pinned, audit: Audit, run_id: str):
        self.spark, self.home, self.source, self.pinned = spark, home, source, pinned
        self.audit, self.run_id = audit, run_id

    def _phases(self, name: str, items: Sequence[Replay]) -> Any:
        spans = {item.model.definition.name: item.days for item in items}
        return phases(self.home, self.run_id, spans, source=self.source, step=STEP, phase=name)

    def run(self, items: Sequence[Replay], result: dict[str, Any]) -> dict[str, Exception]:
        """Compute, audit and publish; add to ``result`` and say what failed."""
        failed: dict[str, Exception] = {}
        try:
            outcomes = self._compute(items, failed)
        except Exception as error:
            outcomes, failed = [], {item.model.definition.name: error for item in items}
        for item in items:
            if item.model.definition.name in failed:
                self._record(item, failed[item.model.definition.name])
        parcels: dict[tuple[Any, ...], list[Outcome]] = {}
        for outcome in outcomes:
            config, days = outcome.item.model.config, outcome.item.days
            parcels.setdefault((result_table(config).path_name, days.start, days.end), []).append(outcome)
        for parcel in parcels.values():
            failed |= self._finish(parcel, result)
        return failed

    def _record(self, item: Replay, error: Exception) -> None:
        if not isinstance(error, AuditFailed):
            record_failure(self.home, item.model.definition, item.fingerprints, error, self.run_id)

    def _compute(self, items: Sequence[Replay], failed: dict[str, Exception]) -> list[Outcome]:
        good = []
        with self._phases("monitor", items) as rows:
            found, events = compute(self.spark, self.home, self.pinned, items)
            for item, one in zip(items, found, strict=True):
                name = item.model.definition.name
                row = rows[name]
                row.rows_in = events
                if isinstance(one, Exception):
                    failed[name] = one
                    row.status, row.reason = "failed", one_line(one)
                    continue
                good.append(one)
                row.rows_out = len(one.found) + len(one.metrics)
                row.reason = "; ".join(one.remarks)[:1000] or None
        return good

    def _finish(self, parcel: Sequence[Outcome], result: dict[str, Any]) -> dict[str, Exception]:
        """Stage, audit and publish models of one table and the same days."""
        try:
            return self._publish(parcel, result)
        except Exception as error:
            if len(parcel) > 1 and not isinstance(error, InfrastructureError):
                # Rows of one of them can break a rule of the table: the others must come out as if run by themselves.
                alone = [self._finish([outcome], result) for outcome in parcel]
                return {name: one for found in alone for name, one in found.items()}
            for outcome in parcel:
                self._record(outcome.item, error)
            return {outcome.item.model.definition.name: error for outcome in parcel}

    def _publish(self, parcel: Sequence[Outcome], result: dict[str, Any]) -> dict[str, Exception]:
        items = [outcome.item for outcome in parcel]
        table = result_table(items[0].model.config)
        path = staging_folder(self.home, self.run_id, items[0].model.config.name if len(items) == 1 else "models")
        for part, rows in ((table, [o.found for o in parcel]), (METRICS, [o.metrics for o in parcel])):
            _stage(self.spark, part, pa.concat_tables(rows), f"{path}/{part.name}")

        with self._phases("audit", items) as reports:
            passed = self._audited(parcel)
            broken: dict[str, dict[date, str]] = {}
            for outcome in parcel:
                name = outcome.item.model.definition.name
                broken[name] = {day: reason for day, reason in passed[name].items() if reason is not None}
                reports[name].rows_in = len(outcome.found) + len(outcome.metrics)
                if broken[name]:
                    why = "; ".join(f"{day}: {reason}" for day, reason in sorted(broken[name].items()))
                    reports[name].reason = why[:1000]

        with self._phases("publish", items) as reports:
            published = publish_models(
                PublishingRun(self.home, open_ports(self.home, "monitor").lake, self.run_id),
                [_output(outcome, passed[outcome.item.model.definition.name]) for outcome in parcel],
                recheck=lambda: _fingerprints_now(self.home, items),
                table=table,
            )
            for name, found in published.items():
                reports[name].rows_out = found.added + found.changed + found.withdrawn
        _count(result, published.values())
        failed: dict[str, Exception] = {}
        for item in items:
            name = item.model.definition.name
            if broken[name]:
                day, reason = min(broken[name].items())
                failed[name] = AuditFailed(
                    f"the audit of {name} failed on {len(broken[name])} of {len(item.days)} days, "
                    f"first {day}: {reason}",
                    hint=f"Nothing from that day on was published; the staged rows are kept in {path}.",
                )
        if not failed:
            discard(path)
        return failed

    def _audited(self, parcel: Sequence[Outcome]) -> dict[str, dict[date, str | None]]:
        """Which days of which model may be published: a suite over all of them, and over each if that one fails."""
        days = list(parcel[0].item.days)
        gate = CHANGES_GATE if result_table(parcel[0].item.model.config) is CHANGES else ALERTS_GATE
        if len(parcel) > 1 and audit_together(self.audit, gate, [_gated(outcome) for outcome in parcel], days):
            return {outcome.item.model.definition.name: dict.fromkeys(days) for outcome in parcel}
        return {outcome.item.model.definition.name: self._audited_alone(outcome, days) for outcome in parcel}

    def _audited_alone(self, outcome: Outcome, days: list[date]) -> dict[date, str | None]:
        config = outcome.item.model.config
        if isinstance(config, ThresholdConfig):
            return audit_alerts(self.audit, config.name, outcome.found, outcome.metrics, days, config.threshold)
        return audit_models(self.audit, config.name, outcome.found, outcome.metrics, days, outcome.eps)


def _gated(outcome: Outcome) -> Gated:
    config = outcome.item.model.config
    bound = config.threshold if isinstance(config, ThresholdConfig) else outcome.eps
    return Gated(config.name, outcome.found, outcome.metrics, bound)


def _output(outcome: Outcome, passed: Mapping[date, str | None]) -> ModelOutput:
    item = outcome.item
    return ModelOutput(item.model.definition, outcome.found, outcome.metrics, outcome.states, item.fingerprints, passed)


def _count(result: dict[str, Any], published: Iterable[Published]) -> None:
    for one in published:
        result["days"] += len(one.days_done)
        for name in ("added", "changed", "withdrawn"):
            result[name] += getattr(one, name)


def _stage(spark: SparkSession, table: Table, rows: pa.Table, path: str) -> None:
    """Write the rows of a table to staging, where they stay after a failed audit; a local folder needs no Spark job."""
    if "://" not in path:
        Path(path).mkdir(parents=True)
        parquet.write_table(rows, f"{path}/part-0.parquet")
        return
    frame_of(spark, rows, table.arrow()).coalesce(1).write.parquet(path)


def _fingerprints_now(home: Home, items: Sequence[Replay]) -> dict[str, dict[date, str]]:
    """What the fingerprints are now: a day whose input or definition moved meanwhile is left to the next run."""
    source = items[0].model.source
    names = {item.model.config.name for item in items}
    loaded, _ = load_models(home, Sources(source), only=names)
    hashes = {model.definition.name: model.definition.definition_hash for model in loaded}
    now = EventDays.load(home, source.name)
    return {
        item.model.definition.name: {day: fingerprint(item.model.definition, day, now) for day in item.fingerprints}
        for item in items
        if hashes.get(item.model.definition.name) == item.model.definition.definition_hash
    }
