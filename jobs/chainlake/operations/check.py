"""The check step: whether every table holds what was written to it and, if not, how it can be repaired; no JVM.

A table is first read without its lock, since reading takes long and writers must not wait. Only if something is wrong
is it read once more under the lock, so that a writer's unfinished work is not taken for damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from chainlake.days import Days
from chainlake.definitions.source import Source, load_sources
from chainlake.errors import InfrastructureError
from chainlake.ingest.check import SourceTables, check_source
from chainlake.lake.delta.damaged import in_the_way
from chainlake.lake.errors import UnknownTable
from chainlake.lake.locks import file_lock, is_read_only, unusable
from chainlake.lake.records import ops
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.records.runs import phase
from chainlake.lake.remembered import forgotten
from chainlake.lake.sql.scan import list_tables
from chainlake.lake.upkeep import recorded
from chainlake.lake.upkeep.check_ops import check_ops, unlogged
from chainlake.lake.upkeep.check_published import check_matches, check_models
from chainlake.lake.upkeep.check_table import inspect_table
from chainlake.lake.upkeep.findings import Finding, OpsLog, UnrecordedFiles
from chainlake.lake.upkeep.maintain import lock_of
from chainlake.paths import Home
from chainlake.run.common import raise_together
from chainlake.schemas.models import SHARED
from chainlake.schemas.ops import ALL
from chainlake.storage.resolve import storage_of

STEP: Literal["check"] = "check"
#: How many seconds to wait for a writer before a table is read under its lock.
_WAIT_S = 600.0
_SOURCE = ("raw", "events", "quarantine")
#: Schemas with a table per pattern.
_OF_PATTERNS = ("matches", "episodes", "ranked")


@dataclass
class Checked:
    """The result of a check.

    Args:
        findings: all, table by table.
        tables: number of tables that were checked.
        failures: tables that could not be checked, and why.
    """

    findings: list[Finding] = field(default_factory=list)
    tables: int = 0
    failures: list[tuple[str, BaseException]] = field(default_factory=list)

    @property
    def damage(self) -> list[Finding]:
        """The findings that are more than notes."""
        return [one for one in self.findings if one.damage]


@dataclass(frozen=True)
class _Unit:
    """Tables that are compared together: their locks, and the function that checks them."""

    name: str
    locks: tuple[str, ...]
    run: Callable[[], tuple[list[Finding], int]]


@dataclass(frozen=True)
class Scope:
    """What is checked.

    Args:
        within: only these days of events and of published rows.
        tables: only these tables, by ``schema.name``.
        source: only tables of this source and of ``definitions``.
        definitions: with ``source``, its patterns and models, as ``pattern/NAME`` and ``model/NAME``.
        quick: check only logs and files, and read no row.
    """

    within: Days | None = None
    tables: tuple[str, ...] | None = None
    source: str | None = None
    definitions: tuple[str, ...] = ()
    quick: bool = False


def check(home: Home, *, run_id: str, scope: Scope) -> Checked:
    """Check the lake, or a part of it.

    Args:
        home: the installation.
        run_id: id under which the run is logged.
        scope: what to check.

    Raises:
        UsageError: a table neither exists nor was ever written to.
        InfrastructureError: tables with damage were in use all the time; raised after all others were checked.
    """
    runs = inspect_table(home, "ops", "runs", strangers=False)
    history_gone = runs.contents is None and not runs.findings and bool(list_tables(home, "ops"))
    if runs.findings or unusable(home) or is_read_only(home) or (runs.contents is None and forgotten(home)):
        # A run that cannot be logged must still show what it found, and logging it must not make a lost lake look new.
        found = look(home, scope)
    else:
        with phase(home, run_id, source=scope.source or "", step=STEP, phase=STEP, days=scope.within) as report:
            found = look(home, scope)
            report.rows_in, report.rows_out = found.tables, len(found.damage)
            if found.damage:
                report.status, report.reason = "failed", f"damaged: {found.damage[0]}"[:1000]
    if history_gone and _wanted(scope, "ops.runs"):
        what = "the table is gone, and with it the history of runs; nothing else is made from it"
        found.findings.append(Finding("ops.runs", what, damage=False))
    raise_together(found.failures, f"{found.tables} tables checked")
    return found


def look(home: Home, scope: Scope) -> Checked:
    """Do what :func:`check` does, but without a log row and without raising the errors that stopped some tables."""
    found = Checked(findings=[Finding("locks", lock.summary) for lock in unusable(home)])
    _run(home, _ops_unit(home), found)
    if any(one.damage and one.table.startswith("ops.") for one in found.findings) and not _readable(home):
        what = "no rows were compared, since their records cannot be read"
        found.findings.append(Finding("ops", what, damage=False))
        scope = replace(scope, quick=True)
    else:
        found.findings += _forgotten(home, scope)
    for unit in _units(home, scope):
        _run(home, unit, found)
    if scope.tables is not None:
        found.findings = [one for one in found.findings if one.table in scope.tables]
    return found


def _forgotten(home: Home, scope: Scope) -> list[Finding]:
    """Findings for sources that the home remembers but the lake has no record of."""
    lost = [one for one in forgotten(home) if scope.source in (None, one.source)]
    return [
        Finding("ops.files", one.lost(home), fixes=(UnrecordedFiles(one.source, Days(one.start, one.end)),))
        for one in lost
    ]


def _run(home: Home, unit: _Unit, into: Checked) -> None:
    findings, tables = unit.run()
    # On a disk that is read-only no writer can hold a lock.
    if any(one.damage for one in findings) and not is_read_only(home):
        try:
            with ExitStack() as locks:
                for lock in unit.locks:
                    locks.enter_context(file_lock(home, lock, wait_s=_WAIT_S))
                findings, tables = unit.run()
        except InfrastructureError as error:
            into.failures.append((unit.name, error))
            return
    into.findings += findings
    into.tables += tables


def _readable(home: Home) -> bool:
    """Whether the logs that everything is compared with can be read."""
    if unlogged(home) or _blocked(home, "ops", ALL):
        return False
    try:
        for name in ("intervals", "event_days", "files", "rates"):
            ops.current_table(home, name)
    except Exception:  # any error that stops a reader stops the comparison
        return False
    return True


def _tables(home: Home, schema: str) -> list[str]:
    """Names of the tables of a schema, and of files in the place of a table."""
    root = home.table(schema, "").rstrip("/")
    there = [name for name in storage_of(root).names(root) if name.isidentifier()]
    return [*list_tables(home, schema), *_blocked(home, schema, there)]


def _blocked(home: Home, schema: str, names: Iterable[str]) -> list[str]:
    """The tables among ``names`` in whose place there is a file."""
    return [name for name in names if in_the_way(home, schema, name) is not None]


def _ops_unit(home: Home) -> _Unit:
    def run() -> tuple[list[Finding], int]:
        findings: list[Finding] = []
        without = unlogged(home)
        names = [*list_tables(home, "ops"), *(name for name in _blocked(home, "ops", ALL) if name not in without)]
        for name in without:
            findings.append(Finding(f"ops.{name}", "its log is gone, but its files are there", fixes=(OpsLog(name),)))
        for name in names:
            inspected = inspect_table(home, "ops", name)
            found = check_ops(inspected)
            inspected.note_bad_files()
            findings += [*inspected.findings, *found]
        return findings, len(names)

    return _Unit("ops", ("ops",), run)


def _units(home: Home, scope: Scope) -> Iterator[_Unit]:
    sources = load_sources(home)
    published = {} if scope.quick else recorded.recorded_days(home)
    known = _source_names(home, scope)
    for name in sorted(known if scope.source is None else {scope.source}):
        yield _source_unit(home, name, sources.get(name), scope)
    for schema in _OF_PATTERNS:
        tables = set(_tables(home, schema))
        tables |= {table.partition(".")[2] for table in published if table.startswith(f"{schema}.")}
        for name in sorted(tables):
            pattern = name.partition("/")[0]
            if scope.source is None or f"pattern/{pattern}" in scope.definitions:
                yield _pattern_unit(home, schema, name, scope)
    yield _model_unit(home, scope)
    if scope.tables is not None:
        there = {f"{s}.{n}" for s in (*_SOURCE, *_OF_PATTERNS, "models", "alerts", "ops") for n in _tables(home, s)}
        unknown = sorted(set(scope.tables) - there - set(published) - {f"{s}.{n}" for s in _SOURCE for n in known})
        if unknown:
            raise UnknownTable.of(unknown, there | set(published))


def _source_names(home: Home, scope: Scope) -> set[str]:
    found = {name for schema in _SOURCE for name in _tables(home, schema)}
    if not scope.quick:
        for log in ("files", "event_days"):
            found |= set(ops.current_table(home, log, columns=["source"])["source"].to_pylist())
    return found


def _wanted(scope: Scope, *names: str) -> bool:
    return scope.tables is None or any(name in scope.tables for name in names)


def _source_unit(home: Home, name: str, source: Source | None, scope: Scope) -> _Unit:
    def run() -> tuple[list[Finding], int]:
        if not _wanted(scope, *(f"{schema}.{name}" for schema in _SOURCE), "ops.rates"):
            return [], 0
        inspected = {schema: inspect_table(home, schema, name) for schema in _SOURCE}
        found: list[Finding] = []
        if not scope.quick:
            tables = SourceTables(inspected["events"], inspected["raw"], inspected["quarantine"])
            found = check_source(home, name, source, tables, scope.within)
        return _all(inspected.values(), found)

    return _Unit(f"source {name}", (f"source-{name}",), run)


def _pattern_unit(home: Home, schema: str, name: str, scope: Scope) -> _Unit:
    table, pattern = f"{schema}.{name}", name.partition("/")[0]

    def run() -> tuple[list[Finding], int]:
        if not _wanted(scope, table):
            return [], 0
        inspected = inspect_table(home, schema, name)
        if inspected.contents is None and not inspected.findings:
            if schema == "matches" and registered_table(home, pattern) != name:
                # The pattern's rows have moved to the table of another version.
                return [], 0
        found: list[Finding] = []
        if not scope.quick and not (inspected.contents is None and inspected.findings):
            found = check_matches(inspected, recorded.recorded_of(home, schema, name), scope.within)
        return _all([inspected], found)

    return _Unit(table, (lock_of(schema, name),), run)


def _model_unit(home: Home, scope: Scope) -> _Unit:
    names = [table.path_name for table in SHARED]

    def run() -> tuple[list[Finding], int]:
        if not _wanted(scope, *names):
            return [], 0
        inspected = {table.path_name: inspect_table(home, table.schema, table.name) for table in SHARED}
        only = None if scope.source is None else {one.removeprefix("model/") for one in scope.definitions}
        found = [] if scope.quick else check_models(inspected, recorded.recorded_days(home), scope.within, only)
        return _all(inspected.values(), found)

    return _Unit("models", tuple(lock_of(table.schema, table.name) for table in SHARED), run)


def _all(inspected: Any, found: Sequence[Finding]) -> tuple[list[Finding], int]:
    findings: list[Finding] = []
    tables = 0
    for one in inspected:
        one.note_bad_files()
        findings += one.findings
        tables += one.contents is not None or bool(one.findings)
    return [*findings, *found], tables
