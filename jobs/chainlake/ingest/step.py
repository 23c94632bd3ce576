"""The ingest step of a source (design §3, "The step"): landing files to raw, events, quarantine, rates and days.

The order of the writes is what makes a kill at any point harmless: raw first (loads that ``ops.files`` does not name do
not count), then the days' ``changing`` rows (nobody computes on them), events, quarantine and rates, ``ops.files``, and
the final rows of the days last. Killed anywhere, the retry does it all again and comes to the same tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from chainlake.days import Days
from chainlake.definitions.source import Source, asked_source
from chainlake.errors import AuditFailed
from chainlake.ingest.events import resolve
from chainlake.ingest.events import resolve_days as resolving
from chainlake.ingest.events.resolve_days import Resolved
from chainlake.ingest.events.write import append_raw, conflict_rows, write_difference
from chainlake.ingest.landing.completeness import COUNTS, Arrived, changing_rows, day_rows, passed_to
from chainlake.ingest.landing.discovery import discover
from chainlake.ingest.landing.edits import prepare_tables
from chainlake.ingest.landing.lost import note_lost_days, trusted_days
from chainlake.ingest.landing.outcomes import Left, RereadFailed, left_by, unread
from chainlake.ingest.landing.plan import Plan, effective, make_plan
from chainlake.ingest.landing.waiting import EARLY, early, note_waiting, removed_rows
from chainlake.ingest.loads import Loads, load_of_contents
from chainlake.ingest.rows import parse_tasks as parsing
from chainlake.ingest.rows.parse import WAITING, Counts
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import tasks_write
from chainlake.lake.faults import around
from chainlake.lake.locks import file_lock, jvm_lock
from chainlake.lake.records import ops
from chainlake.lake.records.runs import phase
from chainlake.paths import Home
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def ingest(home: Home, source_name: str, days: Days, *, run_id: str, now: datetime | None = None) -> dict[str, Any]:
    """Take what has landed for ``source_name`` and bring its events up to date.

    Args:
        home: the installation.
        source_name: name of the source.
        days: the interval ``[s, e)``; files dated before e are taken, days before e get a status.
        run_id: under which the run is logged.
        now: the present, against which ``settle`` and ``lag`` are measured.

    Returns:
        ``files`` taken, ``rows`` read, ``quarantined`` rows, ``days`` touched, ``added``, ``changed`` and ``withdrawn``
        events, the ``published`` version of the events table (``None`` if it did not move), how many files of the
        source are ``unread`` or ``waiting``, and in ``left`` the first of them with what is wrong.

    Raises:
        UsageError: there is no such source.
        DefinitionError: the source's file is wrong, or an edit of it does not fit the tables that there are.
        InputError: files that must be read again after an edit of the definition are gone.
        AuditFailed: the rows of files or days do not add up; the days stay ``changing``.
        InfrastructureError: after an edit of the definition, files cannot be read for now.
        FilesWaiting: files of these days, or of no known day, cannot be read for now; all else is done.
        FilesUnread: files of these days, or found by this run, cannot be read as they are; all else is done.
    """
    now = now or datetime.now(UTC)
    source = asked_source(home, source_name)
    with phase(home, run_id, source=source.name, step="ingest", phase="ingest", days=days) as report:
        done = _idle(home, source, days, run_id, now)
        if done is None:
            done = _work(home, source, days, run_id, now)
        else:
            report.status, report.reason = "nothing", "no new or changed file"
        result = {**done.counts, **done.left.result()}
        report.rows_in, report.rows_out = result["rows"], result["added"] + result["changed"]
        report.reason = done.left.text() or report.reason
        failure = done.left.error(source, result)
        if failure is not None:
            report.status = "incomplete"
    if failure is not None:
        raise failure
    return result


@dataclass(frozen=True)
class _Done:
    """What a run did, and what it left."""

    counts: dict[str, Any]
    left: Left


def _plan(home: Home, source: Source, days: Days, run_id: str, now: datetime) -> Plan:
    """What is to do; what waits is noted, whatever comes of the rest."""
    landing = discover(home, source, now)
    files = ops.current(home, "files", source=source.name)
    read = {row["path"] for row in files}
    waiting = {
        **landing.waiting,
        **{p: EARLY for p, f in landing.files.items() if p not in read and early(f.file_date, now)},
    }
    note_waiting(home, source, waiting, run_id)
    return make_plan(source, days, landing, files, trusted_days(home, source))


def _done(left: Left, **known: Any) -> _Done:
    """The result of a run: ``known`` are its counts that are not 0."""
    counts = {"files": 0, "rows": 0, "quarantined": 0, "days": [], "added": 0, "changed": 0}
    return _Done({**counts, "withdrawn": 0, "published": None, **known}, left)


def _left(source: Source, days: Days, plan: Plan, rows: Iterable[Any], lost: dict[str, str]) -> Left:
    """What a run leaves.

    Args:
        rows: the current ones of ``ops.files`` after the run.
        lost: why files that were taken could not be read after all, by path.
    """
    taken = {landed.path for landed in plan.taken}
    return left_by(source, unread(source.replaces, rows), {**plan.waiting, **lost}, taken, days, plan.due)


def _idle(home: Home, source: Source, days: Days, run_id: str, now: datetime) -> _Done | None:
    """A run with nothing to read: only the days' status moves, written without a JVM. ``None`` if there is work."""
    with file_lock(home, f"source-{source.name}"):
        plan = _plan(home, source, days, run_id, now)
        if not plan.idle:
            return None
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
        return _done(_left(source, days, plan, plan.current.values(), {}))


def _runs(home: Home, source: Source) -> list[dict[str, Any]]:
    columns = ["step", "phase", "status", "day_to"]
    return ops.current_table(home, "runs", columns=columns, filters=[("source", "=", source.name)]).to_pylist()


def _work(home: Home, source: Source, days: Days, run_id: str, now: datetime) -> _Done:
    from chainlake.lake.spark.session import expect_rows, spark_session
    from chainlake.quality.audit import warm_up

    warm_up()
    spark = spark_session(home, f"ingest {source.name}")
    with jvm_lock(spark, home, f"source-{source.name}"):
        # What was seen before the lock was taken may have been done by somebody else since.
        plan = _plan(home, source, days, run_id, now)
        if plan.idle:
            return _done(_left(source, days, plan, plan.current.values(), {}))
        expect_rows(spark, sum(landed.size for landed in plan.taken) // _ROW_BYTES)
        return _Attempt(home, source, days, run_id, now, spark, plan).run()


@dataclass
class _Attempt:
    """One attempt of the step, under the source's lock."""

    home: Home
    source: Source
    days: Days
    run_id: str
    now: datetime
    spark: SparkSession
    plan: Plan

    def run(self) -> _Done:
        """All writes, in their order."""
        source, home = self.source, self.home
        note_lost_days(home, source, self.run_id)
        prepare_tables(home, source)
        with ExitStack() as stack:
            loads = Loads.of(source, self.plan)
            parsed, counts, lost = self._parse(loads, stack)
            files = loads.rows(counts, lost)
            current = {**self.plan.current, **{row["path"]: row for row in files}}
            touched = self._touched(counts)
            resolved = self._resolve(list(current.values()), counts, touched, stack)
            with around("ingest.changing"):
                ops.append(home, "event_days", changing_rows(source, touched), self.run_id)
            with around("ingest.events"):
                applied = resolving.write_events(
                    self.spark, home, source, resolved, touched, force=bool(self.plan.changing)
                )
            with around("ingest.quarantine"):
                self._write_quarantine(parsed, counts, resolved, current)
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
        return _done(
            _left(source, self.days, self.plan, current.values(), lost),
            files=len(self.plan.taken) - len(lost),
            rows=sum(c.rows_read for c in counts.values()),
            quarantined=sum(c.rows_quarantined for c in counts.values()),
            days=[str(day) for day in touched],
            added=applied.added,
            changed=applied.changed,
            withdrawn=applied.withdrawn,
            published=applied.version,
        )

    def _parse(self, loads: Loads, stack: ExitStack) -> tuple[DataFrame | None, dict[str, Counts], dict[str, str]]:
        """Parse and append to raw.

        Returns:
            the rows and counts of the files that were read, and why others could not be after all, by path.

        Raises:
            RereadFailed: after an edit of the definition a file that has events could not be read; nothing was written.
        """
        if not loads.tasks:
            return None, {}, {}
        with self._phase("parse") as report:
            table = raw_table(self.source)
            # Tasks may run in another folder.
            path = os.path.abspath(self.home.table(table.schema, table.name))
            folder = path if tasks_write(self.home.lake) else None
            parsed = parsing.parse_all(self.spark, self.source, list(loads.tasks), folder)
            stack.callback(parsed.unpersist)
            told, files = parsing.reports_of(parsed)
            lost = self._lost(loads, told)
            counts = {load: c for load, c in told.items() if c.outcome != WAITING}
            parsed = parsing.without(parsed, told.keys() - counts.keys())
            report.rows_in = sum(c.rows_read for c in counts.values())
            report.rows_out = sum(c.rows_raw for c in counts.values())
            with around("ingest.raw"):
                left = report.rows_out - sum(file.rows for file in files)
                append_raw(self.home, table, parsing.raw_rows(self.source, parsed), left, files)
        return parsed, counts, lost

    def _lost(self, loads: Loads, told: dict[str, Counts]) -> dict[str, str]:
        lost = loads.lost(told)
        if lost:
            note_waiting(self.home, self.source, lost, self.run_id, clear=False)
        held = {path: why for path, why in lost.items() if path in self.plan.current}
        if held and self.plan.redefined:
            # Their events were made under the old definition, and no day may lose them only because of this.
            raise RereadFailed(self.source, held)
        return lost

    def _phase(self, name: str) -> Any:
        return phase(self.home, self.run_id, source=self.source.name, step="ingest", phase=name, days=self.days)

    def _touched(self, counts: dict[str, Counts]) -> list[date]:
        """The days to resolve, in order (design §3, "Touched days")."""
        days = {_EPOCH + timedelta(days=number) for c in counts.values() for number in c.days}
        loads = self.plan.loads_touched()
        if loads:
            raw = tables.read(self.spark, self.home, "raw", self.source.name)
            days |= resolve.raw_days(raw, loads)
        days |= self.plan.changing
        if self.plan.redefined:
            days |= set(self.plan.days)
        return sorted(days)

    def _resolve(
        self, files: list[dict[str, Any]], counts: dict[str, Counts], touched: list[date], stack: ExitStack
    ) -> Resolved:
        """The fate of every raw row of the touched days."""
        from chainlake.lake.spark.session import expect_rows

        with self._phase("resolve") as report:
            held = [self.plan.days[day] for day in touched if day in self.plan.days]
            already = sum(int(row[name] or 0) for row in held for name in COUNTS)
            expect_rows(self.spark, already + sum(c.rows_raw for c in counts.values()))
            contents = effective(self.source, files)
            resolved = resolving.resolve_days(self.spark, self.home, self.source, contents, touched, stack)
            report.rows_in = sum(row["rows_raw"] for row in resolved.counted.values())
            report.rows_out = resolved.rows
        return resolved

    def _write_quarantine(
        self,
        parsed: DataFrame | None,
        counts: dict[str, Counts],
        resolved: Resolved,
        current: dict[str, dict[str, Any]],
    ) -> None:
        """Quarantine of the files taken, the files gone, and the touched days."""
        from pyspark.sql import functions as F

        table = quarantine_table(self.source)
        telling = load_of_contents(current.values())
        fresh = {load for load in telling.values() if load in counts}
        kept = sorted(file_id for file_id, load in telling.items() if load not in fresh)
        touched = sorted(resolved.counted)
        stale = (F.col("stage") == "parse") & ~F.col("file_id").isin(kept)
        moved = (F.col("stage") == "resolve") & F.col("event_date").isin(touched)
        conflicts = sum(row["conflicts"] for row in resolved.counted.values())
        bad = sum(counts[load].rows_quarantined + counts[load].whole_file for load in fresh)
        wanted = conflict_rows(self.source, resolved.frame)
        if parsed is not None and bad:
            unreadable = parsing.quarantined_rows(self.source, parsing.without(parsed, counts.keys() - fresh))
            wanted = wanted.unionByName(unreadable) if conflicts else unreadable
        write_difference(
            self.spark,
            self.home,
            table,
            replaces=[
                [("stage", "=", "parse"), *([("file_id", "not in", kept)] if kept else [])],
                *([[("stage", "=", "resolve"), ("event_date", "in", touched)]] if touched else []),
            ],
            current=lambda: tables.read(self.spark, self.home, table.schema, table.name).where(stale | moved),
            wanted=wanted,
            count=conflicts + bad,
            force=bool(self.plan.changing),
        )

    def _rates(self, found: list[dict[str, Any]], touched: list[date]) -> list[dict[str, Any]]:
        """The ``ops.rates`` rows that differ from the current ones; 0 events for what left a day."""
        fresh = {(r["day"], r["type"], r["key"]): r for r in found}
        names = ("events", "first_ts", "last_ts")
        rows = []
        if touched:
            filters = [("source", "=", self.source.name), ("day", ">=", touched[0]), ("day", "<=", touched[-1])]
            listed = set(touched)
            for row in ops.current_table(self.home, "rates", filters=filters).to_pylist():
                key = (row["day"], row["type"], row["key"])
                if key in fresh and all(fresh[key][name] == row[name] for name in names):
                    del fresh[key]
                elif key not in fresh and row["day"] in listed and row["events"]:
                    rows.append({"day": key[0], "type": key[1], "key": key[2], "events": 0})
        return [{"source": self.source.name, **row} for row in (*rows, *fresh.values())]

    def _audit(self, files: list[dict[str, Any]], day_list: list[dict[str, Any]]) -> None:
        from chainlake.quality.accounting import audit_accounting
        from chainlake.quality.audit import Audit

        audit = Audit(self.home)
        reason = audit_accounting(audit, files, day_list)
        if reason is not None:
            docs = audit.build_docs()
            raise AuditFailed(
                f"the accounting of source {self.source.name} does not add up: {reason}",
                hint=f"Nothing was written to ops.files; the days stay 'changing'. Data Docs: {docs}",
            )


_EPOCH = date(1970, 1, 1)
#: Bytes of a short row of a file.
_ROW_BYTES = 20
