"""Which Spark applications a long range of days needs, and what each would compute, read and change; no JVM.

One application computes all to-do days of a source's definitions within a window of ``chunk`` days. The matches of
most patterns depend on events alone, but a model carries state, and so does a pattern that uses events up. So windows
run in time order, and what they compute may depend on the states that they reach
(docs/semantics.md#chained-days).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from chainlake.catalog.installed import Installed
from chainlake.catalog.models import LoadedModel
from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days, day_number, day_of, day_of_us
from chainlake.definitions.errors import UnknownDefinition
from chainlake.definitions.files import BrokenDefinition
from chainlake.definitions.source import Source, load_sources
from chainlake.detect.chained.course import Course
from chainlake.detect.chained.segments import Segment, segments
from chainlake.errors import InputError, UsageError
from chainlake.ingest.landing.first import first_ingest
from chainlake.lake.records.chain import Outlook
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import TO_DO, Judged, judge
from chainlake.monitoring.states import KeptStates
from chainlake.monitoring.step import course_of, published_end
from chainlake.operations.backfills.applications import CHUNK, Application, Part
from chainlake.operations.backfills.plan_episodes import episodes_days, with_episodes
from chainlake.operations.backfills.plan_rankings import rankings_days, with_rankings
from chainlake.operations.backfills.range_plan import RangePlan
from chainlake.paths import Home
from chainlake.run.common import STALE, the_source
from chainlake.schemas.ops_rows import ComputingStep

_ONE = timedelta(days=1)


@dataclass(frozen=True)
class _Asked:
    days: Days | None
    chunk: int
    states: tuple[str, ...]

    @property
    def only_stale(self) -> bool:
        return "missing" not in self.states


def plan_range(
    home: Home,
    days: Days | None,
    *,
    patterns: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    chunk: int = CHUNK,
    only_stale: bool = False,
) -> RangePlan:
    """Plan the computation of every to-do day of ``days``.

    Args:
        home: the installation.
        days: the days; all if None.
        patterns: names of the patterns; None means all if ``models`` is None too, and otherwise none.
        models: names of the models; None likewise.
        sources: only definitions of these sources; all if None.
        chunk: number of days in an application's window, at least 1.
        only_stale: only days that are stale or failed, not those never computed.

    Raises:
        UsageError: a name does not exist, or a chunk has no days.
    """
    if chunk < 1:
        raise EmptyChunk.of(chunk)
    for name in sources or ():
        the_source(home, name)
    known = load_sources(home)
    installed = Installed.load(home, known)
    compiled, loaded = installed.patterns, installed.models
    both = patterns is None and models is None
    plan = RangePlan(only_stale=only_stale)
    asked = _Asked(days, chunk, STALE if only_stale else TO_DO)
    pattern_names = _chosen(
        "pattern", patterns, both, [c.definition for c in compiled], installed.broken["pattern"], sources, plan
    )
    model_names = _chosen(
        "model", models, both, [m.definition for m in loaded], installed.broken["model"], sources, plan
    )
    by_name = {m.definition.name: m for m in loaded}
    by_pattern = {c.definition.name: c for c in compiled}
    judged = list(judge(home, [d for d in (*pattern_names, *model_names)], None))
    if not judged and not plan.failures:
        plan.idle.append(f"no pattern and no model is defined for this in {home.config}")
    events = {name: EventDays.load(home, name) for name in {j.definition.source for j in judged}}
    idle: list[tuple[str, bool]] = []
    for source in sorted(events):
        mine = [j for j in judged if j.definition.source == source]
        if not any(_inside(j, asked).any() for j in mine):
            idle.append(_no_day(home, known[source], events[source], asked))
        for j in mine:
            _note_left(j, asked, plan)
        pattern_days = [j for j in mine if not j.definition.is_model]
        ways = {
            j.definition.name: _ways(home, by_pattern[j.definition.name], j, events[source], asked, plan)
            for j in pattern_days
            if j.definition.chained
        }
        found = _pattern_applications(pattern_days, source, events[source], asked, ways)
        names = {j.definition.name for j in pattern_days}
        episodes = [c.episodes.definition for c in compiled if c.episodes and c.definition.name in names]
        for j in judge(home, episodes, events={source: events[source]}):
            derived = episodes_days(j, asked.days, asked.states, found)
            if derived is None:
                _note_left(j, asked, plan)
            else:
                blank = Application("detect", source, asked.days or derived.span, asked.only_stale, ())
                found = with_episodes(found, derived, blank, chunk)
        rankings = [c.ranking.definition for c in compiled if c.ranking and c.definition.name in names]
        for j in judge(home, rankings, events={source: events[source]}):
            derived = rankings_days(j, asked.days, asked.states, events[source], found)
            if derived is None:
                _note_left(j, asked, plan)
            else:
                blank = Application("detect", source, asked.days or derived.span, asked.only_stale, ())
                found = with_rankings(found, derived, blank, events[source])
        plan.applications.extend(found)
        models_here = [(by_name[j.definition.name], j) for j in mine if j.definition.is_model]
        plan.applications.extend(_model_applications(home, models_here, source, events[source], asked, plan))
    # A source of which nothing is there, or only other days, is no news beside others that have something to do.
    some = bool(plan.applications or plan.left) or any(landed for _, landed in idle)
    plan.idle.extend(why for why, landed in idle if landed or not some)
    return plan


def _chosen(
    kind: str,
    wanted: Sequence[str] | None,
    both: bool,
    good: Sequence[Definition],
    bad: Sequence[BrokenDefinition],
    sources: Sequence[str] | None,
    plan: RangePlan,
) -> list[Definition]:
    """The definitions of one kind that were asked for; broken ones are recorded as failures."""
    if wanted is None and not both:
        return []
    known = {d.name.partition("/")[2] for d in good} | {b.name for b in bad}
    unknown = sorted(set(wanted or ()) - known)
    if unknown:
        raise UnknownDefinition.of_kind(kind, unknown, sorted(known))

    def meant(name: str, source: str | None) -> bool:
        return (wanted is None or name in wanted) and (sources is None or source is None or source in sources)

    plan.failures.extend((f"{kind}/{b.name}", b.error) for b in bad if meant(b.name, b.source))
    return [d for d in good if meant(d.name.partition("/")[2], d.source)]


def _positions(judged: Judged, asked: _Asked) -> np.ndarray:
    """Positions of the days to compute."""
    return np.flatnonzero(_inside(judged, asked) & judged.ready & np.isin(judged.state, asked.states))


def _inside(judged: Judged, asked: _Asked) -> np.ndarray:
    if asked.days is None:
        return np.ones(len(judged.numbers), dtype=bool)
    lo, hi = ((day - date(1970, 1, 1)).days for day in (asked.days.start, asked.days.end))
    return (judged.numbers >= lo) & (judged.numbers < hi)


def _note_left(judged: Judged, asked: _Asked, plan: RangePlan) -> None:
    """Note in the plan the days that someone may expect to be computed but that will not be, with the reasons."""
    left = _inside(judged, asked) & np.isin(judged.state, (*asked.states, "audit_failed", "waiting"))
    if asked.only_stale:
        left &= (judged.state != "waiting") | (judged.recorded("status") != None)  # noqa: E711 (element by element)
    left &= ~(judged.ready & np.isin(judged.state, asked.states))
    for at in np.flatnonzero(left).tolist():
        why = judged.why(at)
        if judged.state[at] == "audit_failed":
            why = f"its audit failed, and nothing has changed since: {why}"
        plan.left[judged.definition.name, why] += 1


def _no_day(home: Home, source: Source, events: EventDays, asked: _Asked) -> tuple[str, bool]:
    """Why no definition of a source has a day among those asked for, and whether an ingest would change that."""
    if events.first is None or events.last is None:
        return first_ingest(home, source)
    why = (
        f"the events of {source.name} are from {events.first} to {events.last}, so its definitions have no day "
        f"{'to compute' if asked.days is None else f'from {asked.days.start} to {asked.days.end}'}"
    )
    return why, False


def _windows(days: Sequence[date], asked: _Asked) -> list[Days]:
    """Windows of ``chunk`` days from the first day asked for (or to do) on, without those that have no to-do day."""
    if not days:
        return []
    start = asked.days.start if asked.days else min(days)
    numbers = sorted({(day - start).days // asked.chunk for day in days})
    step = timedelta(days=asked.chunk)
    return [Days(start + n * step, start + (n + 1) * step) for n in numbers]


@dataclass
class _SegmentLeft:
    """What remains of the way through a segment of days, for a pattern whose days form a chain."""

    segment: Segment
    left: Outlook
    begun: bool = False

    def within(self, window: Days) -> tuple[Outlook, Days] | None:
        """What the application of a window does, and the span of its to-do days; None if it does nothing."""
        days = [day for day in map(day_of, self.segment.to_do) if day in window]
        if not days:
            return None
        end = day_number(days[-1]) + 1
        if not self.begun:
            # The first window extends to the last day ever published; later windows get what comes after that.
            self.begun, end = True, max(end, self.segment.published)
        now, self.left = self.left.cut(end)
        return (now, Days(days[0], days[-1] + _ONE)) if now.days else None


def _ways(
    home: Home, compiled: CompiledPattern, judged: Judged, events: EventDays, asked: _Asked, plan: RangePlan
) -> list[_SegmentLeft]:
    """The ways through a pattern's segments of days; segments that cannot be computed are recorded as failures."""
    flags = np.zeros(len(judged.numbers), dtype=bool)
    flags[_positions(judged, asked)] = True
    found = []
    for segment, outlook in Course(home, compiled, segments(judged, flags, events), events).outlooks():
        if isinstance(outlook, Outlook):
            found.append(_SegmentLeft(segment, outlook))
        else:
            plan.failures.append((judged.definition.name, outlook))
    return found


def _pattern_applications(
    judged: Sequence[Judged], source: str, events: EventDays, asked: _Asked, ways: Mapping[str, Sequence[_SegmentLeft]]
) -> list[Application]:
    """The windows of all patterns of a source, in time order."""
    to_do = {j.definition.name: (j, _positions(j, asked)) for j in judged}
    all_days = {j.day(at) for j, found in to_do.values() for at in found.tolist()}
    applications = []
    for window in _windows(sorted(all_days), asked):
        parts, spans = [], []
        for name, (j, found) in to_do.items():
            if name in ways:
                gone = [one for way in ways[name] if (one := way.within(window)) is not None]
                if gone:
                    spans += [span for _, span in gone]
                    parts.append(_looked_at(j, Outlook.together([now for now, _ in gone]), events))
                continue
            inside = [j.day(at) for at in found.tolist() if j.day(at) in window]
            if inside:
                spans.append(Days(inside[0], inside[-1] + _ONE))
                parts.append(_part(j, inside, (), _reads(j, inside), events))
        if parts:
            whole = Days(min(s.start for s in spans), max(s.end for s in spans))
            applications.append(_application("detect", source, parts, asked, whole))
    return applications


def _reads(judged: Judged, days: Sequence[date]) -> Days:
    """The whole days that hold the read ranges of some days, which are given in ascending order."""
    spans = [judged.definition.read_range(day) for day in (days[0], days[-1])]
    return Days(day_of_us(spans[0][0]), day_of_us(spans[1][1] - 1) + _ONE)


def _application(step: ComputingStep, source: str, parts: list[Part], asked: _Asked, window: Days) -> Application:
    return Application(step, source, window, asked.only_stale, tuple(parts))


def _part(judged: Judged, days: Sequence[date], following: Sequence[date], reads: Days, events: EventDays) -> Part:
    known = dict(zip(judged.numbers.tolist(), judged.state.tolist(), strict=True))
    found = [known.get(day_number(day), "missing") for day in days]
    states = Counter(state if state in TO_DO else "done" for state in found)
    rows_read = sum(int(row["rows"] or 0) for day, row in events.rows.items() if day in reads)
    concerned = np.isin(judged.numbers, [day_number(day) for day in (*days, *following)])
    there = int(judged.rows(np.flatnonzero(concerned)).sum())
    name, table = judged.definition.name, judged.definition.table_name
    chained = judged.definition.chained
    return Part(name, table, tuple(days), tuple(following), dict(states), reads, rows_read, there, chained)


def _model_applications(
    home: Home,
    models: Sequence[tuple[LoadedModel, Judged]],
    source: str,
    events: EventDays,
    asked: _Asked,
    plan: RangePlan,
) -> list[Application]:
    """The windows of all models of a source, in time order."""
    to_do = {j.definition.name: [j.day(at) for at in _positions(j, asked).tolist()] for _, j in models}
    left: dict[str, Outlook] = {}
    applications = []
    kept = KeptStates(home, [model.config.name for model, _ in models])
    for window in _windows(sorted({day for days in to_do.values() for day in days}), asked):
        parts, spans = [], []
        for model, j in models:
            name = j.definition.name
            days = [day for day in to_do[name] if day in window]
            if not days:
                continue
            span = Days(days[0], days[-1] + _ONE)
            end = span.end
            if name not in left:
                whole_span = Days(days[0], to_do[name][-1] + _ONE)
                try:
                    left[name] = course_of(kept, model, j, (whole_span, days[0]), events).outlook
                except InputError as error:
                    plan.failures.append((name, error))
                    to_do[name] = []
                    continue
                # The first window extends to the last day ever published; later windows get what comes after that.
                end = max(end, published_end(j) or end)
            now, left[name] = left[name].cut(day_number(end))
            if now.days:
                spans.append(span)
                parts.append(_looked_at(j, now, events))
        if parts:
            whole = Days(min(s.start for s in spans), max(s.end for s in spans))
            applications.append(_application("monitor", source, parts, asked, whole))
    return applications


def _looked_at(judged: Judged, outlook: Outlook, events: EventDays) -> Part:
    days, following = (tuple(map(day_of, numbers)) for numbers in (outlook.certain, outlook.possible))
    reads = _reads(judged, sorted((*days, *following)))
    return _part(judged, days, following, reads, events)


class EmptyChunk(UsageError):
    """A backfill was asked to take steps of no days."""

    @classmethod
    def of(cls, days: int) -> EmptyChunk:
        """For the number of days that was given."""
        return cls(f"a chunk of {days} days holds no day", hint="Give --chunk 30d, or any other number of days.")
