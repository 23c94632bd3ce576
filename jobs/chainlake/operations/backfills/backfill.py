"""Runs long ranges of days: one Spark application per chunk, each publishing many days.

Finished work is not repeated, so a backfill that was stopped continues where it was when it is called again. If an
application, or one definition in it, fails, all others are still run, and the failure is raised at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from chainlake.detect.step import detect
from chainlake.errors import ChainlakeError
from chainlake.lake.records.runs import error_line
from chainlake.monitoring.step import monitor
from chainlake.operations.backfills.applications import Application
from chainlake.operations.backfills.range_plan import RangePlan
from chainlake.paths import Home
from chainlake.run.common import raise_together
from chainlake.run.ports import Ports
from chainlake.run.results import COUNTS, Backfilled, Computed, counts_line
from chainlake.words import counted

#: Runs one application: (home, application, run id) → the step's result; raises ChainlakeError.
Launch = Callable[[Home, Application, str], Computed]


def run_here(home: Home, application: Application, run_id: str, ports: Ports | None = None) -> Computed:
    """Run an application in this process.

    Args:
        home: the installation.
        application: a step and its days.
        run_id: of the step's run in ``ops``.
        ports: the step's ports; those of the installation if None.
    """
    if application.step == "detect":
        return detect(
            home, application.source, application.days, run_id=run_id, patterns=application.definitions,
            repair_horizon=0, only_stale=application.only_stale, ports=ports,
        )  # fmt: skip
    return monitor(
        home, application.source, application.days, run_id=run_id, models=application.definitions,
        repair_horizon=0, only_stale=application.only_stale, ports=ports,
    )  # fmt: skip


def run_plan(
    home: Home,
    plan: RangePlan,
    *,
    run_id: str,
    launch: Launch = run_here,
    say: Callable[[str], None] = print,
) -> Backfilled:
    """Run the applications of a plan in their order, for ``backfill`` and ``restate``.

    Args:
        home: the installation.
        plan: from `plan_range`.
        run_id: id of the run in ``ops``; application n writes under ``<run_id>.<n>``.
        launch: runs an application: :func:`run_here`, or in its own process.
        say: receives the lines of progress.

    Returns:
        ``{"applications": …, "days": published, "added": …, "changed": …, "withdrawn": …}``.

    Raises:
        ChainlakeError: a definition or an application failed; raised after everything else was run.
    """
    total: Backfilled = {"applications": 0, "days": 0, "added": 0, "changed": 0, "withdrawn": 0}
    failures = list(plan.failures)
    for line in plan.notes():
        say(line)
    begun = time.monotonic()
    for number, application in enumerate(plan.applications, 1):
        at = f"[{number}/{len(plan.applications)}]"
        asked = sum(len(part.days) for part in application.parts)
        definitions, days = counted(len(application.parts), "definition"), counted(asked, "day")
        following = sum(len(part.following) for part in application.parts)
        more = f", at most {following} more that follow" if following else ""
        say(f"{at} {application.name}: {definitions}, {days} to compute{more}")
        total["applications"] += 1
        start = time.monotonic()
        try:
            result = launch(home, application, f"{run_id}.{number}")
        except ChainlakeError as error:
            # An error in one application must not stop the others; it is raised when they are done.
            failures.append((application.name, error))
            say(f"{at} failed after {time.monotonic() - start:.0f} s: {error_line(error)}")
            continue
        for name in COUNTS:
            total[name] += result[name]
        counts: dict[str, int] = {name: result[name] for name in COUNTS}
        now, left = time.monotonic(), len(plan.applications) - number
        to_go = f"; about {(now - begun) / number * left:.0f} s to go" if left else ""
        say(f"{at} ok after {now - start:.0f} s: {counts_line(counts, application.step)}{to_go}")
    raise_together(failures, f"{total['days']} days published")
    return total
