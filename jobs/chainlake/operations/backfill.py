"""Long stretches of history: one Spark application per chunk of days, each publishing many days (design §4, §8).

What is done is not done again, so a backfill that was stopped goes on where it was when it is called again; whatever
fails, an application or one definition in it, all the others are run, and the failure is raised at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.errors import ChainlakeError
from chainlake.lake.records.runs import one_line
from chainlake.monitor.step import monitor
from chainlake.operations.plan import CHUNK, Application, RangePlan, plan_range
from chainlake.paths import Home
from chainlake.run.common import raise_together
from chainlake.run.ports import Ports
from chainlake.words import counted

#: Runs one application: (home, application, run id) → the step's result; raises ChainlakeError.
Launch = Callable[[Home, Application, str], dict[str, Any]]

_COUNTS = ("days", "added", "changed", "withdrawn")


def run_here(home: Home, application: Application, run_id: str, ports: Ports | None = None) -> dict[str, Any]:
    """Run an application in this process.

    Args:
        home: the installation.
        application: a step and its days.
        run_id: of the step's run in ``ops``.
        ports: what the step works with; those of the installation if None.
    """
    if application.step == "detect":
        return detect(
            home, application.source, application.days, run_id=run_id, patterns=application.definitions,
            repair_horizon=0, only_stale=application.only_stale,
        )  # fmt: skip
    return monitor(
        home, application.source, application.days, run_id=run_id, models=application.definitions,
        repair_horizon=0, only_stale=application.only_stale, ports=ports,
    )  # fmt: skip


def backfill(
    home: Home,
    days: Days,
    *,
    run_id: str,
    patterns: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    chunk: int = CHUNK,
    only_stale: bool = False,
    launch: Launch = run_here,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Compute and publish every day of ``days`` that is missing, stale or failed.

    Args:
        home: the installation.
        days: the days; what has not been ingested of them is left out and said.
        run_id: of the run in ``ops``; application n writes under ``<run_id>.<n>``.
        patterns: names of the patterns; all if ``models`` is None too, else none.
        models: names of the models, likewise.
        chunk: days of one application.
        only_stale: leave out days that were never computed.
        launch: how an application is run: :func:`run_here`, or in a process of its own.
        say: receives the lines of progress.

    Returns:
        ``{"applications": …, "days": published, "added": …, "changed": …, "withdrawn": …}``.

    Raises:
        UsageError: a name that does not exist.
        ChainlakeError: after everything else was run, if a definition or an application failed.
    """
    plan = plan_range(home, days, patterns=patterns, models=models, chunk=chunk, only_stale=only_stale)
    return run_plan(home, plan, run_id=run_id, launch=launch, say=say)


def restate(
    home: Home,
    *,
    run_id: str,
    sources: Sequence[str] | None = None,
    chunk: int = CHUNK,
    launch: Launch = run_here,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Compute anew every day that is stale or failed, however old; scheduled runs look a week back only.

    Days that were never computed are left to :func:`backfill`. Arguments and result are those of :func:`backfill`.

    Args:
        home: the installation.
        run_id: of the run in ``ops``.
        sources: only definitions of these sources; all if None.
        chunk: days of one application.
        launch: how an application is run.
        say: receives the lines of progress.
    """
    return run_plan(
        home, plan_range(home, None, sources=sources, chunk=chunk, only_stale=True), run_id=run_id, launch=launch,
        say=say,
    )  # fmt: skip


def run_plan(
    home: Home,
    plan: RangePlan,
    *,
    run_id: str,
    launch: Launch = run_here,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run the applications of a plan, in their order; arguments, result and errors as for :func:`backfill`."""
    total: dict[str, Any] = {"applications": 0, **dict.fromkeys(_COUNTS, 0)}
    failures = list(plan.failures)
    for name, error in failures:
        say(f"cannot be computed: {name}: {one_line(error)}")
    for (name, why), count in sorted(plan.left.items()):
        say(f"left out: {name}, {counted(count, 'day')}: {why}")
    if not plan.applications:
        say("nothing to do: every day that has events is up to date")
    begun = time.monotonic()
    for number, application in enumerate(plan.applications, 1):
        at = f"[{number}/{len(plan.applications)}]"
        asked = sum(len(part.days) for part in application.parts)
        definitions, days = counted(len(application.parts), "definition"), counted(asked, "day")
        say(f"{at} {application.name}: {definitions}, {days} of theirs to compute")
        total["applications"] += 1
        start = time.monotonic()
        try:
            result = launch(home, application, f"{run_id}.{number}")
        except ChainlakeError as error:
            # Whatever stops one application must not stop the others; it is raised when they are done.
            failures.append((application.name, error))
            say(f"{at} failed after {time.monotonic() - start:.0f} s: {one_line(error)}")
            continue
        for name in _COUNTS:
            total[name] += result[name]
        each = (time.monotonic() - begun) / number
        say(
            f"{at} ok after {time.monotonic() - start:.0f} s: "
            + ", ".join(f"{name} {result[name]}" for name in _COUNTS)
            + f"; about {each * (len(plan.applications) - number):.0f} s to go"
        )
    raise_together(failures, f"{total['days']} days published")
    return total
