"""What the tasks of DAGs do: find the day of a run, wait for its events, and run a step.

Nothing here imports Airflow, except where an error must tell it not to retry; the scheduler's parser needs only names.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict

from chainlake.airflow.names import first_start
from chainlake.days import Days
from chainlake.env.java import java_home
from chainlake.env.own_folders import own_folder
from chainlake.env.processes.child import Killed, run_child
from chainlake.env.processes.warm_driver import ADDRESS, run_in_driver
from chainlake.errors import InfrastructureError, UsageError
from chainlake.lake.spark.site import Site
from chainlake.paths import CODE, PROJECT, Home

log = logging.getLogger("chainlake")


class Bundle(TypedDict):
    """Definitions that run together: ``name`` identifies the mapped task; ``definitions`` by name, empty for all."""

    name: str
    definitions: list[str]


_ONE_DAY = timedelta(days=1)
#: Exit codes that a retry cannot fix (docs/semantics.md#exit-codes).
LASTING = (1, 2, 3, 4)


class NotOneDay(UsageError):
    """A run's data interval is not one whole UTC day."""

    @classmethod
    def no_interval(cls) -> NotOneDay:
        """The run has no interval."""
        hint = "Trigger it with a logical date, which chooses the day, or use a backfill of whole days."
        return cls("this run has no data interval, so it has no day", hint=hint)

    @classmethod
    def of(cls, start: datetime, end: datetime) -> NotOneDay:
        """The run has another interval."""
        what = f"the data interval {start.isoformat()} to {end.isoformat()} is not one whole UTC day"
        hint = "Trigger it without an interval, so that the logical date chooses the day, or use a backfill."
        return cls(what, hint=hint)


class StepFailed(InfrastructureError):
    """A step in another process failed, and trying again may help; its own message is the whole text."""


def days_of_run(start: datetime | None, end: datetime | None) -> Days:
    """The one UTC day that a run's data interval stands for.

    Args:
        start: ``data_interval_start``.
        end: ``data_interval_end``.

    Raises:
        UsageError: the interval is not one whole UTC day, as for a manual run or another timetable.
    """
    if start is None or end is None or start.tzinfo is None or end.tzinfo is None:
        raise NotOneDay.no_interval()
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    midnight = datetime(start.year, start.month, start.day, tzinfo=UTC)
    if start != midnight or end - start != _ONE_DAY:
        raise NotOneDay.of(start, end)
    return Days.one(start.date())


def gate(step: str, source: str, days: Days) -> list[Bundle] | None:
    """Whether the events that ``step`` needs for ``days`` are there; decided without a JVM.

    Returns:
        None while they are not; then the bundles of definitions to run, each in one Spark application. The list is
        empty if there is nothing to do and never will be, since the day is before the source's first event.
    """
    from chainlake.lake.records.event_days import COMPUTABLE, EventDays

    home = Home.from_env()
    day = days.start
    event_days = EventDays.load(home, source)
    first = event_days.first
    if first is None or day < first:
        if _ingested_past(home, source, day):
            return []
        log.info("waiting for an ingest of %s that covers days after %s: none has finished yet", source, day)
        return None
    # A model carries its state from its start; if the start is after this day, the step will say so.
    since = day if step == "detect" else min(day, max(first, first_start(home, source) or first))
    for needed in Days(since, days.end):
        status = event_days.status(needed)
        if status not in COMPUTABLE:
            log.info("waiting for %s of %s: %s", needed, source, _waited_for(home, source, needed, status))
            return None
    return bundles(source)


def _waited_for(home: Home, source: str, day: date, status: str | None) -> str:
    """What has to happen before a day's events are there."""
    from chainlake.lake.locks import held, holder
    from chainlake.lake.records.event_days import CHANGING

    if status != CHANGING:
        return {"open": "open: some of its files have not landed", None: "not ingested yet"}.get(status, str(status))
    purpose = f"source-{source}"
    if held(home, purpose):
        return f"it is being changed by {holder(home, purpose)}"
    end = Days.one(day).end
    return f"its ingest failed or was killed; repeat it: 'chainlake ingest {source} {day} {end}'"


def bundles(source: str) -> list[Bundle]:
    """The bundles of definitions of ``source``, one Spark application each: all definitions in one."""
    return [{"name": source, "definitions": []}]


def _ingested_past(home: Home, source: str, day: date) -> bool:
    """Whether an ingest whose interval ends after ``day`` has finished, so that there is no point in waiting for it."""
    from chainlake.lake.records import ops
    from chainlake.lake.records.runs import FINISHED

    return any(
        row["phase"] == "ingest" and row["status"] in FINISHED and row["day_to"] is not None and row["day_to"] > day
        for row in ops.current(home, "runs", source=source, step="ingest")
    )


def run_step(
    verb: str,
    source: str,
    days: Days,
    *,
    run_id: str,
    definitions: Sequence[str] = (),
    options: Sequence[str] = (),
    warm: bool = True,
) -> dict[str, Any]:
    """Run ``chainlake VERB SOURCE FROM TO`` under this task's supervision, with its output in the task log.

    Args:
        verb: ``ingest``, ``detect`` or ``monitor``.
        source: name of the source.
        days: the days.
        run_id: id of the run in ``ops``.
        definitions: names of patterns or models; empty for all of the source.
        options: further arguments.
        warm: use a warm driver if the launcher keeps some; long work is better off in a fresh one, whose JVM has the
            optimising compiler that the JVMs of warm drivers do without.

    Returns:
        the step's result.

    Raises:
        AirflowFailException: the step failed in a way that a retry cannot fix.
        InfrastructureError: the step failed in a way that a retry can fix.
    """
    option = {"detect": "--pattern", "monitor": "--model"}.get(verb)
    call = [verb, source, str(days.start), str(days.end), *options]
    if definitions and option:
        call += [word for name in definitions for word in (option, name)]
    return run_verb(call, run_id=run_id, driver="warm" if warm else "fresh")


def run_on_tables(words: Sequence[str], *, run_id: str) -> dict[str, Any]:
    """:func:`run_verb` for verbs about tables alone; no process is started if there are no tables yet."""
    from chainlake.storage.resolve import storage_of

    lake = Home.from_env().lake
    if not storage_of(lake).folders(lake):
        log.info("there is no table yet in %s: nothing to do", lake)
        return {}
    return run_verb(words, run_id=run_id)


def run_verb(words: Sequence[str], *, run_id: str, driver: Literal["warm", "fresh"] | None = None) -> dict[str, Any]:
    """Run ``chainlake WORDS…``, a verb with the options ``--run-id`` and ``--result``; otherwise like :func:`run_step`.

    Without a driver, it runs in its own process, alongside the steps and without waiting for any of them.
    """
    home = Home.from_env()
    with tempfile.TemporaryDirectory(prefix="result-", dir=own_folder(home.temporary)) as folder:
        result_file = Path(folder) / "result.json"
        call = [*words, "--run-id", run_id, "--result", str(result_file)]
        lines = _Lines(log.log)
        code = _run(call, lines, driver)
        result: dict[str, Any] = json.loads(result_file.read_text()) if result_file.exists() else {}
    if code == 0:
        return result
    reason = str(result.get("error") or lines.last or "no output")
    if code < 0:
        reason = f"{Killed.of(-code).summary} Its last line: {reason}"
    log.error("%s", reason)
    if code in LASTING:
        from chainlake.airflow.releases import AirflowFailException

        raise AirflowFailException(reason)
    raise StepFailed(reason)


def _run(call: list[str], on_line: Callable[[str], None], driver: str | None) -> int:
    """Run ``chainlake CALL…`` in a driver if one is wanted and kept, else as a child process; returns the exit code."""
    # On a cluster, idle drivers would hold executors that others could use.
    address = os.environ.get(ADDRESS) if driver and Site.from_env().on_this_machine else None
    code = run_in_driver(address, call, on_line, fresh=driver == "fresh") if address else None
    if code is not None:
        return code
    return run_child([sys.executable, "-m", "chainlake", *call], env=_environment(), cwd=PROJECT, on_line=on_line)


class _Lines:
    """Passes lines on, each at its level, and remembers the last one with content."""

    def __init__(self, write: Callable[[int, str], None]) -> None:
        self._write = write
        self.last = ""

    def __call__(self, line: str) -> None:
        if any(words in line for words in _STARTING):
            return
        self._write(level_of(line), line)
        if line.strip() and not line.startswith("hint:"):
            self.last = line.strip().removeprefix("error: ")


#: Lines that Java and Spark print at every start, which say nothing about the run.
_STARTING = (
    "WARNING: Using incubator modules",
    "Unable to load native-hadoop library",
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use sc.setLogLevel",
)
_SPARK_LINE = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (WARN|ERROR) ")


def level_of(line: str) -> int:
    """The level of a line that a step printed, judged by the step's own words or by the form of Spark's log."""
    found = _SPARK_LINE.match(line)
    if line.startswith("error: ") or "failed: " in line or (found and found[1] == "ERROR"):
        return logging.ERROR
    if line.lower().startswith("warning: ") or found:
        return logging.WARNING
    return logging.INFO


def _environment() -> dict[str, str]:
    """The environment of a step: this process's, with the Java and the Python path that the step must use."""
    return os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": str(CODE),
        "PYTHONUNBUFFERED": "1",
    }
