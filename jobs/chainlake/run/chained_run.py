"""A run's way through chained days: some at a time, each batch published before the next is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date
from typing import Generic, TypeVar

from chainlake.days import day_of
from chainlake.lake.records.chain import Batch, Chain, Outlook, Walk
from chainlake.run.chains import ChainBroken

State = TypeVar("State")


class ChainedRun(ABC, Generic[State]):
    """A run's way through days that each continue from the one before.

    Args:
        chain: the days, without gaps, up to the last one that the run looks at.
        first: the first day to do, in days since 1970-01-01.
        longest: the largest number of days computed at a time.
        definition: name of the definition whose days these are.
        source: its source.
    """

    def __init__(self, chain: Chain, first: int, longest: int, *, definition: str, source: str) -> None:
        self._chain, self._definition, self._source = chain, definition, source
        self._lo = int(chain.numbers[0])
        self._walk = Walk(chain, first, self.begin, longest)
        self._states: Sequence[str] = ()
        # The day after the last one published, the digest of the state there, and the state if it was given.
        self._reached: tuple[int, str, State | None] | None = None
        # Only the state asked for last, since the states of all days do not fit into memory.
        self._found: tuple[int, State | None] | None = None

    @abstractmethod
    def read(self, day: date, digest: str) -> State | None:
        """The kept state at the start of a day; None if it does not have the digest."""

    def go_back(self, number: int) -> None:  # noqa: B027 (a hook: most ways go back as far as there are days)
        """Record that the run cannot begin with a day, and so has to begin before it.

        Raises:
            InputError: it must not begin earlier.
        """

    def begin(self, number: int, least: int) -> int:
        """The last day from ``least`` to ``number`` with which the run can begin; it can with ``least``.

        Raises:
            InputError: the run would have to begin earlier, and cannot.
        """
        at = number
        while at > least and not self._chain.anew[at - self._lo] and self.state(at) is None:
            self.go_back(at)
            at -= 1
            if not self._chain.ready[at - self._lo]:
                raise ChainBroken.of(self._definition, self._source, day_of(at))
        return at

    def next(self) -> Batch | None:
        """The next days; None at the end.

        Raises:
            InputError: they continue from a day that cannot be computed.
        """
        return self._walk.next()

    def outlook(self) -> Outlook:
        """What the run will do; to be called before it begins.

        Raises:
            InputError: as for :meth:`next`.
        """
        return self._walk.outlook()

    def shorten(self) -> bool:
        """Record that the last batch could not be computed as a whole, so that half of it is next.

        Returns:
            False if it cannot be halved.
        """
        return self._walk.shorten()

    def finish_batch(self, states: Sequence[str]) -> int:
        """How many days of the last batch are to be published; those after them would come out as they already are.

        Args:
            states: digests of the states at the ends of its days.
        """
        self._states = states
        return self._walk.finish_batch(states)

    def published(self, days: int, state: State | None = None) -> None:
        """Record that this many days of the last batch are published.

        Args:
            days: the number of days; if it is less than was to be published, the run must stop.
            state: the state after them, if it is known and need not be read.
        """
        self._walk.published(days)
        self._reached = self._walk.at, self._states[days - 1], state
        self._found = None

    def digest(self, number: int) -> str | None:
        """The digest of the state that was left at the start of a day; None if there is none."""
        if self._reached is not None and self._reached[0] == number:
            return self._reached[1]
        left: str | None = self._chain.state_out[number - 1 - self._lo]
        return left

    def state(self, number: int) -> State | None:
        """The state at the start of a day; None if the state that was left there is not kept."""
        digest = self.digest(number)
        if digest is None:
            return None
        if self._reached is not None and self._reached[0] == number and self._reached[2] is not None:
            return self._reached[2]
        if self._found is None or self._found[0] != number:
            self._found = number, self.read(day_of(number), digest)
        return self._found[1]
