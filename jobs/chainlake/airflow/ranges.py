"""The tasks of DAGs that are triggered manually: they plan, and run steps of the command line.

A *line* is a list of Spark applications that run one after the other in one mapped task; lines may run side by side, in
any order. Applications of patterns whose days do not depend on each other have a line each. If a source has a pattern
whose days do, or has episodes or rankings, all its applications of patterns are one line, and so are those of its
models (docs/semantics.md#chained-days).
"""

from __future__ import annotations

from typing import Any, TypedDict

from chainlake.airflow import tasks
from chainlake.days import Days
from chainlake.errors import UsageError
from chainlake.operations.backfills.applications import CHUNK
from chainlake.paths import Home
from chainlake.run.results import COUNTS, Computed
from chainlake.words import listed


class OneRun(TypedDict):
    """A step of the command line on some days: ``definitions`` by name, and further arguments as ``options``."""

    step: str
    source: str
    start: str
    end: str
    definitions: list[str]
    options: list[str]


class Line(TypedDict):
    """What one mapped task runs, in this order; ``error``: why there is nothing that could be run, else empty."""

    name: str
    applications: list[OneRun]
    error: str


#: The largest number of mapped tasks; more would fail the task that lists them (Airflow's ``max_map_length``).
MOST_LINES = 1024


class TooManyTasks(UsageError):
    """A run would map more tasks than Airflow allows."""

    count: int

    @classmethod
    def of(cls, count: int) -> TooManyTasks:
        """For the number of tasks that it would need."""
        what = f"{count} tasks would be needed, but Airflow maps at most {MOST_LINES}"
        return cls(what, hint="Give a larger chunk, or fewer days.").holding(count=count)


def backfill_lines(params: dict[str, Any]) -> list[Line]:
    """The lines of a ``backfill_history`` run.

    Args:
        params: ``start`` and ``end`` (YYYY-MM-DD, half-open), ``patterns``, ``models`` (names; both empty: everything),
            ``chunk`` (days), ``only_stale``. All but the days may be None, as a field of the form that was emptied is.

    Raises:
        UsageError: there is no day, a name is unknown, or there are too many applications.
    """
    patterns, models = params["patterns"] or None, params["models"] or None
    return _lines(
        Days.parse(params["start"], params["end"]),
        patterns=patterns,
        models=models,
        chunk=params["chunk"] or CHUNK,
        only_stale=bool(params["only_stale"]),
    )


def ingest_lines(params: dict[str, Any]) -> list[Line]:
    """The only line of an ``ingest_history`` run, in a list.

    Args:
        params: ``source``, ``start`` and ``end`` (YYYY-MM-DD, half-open).

    Raises:
        UsageError: there is no day.
    """
    days, source = Days.parse(params["start"], params["end"]), params["source"]
    application: OneRun = {
        "step": "ingest",
        "source": source,
        "start": str(days.start),
        "end": str(days.end),
        "definitions": [],
        "options": [],
    }
    return [{"name": f"ingest {source}", "applications": [application], "error": ""}]


def restate_lines(params: dict[str, Any]) -> list[Line]:
    """The lines of a ``restate_stale`` run.

    Args:
        params: ``sources`` (names; empty: all), ``chunk`` (days); both may be None.

    Raises:
        UsageError: a source is unknown, or there are too many applications.
    """
    return _lines(None, sources=params["sources"] or None, chunk=params["chunk"] or CHUNK, only_stale=True)


def _lines(days: Days | None, **options: Any) -> list[Line]:
    from chainlake.lake.records.runs import error_line
    from chainlake.operations.backfills.launch import options_of
    from chainlake.operations.backfills.plan import plan_range

    plan = plan_range(Home.from_env(), days, **options)
    for note in plan.notes():
        tasks.log.info("%s", note)
    for planned in plan.applications:
        tasks.log.info("%s: %s", planned.name, listed(planned.definitions))
    lines: list[Line] = []
    ordered = {(one.step, one.source) for one in plan.applications if one.in_order}
    for planned in plan.applications:
        application: OneRun = {
            "step": planned.step,
            "source": planned.source,
            "start": str(planned.days.start),
            "end": str(planned.days.end),
            "definitions": planned.definitions,
            "options": options_of(planned),
        }
        line = (planned.step, planned.source)
        name = " ".join(line) if line in ordered else planned.name
        if lines and lines[-1]["name"] == name:
            lines[-1]["applications"].append(application)
        else:
            lines.append({"name": name, "applications": [application], "error": ""})
    # A definition that cannot be computed becomes a task that fails with the reason, and stops no other.
    lines += [{"name": name, "applications": [], "error": error_line(error)} for name, error in plan.failures]
    if len(lines) > MOST_LINES:
        raise TooManyTasks.of(len(lines))
    return lines


def run_line(line: Line, run_id: str) -> Computed:
    """Run the applications of a line, one after the other.

    Returns:
        the numbers of days published, and of rows added, changed and withdrawn.

    Raises:
        AirflowFailException: some failed in a way that a retry cannot fix; the others were run.
        InfrastructureError: one failed in a way that a retry can fix; those after it wait for the retry.
    """
    from chainlake.airflow.releases import AirflowFailException
    from chainlake.run.common import REPAIR_HORIZON

    if line["error"]:
        raise AirflowFailException(line["error"])
    total: Computed = {"days": 0, "added": 0, "changed": 0, "withdrawn": 0}
    applications = line["applications"]
    failed: list[AirflowFailException] = []
    for number, application in enumerate(applications, 1):
        tasks.log.info(
            "application %d of %d: %s %s", number, len(applications), application["start"], application["end"]
        )
        days = Days.parse(application["start"], application["end"])
        try:
            result = tasks.run_step(
                application["step"],
                application["source"],
                days,
                run_id=f"{run_id}.{number}",
                definitions=application["definitions"],
                options=application["options"],
                warm=len(days) <= REPAIR_HORIZON,
            )
        except AirflowFailException as error:
            # An error of one definition in one window must not stop the rest of the line.
            tasks.log.error("application %d of %d: %s", number, len(applications), error)
            failed.append(error)
            continue
        # An ingest lists the days that it changed; the other steps give their number.
        counts = {**result, "days": len(result["days"])} if isinstance(result["days"], list) else result
        for name in COUNTS:
            total[name] += counts[name]
    if failed:
        raise AirflowFailException("; ".join(map(str, failed)))
    return total
