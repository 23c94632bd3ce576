"""The monitor step: from a source's events to the changes and metrics of its models.

A model carries state from day to day, so its days form a chain. What there is to do is decided without a JVM. A run
begins with the first day to do, and looks at every later day up to the last ever published. Models fail separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypedDict, Unpack

import numpy as np

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.days import Days
from chainlake.errors import InputError
from chainlake.lake.records.chained import dense
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays, Pinned, pin
from chainlake.lake.records.runs import phase
from chainlake.lake.records.staleness import TO_DO, Judged, inside, judge
from chainlake.monitoring.course import Asked, Course
from chainlake.monitoring.replay import STEP
from chainlake.monitoring.result import MonitorResult
from chainlake.monitoring.states import KeptStates
from chainlake.paths import Home
from chainlake.quality import Audit, warm_up
from chainlake.run.chains import held
from chainlake.run.common import (
    REPAIR_HORIZON,
    STALE,
    chosen,
    raise_together,
    record_failure,
    sweep_leftovers,
    the_source,
)
from chainlake.run.ports import Ports, open_ports
from chainlake.run.results import Monitored
from chainlake.words import counted

_ONE = timedelta(days=1)


class Options(TypedDict, total=False):
    """Which models of a source are run, and how."""

    models: Sequence[str] | None
    repair_horizon: int
    only_stale: bool
    ports: Ports | None


@dataclass(frozen=True)
class Wanted:
    """Which days cause a model to run.

    Args:
        days: the days asked for.
        horizon: how many days before them are repaired with them; with 0 they are the window of a backfill, which asks
            for no day: those on which a model has nothing to do are in it for others.
        states: the states of days to do.
    """

    days: Days
    horizon: int
    states: Sequence[str]

    @property
    def asked(self) -> Days | None:
        """Days that are to do even if the source has no events there; None for no such days."""
        return self.days if self.horizon else None

    def span(self, model: LoadedModel, judged: Judged) -> Days | None:
        """From the first to the last day of a model that is to do; None if there is none."""
        back = min(self.horizon, model.config.max_replay)
        mine = inside(judged.numbers, Days(self.days.start - timedelta(days=back), self.days.end))
        found = np.flatnonzero(mine & judged.ready & np.isin(judged.state, self.states))
        return Days(judged.day(int(found[0])), judged.day(int(found[-1])) + _ONE) if len(found) else None


@dataclass(frozen=True)
class Plan:
    """What is to do.

    Args:
        pinned: the source's events.
        work: a course for each model with something to do.
        failed: definitions that cannot be computed, each with the error.
    """

    pinned: Pinned = Pinned(None, EventDays.of("", []))
    work: tuple[Course, ...] = ()
    failed: tuple[tuple[str, BaseException], ...] = ()


def monitor(home: Home, source_name: str, days: Days, *, run_id: str, **options: Unpack[Options]) -> Monitored:
    """Run, audit and publish the models of a source that have something to do in ``days`` or the repair horizon.

    Args:
        home: the installation.
        source_name: name of the source.
        days: days asked for.
        run_id: id of the run in ``ops``.
        options: ``models``: names of the models to run; all of the source if None.
            ``repair_horizon``: how many days before ``days`` also cause a model to run if they have something to do, at
            most the model's ``max_replay``.
            ``only_stale``: days that were never computed do not cause a model to run.
            ``ports``: the step's ports; those of the installation if None.

    Returns:
        ``{"models": …, "days": days published, "added": …, "changed": …, "withdrawn": …}``.

    Raises:
        ChainlakeError: a model failed, or waits for a day before those asked for; raised after all others published.
    """
    _, sources = the_source(home, source_name)
    loaded, broken = load_models(home, sources)
    mine, bad = chosen("model", options.get("models"), loaded, broken, source_name)
    states = STALE if options.get("only_stale") else TO_DO
    plan = _plan(home, mine, Wanted(days, options.get("repair_horizon", REPAIR_HORIZON), states), run_id)
    result = MonitorResult()
    if plan.work:
        # This module imports Arrow's readers, which a run without work does not need.
        from chainlake.monitoring.run import MonitorRun, run_work

        ports = options.get("ports") or _opened(home, f"monitor {source_name} {days}", plan.work)
        result = run_work(MonitorRun(home, source_name, run_id, ports, plan.pinned, Audit(home)), plan.work)
    else:
        with phase(home, run_id, source=source_name, step=STEP, phase="plan", days=days) as row:
            row.status, row.reason = "nothing", "nothing to do"
    sweep_leftovers(home)
    stopped = {name for name, _ in (*plan.failed, *result.failed)}
    held = _held(home, [m for m in mine if m.definition.name not in stopped], days)
    failures = [*((f"model/{b.name}", b.error) for b in bad), *plan.failed, *result.failed, *held]
    raise_together(failures, f"{counted(result.days, 'day')} published")
    return result.counts


def _opened(home: Home, app: str, work: Sequence[Course]) -> Ports:
    # Great Expectations is imported while Java starts.
    warm_up()
    longest = max(len(course.outlook.certain) for course in work)
    return open_ports(home, app, long_running=longest > REPAIR_HORIZON)


def _plan(home: Home, mine: Sequence[LoadedModel], wanted: Wanted, run_id: str) -> Plan:
    """Which days each model goes through; events are pinned first, so that fingerprints belong to that version.

    Args:
        home: the installation.
        mine: models of one source.
        wanted: which days cause a model to run.
        run_id: id of the run in ``ops``, under which errors are recorded.
    """
    wanting = {name for name, _ in _spans(home, mine, wanted)}
    concerned = [model for model in mine if model.definition.name in wanting]
    if not concerned:
        return Plan()
    days, source = wanted.days, mine[0].source.name
    first = min([days.start, *(m.config.start for m in mine)])
    pinned = pin(home, source, Days(first, max(days.end, first + _ONE)))
    kept = KeptStates(home, [model.config.name for model in concerned])
    work: list[Course] = []
    failed: list[tuple[str, BaseException]] = []
    by_name = {model.definition.name: model for model in concerned}
    for name, (judged, span) in _spans(home, concerned, wanted, pinned.event_days):
        course = course_of(kept, by_name[name], judged, (wanted.asked or span, span.start), pinned.event_days)
        try:
            # Evaluated for its error: the states that the course needs may not be available.
            course.outlook  # noqa: B018
        except InputError as error:
            failed.append((name, error))
            inputs = {span.start: fingerprint(by_name[name].definition, span.start, pinned.event_days)}
            record_failure(home, by_name[name].definition, inputs, error, run_id)
        else:
            work.append(course)
    return Plan(pinned, tuple(work), tuple(failed))


def _spans(
    home: Home, models: Sequence[LoadedModel], wanted: Wanted, events: EventDays | None = None
) -> Iterable[tuple[str, tuple[Judged, Days]]]:
    """The models with something to do: the name, and with it how the days stand and the span of the days to do."""
    of = {model.definition.name: model for model in models}
    known = None if events is None else {events.source: events}
    for judged in judge(home, [model.definition for model in models], asked=wanted.asked, events=known):
        span = wanted.span(of[judged.name], judged)
        if span is not None:
            yield judged.name, (judged, span)


def course_of(
    kept: KeptStates, model: LoadedModel, judged: Judged, asked: tuple[Days, date], event_days: EventDays
) -> Course:
    """A run's way through the days of a model, up to the last day ever published.

    Args:
        kept: the kept states of this model, among others.
        model: the model.
        judged: all its days, including those asked for.
        asked: the days asked for, and the first day to do.
        event_days: the source's days, pinned if a computation follows.
    """
    days, first = asked
    assert judged.place is not None
    end = max(days.end, published_end(judged) or days.end)
    chain = dense(judged.place.chain, model.definition, event_days, end)
    return Course(kept, model, Asked(days, first, chain), lambda day: fingerprint(model.definition, day, event_days))


def published_end(judged: Judged) -> date | None:
    """The day after the last one that was ever published."""
    versions = np.array([version is not None for version in judged.recorded("published_version")], dtype=bool)
    found = np.flatnonzero(versions | (judged.recorded("status") == "done"))
    return judged.day(int(found[-1])) + _ONE if len(found) else None


def _held(home: Home, models: Sequence[LoadedModel], days: Days) -> list[tuple[str, BaseException]]:
    """Models with days asked for that wait for a day that this run was not meant to finish, each with the reason."""
    found: list[tuple[str, BaseException]] = []
    for judged in judge(home, [model.definition for model in models], days, asked=days):
        waits = held(judged, days)
        if waits is not None:
            found.append((judged.name, waits))
    return found
