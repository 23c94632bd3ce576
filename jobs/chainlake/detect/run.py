"""What the detect step computes: its patterns are counted, searched and staged together, then each is published.

Each stage takes the value of the one before: ``Work``, ``Prepared``, ``StagedMatches``, ``Audited``, ``Published``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial

import numpy as np
import pyarrow as pa

from chainlake.catalog.patterns import load_patterns
from chainlake.cep.matches.day_limit import check_day
from chainlake.cep.pattern import Pattern
from chainlake.days import Days
from chainlake.definitions.source import Sources
from chainlake.detect.division.counts import Counting
from chainlake.detect.order import SearchPlan, record_plan
from chainlake.detect.prepared import prepare
from chainlake.detect.stage import Found, Search, stage
from chainlake.detect.work import DetectResult, SearchRun, Work, named_together, span_of
from chainlake.errors import AuditFailed, ChainlakeError, LimitExceeded
from chainlake.lake.commits.publish import MatchOutput, Published, PublishingRun, publish_matches
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.records import ops
from chainlake.lake.records.chain import Link
from chainlake.lake.records.chained import begins_anew
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.runs import error_line
from chainlake.lake.store.port import Staged
from chainlake.quality import DaysBroken, MatchFiles, Verdict, audit_matches
from chainlake.run.common import discard, record_failure, staging_folder
from chainlake.schemas.ops_rows import RateOfKey

#: The most days that are searched before they are published, and the most events on them: what is published of them is
#: not lost when the run ends early, and what is staged and audited at a time does not grow with the range. A single day
#: may have more events.
MOST_DAYS, MOST_EVENTS = 92, 30_000_000


@dataclass(frozen=True)
class StagedMatches:
    """A pattern whose matches were searched for.

    Args:
        item: the pattern and its days.
        plan: how it was searched.
        folder: where the matches are.
        found: what was found.
        links: if the days form a chain: day → the digests of the states at its ends.
        consumed: ids of the events that were used up before the days.
    """

    item: Work
    plan: SearchPlan
    folder: str
    found: Found
    links: Mapping[date, Link] | None = None
    consumed: pa.Array | None = None


@dataclass(frozen=True)
class Audited:
    """Staged matches, and which of their days may be published.

    Args:
        staged: the matches.
        verdict: the audit's verdict.
    """

    staged: StagedMatches
    verdict: Verdict

    @property
    def failure(self) -> DaysBroken | None:
        """The error to raise once the other days are published; None if the audit passed."""
        if not self.verdict.broken:
            return None
        return DaysBroken.of(self.staged.item.name, self.verdict, onwards=False, folder=self.staged.folder)


def run_work(run: SearchRun, work: Sequence[Work]) -> DetectResult:
    """Find, audit and publish the matches of some patterns on their days; what stops one stops no other."""
    published: list[Published] = []
    failed: dict[str, BaseException] = {}
    for part in in_parts(work, run.pinned.event_days):
        waiting = part
        while waiting:
            few = replace(run, span=span) if (span := span_of(waiting)) != run.span else run
            came = _publish_each(few, waiting)
            published += came.published
            failed = {**dict(came.failed), **failed}
            waiting = list(came.again)
    whole = {item.name for item in work} - failed.keys()
    return DetectResult(len(whole), tuple(published), tuple(failed.items()))


def in_parts(work: Sequence[Work], event_days: EventDays) -> Iterator[list[Work]]:
    """The work in parts of at most `MOST_DAYS` days with at most `MOST_EVENTS` events, in time order."""
    left = sorted({day for item in work for day in item.fingerprints})
    while left:
        events = np.cumsum([event_days.events([day]) for day in left[:MOST_DAYS]])
        number = max(1, int(np.searchsorted(events, MOST_EVENTS, side="right")))
        wanted, left = set(left[:number]), left[number:]
        few = ({day: mark for day, mark in item.fingerprints.items() if day in wanted} for item in work)
        yield [Work(item.compiled, mine) for item, mine in zip(work, few, strict=True) if mine]


@dataclass(frozen=True)
class _Came:
    """What became of some patterns.

    Args:
        published: what was published.
        failed: pairs of definition and error.
        again: what is to be searched again, on fewer days at a time.
    """

    published: tuple[Published, ...]
    failed: tuple[tuple[str, BaseException], ...]
    again: tuple[Work, ...]


def _publish_each(run: SearchRun, work: Sequence[Work]) -> _Came:
    """Search some patterns together, and audit and publish one after the other."""
    published: list[Published] = []
    failed: list[tuple[str, BaseException]] = []
    again: list[Work] = []
    for item, staged in zip(work, _each(partial(find, run), work), strict=True):
        name = item.name
        try:
            audited = audit(run, accept(run, item, staged))
            published.append(publish(run, audited))
            if audited.failure is not None:
                raise audited.failure
        except Exception as error:  # one failure stops no other pattern: these publish, then the step raises it
            if isinstance(error, LimitExceeded) and len(item.fingerprints) > 1:
                # A limit concerns one day, so the other days must come out as if they had been run alone.
                again += item.halves()
                continue
            failed.append((name, error))
            if not isinstance(error, AuditFailed):
                record_failure(run.home, item.compiled.definition, item.fingerprints, error, run.run_id)
            print(f"{name} failed: {error_line(error)}", flush=True)
    return _Came(tuple(published), tuple(failed), tuple(again))


def _each(
    find_all: Callable[[Sequence[Work]], list[StagedMatches]], work: Sequence[Work]
) -> list[StagedMatches | Exception]:
    """Search all patterns at once; if that fails, each alone, so that one does not stop the others."""
    try:
        return [*find_all(work)]
    except Exception as error:  # a scan's failure is raised where each pattern is accepted
        if len(work) == 1:
            return [error]
        print(f"each pattern is searched alone: {error_line(error)}", flush=True)
        return [one for item in work for one in _each(find_all, [item])]


def find(run: SearchRun, work: Sequence[Work]) -> list[StagedMatches]:
    """Count, plan, cut and search some patterns, all with the same tasks."""
    every = [day for item in work for day in item.fingerprints]
    folders = [staging_folder(run.home, run.run_id, item.compiled.pattern.name) for item in work]
    try:
        with run.phase("detect", days=Days(min(every), Days.one(max(every)).end)) as row:
            row.about = named_together(work)
            counting = Counting(run.ports.tasks, run.files, run.source.key)
            prepared = prepare(counting, work, run.pinned.event_days, partial(rates, run))
            searches = [
                Search(one.ask.pattern, one.item.compiled.table, one.plan.orders, folder)
                for one, folder in zip(prepared.patterns, folders, strict=True)
            ]
            found = stage(run.ports.tasks, run.files, run.source.key, searches, prepared.shares)
    except Exception:
        for folder in folders:
            discard(folder)
        raise
    return [
        StagedMatches(one.item, one.plan, folder, each)
        for one, folder, each in zip(prepared.patterns, folders, found, strict=True)
    ]


def accept(run: SearchRun, item: Work, staged: StagedMatches | Exception) -> StagedMatches:
    """Accept what was found for a pattern, if it is complete and within its limits, and record its plan; else raise."""
    with run.phase("detect", item.days, item.name) as row:
        if isinstance(staged, Exception):
            raise staged
        found = staged.found
        try:
            if found.failure is not None:
                raise found.failure
            for day, count in sorted(found.per_day.items()):
                # Each task stops at the limit for its own matches; the limit also holds for the matches of all tasks.
                check_day(item.compiled.pattern, day, count)
        except ChainlakeError:
            discard(staged.folder)
            raise
        row.rows_out = sum(found.per_day.values())
        row.reason = "; ".join(_left_out(item.compiled.pattern, found)) or None
        if row.reason:
            print(f"{item.name}: {row.reason}", flush=True)
        record_plan(run.home, item, staged.plan, found, run.run_id)
        return staged


def _left_out(pattern: Pattern, found: Found) -> Iterator[str]:
    """Which events were not looked at, and which matches are not ranked, in words."""
    if found.long_stretches:
        yield _too_long(pattern, found.long_stretches)
    unscored = found.best.unscored
    if unscored:
        have, are = ("1 match has", "is") if unscored == 1 else (f"{unscored} matches have", "are")
        yield f"{have} no score, since a criterion is missing or not finite, and {are} not ranked"
    if found.best.lacking:
        names = ", ".join(found.best.lacking)
        yield f"some events of {names} give no number to rank by, so matches with them are not ranked"


def _too_long(pattern: Pattern, number: int) -> str:
    stretches = "a stretch of events is" if number == 1 else f"{number} stretches of events are"
    return (
        f"{stretches} longer than {timedelta(microseconds=pattern.longest or 0)} without a pause of "
        f"{timedelta(microseconds=pattern.extras.pause or 0)}; no match is looked for there"
    )


def audit(run: SearchRun, staged: StagedMatches) -> Audited:
    """Find out which days of the staged matches may be published."""
    item = staged.item
    with run.phase("audit", item.days, item.name) as row:
        row.rows_in = sum(staged.found.per_day.values())
        events = [path for day in run.files.within(*item.read_days.micros()) for path in run.files.paths[day]]
        files = MatchFiles(staged.found.paths, events, staged.consumed)
        verdict = audit_matches(run.audit, item.compiled.pattern, files, sorted(item.fingerprints))
        row.reason = verdict.summary
        return Audited(staged, verdict)


def publish(run: SearchRun, audited: Audited) -> Published:
    """Publish the days that passed."""
    staged, item = audited.staged, audited.staged.item
    with run.phase("publish", item.days, item.name) as row:
        output = MatchOutput(
            item.compiled.definition,
            item.compiled.table,
            Staged(staged.found.paths),
            item.fingerprints,
            audited.verdict.reasons,
            staged.links,
        )
        published = publish_matches(
            PublishingRun(run.home, run.ports.lake, run.run_id), output, recheck=lambda: _days_now(run, item)
        )
        row.rows_out = published.added + published.changed + published.withdrawn
    for day, reason in sorted(published.left_out.items()):
        print(f"{item.name} {day} not published: {reason}", flush=True)
    if not audited.verdict.broken:
        discard(staged.folder)
    return published


def rates(run: SearchRun, days: Days) -> list[RateOfKey]:
    """Numbers of events per type, key and day, for these days only, since years of all keys are millions of rows."""
    mine = [("source", "=", run.source.name), ("day", ">=", days.start), ("day", "<", days.end)]
    found: list[RateOfKey] = ops.current_table(
        run.home, "rates", columns=["type", "key", "events"], filters=mine
    ).to_pylist()
    return found


def _days_now(run: SearchRun, item: Work) -> DaysNow:
    """What the days are computed from now; a day whose input or definition changed is left to the next run."""
    compiled, _ = load_patterns(run.home, Sources(run.source), only=item.compiled.pattern.name)
    was = item.compiled.definition
    now = EventDays.load(run.home, run.source.name)
    prints: dict[date, str] = {}
    for one in (c.definition for c in compiled):
        # The start of a chain is not part of the hash.
        if (one.definition_hash, one.table_name, one.start) == (was.definition_hash, was.table_name, was.start):
            prints = {day: fingerprint(was, day, now) for day in item.fingerprints}
    return DaysNow(prints, partial(begins_anew, was, now))
