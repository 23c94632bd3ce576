"""``chainlake check --repair``: broken things are marked to be computed again by the ordinary steps.

First, damaged files are set aside, since rows can be compared only in tables that can be read. Then exactly those days
and files whose rows are wrong are marked. Last, commits of other writers are signed as checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from chainlake.catalog.installed import Installed
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.errors import ChainlakeError
from chainlake.ingest.landing.completeness import changing_rows
from chainlake.ingest.landing.lost import DAMAGED
from chainlake.ingest.landing.walk import walk
from chainlake.lake.delta import tables
from chainlake.lake.delta.log import signature
from chainlake.lake.delta.reader import open_table
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.lake.records.runs import error_line
from chainlake.lake.remembered import take_for_new
from chainlake.lake.upkeep.findings import (
    STRUCTURE,
    EventDay,
    Finding,
    Fix,
    LandedFile,
    OpsLog,
    PublishedDay,
    Signature,
    SurplusRows,
    TableFile,
    UnrecordedDay,
    UnrecordedFiles,
    WholeTable,
)
from chainlake.lake.upkeep.maintain import lock_of
from chainlake.lake.upkeep.ops_rebuild import rebuild
from chainlake.lake.upkeep.set_aside import set_aside, take_out
from chainlake.operations.check import Checked, Scope, check
from chainlake.paths import Home
from chainlake.schemas.ops_rows import FileRow, IntervalRow
from chainlake.words import counted

#: Number of checks: a table with a repaired log may turn out to have a damaged file, and an unreadable one to be gone.
_ROUNDS = 4
#: How many files a message names.
_NAMED = 5


@dataclass
class Repaired:
    """What a repair did.

    Args:
        found: all findings, in the order in which they came up.
        done: what was set aside and marked, one line each.
        left: what cannot be repaired here, one line each.
        commands: the commands that make the marked days and files again, in this order.
    """

    found: list[Finding] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


def repair(home: Home, *, run_id: str, scope: Scope, say: Callable[[str], None] = print) -> tuple[Checked, Repaired]:
    """Check, set damaged files aside, and mark what is broken.

    Args:
        home: the installation.
        run_id: id under which the checks are logged; check n under ``<run_id>.<n>``.
        scope: what to check.
        say: receives a line for everything that is done.

    Returns:
        the last check, made before anything was marked, and what was done.

    Raises:
        UsageError, InfrastructureError: as for :func:`chainlake.operations.check.check`.
    """
    result = Repaired()
    for number in range(1, _ROUNDS + 1):
        checked = check(home, run_id=f"{run_id}.{number}", scope=scope)
        fresh = [one for one in checked.findings if one not in result.found]
        result.found += fresh
        structural = list(dict.fromkeys(m for one in checked.findings for m in one.fixes if isinstance(m, STRUCTURE)))
        if not structural or number == _ROUNDS:
            break
        for fix in structural:
            _attempt(result, say, lambda fix=fix: _structure(home, fix))  # type: ignore[misc]
    fixes = list(dict.fromkeys(m for one in checked.findings for m in one.fixes if not isinstance(m, STRUCTURE)))
    _Marks(home, run_id, result, say).apply(fixes)
    unfixed = [str(one) for one in checked.damage if not one.fixes]
    result.left += unfixed
    return checked, result


def _attempt(result: Repaired, say: Callable[[str], None], act: Callable[[], str]) -> None:
    try:
        line = act()
    except ChainlakeError as error:
        result.left.append(error_line(error))
        return
    result.done.append(line)
    say(line)


def _structure(home: Home, fix: Fix) -> str:
    """Set damaged files aside, or rebuild a log; returns what was done, in one line."""
    if isinstance(fix, OpsLog):
        return f"ops.{fix.name}: rebuilt from its files, {rebuild(home, fix.name)}"
    assert isinstance(fix, TableFile | WholeTable)
    with file_lock(home, lock_of(fix.schema, fix.name)):
        if isinstance(fix, TableFile):
            place = take_out(home, fix.schema, fix.name, fix.file)
            return f"{fix.schema}.{fix.name}: {fix.file} set aside as {place}"
        place = set_aside(home, fix.schema, fix.name)
        return f"{fix.schema}.{fix.name}: the whole table set aside as {place}"


class _Marks:
    """Marks days and files as to do; lines that say what was done go to ``result``."""

    def __init__(self, home: Home, run_id: str, result: Repaired, say: Callable[[str], None]) -> None:
        self._home, self._run_id, self._result, self._say = home, run_id, result, say

    def apply(self, fixes: Sequence[Fix]) -> None:
        """Apply all of them, kind by kind."""
        sources: dict[str, set[str]] = defaultdict(set)
        for one in fixes:
            if isinstance(one, LandedFile):
                sources[one.source].add(one.path)
        refused = {source for source, paths in sources.items() if not self._files(source, sorted(paths))}
        marked = sources.keys() - refused
        days: dict[str, set[date]] = defaultdict(set)
        for one in fixes:
            # If a source's raw rows cannot be read again, its days would lose the events that they still have.
            if isinstance(one, EventDay) and one.source not in refused:
                days[one.source].add(one.day)
        for source, listed in sorted(days.items()):
            self._event_days(source, sorted(listed))
        unrecorded = {one.source: one.days for one in fixes if isinstance(one, UnrecordedFiles)}
        self._ingest_again(sorted((marked | days.keys() | unrecorded.keys()) - refused), unrecorded)
        self._computed_again({source: span for source, span in unrecorded.items() if span is not None})
        self._unrecorded([one for one in fixes if isinstance(one, UnrecordedDay)])
        self._published([one for one in fixes if isinstance(one, PublishedDay)])
        for one in fixes:
            if isinstance(one, SurplusRows):
                _attempt(self._result, self._say, lambda one=one: _remove(self._home, one))  # type: ignore[misc]
        for one in fixes:
            if isinstance(one, Signature):
                _attempt(self._result, self._say, lambda one=one: _sign(self._home, one))  # type: ignore[misc]

    def _done(self, line: str) -> None:
        self._result.done.append(line)
        self._say(line)

    def _files(self, source: str, paths: Sequence[str]) -> bool:
        """Mark landed files to be read again; returns whether all of them are there."""
        # Compared by the names that ingest gives: they can hold any bytes, and a "!" may be part of a file's own name.
        there = walk(self._home.landed(source), follow_links=True)
        named = {entry.relative for entry in there.entries}.union(there.waiting)
        gone = [path for path in paths if not any(name in named for name in _holders(path))]
        if gone:
            more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
            self._result.left.append(
                f"raw.{source} cannot be read again from landing, where {counted(len(gone), 'file')} of it "
                f"{'is' if len(gone) == 1 else 'are'} missing: {', '.join(gone[:_NAMED])}{more}. Put them back into "
                f"landing/{source}/ and run this again; nothing of source {source} was marked"
            )
            return False
        with file_lock(self._home, f"source-{source}"):
            rows = {row["path"]: row for row in ops.current(self._home, "files", source=source)}
            # With a file_id that differs from what has landed, ingest takes the file for a changed one.
            again: list[FileRow] = [
                {**ops.again(rows[path]), "file_id": f"{DAMAGED}{rows[path]['file_id']}"} for path in paths
            ]
            ops.append(self._home, "files", again, self._run_id)
        self._done(f"source {source}: {counted(len(paths), 'file')} to be read again, such as {paths[0]}")
        return True

    def _event_days(self, source: str, days: Sequence[date]) -> None:
        with file_lock(self._home, f"source-{source}"):
            ops.append(self._home, "event_days", changing_rows(source, days), self._run_id)
        self._done(f"source {source}: {counted(len(days), 'day')} to be resolved again, from {days[0]}")

    def _ingest_again(self, sources: Iterable[str], unrecorded: Mapping[str, Days | None]) -> None:
        for source in sources:
            if (span := unrecorded.get(source)) is not None:
                self._result.commands.append(f"chainlake ingest {source} {span.end - timedelta(days=1)} {span.end}")
                continue
            # An interval that was ingested before, so that no later day counts as passed.
            runs = ops.current(self._home, "runs", source=source, step="ingest")
            ends = [row["day_to"] for row in runs if row["phase"] == "ingest" and row["day_to"] is not None]
            listed = [row["day"] for row in ops.current(self._home, "event_days", source=source)]
            end = max(ends, default=max(listed, default=date(1970, 1, 1)) + timedelta(days=1))
            self._result.commands.append(f"chainlake ingest {source} {end - timedelta(days=1)} {end}")

    def _computed_again(self, sources: Mapping[str, Days]) -> None:
        """Have all files of these sources read as new, and all their days computed again."""
        for source in sources:
            take_for_new(self._home, source)
            self._done(f"source {source}: everything in landing is to be read as new")
        if sources:
            start, end = min(span.start for span in sources.values()), max(span.end for span in sources.values())
            self._result.commands.append(f"chainlake backfill {start} {end}")

    def _unrecorded(self, fixes: Sequence[UnrecordedDay]) -> None:
        """Days that will be computed like new ones, for which nothing has to be marked."""
        owners = _sources_of(self._home) if fixes else {}
        for name in sorted({one.definition for one in fixes} - owners.keys()):
            self._result.left.append(
                f"{name} no longer has a file, and there is no record of its days; put its file back and run this again"
            )
        days = [one.day for one in fixes if one.definition in owners]
        if days:
            self._result.commands.append(f"chainlake backfill {min(days)} {max(days) + timedelta(days=1)}")

    def _published(self, fixes: Sequence[PublishedDay]) -> None:
        days: dict[str, list[date]] = defaultdict(list)
        for one in fixes:
            days[one.definition].append(one.day)
        owners = _sources_of(self._home)
        for name, listed in sorted(days.items()):
            if name not in owners:
                self._result.left.append(f"{name} no longer has a file, so {counted(len(listed), 'day')} of it cannot "
                                         "be computed again; put its file back and run this again")  # fmt: skip
                continue
            rows = {row["day"]: row for row in ops.current(self._home, "intervals", definition=name)}
            reason = "chainlake check found rows other than those published"
            again: list[IntervalRow] = [
                {**ops.again(rows[day]), "status": "failed", "reason": reason}
                for day in sorted(set(listed))
                if day in rows
            ]
            ops.append(self._home, "intervals", again, self._run_id)
            self._done(f"{name}: {counted(len(again), 'day')} to be computed again, from {min(listed)}")
        for source in sorted({owners[name] for name in days if name in owners}):
            self._result.commands.append(f"chainlake restate --source {source}")


def _holders(path: str) -> Iterator[str]:
    """Paths that may hold what ingest calls ``path``: the file itself, or an archive of which it is a member."""
    yield path
    for at, sign in enumerate(path):
        if sign == "!":
            yield path[:at]


def _sources_of(home: Home) -> dict[str, str]:
    """The source of every definition that can be computed."""
    return {one.name: one.source for one in Installed.load(home, load_sources(home)).definitions}


def _remove(home: Home, rows: SurplusRows) -> str:
    from deltalake import CommitProperties, Transaction

    lock = lock_of(rows.schema, rows.name)
    purpose = lock if lock.startswith("table-") else f"ingest-{rows.name}"
    with file_lock(home, lock):
        delta = open_table(home, rows.schema, rows.name, to_write=True)
        # Takes the writers' next turn, so that a late commit of a writer thought dead is refused.
        turn = Transaction(purpose, delta.version() + 1)
        properties = CommitProperties(app_transactions=[turn], max_commit_retries=0)
        gone = delta.delete(rows.where, commit_properties=properties)["num_deleted_rows"]
    return f"{rows.schema}.{rows.name}: {counted(gone, 'row')} removed where {rows.where}"


def _sign(home: Home, fix: Signature) -> str:
    with file_lock(home, lock_of(fix.schema, fix.name)):
        if not tables.exists(home, fix.schema, fix.name):
            return f"{fix.schema}.{fix.name}: gone, so there is nothing to sign"
        delta = open_table(home, fix.schema, fix.name, to_write=True)
        delta.create_write_transaction(
            [], "append", delta.schema(), delta.metadata().partition_columns, commit_properties=signature()
        )
    return f"{fix.schema}.{fix.name}: commits of others are signed as checked"
