"""A run's way through the days of a model: which of them it computes, some at a time, and what of them is published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from chainlake.catalog.models import LoadedModel
from chainlake.days import Days
from chainlake.errors import InputError
from chainlake.lake.records.chain import EMPTY, Chain, Outlook, Walk
from chainlake.lake.records.chained import day_number, day_of
from chainlake.monitoring.compute import Outcome
from chainlake.monitoring.replay import Replay
from chainlake.monitoring.states import KeptStates
from chainlake.run.chains import CannotGoOn

#: Days that a model is replayed at a time.
STRETCH = 90
_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Asked:
    """What a course starts from.

    Args:
        days: that the run was asked for.
        first: the first day that is to do.
        chain: the model's days as they are published, without holes, up to the last one that the run looks at.
    """

    days: Days
    first: date
    chain: Chain


class Course:
    """A run's way through the days of one model.

    What is published is not lost when a later day fails, and years of rounds do not fit into memory at once: so the
    days come in stretches, each published before the next is asked for. Where a stretch is not published as a whole,
    because a day's input moved meanwhile or its audit failed, the days that follow are left to the next run.

    Args:
        kept: the states that the model, among others, has left.
        model: the model.
        asked: the days.
        fingerprint: of each day's input.
    """

    def __init__(self, kept: KeptStates, model: LoadedModel, asked: Asked, fingerprint: Callable[[date], str]) -> None:
        self.model = model
        self._kept, self._asked, self._fingerprint = kept, asked, fingerprint
        self._walk: Walk | None = Walk(asked.chain, day_number(asked.first), self._begin, STRETCH)
        # The day after the last that was published, the digest of the state there, and the state.
        self._reached: tuple[date, str, dict[str, str]] | None = None
        self._found: dict[date, dict[str, str] | None] = {}

    @cached_property
    def outlook(self) -> Outlook:
        """What the run will do, as days since 1970-01-01; to be asked before it begins.

        Raises:
            InputError: a day before the first one would have to be computed and cannot be.
        """
        assert self._walk is not None
        return self._walk.outlook()

    def next(self) -> Replay | None:
        """The next stretch, None at the end.

        Raises:
            InputError: as for :attr:`outlook`.
        """
        stretch = None if self._walk is None else self._walk.next()
        if stretch is None:
            return None
        days = Days(day_of(stretch.begin), day_of(stretch.end))
        state, snapshots = self._before(days.start) if not stretch.anew else (EMPTY, {})
        prints = {day: self._fingerprint(day) for day in days}
        return Replay(self.model, days, day_of(stretch.target), state, snapshots, prints)

    def needed(self, outcome: Outcome) -> Outcome:
        """What of a stretch is to be published; after that, all days are as they are published already."""
        assert self._walk is not None
        return outcome.first_days(self._walk.came([link.state_out for _, link in sorted(outcome.links.items())]))

    def published(self, outcome: Outcome, days: int) -> None:
        """That so many days of what was to be published of a stretch are."""
        if self._walk is None or days < len(outcome.links):
            self._walk = None
            return
        self._walk.published(days)
        last = outcome.days.end - _ONE
        self._reached = outcome.days.end, outcome.links[last].state_out, outcome.state_after(last)

    def _before(self, day: date) -> tuple[str, dict[str, str]]:
        """Digest and state at the end of the day before one where :meth:`_begin` says that there is one."""
        if self._reached is not None and self._reached[0] == day:
            return self._reached[1:]
        left = self._left(day)
        assert left is not None
        return left

    def _left(self, day: date) -> tuple[str, dict[str, str]] | None:
        """Digest and state as they are published at the end of the day before one; None if no state is kept."""
        chain = self._asked.chain
        digest: str | None = chain.state_out[day_number(day) - 1 - int(chain.numbers[0])]
        if digest is None:
            return None
        if day not in self._found:
            # Asked for several times, and the states of many models do not fit into memory for all days.
            self._found = {day: self._kept.at_end_of(day - _ONE, self.model, digest)}
        kept = self._found[day]
        return None if kept is None else (digest, kept)

    def _begin(self, number: int, least: int) -> int:
        """The last day from ``least``, which can be, to ``number`` that can be begun with."""
        chain, config, asked = self._asked.chain, self.model.config, self._asked.days
        lo, at = int(chain.numbers[0]), number
        while at > least and not chain.anew[at - lo]:
            if self._left(day_of(at)) is not None:
                break
            at -= 1
            if not chain.ready[at - lo]:
                raise CannotGoOn.of(self.model.definition.name, config.source, day_of(at))
        if day_number(asked.start) - at > config.max_replay:
            raise ReplayTooLong.of(self.model, day_of(at), asked)
        return at


class ReplayTooLong(InputError):
    """A model would have to be computed from a day that lies far back."""

    @classmethod
    def of(cls, model: LoadedModel, first: date, asked: Days) -> ReplayTooLong:
        """Args: the model, the day, and the days that were asked for."""
        config = model.config
        return cls(
            f"{model.definition.name} must be replayed from {first}, {(asked.start - first).days} days before "
            f"{asked.start}; its max_replay is {config.max_replay} days",
            file=config.file,
            key="max_replay",
            hint=f"Run 'python -m jobs backfill {first} {asked.end} --models {config.name}', "
            "which asks for the whole stretch, or raise max_replay.",
        )
