"""``ops.runs``: one row per phase of a step, written when the phase ends (docs/tables.md)."""

from __future__ import annotations

import functools
import logging
import sys
import sysconfig
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import metadata

from chainlake.days import Days
from chainlake.errors import ChainlakeError
from chainlake.lake.engine import engine_of
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.ops_rows import ComputingStep, PhaseName, RunRow, RunStatus, StepName
from chainlake.words import counted

#: Logs one line per phase and definition that did something, when the phase ends.
LOG = logging.getLogger("chainlake.steps")

#: The statuses of a phase that finished.
FINISHED: tuple[RunStatus, ...] = ("ok", "nothing", "incomplete")


@dataclass
class Phase:
    """What a phase reports; set the fields while it runs.

    Args:
        rows_in: rows read.
        rows_out: rows written.
        reason: one line saying why there was nothing to do, or what was left.
        about: what the phase is about in words, for the log, if it concerns several definitions together.
        status: ``ok``; ``nothing`` if there was nothing to do; ``incomplete`` if it is done except for files that
            ``reason`` names. The context manager sets ``failed``.
    """

    rows_in: int | None = None
    rows_out: int | None = None
    reason: str | None = None
    about: str = ""
    status: RunStatus = "ok"


@contextmanager
def phase(
    home: Home,
    run_id: str,
    *,
    source: str,
    step: StepName,
    phase: PhaseName,
    definition: str = "",
    days: Days | None = None,
) -> Iterator[Phase]:
    """Run a phase and log it: ``ok``, ``nothing``, or ``failed`` with the error in one line; errors pass through.

    Args:
        home: the installation.
        run_id: see :func:`new_run_id`.
        source: name of the source.
        step: the step.
        phase: name of the phase within the step.
        definition: as in ``ops.intervals``, empty if the phase concerns none or all.
        days: the interval, if it has one.
    """
    with phases(home, run_id, {definition: days}, source=source, step=step, phase=phase) as reports:
        yield reports[definition]


@contextmanager
def phases(
    home: Home, run_id: str, definitions: Mapping[str, Days | None], *, source: str, step: StepName, phase: PhaseName
) -> Iterator[dict[str, Phase]]:
    """Run one phase for several definitions: a row each, all with the same times, written together.

    Args:
        definitions: name → its interval. For the others see :func:`phase`.

    Yields:
        the report of each by name; an error that passes through marks all of them as failed.
    """
    reports = {name: Phase() for name in definitions}
    started = datetime.now(UTC)
    try:
        yield reports
    except BaseException as error:
        for report in reports.values():
            report.status, report.reason = "failed", error_line(error)
        raise
    finally:
        _note(home, run_id, definitions, reports, _Ran(source, step, phase, started))


def note_failure(
    home: Home,
    run_id: str,
    definitions: Mapping[str, Days | None],
    *,
    source: str,
    step: ComputingStep,
    error: ChainlakeError,
    started: datetime,
) -> None:
    """Note that a step failed in a process that could not note it itself: one row per definition, of the whole step.

    Args:
        home: the installation.
        run_id: of the step's run.
        definitions: name → its interval.
        source: name of the source.
        step: the step, which is also the phase.
        error: why it failed.
        started: when the process began.
    """
    reports = {name: Phase(status="failed", reason=error_line(error)) for name in definitions}
    _note(home, run_id, definitions, reports, _Ran(source, step, step, started))


@dataclass(frozen=True)
class _Ran:
    """A phase that ends now."""

    source: str
    step: StepName
    phase: PhaseName
    started: datetime


def _note(
    home: Home, run_id: str, definitions: Mapping[str, Days | None], reports: Mapping[str, Phase], ran: _Ran
) -> None:
    """Append a row of ``ops.runs`` per definition, and log it."""
    ended = datetime.now(UTC)
    rows: list[RunRow] = [
        {
            "source": ran.source,
            "step": ran.step,
            "phase": ran.phase,
            "definition": name,
            "day_from": days.start if days else None,
            "day_to": days.end if days else None,
            "started": ran.started,
            "ended": ended,
            "status": reports[name].status,
            "reason": reports[name].reason,
            "rows_in": reports[name].rows_in,
            "rows_out": reports[name].rows_out,
            "code_version": code_version(),
            "spark_app_id": _application(),
            "engine": None if reports[name].status == "nothing" else engine_of(),
        }
        for name, days in definitions.items()
    ]
    ops.append(home, "runs", rows, run_id)
    for row in rows:
        if row["status"] != "nothing":
            level = logging.ERROR if row["status"] == "failed" else logging.INFO
            about = row["definition"] or reports[row["definition"]].about
            LOG.log(level, "%s", _line(row, ended - ran.started, about))


def _line(row: RunRow, taken: timedelta, about: str) -> str:
    """A phase in words, such as ``detect pattern/shakeout 2025-10-01: ok, 2309 rows in, 76 out, 3.2 s``."""
    start, end = row["day_from"], row["day_to"]
    days = str(Days(start, end)) if start is not None and end is not None else ""
    parts: list[str] = [] if row["reason"] else [row["status"]]
    if row["rows_in"] is not None:
        parts.append(f"{counted(row['rows_in'], 'row')} in")
    if row["rows_out"] is not None:
        parts.append(f"{counted(row['rows_out'], 'row')} out")
    where = " ".join(part for part in (row["phase"], about, days) if part)
    parts.append(f"{taken.total_seconds():.1f} s")
    if row["reason"]:
        # It comes last, since it may be sentences of its own.
        parts.append(f"{row['status']}: {row['reason']}")
    return f"{where}: {', '.join(parts)}"


def new_run_id(step: str) -> str:
    """A run id that sorts by time and is unique, such as ``ingest-20251002T000500-1f2e3d4c``."""
    return f"{step}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"


def error_line(error: BaseException) -> str:
    """An error in one line, with its kind if it is not one of ours; files of packages without their folder."""
    if isinstance(error, ChainlakeError):
        text = error.summary
    else:
        text = f"{type(error).__name__}: {error}"
        # The packages lie within the folder of Python's own modules, so the longer path comes first.
        for folder in sorted({*sysconfig.get_paths().values()}, key=len, reverse=True):
            text = text.replace(f"{folder}/", "")
    return " ".join(text.split())[:1000]


@functools.cache
def code_version() -> str:
    """Version of the installed package; ``unknown`` if it is imported from a folder that was never installed."""
    try:
        return metadata.version("chainlake")
    except metadata.PackageNotFoundError:
        return "unknown"


def _application() -> str:
    """Id of the running Spark application, empty if there is none; it must not import Spark if no step has."""
    if "pyspark" not in sys.modules:
        return ""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return str(context.applicationId) if context is not None and context._jsc is not None else ""
