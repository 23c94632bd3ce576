"""The ingest step of a source: landing files to raw, events, quarantine, rates and days.

The order of the writes makes a kill at any point harmless: first raw (loads that ``ops.files`` does not name do not
count), then the days' ``changing`` rows (such days are not computed from), events, quarantine and rates, ``ops.files``,
and the final rows of the days last. After a kill anywhere, the retry does it all again and ends with the same tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime

from chainlake.days import Days, day_of
from chainlake.definitions.source import Source, asked_source
from chainlake.ingest.errors import AccountsDiffer
from chainlake.ingest.events.commit import Commits, Replaced, quarantined
from chainlake.ingest.events.resolution import Resolution, Resolved, days_of_loads
from chainlake.ingest.landing.completeness import Arrived, CountedDay, changing_rows, day_rows, passed_to
from chainlake.ingest.landing.discovery import Landing, discover
from chainlake.ingest.landing.edits import prepare_tables
from chainlake.ingest.landing.lost import note_lost_days, trusted_days
from chainlake.ingest.landing.outcomes import Left, RereadFailed, copies, left_by, quarantined_rows, unread
from chainlake.ingest.landing.plan import Plan, effective, make_plan
from chainlake.ingest.landing.waiting_log import EARLY, early, note_waiting, removed_rows
from chainlake.ingest.loads import Loads, load_of_contents
from chainlake.ingest.rows.groups import GroupReport, GroupWork, groups_of
from chainlake.ingest.rows.parsed import WAITING, Counts
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.faults import around
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.lake.records.runs import LOG, Phase, phase
from chainlake.lake.remembered import remember
from chainlake.paths import Home
from chainlake.run.common import discard, staging_folder
from chainlake.run.ports import Ports, open_ports
from chainlake.run.results import Ingested, Taken
from chainlake.schemas.ops_rows import FileRow, PhaseName, RateRow, RunRow
from chainlake.schemas.raw import raw_table
from chainlake.storage.resolve import storage_of


def ingest(
    home: Home, source_name: str, days: Days, *, run_id: str, now: datetime | None = None, ports: Ports | None = None
) -> Ingested:
    """Take what has landed for ``source_name`` and bring its events up to date.

    Args:
        home: the installation.
        source_name: name of the source.
        days: the interval ``[s, e)``; files dated before e are taken, days before e get a status.
        run_id: the id under which the run is logged.
        now: the current time, against which ``settle`` and ``lag`` are measured.
        ports: the ports to use; those of the installation if not given.

    Returns:
        ``files`` taken, ``rows`` read, ``quarantined`` rows, ``days`` touched, ``added``, ``changed`` and ``withdrawn``
        events, the ``published`` version of the events table (``None`` if none was made), how many files of the source
        are ``unread`` or ``waiting``, and in ``left`` the first of these with what is wrong.

    Raises:
        UsageError: there is no such source.
        DefinitionError: the source's file is wrong, or an edit of it does not fit the existing tables.
        InputError: files that must be read again after an edit of the definition are gone.
        AuditFailed: the rows of files or days do not add up; the days stay ``changing``.
        InfrastructureError: after an edit of the definition, files cannot be read for now.
        FilesWaiting: files of these days, or of no known day, cannot be read for now; all else is done.
        FilesUnread: files of these days, or found by this run, cannot be read as they are; all else is done.
    """
    now = now or datetime.now(UTC)
    source = asked_source(home, source_name)
    with phase(home, run_id, source=source.name, step="ingest", phase="ingest", days=days) as report:
        found = _idle(home, source, days, run_id, now)
        if isinstance(found, _Done):
            done = found
            report.status, report.reason = "nothing", "no new or changed file"
        else:
            done = _work(home, source, days, run_id, now, ports, found)
        result: Ingested = {**done.taken, **done.left.result()}
        report.rows_in, report.rows_out = result["rows"], result["added"] + result["changed"]
        report.reason = done.left.text() or report.reason
        failure = done.left.failure(source, result)
        if failure is not None:
            report.status = "incomplete"
    if failure is not None:
        raise failure
    return result


@dataclass(frozen=True)
class _Done:
    """What a run did, and what it left unread."""

    taken: Taken
    left: Left


def _plan(
    home: Home, source: Source, days: Days, run_id: str, now: datetime, before: Landing | None = None
) -> tuple[Plan, Landing]:
    """Find what is to do, and what has landed; waiting files are recorded at once, whatever becomes of the rest.

    Args:
        before: what this run found when it planned before.
    """
    files = ops.current(home, "files", source=source.name)
    landing = discover(home, source, now, known=bool(files), before=before)
    read = {row["path"] for row in files}
    waiting = {
        **landing.waiting,
        **{p: EARLY for p, f in landing.files.items() if p not in read and early(f.file_date, now)},
    }
    note_waiting(home, source, waiting, run_id)
    return make_plan(source, days, landing, files, trusted_days(home, source)), landing


def _nothing() -> Taken:
    """The figures of a run that takes nothing."""
    return {
        "files": 0, "rows": 0, "quarantined": 0, "days": [], "added": 0, "changed": 0, "withdrawn": 0,
        "published": None,
    }  # fmt: skip


def _left(source: Source, days: Days, plan: Plan, rows: Iterable[FileRow], lost: dict[str, str]) -> Left:
    """What a run leaves unread.

    Args:
        rows: the current rows of ``ops.files`` after the run.
        lost: why files that were taken could not be read after all, by path.
    """
    taken = {landed.path for landed in plan.taken}
    return left_by(source, unread(source.replaces, rows), {**plan.waiting, **lost}, taken, days, plan.due)


def _idle(home: Home, source: Source, days: Days, run_id: str, now: datetime) -> _Done | Landing:
    """Do a run with nothing to read: only statuses of days change, written without a JVM. If there is work, what has
    landed."""
    with file_lock(home, f"source-{source.name}"):
        plan, landing = _plan(home, source, days, run_id, now)
        if not plan.idle:
            return landing
        rows = day_rows(
            source,
            plan.days,
            {},
            Arrived.of(source, plan.current.values(), plan.waiting),
            passed_to(days, _runs(home, source)),
            now,
            tables.version(home, "events", source.name),
        )
        ops.append(home, "files", removed_rows(plan.removed), run_id)
        with around("ingest.final"):
            ops.append(home, "event_days", rows, run_id)
        if plan.current:
            remember(home, source.name, [row["day"] for row in rows], days.end)
        return _Done(_nothing(), _left(source, days, plan, plan.current.values(), {}))


def _runs(home: Home, source: Source) -> list[RunRow]:
    columns = ["source", "step", "phase", "definition", "status", "day_to"]
    rows: list[RunRow] = ops.current_table(
        home, "runs", columns=columns, filters=[("source", "=", source.name)]
    ).to_pylist()
    return rows


def _work(
    home: Home, source: Source, days: Days, run_id: str, now: datetime, ports: Ports | None, before: Landing
) -> _Done:
    from chainlake.quality.audit import warm_up

    warm_up()
    ports = ports or open_ports(home, f"ingest {source.name}")
    with ports.lake.lock(f"source-{source.name}"):
        # Someone else may have done the work since it was found, before the lock was taken.
        plan, _ = _plan(home, source, days, run_id, now, before)
        if plan.idle:
            return _Done(_nothing(), _left(source, days, plan, plan.current.values(), {}))
        return _Attempt(home, source, days, run_id, now, ports, plan).run()


@dataclass(frozen=True)
class _Parsed:
    """What became of the files that a run took.

    Args:
        counts: the counts of each file that was read, by load.
        lost: why others could not be read after all, by path.
        bad: staged files of quarantine rows.
    """

    counts: dict[str, Counts]
    lost: dict[str, str]
    bad: tuple[str, ...]


@dataclass(frozen=True)
class _Attempt:
    """One attempt of the step, under the source's lock."""

    home: Home
    source: Source
    days: Days
    run_id: str
    now: datetime
    ports: Ports
    plan: Plan

    def run(self) -> _Done:
        """Make all writes, in their order."""
        source, home = self.source, self.home
        note_lost_days(home, source, self.run_id)
        prepare_tables(home, source)
        with ExitStack() as stack:
            staging = self._staging(stack)
            commits = Commits(source, self.ports.lake, force=bool(self.plan.changing))
            loads = Loads.of(source, self.plan)
            parsed = self._parse(loads, commits, staging)
            counts, lost = parsed.counts, parsed.lost
            files = loads.rows(counts, lost)
            current = {**self.plan.current, **{row["path"]: row for row in files}}
            touched = self._touched(counts)
            resolved = self._resolve(list(current.values()), touched, staging)
            with around("ingest.changing"):
                ops.append(home, "event_days", changing_rows(source.name, touched), self.run_id)
            with around("ingest.events"):
                applied = commits.events(resolved.change)
            with around("ingest.quarantine"):
                self._write_quarantine(parsed, resolved, current, commits, staging)
                ops.append(home, "rates", self._rates(resolved.rates, touched), self.run_id)
            version = tables.version(home, "events", source.name)
            passed = passed_to(self.days, _runs(home, source))
            arrived = Arrived.of(source, current.values(), [*self.plan.waiting, *lost])
            day_list = day_rows(source, self.plan.days, resolved.counted, arrived, passed, self.now, version)
            self._audit(files, day_list)
            with around("ingest.files"):
                ops.append(home, "files", [*files, *removed_rows(self.plan.removed)], self.run_id)
            with around("ingest.final"):
                ops.append(home, "event_days", day_list, self.run_id)
            remember(home, source.name, [row["day"] for row in day_list], self.days.end)
        fresh = {row["checksum"] for row in files}
        alike = copies(source.name, (row for row in current.values() if row["checksum"] in fresh))
        for line in (quarantined_rows(source.name, files), alike):
            if line:
                LOG.info("ingest %s: %s", source.name, line)
        taken = Taken(
            files=len(self.plan.taken) - len(lost),
            rows=sum(c.rows_read for c in counts.values()),
            quarantined=sum(c.rows_quarantined for c in counts.values()),
            days=[str(day) for day in touched],
            added=applied.added,
            changed=applied.changed,
            withdrawn=applied.withdrawn,
            published=applied.version,
        )
        return _Done(taken, _left(source, self.days, self.plan, current.values(), lost))

    def _staging(self, stack: ExitStack) -> str:
        """Make a folder for files that tasks pass on; it is removed at the end of the attempt."""
        folder = staging_folder(self.home, self.run_id, f"ingest-{self.source.name}")
        storage_of(folder).make_folder(folder)
        stack.callback(discard, folder)
        return folder

    def _parse(self, loads: Loads, commits: Commits, staging: str) -> _Parsed:
        """Parse the files and append their rows to raw.

        Raises:
            RereadFailed: after an edit of the definition, a file with events could not be read; nothing was written.
        """
        if not loads.tasks:
            return _Parsed({}, {}, ())
        with self._phase("parse") as report:
            tasks, folder = self.ports.tasks, self.ports.lake.task_folder(raw_table(self.source))
            groups = groups_of(loads.tasks, tasks.parallelism)
            reports: list[GroupReport] = tasks.map(GroupWork(self.source, folder, staging), groups)
            every = {counts.load_id: counts for group in reports for counts in group.counts}
            lost = self._lost(loads, every)
            counts = {load: c for load, c in every.items() if c.outcome != WAITING}
            report.rows_in = sum(c.rows_read for c in counts.values())
            report.rows_out = sum(c.rows_raw for c in counts.values())
            files: list[DataFile] = [file for group in reports for file in group.files]
            with around("ingest.raw"):
                commits.raw(files)
        return _Parsed(counts, lost, tuple(path for group in reports for path in group.bad))

    def _lost(self, loads: Loads, counts: dict[str, Counts]) -> dict[str, str]:
        lost = loads.lost(counts)
        if lost:
            note_waiting(self.home, self.source, lost, self.run_id, clear=False)
        held = {path: why for path, why in lost.items() if path in self.plan.current}
        if held and self.plan.redefined:
            # Their events were made under the old definition, and no day may lose them just because a file cannot be
            # read.
            raise RereadFailed(self.source, held)
        return lost

    def _phase(self, name: PhaseName) -> AbstractContextManager[Phase]:
        return phase(self.home, self.run_id, source=self.source.name, step="ingest", phase=name, days=self.days)

    def _touched(self, counts: dict[str, Counts]) -> list[date]:
        """The days to resolve, ascending: of rows taken, of rows that these affect, and those left half written."""
        days = {day_of(number) for c in counts.values() for number in c.days}
        days |= days_of_loads(self.ports.lake, self.source, self.plan.rows_touched())
        days |= self.plan.changing
        if self.plan.redefined:
            days |= set(self.plan.days)
        return sorted(days)

    def _resolve(self, files: list[FileRow], touched: list[date], staging: str) -> Resolved:
        """Find the fate of every raw row of the touched days."""
        with self._phase("resolve") as report:
            resolution = Resolution(self.source, self.ports, staging)
            resolved = resolution.of(effective(self.source, files), touched)
            report.rows_in = sum(row["rows_raw"] for row in resolved.counted.values())
            report.rows_out = resolved.rows
        return resolved

    def _write_quarantine(
        self,
        parsed: _Parsed,
        resolved: Resolved,
        current: dict[str, FileRow],
        commits: Commits,
        staging: str,
    ) -> None:
        """Write the quarantine rows of the files taken, the files gone, and the touched days."""
        telling = load_of_contents(current.values())
        fresh = {load for load in telling.values() if load in parsed.counts}
        kept = {file_id for file_id, load in telling.items() if load not in fresh}
        rows = quarantined(self.source, staging, parsed.bad, fresh, resolved.conflicts)
        commits.quarantine(rows, Replaced(kept, sorted(resolved.counted)))

    def _rates(self, found: list[RateRow], touched: list[date]) -> list[RateRow]:
        """The ``ops.rates`` rows that differ from the current ones; a type and key that left a day gets 0 events."""
        fresh = {(r["day"], r["type"], r["key"]): r for r in found}
        rows: list[RateRow] = []
        if touched:
            filters = [("source", "=", self.source.name), ("day", ">=", touched[0]), ("day", "<=", touched[-1])]
            listed = set(touched)
            recorded: list[RateRow] = ops.current_table(self.home, "rates", filters=filters).to_pylist()
            for row in recorded:
                key = (row["day"], row["type"], row["key"])
                if key in fresh and _times(fresh[key]) == _times(row):
                    del fresh[key]
                elif key not in fresh and row["day"] in listed and row["events"]:
                    rows.append({**ops.again(row), "events": 0, "first_ts": None, "last_ts": None})
        return [*rows, *fresh.values()]

    def _audit(self, files: list[FileRow], day_list: list[CountedDay]) -> None:
        from chainlake.quality.audit import Audit
        from chainlake.quality.gates.accounting import audit_accounting

        audit = Audit(self.home)
        reason = audit_accounting(audit, files, day_list)
        if reason is not None:
            raise AccountsDiffer.of(self.source.name, reason, audit.build_docs())


def _times(row: RateRow) -> tuple[object, ...]:
    return row["events"], row["first_ts"], row["last_ts"]
