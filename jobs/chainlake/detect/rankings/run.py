"""Merges, audits and publishes the best matches of patterns from the matches that are published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

import numpy as np
import pyarrow as pa

from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.catalog.rankings import CompiledRanking
from chainlake.cep.events.dataset import ticks_of
from chainlake.cep.matches.best import columns_of, ranked_rows
from chainlake.days import ALWAYS, US_PER_DAY, Days, day_number, day_of_us
from chainlake.definitions.source import Sources
from chainlake.detect.plan import Wanted
from chainlake.detect.work import DetectResult, DetectRun
from chainlake.errors import AuditFailed
from chainlake.lake.commits.publish import MatchOutput, Published, PublishingRun, publish_matches
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.delta import tables
from chainlake.lake.records.defined.matched import PeriodDays
from chainlake.lake.records.defined.wanted import days_of, names_of
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.intervals import Intervals
from chainlake.lake.records.runs import one_line
from chainlake.lake.records.staleness import Judged, fingerprint, judge
from chainlake.lake.store.port import Staged
from chainlake.paths import Home
from chainlake.quality import DaysBroken
from chainlake.quality.gates.rankings import audit_rankings
from chainlake.run.common import record_failure

#: Days whose periods are merged at a time: what is published of them is not lost when later ones fail.
STRETCH = 30


@dataclass(frozen=True)
class RankingsWork:
    """A pattern whose best matches are to be found.

    Args:
        compiled: the pattern.
        days: the days on which the periods begin, ascending.
        matched: the days of its published matches.
    """

    compiled: CompiledPattern
    days: tuple[date, ...]
    matched: PeriodDays

    @property
    def ranking(self) -> CompiledRanking:
        """Its ranking."""
        assert self.compiled.ranking is not None
        return self.compiled.ranking

    @property
    def stretches(self) -> Iterator[tuple[date, ...]]:
        """Some of the days at a time."""
        for first in range(0, len(self.days), STRETCH):
            yield self.days[first : first + STRETCH]


def rankings_to_do(home: Home, mine: Sequence[CompiledPattern], wanted: Wanted) -> list[RankingsWork]:
    """The patterns of which periods are to be merged, as the matches are published now.

    Args:
        home: the installation.
        mine: patterns of one source.
        wanted: the days whose matches are looked at: all periods that these can be in are made.
    """
    of = {c.ranking.definition.name: c for c in mine if c.ranking is not None}
    definitions = [c.ranking.definition for c in of.values() if c.ranking is not None]
    if not definitions:
        return []
    intervals = Intervals(home, names_of(definitions))
    events = EventDays.load(home, definitions[0].source)
    found = []
    for judged in judge(home, definitions, asked=wanted.asked, intervals=intervals, events={events.source: events}):
        days = days_of(judged.definition, events, intervals)
        assert isinstance(days, PeriodDays)
        flags = judged.ready & np.isin(judged.state, wanted.states) & touched(judged, wanted.horizon)
        mine_to_do = tuple(judged.day(at) for at in np.flatnonzero(flags).tolist())
        if mine_to_do:
            found.append(RankingsWork(of[judged.name], mine_to_do, days))
    return found


def touched(judged: Judged, days: Days) -> np.ndarray:
    """Which days of a ranking have periods that matches of some days can be in; and those that have none any more."""
    owners = judged.definition.owners
    assert owners is not None, "only rankings get here"
    of_days = owners(np.arange(day_number(days.start), day_number(days.end)))
    reads = [judged.definition.read_range(judged.day(at)) for at in range(len(judged.numbers))]
    found: np.ndarray = np.isin(judged.numbers, of_days) | np.array([lo >= hi for lo, hi in reads], bool)
    return found


def run_rankings(run: DetectRun, work: Sequence[RankingsWork]) -> DetectResult:
    """Find the best matches of some patterns; whatever stops one stops no other."""
    published: list[Published] = []
    failed: dict[str, BaseException] = {}
    for item in work:
        name, definition = item.ranking.definition.name, item.ranking.definition
        for days in item.stretches:
            prints = {day: fingerprint(definition, day, item.matched) for day in days}
            try:
                published.append(_made(run, item, prints))
            except Exception as error:  # the fence around a pattern: the others publish, then the step raises it
                failed.setdefault(name, error)
                if not isinstance(error, AuditFailed):
                    record_failure(run.home, definition, prints, error, run.run_id)
                print(f"{name} failed: {one_line(error)}", flush=True)
    print(f"Data Docs: {run.audit.build_docs()}", flush=True)
    return DetectResult(0, tuple(published), tuple(failed.items()))


def _made(run: DetectRun, item: RankingsWork, prints: dict[date, str]) -> Published:
    """Merge, audit and publish the periods that begin on some days."""
    ranking, days = item.ranking, sorted(prints)
    name, span = ranking.definition.name, Days(days[0], Days.one(days[-1]).end)
    with run.phase("ranking", span, name) as row:
        matches = published_matches(run.home, item.compiled, item.matched, days)
        rows = ranked_on(item.compiled, matches, days)
        row.rows_in, row.rows_out = len(matches), len(rows)
    with run.phase("audit", span, name) as row:
        row.rows_in = len(rows)
        verdict = audit_rankings(run.audit, item.compiled.pattern, rows, matches, days)
        row.reason = verdict.summary
    output = MatchOutput(ranking.definition, ranking.table, Staged(rows=rows), prints, verdict.reasons)
    with run.phase("publish", span, name) as row:
        done = publish_matches(
            PublishingRun(run.home, run.ports.lake, run.run_id), output, recheck=partial(_days_now, run, item, days)
        )
        row.rows_out = done.added + done.changed + done.withdrawn
    for day, reason in sorted(done.left_out.items()):
        print(f"{name} {day} not published: {reason}", flush=True)
    if verdict.broken:
        raise DaysBroken.of(name, verdict, "Nothing of these days was published; the matches are.")
    return done


def ranked_on(compiled: CompiledPattern, matches: pa.Table, days: Sequence[date]) -> pa.Table:
    """The best matches of the periods that begin on some days."""
    lo, hi = Days(min(days), Days.one(max(days)).end).micros()
    rows = ranked_rows(compiled.pattern, matches, lo, hi)
    numbers = ticks_of(rows["scope_start"], "scope_start") // US_PER_DAY
    mine = np.isin(numbers, [day_number(day) for day in days])
    return rows if mine.all() else rows.filter(pa.array(mine))


def published_matches(home: Home, compiled: CompiledPattern, matched: PeriodDays, days: Sequence[date]) -> pa.Table:
    """The published matches that can be in the periods that begin on some days, with what they are ranked by.

    Rows of days that were last published under another definition, or another engine, are none of them.
    """
    table, columns = compiled.table, columns_of(compiled.pattern)
    reads = [matched.reach(day) for day in days]
    spans = [(lo, hi) for lo, hi in reads if lo < hi]
    if not spans or not tables.exists(home, table.schema, table.name):
        return pa.schema([table.arrow().field(name) for name in columns]).empty_table()
    lo, hi = min(lo for lo, _ in spans), max(hi for _, hi in spans)
    bounds = None if (lo, hi) == ALWAYS else tables.decided_in(lo, hi)
    rows = tables.arrow(home, table.schema, table.name, columns=columns, filters=bounds)
    numbers = ticks_of(rows["decision_ts"], "decision_ts") // US_PER_DAY
    live = [number for number in np.unique(numbers).tolist() if matched.published(day_of_us(number * US_PER_DAY))]
    mine = np.isin(numbers, live)
    return rows if mine.all() else rows.filter(pa.array(mine))


def _days_now(run: DetectRun, item: RankingsWork, days: Sequence[date]) -> DaysNow:
    """What the periods are made from now: one whose matches or definition moved meanwhile is left to the next run."""
    was = item.ranking.definition
    compiled, _ = load_patterns(run.home, Sources(run.source), only=item.compiled.pattern.name)
    same = [
        c for c in compiled if c.ranking is not None and c.ranking.definition.definition_hash == was.definition_hash
    ]
    now = days_of(was, EventDays.load(run.home, run.source.name), Intervals(run.home, names_of([was])))
    return DaysNow({day: fingerprint(was, day, now) for day in days if same}, lambda day: True)
