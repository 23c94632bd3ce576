"""A run's way through the days of a pattern that form a chain: which of them it searches, some at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.matches.consumed import Consumed
from chainlake.days import Days, day_of
from chainlake.detect.chained.segments import Segment
from chainlake.detect.chained.state import digest_of, published_state
from chainlake.detect.chained.way import SegmentWay
from chainlake.errors import InputError
from chainlake.lake.records.chain import Outlook
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import fingerprint
from chainlake.paths import Home

#: Days that are searched at a time: what is published of them is not lost when a later day fails.
STRETCH = 30


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
        self._events = events
        read = partial(published_state, home, compiled)
        self._left = [SegmentWay(part, compiled.definition, read, digest_of, STRETCH) for part in parts]

    def next(self) -> Next | None:
        """The next stretch, None at the end.

        Raises:
            InputError: a segment cannot be gone into; :meth:`skip` leaves it out.
            MatchesMoved: what was published is another one's by now; likewise.
        """
        while self._left:
            stretch = self._left[0].next()
            if stretch is not None:
                days = Days(day_of(stretch.begin), day_of(stretch.end))
                prints = {day: self.print_of(day) for day in days}
                state = self._left[0].before(stretch)
                return Next(days, day_of(stretch.target), Consumed.none() if state is None else state, prints)
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
        return self._left[0].shorten()

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
        return [(way.part, _outlook(way)) for way in self._left]


def _outlook(way: SegmentWay[Consumed]) -> Outlook | InputError:
    try:
        return way.outlook()
    except InputError as error:
        return error
