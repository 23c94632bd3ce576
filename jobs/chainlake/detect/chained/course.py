"""A run's way through the chained days of a pattern: which of them it searches, a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.matches.consumed import Consumed
from chainlake.days import Days, day_of
from chainlake.detect.chained.segment_run import SegmentRun
from chainlake.detect.chained.segments import Segment
from chainlake.detect.chained.state import digest_of, published_state
from chainlake.errors import InputError
from chainlake.lake.records.chain import Outlook
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays
from chainlake.paths import Home

#: How many days are searched at a time: what is published of them is not lost when a later day fails.
BATCH = 30


@dataclass(frozen=True)
class Next:
    """Days to be searched in one go.

    Args:
        days: the days.
        target: the first of them that is to do; those before it are included because no state is kept in between.
        state: the events used up before them.
        fingerprints: the fingerprint of every day.
    """

    days: Days
    target: date
    state: Consumed
    fingerprints: dict[date, str]


class Course:
    """A run's way through the segments of one pattern.

    The days come in batches, each published before the next is asked for, so that nothing published is lost when a
    later day fails. If a batch is not published as a whole, the rest of its segment is left to the next run.

    Args:
        home: the installation.
        compiled: the pattern.
        parts: its segments in which something is to do.
        events: the days of its source with which the events were pinned.
    """

    def __init__(self, home: Home, compiled: CompiledPattern, parts: Sequence[Segment], events: EventDays) -> None:
        self.compiled = compiled
        self._events = events
        read = partial(published_state, home, compiled)
        self._left = [SegmentRun(part, compiled.definition, read, digest_of, BATCH) for part in parts]

    def next(self) -> Next | None:
        """The next batch; None at the end.

        Raises:
            InputError: a segment cannot be entered; :meth:`skip` leaves it out.
            MatchesMoved: another run has changed what was published; likewise.
        """
        while self._left:
            batch = self._left[0].next()
            if batch is not None:
                days = Days(day_of(batch.begin), day_of(batch.end))
                prints = {day: self.print_of(day) for day in days}
                state = self._left[0].before(batch)
                return Next(days, day_of(batch.target), Consumed.none() if state is None else state, prints)
            self.skip()
        return None

    @property
    def first(self) -> date:
        """The first day that is to do in the current segment."""
        return day_of(self._left[0].part.first)

    def print_of(self, day: date) -> str:
        """The fingerprint of a day's input."""
        return fingerprint(self.compiled.definition, day, self._events)

    def skip(self) -> None:
        """Leave out the rest of the current segment."""
        del self._left[0]

    def shorten(self) -> bool:
        """Say that the last batch was too large to search: half of it comes next; return whether that has any day."""
        return self._left[0].shorten()

    def finish_batch(self, states: Sequence[str]) -> int:
        """Take the result of the last batch; return how many of its days are to be published: the rest still hold as
        published.

        Args:
            states: digests of the states at the ends of its days.
        """
        return self._left[0].finish_batch(states)

    def published(self, days: int, needed: int) -> None:
        """Say that ``days`` of the ``needed`` days are published."""
        if days < needed:
            self.skip()
        else:
            self._left[0].published(days)

    def outlooks(self) -> list[tuple[Segment, Outlook | InputError]]:
        """What the run will do in each segment, or why it cannot enter it; to be called before the run begins."""
        return [(way.part, _outlook(way)) for way in self._left]


def _outlook(way: SegmentRun[Consumed]) -> Outlook | InputError:
    try:
        return way.outlook()
    except InputError as error:
        return error
