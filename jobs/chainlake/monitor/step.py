"""The monitor step: events of a source to the changes and metrics of its models (design §1, §4 "Models").

A model carries state from day to day, so its days form a chain. What is to do is decided without a JVM; a run replays
from the first day that is not as it should be, and goes on to the last day ever published. Models fail separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.days import Days
from chainlake.errors import InputError
from chainlake.lake.records.event_days import COMPUTABLE, EventDays, Pinned, pin
from chainlake.lake.records.runs import phase
from chainlake.lake.records.staleness import TO_DO, StatusRow, fingerprint, status_rows, to_do
from chainlake.monitor.replay import _ONE, STEP, Replay
from chainlake.monitor.states import KeptStates
from chainlake.paths import Home
from chainlake.run.common import (
    REPAIR_HORIZON,
    STALE,
    chosen,
    raise_together,
    record_failure,
    sweep_leftovers,
    the_source,
)


def monitor(
    home: Home,
    source_name: str,
    days: Days,
    *,
    run_id: str,
    models: Sequence[str] | None = None,
    repair_horizon: int = REPAIR_HORIZON,
    only_stale: bool = False,
) -> dict[str, Any]:
    """Run, audit and publish the models of a source where ``days`` or the repair horizon before them need it.

    Args:
        home: the installation.
        source_name: name of the source.
        days: days asked for.
        run_id: id of the run in ``ops``.
        models: names of the models to run; all of the source if None.
        repair_horizon: days before ``days`` in which something to do makes a model run.
        only_stale: days that were never computed do not make a model run.

    Returns:
        ``{"models": …, "days": days published, "added": …, "changed": …, "withdrawn": …}``.

    Raises:
        ChainlakeError: after all other models published, if one failed.
    """
    _, sources = the_source(home, source_name)
    loaded, broken = load_models(home, sources)
    mine, bad = chosen("model", models, loaded, broken, source_name)
    failures: list[tuple[str, BaseException]] = [(f"model/{b.name}", b.error) for b in bad]
    result: dict[str, Any] = {"models": 0, "days": 0, "added": 0, "changed": 0, "withdrawn": 0}
    horizon = Days(days.start - timedelta(days=repair_horizon), days.end)
    wanted = STALE if only_stale else TO_DO
    pinned, work = _plan(home, source_name, mine, days, horizon, wanted, run_id, failures)
    if work:
        from chainlake.monitor.run import run_work  # imports Spark, which a run with nothing to do must not

        run_work(home, source_name, days, pinned, work, run_id, result, failures)
    else:
        with phase(home, run_id, source=source_name, step=STEP, phase="plan", days=days) as row:
            row.status, row.reason = "nothing", "nothing to do"
    sweep_leftovers(home)
    raise_together(failures, f"{result['days']} days published")
    return result


def _plan(
    home: Home,
    source_name: str,
    mine: Sequence[LoadedModel],
    days: Days,
    horizon: Days,
    wanted: Sequence[str],
    run_id: str,
    failures: list[tuple[str, BaseException]],
) -> tuple[Pinned, list[Replay]]:
    """Which days each model replays; the events are pinned first, so that fingerprints are those of that version."""
    definitions = [m.definition for m in mine]
    wanting: dict[str, list[date]] = {}
    for item in to_do(home, definitions, horizon, asked=days):
        if item.state in wanted:
            wanting.setdefault(item.definition, []).append(item.day)
    if not wanting:
        return Pinned(None, EventDays.of(source_name, [])), []
    first = min([days.start, *(m.config.start for m in mine)])
    pinned = pin(home, source_name, Days(first, max(days.end, first + _ONE)))
    rows: dict[str, list[StatusRow]] = {name: [] for name in wanting}
    for row in status_rows(home, definitions):
        rows.get(row.definition, []).append(row)
    work = []
    concerned = [model for model in mine if model.definition.name in wanting]
    kept = KeptStates(home, [model.config.name for model in concerned])
    for model in concerned:
        name = model.definition.name
        try:
            work.append(plan_model(kept, model, days, pinned.event_days, rows[name]))
        except InputError as error:
            failures.append((name, error))
            inputs = {day: fingerprint(model.definition, day, pinned.event_days) for day in wanting[name]}
            record_failure(home, model.definition, inputs, error, run_id)
    return pinned, work


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
