"""What a detect step has to do: the days of each pattern, on a pinned version of the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days, day_of, day_of_us
from chainlake.detect.chained.course import Course
from chainlake.detect.chained.segments import segments, to_do_flags
from chainlake.detect.work import Work, span_of
from chainlake.lake.records.chain import Outlook
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays, Pinned, pin
from chainlake.lake.records.staleness import judge, to_do
from chainlake.paths import Home


@dataclass(frozen=True)
class Wanted:
    """Which days a step is to compute.

    Args:
        asked: days that are to do even if the source has no events there; None for no such days.
        horizon: the days that are looked at.
        states: the states in which days are to do.
    """

    asked: Days | None
    horizon: Days
    states: Sequence[str]


@dataclass(frozen=True)
class Plan:
    """What is to do.

    Args:
        pinned: the source's pinned events.
        work: the patterns whose days are independent, with the days to do.
        courses: the ways through the patterns whose days form chains.
        chained: these patterns with the days that they may compute.
    """

    pinned: Pinned = Pinned(None, EventDays.of("", []))
    work: tuple[Work, ...] = ()
    courses: tuple[Course, ...] = ()
    chained: tuple[Work, ...] = ()

    @property
    def days(self) -> bool:
        """Whether any day is to do, or a chain cannot be entered."""
        return bool(self.work or self.courses)

    @property
    def read_days(self) -> Days:
        """The days from the first to the last whose events are read."""
        every = [*self.work, *self.chained]
        return span_of(every) if every else Days.one(date(1970, 1, 1))

    @property
    def longest(self) -> int:
        """The number of days of the pattern that has most."""
        return max((len(item.fingerprints) for item in (*self.work, *self.chained)), default=0)


def plan_of(home: Home, source: str, mine: Sequence[CompiledPattern], wanted: Wanted) -> Plan:
    """Pin the events and find what is to do; pinning comes first, since fingerprints must be those of the pinned
    version.

    Args:
        home: the installation.
        source: name of the source.
        mine: its patterns.
        wanted: which days to compute.
    """
    free = [c for c in mine if not c.definition.chained]
    chains = [c for c in mine if c.definition.chained]
    # Where chains must be entered is found before pinning, so that the pin waits only for days that are read.
    before = _chained(home, chains, wanted, EventDays.load(home, source)) if chains else []
    reads = [c.definition.read_range(wanted.horizon.start)[0] for c in free]
    reads += [c.definition.read_range(day_of(min(days)))[0] for c, _, days in before if days]
    if not reads:
        return Plan(courses=tuple(course for _, course, _ in before))
    end = max([wanted.horizon.end, *(Days.one(day_of(max(days))).end for _, _, days in before if days)])
    pinned = pin(home, source, Days(day_of_us(min(reads)), end))
    listed = to_do(home, [c.definition for c in free], wanted.horizon, asked=wanted.asked)
    work = []
    for c in free:
        of = {item.day for item in listed if item.definition == c.definition.name and item.state in wanted.states}
        if of:
            work.append(_work(c, sorted(of), pinned.event_days))
    found = _chained(home, chains, wanted, pinned.event_days)
    gone = tuple(_work(c, list(map(day_of, sorted(days))), pinned.event_days) for c, _, days in found if days)
    return Plan(pinned, tuple(work), tuple(course for _, course, _ in found), gone)


def _work(compiled: CompiledPattern, days: Sequence[date], events: EventDays) -> Work:
    return Work(compiled, {day: fingerprint(compiled.definition, day, events) for day in days})


def _chained(
    home: Home, chains: Sequence[CompiledPattern], wanted: Wanted, events: EventDays
) -> list[tuple[CompiledPattern, Course, frozenset[int]]]:
    """The patterns with something to do, the way through their days, and the days that it may compute."""
    of = {c.definition.name: c for c in chains}
    known = {events.source: events}
    found = []
    for judged in judge(home, [c.definition for c in chains], asked=wanted.asked, events=known):
        parts = segments(judged, to_do_flags(judged, wanted.horizon, wanted.states), events)
        if parts:
            course = Course(home, of[judged.name], parts, events)
            outlooks = [one for _, one in course.outlooks() if isinstance(one, Outlook)]
            days = frozenset().union(*(one.days for one in outlooks))
            found.append((of[judged.name], course, days))
    return found
