"""A run's way through the days of a pattern's episodes: which of them it makes, some at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa

from chainlake.cep.episodes.days import digest, state_text
from chainlake.days import Days
from chainlake.detect.chained.course import Segment
from chainlake.detect.episodes.published import Open, PublishedMatches
from chainlake.errors import InputError
from chainlake.lake.records.chain import Stretch, Walk
from chainlake.lake.records.chained import day_of
from chainlake.lake.records.definitions import Definition

#: Days that are made at a time: what is published of them is not lost when a later day fails.
STRETCH = 30
_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Next:
    """Days to be made in one go.

    Args:
        days: the days.
        target: the first of them that is to do.
        before: what is open before them; None if they begin empty.
    """

    days: Days
    target: date
    before: Open | None


class Way:
    """The way through one segment of the chain.

    Args:
        part: the segment.
        matches: the pattern's published matches.
        definition: of the episodes.
    """

    def __init__(self, part: Segment, matches: PublishedMatches, definition: Definition) -> None:
        self.part = part
        self._matches, self._definition = matches, definition
        self._walk = Walk(part.chain, part.first, self._begin, STRETCH)
        self._states: list[str] = []
        # The day after the last that was published, and the digest of the state there.
        self._reached: tuple[int, str] | None = None
        self._found: tuple[int, Open | None] | None = None

    def next(self) -> Next | None:
        """The next stretch, None at the end.

        Raises:
            InputError: a day goes on from one that is not there.
        """
        stretch = self._walk.next()
        if stretch is None:
            return None
        days = Days(day_of(stretch.begin), day_of(stretch.end))
        return Next(days, day_of(stretch.target), self._before(stretch))

    def came(self, states: list[str]) -> int:
        """How many days of the last stretch are to be published; after that, all days are as they are published."""
        self._states = states
        return self._walk.came(states)

    def published(self, days: int) -> None:
        """That so many days of the last stretch are published."""
        self._walk.published(days)
        self._reached = self._walk.at, self._states[days - 1]
        self._found = None

    def _before(self, stretch: Stretch) -> Open | None:
        if stretch.anew:
            return None
        found = self._state(stretch.begin)
        if found is None:
            raise MatchesMoved.of(self._definition, day_of(stretch.begin))
        return found

    def _state(self, number: int) -> Open | None:
        """What is open at the start of a day, None if that is not the state that was left there."""
        chain = self.part.chain
        if self._reached is not None and self._reached[0] == number:
            left: str | None = self._reached[1]
        else:
            left = chain.state_out[number - 1 - int(chain.numbers[0])]
        if left is None:
            return None
        if self._found is None or self._found[0] != number:
            found = self._matches.open_at(day_of(number))
            self._found = number, found if state_of(found.stretches) == left else None
        return self._found[1]

    def _begin(self, number: int, least: int) -> int:
        """The last day from ``least``, which can be, to ``number`` that can be begun with."""
        chain, lo, at = self.part.chain, int(self.part.chain.numbers[0]), number
        while at > least and not chain.anew[at - lo] and self._state(at) is None:
            if at - 1 not in self.part.noted or not chain.ready[at - 1 - lo]:
                raise NothingBefore.of(self._definition, day_of(at), day_of(lo))
            at -= 1
        return at


def state_of(stretches: pa.Table) -> str:
    """The digest of what is open."""
    return digest(state_text(stretches))


class NothingBefore(InputError):
    """Episodes go on from a day that was never made under the definition of today."""

    @classmethod
    def of(cls, definition: Definition, day: date, first: date) -> NothingBefore:
        """Args: the definition, the day, and the one that its chain begins with."""
        name = definition.name.partition("/")[2]
        return cls(
            f"{definition.name} goes on from day to day, and {day - _ONE}, before {day}, was never computed with its "
            "file and engine of today",
            hint=f"Run 'python -m jobs backfill {first} {day + _ONE} --patterns {name}'.",
        )


class MatchesMoved(InputError):
    """What was published of a day a moment ago is another one's by now."""

    @classmethod
    def of(cls, definition: Definition, day: date) -> MatchesMoved:
        """Args: the definition, and the day that was to go on from there."""
        return cls(
            f"{definition.name} cannot go on to {day}: the matches before it were changed meanwhile",
            hint="Another run is publishing them; run this again.",
        )
