"""A run's way through a model's days: which days it computes, some at a time, and which results are published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from chainlake.catalog.models import LoadedModel
from chainlake.days import Days, day_number, day_of
from chainlake.errors import InputError
from chainlake.lake.records.chain import EMPTY, Batch, Chain, Outlook
from chainlake.monitoring.compute import Outcome
from chainlake.monitoring.replay import Replay
from chainlake.monitoring.states import KeptStates
from chainlake.run.chained_run import ChainedRun

#: How many days of a model are replayed at a time.
BATCH = 90


@dataclass(frozen=True)
class Asked:
    """What a course is based on.

    Args:
        days: the days that the run was asked for.
        first: the first day to do.
        chain: the model's days as published, without gaps, up to the last one that the run looks at.
    """

    days: Days
    first: date
    chain: Chain


class Course:
    """A run's way through the days of one model.

    What is published must not be lost when a later day fails, and years of rounds do not fit into memory at once. So
    the days come in batches, each published before the next is asked for. If a batch is not published as a whole,
    because a day's input changed in the meantime or its audit failed, the days after it are left to the next run.

    Args:
        kept: the kept states of this model, among others.
        model: the model.
        asked: the days.
        fingerprint: gives the fingerprint of a day's input.
    """

    def __init__(self, kept: KeptStates, model: LoadedModel, asked: Asked, fingerprint: Callable[[date], str]) -> None:
        self.model = model
        self._fingerprint = fingerprint
        self._way: _ModelRun | None = _ModelRun(kept, model, asked)

    @cached_property
    def outlook(self) -> Outlook:
        """What the run will do, in days since 1970-01-01; to be read before the run begins.

        Raises:
            InputError: a day before the first one would have to be computed, but cannot be.
        """
        assert self._way is not None
        return self._way.outlook()

    def next(self) -> Replay | None:
        """The next batch; None at the end.

        Raises:
            InputError: as for :attr:`outlook`.
        """
        batch = None if self._way is None else self._way.next()
        if self._way is None or batch is None:
            return None
        days = Days(day_of(batch.begin), day_of(batch.end))
        state, snapshots = self._way.before(batch)
        prints = {day: self._fingerprint(day) for day in days}
        return Replay(self.model, days, day_of(batch.target), state, snapshots, prints)

    def needed(self, outcome: Outcome) -> Outcome:
        """The part of a batch to be published; the days after it would come out as they already are."""
        assert self._way is not None
        return outcome.first_days(self._way.finish_batch([link.state_out for _, link in sorted(outcome.links.items())]))

    def published(self, outcome: Outcome, days: int) -> None:
        """Record that this many days of the part to publish are published."""
        if self._way is None or days < len(outcome.links):
            self._way = None
            return
        self._way.published(days, outcome.state_after(outcome.days.end - timedelta(days=1)))


class _ModelRun(ChainedRun[dict[str, str]]):
    """The way through the days of a model, whose states hold one value per group."""

    def __init__(self, kept: KeptStates, model: LoadedModel, asked: Asked) -> None:
        name, source = model.definition.name, model.config.source
        super().__init__(asked.chain, day_number(asked.first), BATCH, definition=name, source=source)
        self._kept, self._model, self._days = kept, model, asked.days

    def read(self, day: date, digest: str) -> dict[str, str] | None:
        """See :meth:`ChainedRun.read`."""
        return self._kept.at_end_of(day - timedelta(days=1), self._model, digest)

    def begin(self, number: int, least: int) -> int:
        """See :meth:`ChainedRun.begin`; ``max_replay`` limits how far back a run may begin."""
        at = super().begin(number, least)
        if day_number(self._days.start) - at > self._model.config.max_replay:
            raise ReplayTooLong.of(self._model, day_of(at), self._days)
        return at

    def before(self, batch: Batch) -> tuple[str, dict[str, str]]:
        """The digest and the state from which a batch continues."""
        if batch.anew:
            return EMPTY, {}
        digest, state = self.digest(batch.begin), self.state(batch.begin)
        assert digest is not None and state is not None
        return digest, state


class ReplayTooLong(InputError):
    """A model would have to be computed from a day that is too far back."""

    @classmethod
    def of(cls, model: LoadedModel, first: date, asked: Days) -> ReplayTooLong:
        """For the model, that day, and the days that were asked for."""
        config = model.config
        return cls(
            f"{model.definition.name} must be replayed from {first}, {(asked.start - first).days} days before "
            f"{asked.start}; its max_replay is {config.max_replay} days",
            file=config.file,
            key="max_replay",
            hint=f"Run 'chainlake backfill {first} {asked.end} --models {config.name}', "
            "which covers the whole range, or raise max_replay.",
        )
