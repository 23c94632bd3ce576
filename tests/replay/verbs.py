"""The verbs about long stretches in the simulator: what a plan announces is what its backfill computes; retiring."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from typing import Any

from chainlake.days import Days
from chainlake.lake.records import ops, runs
from chainlake.operations.backfills.backfill import run_here, run_plan
from chainlake.operations.backfills.plan import RangePlan, plan_range
from chainlake.operations.maintain import maintain
from chainlake.operations.retire import retire
from chainlake.paths import Home
from chainlake.run.ports import Ports

#: (definition, day) pairs.
Pairs = set[tuple[str, date]]


class NotAsPlanned(AssertionError):
    """A backfill computed other days than its plan announced."""


def long_run(home: Home, days: Days | None, *, chunk: int, undisturbed: bool, ports: Ports | None) -> dict[str, Any]:
    """``backfill`` on ``days``, or ``restate`` (``days`` is None), in chunks; what it computes was announced.

    Args:
        home: the installation.
        days: the days, or None for all, and of these only those that were computed once.
        chunk: days of an application.
        undisturbed: nothing happens to this attempt, so that its plan holds.
        ports: what the steps work with; those of the installation if None.

    Raises:
        NotAsPlanned: it computed other days.
    """
    plan = plan_range(home, days, chunk=chunk, only_stale=days is None)
    return run_as_planned(home, plan, undisturbed=undisturbed, ports=ports)


def run_as_planned(home: Home, plan: RangePlan, *, undisturbed: bool, ports: Ports | None) -> dict[str, Any]:
    """Run a plan; arguments and errors as for `long_run`."""
    run_id = runs.new_run_id("backfill")
    result = run_plan(home, plan, run_id=run_id, launch=partial(run_here, ports=ports), say=lambda line: None)
    announced, computed = announced_by(plan), computed_by(home, run_id)
    missed, surprising = announced - computed, computed - announced - possible_by(plan)
    if undisturbed and (missed or surprising):
        raise NotAsPlanned(f"announced and not computed: {_listed(missed)}; computed and not announced: "
                           f"{_listed(surprising)}")  # fmt: skip
    return result


def announced_by(plan: RangePlan) -> Pairs:
    """What a plan says will be computed."""
    return {(part.definition, day) for app in plan.applications for part in app.parts for day in part.days}


def possible_by(plan: RangePlan) -> Pairs:
    """What it says may be computed besides, as the state of the days before will have it."""
    return {(part.definition, day) for app in plan.applications for part in app.parts for day in part.following}


def computed_by(home: Home, run_id: str) -> Pairs:
    """What the applications of a run brought to an end, whichever.

    Days that are recorded anew because their table took another's place have no counts: nothing of them was computed.
    """
    columns = ["definition", "day", "status", "added", "run_id"]
    log = ops.current_table(home, "intervals", columns=columns, as_log=True)
    return {
        (row["definition"], row["day"])
        for row in log.to_pylist()
        if row["run_id"].startswith(f"{run_id}.") and row["status"] != "publishing"
        if not (row["status"] == "done" and row["added"] is None)
    }


def _listed(pairs: Pairs) -> str:
    return ", ".join(f"{name} {day}" for name, day in sorted(pairs)) or "nothing"


def retired(home: Home, name: str, *, drop: bool) -> dict[str, Any]:
    """``retire`` a pattern whose file was removed just before."""
    return retire(home, f"pattern/{name}", drop=drop, run_id=runs.new_run_id("retire"))


def maintained(home: Home, *, nothing_kept: bool) -> dict[str, Any]:
    """``maintain``; with ``nothing_kept``, as if the retention had passed since whatever was replaced."""
    keep = timedelta(0) if nothing_kept else None
    return maintain(home, run_id=runs.new_run_id("maintain"), keep=keep)
