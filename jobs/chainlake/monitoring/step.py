"""The monitor step: events of a source to the changes and metrics of its models.

A model carries state from day to day, so its days form a chain. What is to do is decided without a JVM; a run replays
from the first day that is not as it should be, and goes on to the last day ever published. Models fail separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypedDict, Unpack

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.days import Days
from chainlake.errors import InputError
from chainlake.lake.records.event_days import COMPUTABLE, EventDays, Pinned, pin
from chainlake.lake.records.runs import phase
from chainlake.lake.records.staleness import TO_DO, StatusRow, fingerprint, status_rows, to_do
from chainlake.monitoring.replay import _ONE, STEP, Replay
from chainlake.monitoring.result import StepResult
from chainlake.monitoring.states import KeptStates
from chainlake.paths import Home
from chainlake.quality import Audit, warm_up
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


class Options(TypedDict, total=False):
    """What of a source is monitored, and how."""

    models: Sequence[str] | None
    repair_horizon: int
    only_stale: bool
    ports: Ports | None


@dataclass(frozen=True)
class Plan:
    """What is to do.

    Args:
        pinned: the source's events.
        work: which days each model replays.
        failed: definition and why it cannot be replayed.
    """

    pinned: Pinned = Pinned(None, EventDays.of("", []))
    work: tuple[Replay, ...] = ()
    failed: tuple[tuple[str, BaseException], ...] = ()


def monitor(home: Home, source_name: str, days: Days, *, run_id: str, **options: Unpack[Options]) -> dict[str, Any]:
    """Run, audit and publish the models of a source where ``days`` or the repair horizon before them need it.

    Args:
        home: the installation.
        source_name: name of the source.
        days: days asked for.
        run_id: id of the run in ``ops``.
        options: ``models``: names of the models to run; all of the source if None.
            ``repair_horizon``: days before ``days`` in which something to do makes a model run.
            ``only_stale``: days that were never computed do not make a model run.
            ``ports``: what the step works with; those of the installation if None.

    Returns:
        ``{"models": …, "days": days published, "added": …, "changed": …, "withdrawn": …}``.

    Raises:
        ChainlakeError: after all other models published, if one failed.
    """
    _, sources = the_source(home, source_name)
    loaded, broken = load_models(home, sources)
    mine, bad = chosen("model", options.get("models"), loaded, broken, source_name)
    horizon = Days(days.start - timedelta(days=options.get("repair_horizon", REPAIR_HORIZON)), days.end)
    wanted = STALE if options.get("only_stale") else TO_DO
    wanting: dict[str, list[date]] = {}
    for item in to_do(home, [m.definition for m in mine], horizon, asked=days):
        if item.state in wanted:
            wanting.setdefault(item.definition, []).append(item.day)
    plan = _plan(home, mine, days, wanting, run_id)
    result = StepResult()
    if plan.work:
        from chainlake.monitoring.run import Run, run_work  # imports Arrow's readers, which a run without work need not

        ports = options.get("ports") or _opened(home, f"monitor {source_name} {days}", plan.work)
        result = run_work(Run(home, source_name, run_id, ports, plan.pinned, Audit(home)), plan.work)
    else:
        with phase(home, run_id, source=source_name, step=STEP, phase="plan", days=days) as row:
            row.status, row.reason = "nothing", "nothing to do"
    sweep_leftovers(home)
    failures = [*((f"model/{b.name}", b.error) for b in bad), *plan.failed, *result.failed]
    raise_together(failures, f"{result.days} days published")
    return result.counts


def _opened(home: Home, app: str, work: Sequence[Replay]) -> Ports:
    # Great Expectations is imported while Java starts.
    warm_up()
    return open_ports(home, app, long_running=max(len(item.fingerprints) for item in work) > REPAIR_HORIZON)


def _plan(
    home: Home, mine: Sequence[LoadedModel], days: Days, wanting: Mapping[str, Sequence[date]], run_id: str
) -> Plan:
    """Which days each model replays; the events are pinned first, so that fingerprints are those of that version.

    Args:
        home: the installation.
        mine: models of one source.
        days: the days asked for.
        wanting: the models with something to do, and these days.
        run_id: id of the run in ``ops``, in which is noted what cannot be replayed.
    """
    if not wanting:
        return Plan()
    source = mine[0].source.name
    first = min([days.start, *(m.config.start for m in mine)])
    pinned = pin(home, source, Days(first, max(days.end, first + _ONE)))
    rows: dict[str, list[StatusRow]] = {name: [] for name in wanting}
    for row in status_rows(home, [m.definition for m in mine]):
        rows.get(row.definition, []).append(row)
    concerned = [model for model in mine if model.definition.name in wanting]
    kept = KeptStates(home, [model.config.name for model in concerned])
    work: list[Replay] = []
    failed: list[tuple[str, BaseException]] = []
    for model in concerned:
        name = model.definition.name
        try:
            work.append(plan_model(kept, model, days, pinned.event_days, rows[name]))
        except InputError as error:
            failed.append((name, error))
            inputs = {day: fingerprint(model.definition, day, pinned.event_days) for day in wanting[name]}
            record_failure(home, model.definition, inputs, error, run_id)
    return Plan(pinned, tuple(work), tuple(failed))


def plan_model(
    kept: KeptStates, model: LoadedModel, days: Days, event_days: EventDays, status: Sequence[StatusRow]
) -> Replay:
    """From which day to which a model must be replayed.

    Args:
        kept: the states that the model, among others, has left.
        model: the model, which has something to do.
        days: the days asked for.
        event_days: the source's days, pinned.
        status: every day of the model that has a row or should have one.

    Raises:
        InputError: if a day of the chain has no finished events, or the replay would be longer than ``max_replay``.
    """
    config, name = model.config, model.definition.name
    done = {row.day for row in status if row.state == "done"}
    end = max([days.end, *(row.day + _ONE for row in status if row.version is not None or row.state == "done")])
    wrong = min(day for day in {row.day for row in status}.union(days) if day < end and day not in done)
    # Before its start, and before the first event, a model has no state: nothing needs to be replayed there.
    fresh = max(config.start, event_days.first or config.start)
    start = min(wrong, fresh)
    snapshots: dict[str, str] = {}
    if wrong > fresh:
        start, snapshots = kept.last(model, fresh, wrong, event_days)
    # Days before the model's start, and before the first event, are published empty and cost nothing.
    counted = max(start, fresh)
    if (days.start - counted).days > config.max_replay:
        raise InputError(
            f"{name} must be replayed from {counted}, {(days.start - counted).days} days before {days.start}; "
            f"its max_replay is {config.max_replay} days",
            file=config.file,
            key="max_replay",
            hint=f"Run 'python -m jobs backfill {start} {days.end} --models {config.name}', "
            "which asks for the whole stretch, or raise max_replay.",
        )
    last = start
    while last < end and _ready(event_days, last):
        last += _ONE
    if last <= wrong:
        raise InputError(
            f"{name} cannot go on from {last}: the events of that day are {event_days.status(last) or 'not ingested'}",
            hint=f"Run 'python -m jobs ingest {config.source} {last} {last + _ONE}' first.",
        )
    whole = Days(start, last)
    return Replay(model, whole, snapshots, {day: fingerprint(model.definition, day, event_days) for day in whole})


def _ready(event_days: EventDays, day: date) -> bool:
    """Whether a day's events are final; before the first event day there is nothing to wait for."""
    before = event_days.first is not None and day < event_days.first
    return event_days.status(day) in COMPUTABLE or (before and event_days.status(day) is None)
