"""A run's way through the days of a chain: some at a time, each stretch published before the next is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date
from typing import Generic, TypeVar

from chainlake.days import day_of
from chainlake.lake.records.chain import Chain, Outlook, Stretch, Walk
from chainlake.run.chains import CannotGoOn

State = TypeVar("State")


class Way(ABC, Generic[State]):
    """A run's way through days that go on from one another.

    Args:
        chain: the days, without holes, up to the last one that the run looks at.
        first: the first that is to do, as days since 1970-01-01.
        longest: days that are computed at a time.
        definition: name of what the days are of.
        source: its source.
    """

    def __init__(self, chain: Chain, first: int, longest: int, *, definition: str, source: str) -> None:
        self._chain, self._definition, self._source = chain, definition, source
        self._lo = int(chain.numbers[0])
        self._walk = Walk(chain, first, self.begin, longest)
        self._states: Sequence[str] = ()
        # The day after the last that was published, the digest of the state there, and the state if it was given.
        self._reached: tuple[int, str, State | None] | None = None
        # The state that was asked for last: those of all days do not fit into memory.
        self._found: tuple[int, State | None] | None = None

    @abstractmethod
    def read(self, day: date, digest: str) -> State | None:
        """The state at the start of a day as it is kept; None if that is not the one with the digest."""

    def go_back(self, number: int) -> None:  # noqa: B027 (a hook: most ways go back as far as there are days)
        """That a day cannot be begun with, so that the run has to begin before it.

        Raises:
            InputError: it must not.
        """

    def begin(self, number: int, least: int) -> int:
        """The last day from ``least``, which can be, to ``number`` that can be begun with.

        Raises:
            InputError: the run would have to begin before it, and cannot.
        """
        at = number
        while at > least and not self._chain.anew[at - self._lo] and self.state(at) is None:
            self.go_back(at)
            at -= 1
            if not self._chain.ready[at - self._lo]:
                raise CannotGoOn.of(self._definition, self._source, day_of(at))
        return at

    def next(self) -> Stretch | None:
        """The next days, None at the end.

        Raises:
            InputError: they go on from a day that cannot be computed.
        """
        return self._walk.next()

    def outlook(self) -> Outlook:
        """What the run will do, to be asked before it begins.

        Raises:
            InputError: as for :meth:`next`.
        """
        return self._walk.outlook()

    def shorten(self) -> bool:
        """That the last stretch could not be computed as a whole: half of it is next; whether it has so many days."""
        return self._walk.shorten()

    def came(self, states: Sequence[str]) -> int:
        """How many days of the last stretch are to be published; after that, all days are as they are published.

        Args:
            states: digests of those at the ends of its days.
        """
        self._states = states
        return self._walk.came(states)

    def published(self, days: int, state: State | None = None) -> None:
        """That so many days of the last stretch are published.

        Args:
            days: how many, of those that were to be all.
            state: the one after them, if it need not be read.
        """
        self._walk.published(days)
        self._reached = self._walk.at, self._states[days - 1], state
        self._found = None

    def digest(self, number: int) -> str | None:
        """The digest of the state that was left at the start of a day, None if there is none."""
        if self._reached is not None and self._reached[0] == number:
            return self._reached[1]
        left: str | None = self._chain.state_out[number - 1 - self._lo]
        return left

    def state(self, number: int) -> State | None:
        """The state at the start of a day, None if the one that was left there is not kept."""
        digest = self.digest(number)
        if digest is None:
            return None
        if self._reached is not None and self._reached[0] == number and self._reached[2] is not None:
            return self._reached[2]
        if self._found is None or self._found[0] != number:
            self._found = number, self.read(day_of(number), digest)
        return self._found[1]
