"""The way through one segment of a pattern's days; the state at a day's start is derived from what is published."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from chainlake.days import day_of
from chainlake.detect.chained.segments import Segment
from chainlake.errors import InfrastructureError, InputError
from chainlake.lake.records.chain import Batch
from chainlake.lake.records.defined.definitions import Definition
from chainlake.run.chained_run import ChainedRun, State

_ONE = timedelta(days=1)


class SegmentRun(ChainedRun[State]):
    """The way through one segment.

    Args:
        part: the segment.
        definition: the definition of the pattern or its episodes.
        read: day → the state at its start, derived from what is published.
        digest_of: state → its digest.
        longest: the most days at a time.
    """

    def __init__(
        self,
        part: Segment,
        definition: Definition,
        read: Callable[[date], State],
        digest_of: Callable[[State], str],
        longest: int,
    ) -> None:
        super().__init__(part.chain, part.first, longest, definition=definition.name, source=definition.source)
        self.part = part
        self._of, self._read, self._digest_of = definition, read, digest_of

    def read(self, day: date, digest: str) -> State | None:
        """See :meth:`ChainedRun.read`."""
        state = self._read(day)
        return state if self._digest_of(state) == digest else None

    def before(self, batch: Batch) -> State | None:
        """The state from which a batch continues; None if it starts from the empty state.

        Raises:
            MatchesMoved: another run has changed what was published.
        """
        if batch.anew:
            return None
        state = self.state(batch.begin)
        if state is None:
            raise MatchesMoved.of(self._of, day_of(batch.begin))
        return state

    def go_back(self, number: int) -> None:
        """See :meth:`ChainedRun.go_back`; it goes back only to days that were computed under today's definition."""
        if number - 1 not in self.part.recorded:
            raise NothingBefore.of(self._of, day_of(number), day_of(int(self.part.chain.numbers[0])))


class NothingBefore(InputError):
    """A day continues from one that was never computed under today's definition."""

    @classmethod
    def of(cls, definition: Definition, day: date, first: date) -> NothingBefore:
        """Args: the definition, the day, and the first day of its chain."""
        before, end = day - _ONE, day + _ONE
        return cls(
            f"{definition.name} continues from day to day, but {before}, which {day} continues from, was never "
            "computed with the current file and engine",
            hint=f"Run 'chainlake backfill {first} {end} --patterns {definition.name.partition('/')[2]}', or "
            "give the pattern a later start.",
        )


class MatchesMoved(InfrastructureError):
    """Another run has changed what was published of a day a moment ago."""

    @classmethod
    def of(cls, definition: Definition, day: date) -> MatchesMoved:
        """Args: the definition, and the day that was to continue from there."""
        return cls(
            f"{definition.name} cannot continue to {day}: the matches before it have been changed in the meantime",
            hint="Another run is publishing them; run this again.",
        )
