"""Makes, audits and publishes the episodes of patterns from the matches that are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

import pyarrow as pa

from chainlake.catalog.episodes import CompiledEpisodes
from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.cep.episodes.days import day_of as made_on
from chainlake.cep.episodes.days import digest, state_text
from chainlake.days import Days, day_of, day_start_us
from chainlake.definitions.source import Sources
from chainlake.detect.chained.course import STRETCH
from chainlake.detect.chained.segments import Segment, segments, to_do_flags
from chainlake.detect.chained.way import SegmentWay
from chainlake.detect.episodes.published import Open, PublishedMatches, episode_rows, number_of
from chainlake.detect.plan import Wanted
from chainlake.detect.work import DetectResult, DetectRun
from chainlake.errors import AuditFailed
from chainlake.lake.commits.publish import MatchOutput, Published, PublishingRun, publish_matches
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.records.chain import EMPTY, Link
from chainlake.lake.records.chained import begins_anew
from chainlake.lake.records.defined.wanted import days_of, names_of
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.intervals import Intervals
from chainlake.lake.records.runs import one_line
from chainlake.lake.records.staleness import fingerprint, judge
from chainlake.lake.store.port import Staged
from chainlake.paths import Home
from chainlake.quality import DaysBroken
from chainlake.quality.gates.episodes import audit_episodes
from chainlake.run.common import record_failure


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


def episodes_to_do(home: Home, mine: Sequence[CompiledPattern], wanted: Wanted) -> list[EpisodesWork]:
    """The patterns whose episodes are to be made, as the matches are published now.

    Args:
        home: the installation.
        mine: patterns of one source.
        wanted: which days are to be made.
    """
    of = {c.episodes.definition.name: c for c in mine if c.episodes is not None}
    definitions = [c.episodes.definition for c in of.values() if c.episodes is not None]
    if not definitions:
        return []
    intervals = Intervals(home, names_of(definitions))
    events = EventDays.load(home, definitions[0].source)
    found = []
    known = {events.source: events}
    for judged in judge(home, definitions, asked=wanted.asked, intervals=intervals, events=known):
        days = days_of(judged.definition, events, intervals)
        parts = segments(judged, to_do_flags(judged, wanted.horizon, wanted.states), days)
        if parts:
            found.append(EpisodesWork(of[judged.name], tuple(parts), days))
    return found


def run_episodes(run: DetectRun, work: Sequence[EpisodesWork]) -> DetectResult:
    """Make the episodes of some patterns; whatever stops one stops no other."""
    published: list[Published] = []
    failed: dict[str, BaseException] = {}
    for item in work:
        for part in item.parts:
            name, definition = item.episodes.definition.name, item.episodes.definition
            target = day_of(part.first)
            try:
                for done in _segment(run, item, part):
                    published.append(done)
            except Exception as error:  # the fence around a pattern: the others publish, then the step raises it
                failed.setdefault(name, error)
                if not isinstance(error, AuditFailed):
                    inputs = {target: fingerprint(definition, target, item.days)}
                    record_failure(run.home, definition, inputs, error, run.run_id)
                print(f"{name} failed: {one_line(error)}", flush=True)
    print(f"Data Docs: {run.audit.build_docs()}", flush=True)
    return DetectResult(0, tuple(published), tuple(failed.items()))


def _segment(run: DetectRun, item: EpisodesWork, part: Segment) -> list[Published]:
    """Go through one segment, as far as it can be published."""
    first = item.days.first or day_of(part.first)
    matches = PublishedMatches(run.home, item.compiled, first)
    way = SegmentWay(part, item.episodes.definition, matches.open_at, lambda open_: state_of(open_.stretches), STRETCH)
    found = []
    while (stretch := way.next()) is not None:
        leg = Leg(Days(day_of(stretch.begin), day_of(stretch.end)), way.before(stretch))
        done, needed = _leg(run, item, matches, way, leg)
        found.append(done)
        if len(done.days_done) < needed:
            break
        way.published(needed)
    return found


@dataclass(frozen=True)
class Leg:
    """Days to be made in one go.

    Args:
        days: the days.
        before: what is open before them; None if they begin empty.
    """

    days: Days
    before: Open | None


def _leg(
    run: DetectRun, item: EpisodesWork, matches: PublishedMatches, way: SegmentWay[Open], leg: Leg
) -> tuple[Published, int]:
    """Make, audit and publish some days; what was published, and how many days were to be."""
    name = item.episodes.definition.name
    prints = {day: fingerprint(item.episodes.definition, day, item.days) for day in leg.days}
    with run.phase("episodes", leg.days, name) as row:
        made = make(matches, leg)
        row.rows_in, row.rows_out = made.matches, len(made.rows)
    needed = way.came([made.links[day].state_out for day in leg.days])
    days = list(leg.days)[:needed]
    rows = made.of(days)
    with run.phase("audit", leg.days, name) as row:
        row.rows_in = len(rows)
        whole = Days(days[0], Days.one(days[-1]).end)
        since = day_start_us(leg.days.start) if leg.before is None else leg.before.since
        verdict = audit_episodes(
            run.audit, item.episodes.table, rows, matches.of(since, whole.micros()[1]), whole, item.episodes.timing
        )
        row.reason = verdict.summary
    output = MatchOutput(
        item.episodes.definition,
        item.episodes.table,
        Staged(rows=rows),
        {day: prints[day] for day in days},
        verdict.reasons,
        {day: made.links[day] for day in days},
    )
    with run.phase("publish", leg.days, name) as row:
        done = publish_matches(
            PublishingRun(run.home, run.ports.lake, run.run_id), output, recheck=partial(_days_now, run, item, days)
        )
        row.rows_out = done.added + done.changed + done.withdrawn
    for day, reason in sorted(done.left_out.items()):
        print(f"{name} {day} not published: {reason}", flush=True)
    if verdict.broken:
        raise DaysBroken.of(name, verdict, "Nothing from that day on was published; its matches are.")
    return done, needed


@dataclass(frozen=True)
class Made:
    """What was made of some days.

    Args:
        rows: of the table of episodes.
        per_day: day → its rows.
        links: day → the digests of the states at its ends.
        matches: how many were decided on these days.
    """

    per_day: Mapping[date, pa.Table]
    links: Mapping[date, Link]
    matches: int

    @property
    def rows(self) -> pa.Table:
        """Those of all days."""
        return self.of(list(self.per_day))

    def of(self, days: Sequence[date]) -> pa.Table:
        """Those of some days, at least one."""
        return pa.concat_tables([self.per_day[day] for day in days])


def make(matches: PublishedMatches, leg: Leg) -> Made:
    """Make the episodes of some days."""
    timing = matches.episodes.timing
    open_ = None if leg.before is None else leg.before.stretches
    state = EMPTY if open_ is None else state_of(open_)
    per_day: dict[date, pa.Table] = {}
    links: dict[date, Link] = {}
    count = 0
    for day, some in matches.by_day(leg.days).items():
        found = made_on(timing, open_, [some], Days.one(day).micros()[1])
        per_day[day] = episode_rows(matches.episodes, found.decided)
        after = state_of(found.open)
        links[day] = Link(state, after)
        open_, state, count = found.open, after, count + number_of(some)
    return Made(per_day, links, count)


def state_of(stretches: pa.Table) -> str:
    """The digest of what is open."""
    return digest(state_text(stretches))


def _days_now(run: DetectRun, item: EpisodesWork, days: Sequence[date]) -> DaysNow:
    """What the days are made from now: one whose matches or definition moved meanwhile is left to the next run."""
    was = item.episodes.definition
    compiled, _ = load_patterns(run.home, Sources(run.source), only=item.compiled.pattern.name)
    same = [
        c for c in compiled if c.episodes is not None and c.episodes.definition.definition_hash == was.definition_hash
    ]
    now = days_of(was, EventDays.load(run.home, run.source.name), Intervals(run.home, names_of([was])))
    prints = {day: fingerprint(was, day, now) for day in days if same and now.status(day) == item.days.status(day)}
    return DaysNow(prints, partial(begins_anew, was, now))
