"""Makes, audits and publishes the episodes of patterns from the published matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

import pyarrow as pa

from chainlake.catalog.episodes import CompiledEpisodes
from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.episodes.days import digest, episodes_of_day, state_text
from chainlake.days import Days, day_of, day_start_us
from chainlake.detect.chained.course import BATCH
from chainlake.detect.chained.segment_run import SegmentRun
from chainlake.detect.chained.segments import Segment, segments, to_do_flags
from chainlake.detect.derived import Piece, judged_days, now, publish_derived, run_pieces
from chainlake.detect.episodes.published import Open, PublishedMatches, episode_rows, number_of
from chainlake.detect.plan import Wanted
from chainlake.detect.work import DetectResult, DetectRun
from chainlake.lake.commits.publish import MatchOutput, Published
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.records.chain import EMPTY, Link
from chainlake.lake.records.chained import begins_anew
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.store.port import Staged
from chainlake.paths import Home
from chainlake.quality.gates.episodes import audit_episodes


@dataclass(frozen=True)
class EpisodesWork:
    """A pattern whose episodes are to be made.

    Args:
        compiled: the pattern.
        parts: the segments of its chain in which something is to do.
        days: the days of its published matches.
    """

    compiled: CompiledPattern
    parts: tuple[Segment, ...]
    days: EventDays

    @property
    def episodes(self) -> CompiledEpisodes:
        """Its episodes."""
        assert self.compiled.episodes is not None
        return self.compiled.episodes


def episodes_to_do(home: Home, mine: Sequence[CompiledPattern], wanted: Wanted, reached: Days) -> list[EpisodesWork]:
    """The patterns whose episodes are to be made, judging by the matches published now.

    Args:
        home: the installation.
        mine: patterns of one source.
        wanted: which days are to be made.
        reached: days on which matches that were just published can change episodes; of those that are not wanted,
            only days that were made before are made again.
    """
    found = []
    for one in judged_days(home, mine, episodes, wanted.asked):
        recorded = one.judged.recorded("status") != None  # noqa: E711 (element by element)
        flags = to_do_flags(one.judged, wanted.horizon, wanted.states)
        flags |= to_do_flags(one.judged, reached, wanted.states) & recorded
        parts = segments(one.judged, flags, one.days)
        if parts:
            found.append(EpisodesWork(one.compiled, tuple(parts), one.days))
    return found


def episodes(compiled: CompiledPattern) -> CompiledEpisodes | None:
    """The episodes of a pattern."""
    return compiled.episodes


def run_episodes(run: DetectRun, work: Sequence[EpisodesWork]) -> DetectResult:
    """Make the episodes of some patterns; whatever stops one does not stop the others."""
    return run_pieces(run, (_piece(run, item, part) for item in work for part in item.parts))


def _piece(run: DetectRun, item: EpisodesWork, part: Segment) -> Piece:
    definition, target = item.episodes.definition, day_of(part.first)
    inputs = partial(_inputs, definition, [target], item.days)
    return Piece(definition, inputs, lambda: _segment(run, item, part))


def _inputs(definition: Definition, days: Iterable[date], matched: EventDays) -> dict[date, str]:
    return {day: fingerprint(definition, day, matched) for day in days}


def _segment(run: DetectRun, item: EpisodesWork, part: Segment) -> Iterator[Published]:
    """Make and publish the days of one segment, as far as possible."""
    first = item.days.first or day_of(part.first)
    matches = PublishedMatches(run.home, item.compiled, first)
    way = SegmentRun(part, item.episodes.definition, matches.open_at, lambda open_: state_digest(open_.spans), BATCH)
    while (batch := way.next()) is not None:
        leg = Leg(Days(day_of(batch.begin), day_of(batch.end)), way.before(batch))
        with run.phase("episodes", leg.days, item.episodes.definition.name) as row:
            made = make(matches, leg)
            row.rows_in, row.rows_out = made.matches, len(made.rows)
        needed = way.finish_batch([made.links[day].state_out for day in leg.days])
        done = 0
        for published in _leg(run, item, matches, leg, made.first(needed)):
            done += len(published.days_done)
            yield published
        if done < needed:
            break
        way.published(needed)


@dataclass(frozen=True)
class Leg:
    """Days to be made in one go.

    Args:
        days: the days.
        before: what is open before them; None if they start from the empty state.
    """

    days: Days
    before: Open | None


def _leg(run: DetectRun, item: EpisodesWork, matches: PublishedMatches, leg: Leg, made: Made) -> Iterator[Published]:
    """Audit and publish what was made of the first days of a leg."""
    definition, days, rows = item.episodes.definition, list(made.per_day), made.rows
    with run.phase("audit", leg.days, definition.name) as row:
        row.rows_in = len(rows)
        whole = Days(days[0], Days.one(days[-1]).end)
        since = day_start_us(leg.days.start) if leg.before is None else leg.before.since
        verdict = audit_episodes(
            run.audit, item.episodes.table, rows, matches.of(since, whole.micros()[1]), whole, item.episodes.timing
        )
        row.reason = verdict.summary
    prints = _inputs(definition, days, item.days)
    output = MatchOutput(definition, item.episodes.table, Staged(rows=rows), prints, verdict.reasons, made.links)
    yield from publish_derived(run, output, verdict, leg.days, partial(_days_now, run, item, days))


@dataclass(frozen=True)
class Made:
    """What was made for some days.

    Args:
        per_day: day, ascending → its rows for the table of episodes.
        links: day → the digests of the states at its ends.
        matches: how many matches were decided on all days that were made.
    """

    per_day: Mapping[date, pa.Table]
    links: Mapping[date, Link]
    matches: int

    @property
    def rows(self) -> pa.Table:
        """The rows of all days."""
        return pa.concat_tables(self.per_day.values())

    def first(self, count: int) -> Made:
        """The first days, at least one."""
        days = list(self.per_day)[:count]
        return Made({day: self.per_day[day] for day in days}, {day: self.links[day] for day in days}, self.matches)


def make(matches: PublishedMatches, leg: Leg) -> Made:
    """Make the episodes of some days."""
    timing = matches.episodes.timing
    open_ = None if leg.before is None else leg.before.spans
    state = EMPTY if open_ is None else state_digest(open_)
    per_day: dict[date, pa.Table] = {}
    links: dict[date, Link] = {}
    count = 0
    for day, some in matches.by_day(leg.days).items():
        found = episodes_of_day(timing, open_, [some], Days.one(day).micros()[1])
        per_day[day] = episode_rows(matches.episodes, found.decided)
        after = state_digest(found.open)
        links[day] = Link(state, after)
        open_, state, count = found.open, after, count + number_of(some)
    return Made(per_day, links, count)


def state_digest(spans: pa.Table) -> str:
    """The digest of the open spans."""
    return digest(state_text(spans))


def _days_now(run: DetectRun, item: EpisodesWork, days: Sequence[date]) -> DaysNow:
    """What the days are made from now; a day that has become provisional, or no longer is, is left to the next run."""
    found = now(run, item.compiled, episodes, days)
    prints = {day: one for day, one in found.prints.items() if found.days.status(day) == item.days.status(day)}
    return DaysNow(prints, partial(begins_anew, item.episodes.definition, found.days))
