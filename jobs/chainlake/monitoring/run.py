"""Computes, audits and publishes days of many models together.

A commit, an audit and a read of the events cost about the same for one model as for hundreds, so models share them.
They still fail separately: a model whose computation or audit fails is left out of what the others publish.

The days of a model are planned (`Course`); some of them are staged (`Outcome`), audited (`Audited`) and published
(`Published`); then come the next ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import groupby

from chainlake.catalog.models import load_models
from chainlake.definitions.source import Sources
from chainlake.errors import AuditFailed, InfrastructureError, InputError
from chainlake.lake.commits.publish import ModelOutput, Published, PublishingRun, publish_models
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.records.chained import begins_anew
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays, Pinned
from chainlake.lake.records.runs import Phase, error_line, phases
from chainlake.model_change.days.definitions import result_table
from chainlake.monitoring.compute import Outcome, compute
from chainlake.monitoring.course import Course
from chainlake.monitoring.replay import STEP, Replay
from chainlake.monitoring.result import Failures, MonitorResult
from chainlake.monitoring.tasks.staging import Folder
from chainlake.paths import Home
from chainlake.quality import Audit, DaysBroken, Verdict, audit_models
from chainlake.quality.gates.companions import GATES
from chainlake.quality.gates.models import Gated, audit_together
from chainlake.run.common import discard, record_failure, staging_folder
from chainlake.run.ports import Ports
from chainlake.schemas.ops_rows import PhaseName

log = logging.getLogger(__name__)

#: How many groups times days are computed and published together: their results must fit into this process.
_TOGETHER = 4_000


@dataclass(frozen=True)
class MonitorRun:
    """What the stages of a step share.

    Args:
        home: the installation.
        source: name of the source.
        run_id: id of the run in ``ops``.
        ports: the step's ports.
        pinned: the source's events.
        audit: the application's audit.
    """

    home: Home
    source: str
    run_id: str
    ports: Ports
    pinned: Pinned
    audit: Audit

    def phases(self, name: PhaseName, items: Sequence[Replay]) -> AbstractContextManager[dict[str, Phase]]:
        """A phase of the step for some models, with one report for each definition."""
        spans = {item.model.definition.name: item.days for item in items}
        return phases(self.home, self.run_id, spans, source=self.source, step=STEP, phase=name)

    def record(self, item: Replay, error: BaseException) -> None:
        """Record the error that stopped a model, at the first day to do; failed audits are recorded by publishing."""
        if not isinstance(error, AuditFailed):
            inputs = {item.target: item.fingerprints[item.target]}
            record_failure(self.home, item.model.definition, inputs, error, self.run_id)


@dataclass(frozen=True)
class Audited:
    """A model's staged days, with the verdict on which of them may be published."""

    outcome: Outcome
    verdict: Verdict

    @property
    def name(self) -> str:
        """Name of the definition."""
        return self.outcome.item.model.definition.name

    @property
    def output(self) -> ModelOutput:
        """The days in the form that publishing takes."""
        definition, one = self.outcome.item.model.definition, self.outcome
        prints = {day: self.outcome.item.fingerprints[day] for day in one.links}
        return ModelOutput(definition, one.found, one.metrics, one.states, prints, self.verdict.reasons, one.links)


@dataclass(frozen=True)
class Finished:
    """The result of some days of models.

    Args:
        published: what was published, by definition.
        failed: the errors that stopped others.
    """

    published: dict[str, Published] = field(default_factory=dict)
    failed: Failures = field(default_factory=dict)

    def __or__(self, other: Finished) -> Finished:
        return Finished(self.published | other.published, self.failed | other.failed)


def run_work(run: MonitorRun, work: Sequence[Course]) -> MonitorResult:
    """Run the days of models, as many at a time as fit together."""
    waiting = {course.model.definition.name: course for course in work}
    result = MonitorResult()
    while waiting:
        parts, found = _next_parts(waiting)
        ended = [name for name in waiting if name not in parts]
        result += MonitorResult(models=len(ended) - len(found.failed))
        for batch in _batches(list(parts.values())):
            found |= _run_batch(run, batch, waiting)
        result += MonitorResult.of(found.published, found.failed)
        for name, error in found.failed.items():
            # An error in one model must not stop the others; the caller raises it once they have published.
            log.error("%s failed: %s", name, error_line(error))
        for name in {*ended, *found.failed}:
            del waiting[name]
    log.info("Data Docs: %s", run.audit.build_docs())
    return result


def _next_parts(waiting: Mapping[str, Course]) -> tuple[dict[str, Replay], Finished]:
    """The next days of every model that has any left, and the errors that stopped others."""
    parts: dict[str, Replay] = {}
    failed: Failures = {}
    for name, course in waiting.items():
        try:
            part = course.next()
        except InputError as error:
            failed[name] = error
            continue
        if part is not None:
            parts[name] = part
    return parts, Finished(failed=failed)


def _batches(parts: Sequence[Replay]) -> Iterator[list[Replay]]:
    """Replays in order, in batches that are small enough; a single model may exceed the limit."""
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


def _run_batch(run: MonitorRun, items: Sequence[Replay], courses: Mapping[str, Course]) -> Finished:
    """Stage, audit and publish some days of models, and let their courses know."""
    folder = Folder(staging_folder(run.home, run.run_id, items[0].model.config.name if len(items) == 1 else "models"))
    outcomes, failed = _stage(run, items, folder)
    for item in items:
        if item.model.definition.name in failed:
            run.record(item, failed[item.model.definition.name])
    result = Finished(failed=failed)
    needed = [courses[outcome.item.model.definition.name].needed(outcome) for outcome in outcomes]

    def parcel(outcome: Outcome) -> tuple[str, date, date]:
        days = outcome.days
        return result_table(outcome.item.model.config).path_name, days.start, days.end

    for _, same in groupby(sorted(needed, key=parcel), key=parcel):
        result |= _finish(run, list(same), folder)
    for outcome in needed:
        name = outcome.item.model.definition.name
        done = result.published.get(name)
        courses[name].published(outcome, len(done.days_done) if done is not None else 0)
    if not any(isinstance(error, AuditFailed) for error in result.failed.values()):
        discard(folder.path)
    return result


def _stage(run: MonitorRun, items: Sequence[Replay], folder: Folder) -> tuple[list[Outcome], Failures]:
    """The models' results, and the errors that stopped the others."""
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
                    row.status, row.reason = "failed", error_line(one)
                    continue
                good.append(one)
                row.rows_out = len(one.found) + len(one.metrics)
                row.reason = "; ".join(one.remarks)[:1000] or None
    except Exception as error:
        # Reading the events is shared, so an error there stops all of these; other models of the source can still run.
        return [], {item.model.definition.name: error for item in items}
    return good, failed


def _finish(run: MonitorRun, outcomes: Sequence[Outcome], folder: Folder) -> Finished:
    """Audit and publish models that share one table and the same days."""
    try:
        audited = _audit(run, outcomes)
        published = _publish(run, audited)
    except Exception as error:
        if len(outcomes) > 1 and not isinstance(error, InfrastructureError):
            # One model's rows may break a rule of the table: the others must come out as if run by themselves.
            result = Finished()
            for outcome in outcomes:
                result |= _finish(run, [outcome], folder)
            return result
        for outcome in outcomes:
            run.record(outcome.item, error)
        return Finished(failed={outcome.item.model.definition.name: error for outcome in outcomes})
    broken: Failures = {
        one.name: DaysBroken.of(one.name, one.verdict, onwards=True, folder=folder.path)
        for one in audited
        if one.verdict.broken
    }
    return Finished(published, broken)


def _audit(run: MonitorRun, outcomes: Sequence[Outcome]) -> list[Audited]:
    """Which days of which model may be published: one suite over all models, and if it fails, one over each."""
    days = list(outcomes[0].days)
    gate = GATES[result_table(outcomes[0].item.model.config).path_name]
    with run.phases("audit", [outcome.item for outcome in outcomes]) as reports:
        if len(outcomes) > 1 and audit_together(run.audit, gate, [_gated(outcome) for outcome in outcomes], days):
            audited = [Audited(outcome, Verdict.passed(days)) for outcome in outcomes]
        else:
            audited = [Audited(o, audit_models(run.audit, gate, _gated(o), days)) for o in outcomes]
        for one in audited:
            report = reports[one.name]
            report.rows_in = len(one.outcome.found) + len(one.outcome.metrics)
            report.reason = one.verdict.summary
    return audited


def _gated(outcome: Outcome) -> Gated:
    return Gated(outcome.item.model.config.name, outcome.found, outcome.metrics, outcome.eps)


def _publish(run: MonitorRun, audited: Sequence[Audited]) -> dict[str, Published]:
    items = [one.outcome.item for one in audited]
    with run.phases("publish", items) as reports:
        published = publish_models(
            PublishingRun(run.home, run.ports.lake, run.run_id),
            [one.output for one in audited],
            recheck=lambda: _days_now(run.home, items),
            table=result_table(items[0].model.config),
        )
        for name, found in published.items():
            reports[name].rows_out = found.added + found.changed + found.withdrawn
    return published


def _days_now(home: Home, items: Sequence[Replay]) -> dict[str, DaysNow]:
    """What days would be computed from now; one whose input or definition has changed is left to the next run."""
    source = items[0].model.source
    names = {item.model.config.name for item in items}
    loaded, _ = load_models(home, Sources(source), only=names)
    hashes = {model.definition.name: model.definition.definition_hash for model in loaded}
    now = EventDays.load(home, source.name)
    return {
        item.model.definition.name: DaysNow(
            {day: fingerprint(item.model.definition, day, now) for day in item.fingerprints},
            partial(begins_anew, item.model.definition, now),
        )
        for item in items
        if hashes.get(item.model.definition.name) == item.model.definition.definition_hash
    }
