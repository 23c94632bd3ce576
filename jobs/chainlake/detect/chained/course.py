"""A run's way through the days of a pattern that form a chain: which of them it searches, some at a time.

The days between two that begin empty whatever went before are a segment. Segments do not depend on each other, so what
stops one does not stop the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from functools import partial

import numpy as np

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.matches.consumed import Consumed
from chainlake.days import Days
from chainlake.detect.chained.state import digest_of, published_state
from chainlake.errors import InfrastructureError, InputError
from chainlake.lake.records.chain import Chain, Outlook, Stretch, Walk
from chainlake.lake.records.chained import begins_anew, can_be_computed, day_number, day_of
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import Judged, fingerprint
from chainlake.paths import Home
from chainlake.run.chains import CannotGoOn

#: Days that are searched at a time: what is published of them is not lost when a later day fails.
STRETCH = 30
_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Segment:
    """Days of a chain that go on from one another, from one that begins empty on.

    Args:
        chain: the days, without holes, up to the last one that a run looks at.
        to_do: those of them that are to do, as days since 1970-01-01, ascending.
        published: the day after the last of them that was ever published; the first of them if none was.
        noted: the days of which something is noted under today's definition and engine.
    """

    chain: Chain
    to_do: tuple[int, ...]
    published: int
    noted: frozenset[int]

    @property
    def first(self) -> int:
        """The first day that is to do."""
        return self.to_do[0]


def segments(judged: Judged, to_do: np.ndarray, events: EventDays) -> list[Segment]:
    """The segments of a pattern in which something is to do, ascending.

    Args:
        judged: the pattern, with all its days.
        to_do: flags of the days that a run is to compute.
        events: the days of its source.
    """
    definition = judged.definition
    assert judged.place is not None
    chain, numbers = judged.place.chain, judged.place.chain.numbers
    published = np.array([version is not None for version in judged.noted("published_version")], dtype=bool)
    published |= judged.noted("status") == "done"
    same = judged.noted("definition_hash") == definition.definition_hash
    noted = frozenset(numbers[same & (judged.noted("engine_version") == definition.engine_version)].tolist())
    bounds = [*np.flatnonzero(chain.anew).tolist(), len(numbers)]
    if bounds[0] != 0:
        bounds = [0, *bounds]
    found = []
    for lo, hi in zip(bounds, bounds[1:], strict=False):
        mine, there = (numbers[lo:hi][some[lo:hi]].tolist() for some in (to_do, published))
        if not mine:
            continue
        behind = there[-1] + 1 if there else int(numbers[lo])
        end = max(mine[-1] + 1, behind)
        part = Chain(**{f.name: getattr(chain, f.name)[lo:hi][numbers[lo:hi] < end] for f in fields(chain)})
        whole = part.dense(
            int(numbers[lo]),
            end,
            lambda number: can_be_computed(events, day_of(number)),
            lambda number: begins_anew(definition, events, day_of(number)),
        )
        found.append(Segment(whole, tuple(mine), behind, noted))
    return found


@dataclass(frozen=True)
class Next:
    """Days to be searched in one go.

    Args:
        days: the days.
        target: the first of them that is to do; those before it are there because no state is kept between.
        state: what was used up before them.
        fingerprints: of every day.
    """

    days: Days
    target: date
    state: Consumed
    fingerprints: dict[date, str]


class Course:
    """A run's way through the segments of one pattern.

    What is published is not lost when a later day fails, so the days come in stretches, each published before the next
    is asked for. Where a stretch is not published as a whole, the rest of its segment is left to the next run.

    Args:
        home: the installation.
        compiled: the pattern.
        parts: its segments in which something is to do.
        events: the days of its source, those that the events were pinned with.
    """

    def __init__(self, home: Home, compiled: CompiledPattern, parts: Sequence[Segment], events: EventDays) -> None:
        self.compiled = compiled
        self._home, self._events = home, events
        self._left = [_Way(part, partial(published_state, home, compiled), compiled) for part in parts]

    def next(self) -> Next | None:
        """The next stretch, None at the end.

        Raises:
            InputError: a segment cannot be gone into; :meth:`skip` leaves it out.
            MatchesMoved: what was published is another one's by now; likewise.
        """
        while self._left:
            stretch = self._left[0].walk.next()
            if stretch is not None:
                days = Days(day_of(stretch.begin), day_of(stretch.end))
                prints = {day: self.print_of(day) for day in days}
                return Next(days, day_of(stretch.target), self._left[0].before(stretch), prints)
            self.skip()
        return None

    @property
    def first(self) -> date:
        """The first day that is to do in the segment that is gone through."""
        return day_of(self._left[0].part.first)

    def print_of(self, day: date) -> str:
        """The fingerprint of a day's input."""
        return fingerprint(self.compiled.definition, day, self._events)

    def skip(self) -> None:
        """Leave out what is left of the segment that is gone through."""
        del self._left[0]

    def shorten(self) -> bool:
        """That the last stretch could not be searched as a whole: half of it is next; whether it has so many days."""
        return self._left[0].walk.shorten()

    def came(self, states: Sequence[str]) -> int:
        """How many days of the last stretch are to be published; after that, all days are as they are published.

        Args:
            states: digests of those at the ends of its days.
        """
        return self._left[0].came(states)

    def published(self, days: int, needed: int) -> None:
        """That so many days are published of those that were to be."""
        if days < needed:
            self.skip()
        else:
            self._left[0].published(days)

    def outlooks(self) -> list[tuple[Segment, Outlook | InputError]]:
        """What the run will do in each segment, or why it cannot go into it; to be asked before it begins."""
        return [(way.part, way.outlook()) for way in self._left]


class _Way:
    """The way through one segment."""

    def __init__(self, part: Segment, read: Callable[[date], Consumed], compiled: CompiledPattern) -> None:
        self.part = part
        self._read, self._compiled = read, compiled
        self.walk = Walk(part.chain, part.first, self._begin, STRETCH)
        self._states: Sequence[str] = ()
        # The day after the last that was published, and the digest of the state there.
        self._reached: tuple[int, str] | None = None
        self._found: tuple[int, Consumed | None] | None = None

    def outlook(self) -> Outlook | InputError:
        """See :meth:`Course.outlooks`."""
        try:
            return self.walk.outlook()
        except InputError as error:
            return error

    def before(self, stretch: Stretch) -> Consumed:
        """The state that a stretch goes on from."""
        if stretch.anew:
            return Consumed.none()
        state = self._state(stretch.begin)
        if state is None:
            raise MatchesMoved.of(self._compiled, day_of(stretch.begin))
        return state

    def came(self, states: Sequence[str]) -> int:
        """See :meth:`Course.came`."""
        self._states = states
        return self.walk.came(states)

    def published(self, days: int) -> None:
        """That so many days of the last stretch are published."""
        self.walk.published(days)
        self._reached = self.walk.at, self._states[days - 1]
        self._found = None

    def _state(self, number: int) -> Consumed | None:
        """The state at the start of a day, None if the published matches do not have the one that was left there."""
        chain = self.part.chain
        if self._reached is not None and self._reached[0] == number:
            digest: str | None = self._reached[1]
        else:
            digest = chain.state_out[number - 1 - int(chain.numbers[0])]
        if digest is None:
            return None
        if self._found is None or self._found[0] != number:
            state = self._read(day_of(number))
            self._found = number, state if digest_of(state) == digest else None
        return self._found[1]

    def _begin(self, number: int, least: int) -> int:
        """The last day from ``least``, which can be, to ``number`` that can be begun with."""
        chain, lo, at = self.part.chain, int(self.part.chain.numbers[0]), number
        while at > least and not chain.anew[at - lo] and self._state(at) is None:
            if at - 1 not in self.part.noted:
                raise NothingBefore.of(self._compiled, day_of(at), day_of(lo))
            at -= 1
            if not chain.ready[at - lo]:
                raise CannotGoOn.of(self._compiled.definition.name, self._compiled.definition.source, day_of(at))
        return at


class NothingBefore(InputError):
    """A day goes on from one that was never computed under the definition of today."""

    @classmethod
    def of(cls, compiled: CompiledPattern, day: date, first: date) -> NothingBefore:
        """Args: the pattern, the day, and the one that its chain begins with."""
        name = compiled.pattern.name
        return cls(
            f"{compiled.definition.name} uses events up, and {day - _ONE}, which {day} goes on from, was never "
            "computed with its file and engine of today",
            hint=f"Run 'python -m jobs backfill {first} {day + _ONE} --patterns {name}', or give the pattern a later "
            "start.",
        )


class MatchesMoved(InfrastructureError):
    """What was published of a day a moment ago is another one's by now."""

    @classmethod
    def of(cls, compiled: CompiledPattern, day: date) -> MatchesMoved:
        """Args: the pattern, and the day that was to go on from there."""
        return cls(
            f"{compiled.definition.name} cannot go on to {day}: the matches before it were changed meanwhile",
            hint="Another run is publishing them; run this again.",
        )


def to_do_flags(judged: Judged, days: Days, states: Sequence[str]) -> np.ndarray:
    """Which days of a pattern a run is to compute: those of some days that are ready and in one of some states."""
    inside = (judged.numbers >= day_number(days.start)) & (judged.numbers < day_number(days.end))
    found: np.ndarray = inside & judged.ready & np.isin(judged.state, states)
    return found
