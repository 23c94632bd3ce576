"""Days of many models computed, audited and published together.

A commit, an audit and a read of the events cost much the same for one model as for hundreds: so models share them. They
fail separately all the same: a model whose computation or audit fails is left out of what the others publish.

A replay is planned (`Replay`), then staged (`Outcome`), audited (`Audited`) and published (`Published`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from chainlake.catalog.models import load_models
from chainlake.definitions.source import Sources
from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.commits.publish import ModelOutput, Published, PublishingRun, publish_models
from chainlake.lake.records.event_days import EventDays, Pinned
from chainlake.lake.records.runs import Phase, one_line, phases
from chainlake.lake.records.staleness import fingerprint
from chainlake.model_change.config.threshold import ThresholdConfig
from chainlake.model_change.days.definitions import result_table
from chainlake.monitoring.compute import Outcome, compute
from chainlake.monitoring.replay import STEP, Replay, stretches
from chainlake.monitoring.result import Failures, StepResult
from chainlake.monitoring.staging import Folder
from chainlake.paths import Home
from chainlake.quality import Audit, DaysBroken, Verdict, audit_models
from chainlake.quality.alerts import ALERTS_GATE, audit_alerts
from chainlake.quality.models import CHANGES_GATE, Gated, audit_together
from chainlake.run.common import discard, record_failure, staging_folder
from chainlake.run.ports import Ports
from chainlake.schemas.models import CHANGES

#: Groups times days that are computed and published together: what they give must fit into this process.
_TOGETHER = 4_000


@dataclass(frozen=True)
class Run:
    """What the stages of a step share.

    Args:
        home: the installation.
        source: name of the source.
        run_id: id of the run in ``ops``.
        ports: what the step works with.
        pinned: the source's events.
        audit: the application's audit.
    """

    home: Home
    source: str
    run_id: str
    ports: Ports
    pinned: Pinned
    audit: Audit

    def phases(self, name: str, items: Sequence[Replay]) -> AbstractContextManager[dict[str, Phase]]:
        """A phase of some models, a report for each definition."""
        spans = {item.model.definition.name: item.days for item in items}
        return phases(self.home, self.run_id, spans, source=self.source, step=STEP, phase=name)

    def record(self, item: Replay, error: BaseException) -> None:
        """Note what stopped a model; publishing notes failed audits, day by day."""
        if not isinstance(error, AuditFailed):
            record_failure(self.home, item.model.definition, item.fingerprints, error, self.run_id)


@dataclass(frozen=True)
class Audited:
    """A model's staged days, and which of them may be published."""

    outcome: Outcome
    verdict: Verdict

    @property
    def name(self) -> str:
        """Of the definition."""
        return self.outcome.item.model.definition.name

    @property
    def output(self) -> ModelOutput:
        """As publishing takes it."""
        item, one = self.outcome.item, self.outcome
        prints, reasons = item.fingerprints, self.verdict.reasons
        return ModelOutput(item.model.definition, one.found, one.metrics, one.states, prints, reasons)


def run_work(run: Run, work: Sequence[Replay]) -> StepResult:
    """Run the days of models, as many as fit together."""
    waiting = {item.model.definition.name: stretches(run.home, item, run.pinned.event_days) for item in work}
    result = StepResult()
    while waiting:
        parts = {name: next(more, None) for name, more in waiting.items()}
        ended = [name for name, part in parts.items() if part is None]
        result += StepResult(models=len(ended))
        for batch in _batches([part for part in parts.values() if part is not None]):
            found = _run_batch(run, batch)
            result += found
            for name, error in found.failed:
                # Whatever stops one model must not stop the others; the caller raises it once they have published.
                ended.append(name)
                print(f"{name} failed: {one_line(error)}", flush=True)
        for name in ended:
            del waiting[name]
    print(f"Data Docs: {run.audit.build_docs()}", flush=True)
    return result


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


def _run_batch(run: Run, items: Sequence[Replay]) -> StepResult:
    """Stage, audit and publish some days of models."""
    folder = Folder(staging_folder(run.home, run.run_id, items[0].model.config.name if len(items) == 1 else "models"))
    outcomes, failed = _stage(run, items, folder)
    for item in items:
        if item.model.definition.name in failed:
            run.record(item, failed[item.model.definition.name])
    result = StepResult.of({}, failed)

    def parcel(outcome: Outcome) -> tuple[str, date, date]:
        days = outcome.item.days
        return result_table(outcome.item.model.config).path_name, days.start, days.end

    for _, same in groupby(sorted(outcomes, key=parcel), key=parcel):
        result += _finish(run, list(same), folder)
    if not any(isinstance(error, AuditFailed) for _, error in result.failed):
        discard(folder.path)
    return result


def _stage(run: Run, items: Sequence[Replay], folder: Folder) -> tuple[list[Outcome], Failures]:
    """What the models gave, and what stopped the others."""
    good: list[Outcome] = []
    failed: Failures = {}
    try:
        with run.phases("monitor", items) as rows:
            found = compute(run.ports, run.pinned, items, folder)
            for item, one in zip(items, found.outcomes, strict=True):
                name = item.model.definition.name
                row = rows[name]
                row.rows_in = found.events
                if isinstance(one, Exception):
                    failed[name] = one
                    row.status, row.reason = "failed", one_line(one)
                    continue
                good.append(one)
                row.rows_out = len(one.found) + len(one.metrics)
                row.reason = "; ".join(one.remarks)[:1000] or None
    except Exception as error:
        # What reads the events is shared, so what stops it stops all; other models of the source can still run.
        return [], {item.model.definition.name: error for item in items}
    return good, failed


def _finish(run: Run, outcomes: Sequence[Outcome], folder: Folder) -> StepResult:
    """Audit and publish models of one table and the same days."""
    try:
        audited = _audit(run, outcomes)
        published = _publish(run, audited)
    except Exception as error:
        if len(outcomes) > 1 and not isinstance(error, InfrastructureError):
            # Rows of one of them can break a rule of the table: the others must come out as if run by themselves.
            result = StepResult()
            for outcome in outcomes:
                result += _finish(run, [outcome], folder)
            return result
        for outcome in outcomes:
            run.record(outcome.item, error)
        return StepResult.of({}, {outcome.item.model.definition.name: error for outcome in outcomes})
    hint = f"Nothing from that day on was published; the staged rows are kept in {folder.path}."
    broken: Failures = {one.name: DaysBroken.of(one.name, one.verdict, hint) for one in audited if one.verdict.broken}
    return StepResult.of(published, broken)


def _audit(run: Run, outcomes: Sequence[Outcome]) -> list[Audited]:
    """Which days of which model may be published: a suite over all of them, and over each if that one fails."""
    days = list(outcomes[0].item.days)
    gate = CHANGES_GATE if result_table(outcomes[0].item.model.config) is CHANGES else ALERTS_GATE
    with run.phases("audit", [outcome.item for outcome in outcomes]) as reports:
        if len(outcomes) > 1 and audit_together(run.audit, gate, [_gated(outcome) for outcome in outcomes], days):
            audited = [Audited(outcome, Verdict.passed(days)) for outcome in outcomes]
        else:
            audited = [Audited(outcome, _verdict(run, outcome, days)) for outcome in outcomes]
        for one in audited:
            report = reports[one.name]
            report.rows_in = len(one.outcome.found) + len(one.outcome.metrics)
            report.reason = one.verdict.summary
    return audited


def _verdict(run: Run, outcome: Outcome, days: list[date]) -> Verdict:
    config = outcome.item.model.config
    if isinstance(config, ThresholdConfig):
        return audit_alerts(run.audit, config.name, outcome.found, outcome.metrics, days, config.threshold)
    return audit_models(run.audit, config.name, outcome.found, outcome.metrics, days, outcome.eps)


def _gated(outcome: Outcome) -> Gated:
    config = outcome.item.model.config
    bound = config.threshold if isinstance(config, ThresholdConfig) else outcome.eps
    return Gated(config.name, outcome.found, outcome.metrics, bound)


def _publish(run: Run, audited: Sequence[Audited]) -> dict[str, Published]:
    items = [one.outcome.item for one in audited]
    with run.phases("publish", items) as reports:
        published = publish_models(
            PublishingRun(run.home, run.ports.lake, run.run_id),
            [one.output for one in audited],
            recheck=lambda: _fingerprints_now(run.home, items),
            table=result_table(items[0].model.config),
        )
        for name, found in published.items():
            reports[name].rows_out = found.added + found.changed + found.withdrawn
    return published


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
