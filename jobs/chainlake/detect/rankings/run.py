"""Merges, audits and publishes the best matches of patterns from the published matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

import numpy as np
import pyarrow as pa

from chainlake.catalog.derived import Derived
from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.events.columns import ticks_of
from chainlake.cep.matches.best import columns_of, ranked_rows
from chainlake.days import ALWAYS, US_PER_DAY, Days, day_number, day_of_us
from chainlake.detect.derived import Piece, judged_days, now, publish_derived, run_pieces
from chainlake.detect.plan import Wanted
from chainlake.detect.work import DetectResult, DetectRun
from chainlake.lake.commits.publish import MatchOutput, Published
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.delta import tables
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.defined.matched import PeriodDays
from chainlake.lake.records.staleness import Judged
from chainlake.lake.store.port import Staged
from chainlake.paths import Home
from chainlake.quality.gates.rankings import audit_rankings

#: How many days' periods are merged at a time: what is published of them is not lost when later ones fail.
BATCH = 30


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
    def ranking(self) -> Derived:
        """Its ranking."""
        assert self.compiled.ranking is not None
        return self.compiled.ranking

    @property
    def batches(self) -> Iterator[tuple[date, ...]]:
        """The days, at most :data:`BATCH` at a time."""
        for first in range(0, len(self.days), BATCH):
            yield self.days[first : first + BATCH]


def rankings_to_do(home: Home, mine: Sequence[CompiledPattern], wanted: Wanted) -> list[RankingsWork]:
    """The patterns with periods that are to be merged, judging by the matches published now.

    Args:
        home: the installation.
        mine: patterns of one source.
        wanted: the days whose matches are looked at; all periods that can hold these are made.
    """
    found = []
    for one in judged_days(home, mine, ranking, wanted.asked):
        judged, days = one.judged, one.days
        assert isinstance(days, PeriodDays)
        flags = judged.ready & np.isin(judged.state, wanted.states) & touched(judged, wanted.horizon)
        mine_to_do = tuple(judged.day(at) for at in np.flatnonzero(flags).tolist())
        if mine_to_do:
            found.append(RankingsWork(one.compiled, mine_to_do, days))
    return found


def ranking(compiled: CompiledPattern) -> Derived | None:
    """The best matches of a pattern."""
    return compiled.ranking


def touched(judged: Judged, days: Days) -> np.ndarray:
    """A flag per day of a ranking that has periods that can hold matches of ``days``, or no longer has any period."""
    owners = judged.definition.owners
    assert owners is not None, "only rankings get here"
    of_days = owners(np.arange(day_number(days.start), day_number(days.end)))
    reads = [judged.definition.read_range(judged.day(at)) for at in range(len(judged.numbers))]
    found: np.ndarray = np.isin(judged.numbers, of_days) | np.array([lo >= hi for lo, hi in reads], bool)
    return found


def run_rankings(run: DetectRun, work: Sequence[RankingsWork]) -> DetectResult:
    """Find the best matches of some patterns; whatever stops one does not stop the others."""
    return run_pieces(run, (_piece(run, item, days) for item in work for days in item.batches))


def _piece(run: DetectRun, item: RankingsWork, days: Sequence[date]) -> Piece:
    definition = item.ranking.definition
    prints = {day: fingerprint(definition, day, item.matched) for day in days}
    return Piece(definition, lambda: prints, lambda: _made(run, item, prints))


def _made(run: DetectRun, item: RankingsWork, prints: dict[date, str]) -> Iterator[Published]:
    """Merge, audit and publish the periods that begin on some days."""
    days = sorted(prints)
    definition, span = item.ranking.definition, Days(days[0], Days.one(days[-1]).end)
    with run.phase("ranking", span, definition.name) as row:
        matches = published_matches(run.home, item.compiled, item.matched, days)
        rows = ranked_on(item.compiled, matches, days)
        row.rows_in, row.rows_out = len(matches), len(rows)
    with run.phase("audit", span, definition.name) as row:
        row.rows_in = len(rows)
        verdict = audit_rankings(run.audit, item.compiled.pattern, rows, matches, days)
        row.reason = verdict.summary
    output = MatchOutput(definition, item.ranking.table, Staged(rows=rows), prints, verdict.reasons)
    yield from publish_derived(run, output, verdict, span, partial(_days_now, run, item, days))


def ranked_on(compiled: CompiledPattern, matches: pa.Table, days: Sequence[date]) -> pa.Table:
    """The best matches of the periods that begin on some days."""
    lo, hi = Days(min(days), Days.one(max(days)).end).micros()
    rows = ranked_rows(compiled.pattern, matches, lo, hi)
    numbers = ticks_of(rows["scope_start"], "scope_start") // US_PER_DAY
    mine = np.isin(numbers, [day_number(day) for day in days])
    return rows if mine.all() else rows.filter(pa.array(mine))


def published_matches(home: Home, compiled: CompiledPattern, matched: PeriodDays, days: Sequence[date]) -> pa.Table:
    """The published matches that can be in the periods that begin on some days, with the columns by which they are
    ranked.

    Rows of days that were last published under another definition or engine are left out.
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
    return DaysNow(now(run, item.compiled, ranking, days).prints, lambda day: True)
