"""Chained days, each continuing from the state that the day before it left: which are done, and what a run does.

For each published day the digests of the states at its two ends are kept, ``state_in`` and ``state_out``. A day is up
to date if and only if its row is that of its own input, definition and engine, *and* its ``state_in`` is the current
``state_out`` of the day before. So after a late file, days are computed again for as long as it affects the state, and
not a day longer. Nothing here knows about tables: the decisions depend on the digests alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Day = TypeVar("Day")

#: The digest of the state in which a chain begins: nothing has been seen that a later day could depend on.
EMPTY = "empty"

#: How many days that may turn out to be unaffected are computed along with the first ones to do; doubled each time all
#: of them were affected.
_LOOK = 4


@dataclass(frozen=True)
class Chain:
    """The days of a chained definition as they are published, one array per field.

    Args:
        numbers: the days, as days since 1970-01-01, ascending.
        own: whether a day's row is done, and was made from today's input, definition, engine and table.
        refused: whether its audit failed, with the same input, definition, engine and table.
        ready: whether its events are ready to be computed from.
        anew: whether it starts from the empty state, whatever came before.
        state_in: the state that its row was computed from; None if it has none.
        state_out: the state that later days can continue from; None unless the row is done under today's definition and
            engine.
    """

    numbers: np.ndarray
    own: np.ndarray
    refused: np.ndarray
    ready: np.ndarray
    anew: np.ndarray
    state_in: np.ndarray
    state_out: np.ndarray

    @property
    def before(self) -> np.ndarray:
        """The published state that each day has to continue from; None if the day before left none."""
        found = np.full(len(self.numbers), None, dtype=object)
        follows = np.flatnonzero(np.diff(self.numbers) == 1) + 1
        found[follows] = self.state_out[follows - 1]
        found[self.anew] = EMPTY
        return found

    def dense(self, lo: int, hi: int, ready: Callable[[int], bool], anew: Callable[[int], bool]) -> Chain:
        """All days ``[lo, hi)``, including those for which nothing is recorded.

        Args:
            lo, hi: days as in ``numbers``.
            ready, anew: the flags for a day that is not among ``numbers``.
        """
        wanted = np.arange(lo, hi)
        have = np.isin(wanted, self.numbers)
        at = np.searchsorted(self.numbers, wanted[have])
        columns = {}
        for name in ("own", "refused", "ready", "anew", "state_in", "state_out"):
            old = getattr(self, name)
            columns[name] = np.full(len(wanted), None if old.dtype == object else False, dtype=old.dtype)
            columns[name][have] = old[at]
        for place in np.flatnonzero(~have).tolist():
            columns["ready"][place], columns["anew"][place] = ready(lo + place), anew(lo + place)
        return Chain(wanted, **columns)


@dataclass(frozen=True)
class ChainState:
    """How days stand in their chain; a day with no flag is as it would be by itself. One array entry per day.

    Args:
        moved: to do, since it was computed from a state other than the one the day before left.
        following: up to date by itself, but an earlier day is to do, after which it may or may not still be.
        waiting: an earlier day cannot be finished for the time being.
        cause: position of the first such earlier day; its own if there is none.
        unfinished: to do however the days before it turn out. A day that is up to date by itself is not, as long as one
            before it is to do: that one may leave the state that the day was computed from.
    """

    moved: np.ndarray
    following: np.ndarray
    waiting: np.ndarray
    cause: np.ndarray
    unfinished: np.ndarray


def chain_state(chain: Chain) -> ChainState:
    """How the days of a published chain stand; a day that starts from the empty state depends on none before it."""
    n = len(chain.numbers)
    place = np.arange(n)
    linked = (chain.state_in == chain.before) & (chain.before != None)  # noqa: E711 (element by element)
    to_do = ~(chain.own & linked)
    begin = np.maximum.accumulate(np.where(chain.anew, place, 0)) if n else place
    open_ = _first_since(to_do, begin)
    behind = open_ < place
    stuck = to_do & np.where(chain.own, ~behind & ~chain.ready, ~chain.ready | (chain.refused & (linked | behind)))
    held = _first_since(stuck, begin)
    waiting = held < place
    following = chain.own & behind & ~waiting
    moved = (chain.own | chain.refused) & ~linked & ~behind
    cause = np.where(waiting, held, np.where(following, open_, place))
    return ChainState(moved, following, waiting, cause, unfinished=moved | ~(chain.own | chain.refused))


def _first_since(flags: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Position of the first flagged day in each day's part of the chain, up to the day itself; n if there is none."""
    n = len(flags)
    place = np.arange(n)
    # ``first`` marks the flagged days that have none before them in their part of the chain, which starts at ``begin``.
    count = np.concatenate([[0], np.cumsum(flags)])
    first = flags & (count[:-1] == count[begin])
    found = np.maximum.accumulate(np.where(first, place, -1)) if n else place
    result: np.ndarray = np.where(found >= begin, found, n)
    return result


@dataclass(frozen=True)
class Outlook:
    """What a run through a chain will do, as far as that can be known beforehand.

    Args:
        certain: days that are computed unless something fails.
        possible: days that are computed if the state they continue from turns out to have changed.
    """

    certain: tuple[int, ...]
    possible: tuple[int, ...]

    @property
    def days(self) -> frozenset[int]:
        """All days, certain or possible."""
        return frozenset((*self.certain, *self.possible))

    @classmethod
    def together(cls, parts: Sequence[Outlook]) -> Outlook:
        """What several runs will do together, each of which goes through its own days."""
        certain, possible = ({day for part in parts for day in getattr(part, name)} for name in ("certain", "possible"))
        return cls(tuple(sorted(certain)), tuple(sorted(possible)))

    def cut(self, end: int) -> tuple[Outlook, Outlook]:
        """Split into the days before ``end`` and the others."""
        before, after = (
            Outlook(*(tuple(day for day in days if (day < end) is first) for days in (self.certain, self.possible)))
            for first in (True, False)
        )
        return before, after


@dataclass(frozen=True)
class Batch:
    """Consecutive days to be computed in one go.

    Args:
        begin: the first day.
        target: the first day that is to do; those before it are computed because no state is kept from which it could
            continue.
        end: the day after the last one.
        anew: whether the first day starts from the empty state.
    """

    begin: int
    target: int
    end: int
    anew: bool


class Walk:
    """A run's way through the days of a chain: days that are not up to date are computed, the others skipped.

    Args:
        chain: all days from ``chain.numbers[0]`` on, without gaps.
        first: the day on which the run starts; the chain before it is taken as published.
        kept: (day, least) → the last day from ``least`` to ``day`` on which a batch can begin, because that day
            starts from the empty state or the state that it continues from is kept; ``least`` itself counts as such a
            day unless it is negative.
        longest: the most days of a batch.
    """

    def __init__(self, chain: Chain, first: int, kept: Callable[[int, int], int], longest: int) -> None:
        self._chain, self._kept, self._longest = chain, kept, longest
        self._lo, self._end = int(chain.numbers[0]), int(chain.numbers[-1]) + 1
        self._at = first
        self._state: str | None = chain.before[first - self._lo]
        self._look = _LOOK
        self._held = -1
        self._batch: Batch | None = None
        self._states: Sequence[str] = ()

    def next(self) -> Batch | None:
        """The next days to compute; None if no day is left that can be computed."""
        while self._at < self._end:
            place = self._at - self._lo
            if self._chain.anew[place]:
                self._state = EMPTY
            settled = self._settled(self._at, self._state)
            if self._chain.refused[place] if settled else not self._chain.ready[place]:
                self._at = self._next_anew(self._at)
                continue
            if settled:
                self._state = self._chain.state_out[place]
                self._at += 1
                continue
            begin = self._kept(self._at, self._held)
            end = min(self._until(), begin + self._longest)
            self._batch = Batch(begin, min(self._at, end), end, bool(self._chain.anew[begin - self._lo]))
            return self._batch
        return None

    def _settled(self, day: int, state: str | None) -> bool:
        """Whether there is nothing to do for a day that continues from ``state``."""
        place, chain = day - self._lo, self._chain
        return bool((chain.own[place] or chain.refused[place]) and state is not None and chain.state_in[place] == state)

    def _next_anew(self, day: int) -> int:
        """The first day after ``day`` that depends on none before it."""
        later = np.flatnonzero(self._chain.anew[day + 1 - self._lo :])
        return day + 1 + int(later[0]) if len(later) else self._end

    def _until(self) -> int:
        """The end of a batch from here: the days to do in any case, and some that may be to do."""
        day = self._at + 1
        while day < self._end and self._chain.ready[day - self._lo] and self._to_do(day):
            day += 1
        last = min(self._end, day + self._look)
        while day < last and self._chain.ready[day - self._lo]:
            day += 1
        return day

    def _to_do(self, day: int) -> bool:
        place = day - self._lo
        return not (self._chain.own[place] or self._chain.refused[place])

    @property
    def at(self) -> int:
        """The day that the run has reached; nothing before it is left to do."""
        return self._at

    def shorten(self) -> bool:
        """Say that the batch was too large to compute: half of it comes next; return whether that has any day."""
        assert self._batch is not None
        self._longest = (self._batch.end - self._batch.begin) // 2
        return self._longest > 0

    def finish_batch(self, states: Sequence[str]) -> int:
        """Take the result of a batch.

        Args:
            states: the state at the end of each of its days.

        Returns:
            how many of its days are to be published: those before the first one that continues from the state that it
            was last computed from, since from there on the published rows still hold.
        """
        batch = self._batch
        assert batch is not None and len(states) == batch.end - batch.begin
        self._states = states
        for day in range(batch.begin + 1, batch.end):
            state = states[day - 1 - batch.begin]
            if self._chain.anew[day - self._lo] and state != EMPTY:
                # This day does not continue from what was computed.
                return day - batch.begin
            if day > batch.target and self._settled(day, state):
                return day - batch.begin
        self._look = min(2 * self._look, self._longest)
        return len(states)

    def published(self, days: int) -> None:
        """Say that only the first ``days`` days of the batch are published; the run continues after them.

        If these are fewer than were to be published, the chain cannot continue, and :meth:`next` must not be called.
        """
        assert self._batch is not None
        self._at = self._held = self._batch.begin + days
        self._state = self._states[days - 1]

    def outlook(self) -> Outlook:
        """What lies ahead: what a run does if it continues after every batch."""
        chain, state = self._chain, self._state
        certain: list[int] = []
        possible: list[int] = []
        unknown = doubtful = False
        held = False
        for day in range(self._at, self._end):
            place = day - self._lo
            if chain.anew[place]:
                state, unknown, doubtful, held = EMPTY, False, False, False
            if held:
                continue
            if unknown and not self._to_do(day):
                if chain.ready[place]:
                    possible.append(day)
                doubtful |= bool(chain.refused[place] or not chain.ready[place])
                continue
            if not unknown and self._settled(day, state):
                state, held = chain.state_out[place], bool(chain.refused[place])
                continue
            if not chain.ready[place]:
                held = True
                continue
            if not unknown:
                certain += range(self._kept(day, -1), day)
            (possible if doubtful else certain).append(day)
            unknown = True
        return Outlook(tuple(sorted(set(certain))), tuple(possible))


@dataclass(frozen=True)
class Link:
    """The states at the two ends of a computed day."""

    state_in: str
    state_out: str


def left_out(links: Mapping[Day, Link], wrong: Mapping[Day, str], before: str | None) -> dict[Day, str]:
    """Which of some consecutive days are not published, and why: the first that is wrong, and all after it.

    Args:
        links: the links of every day, ascending.
        wrong: day → why it cannot be published, for a reason that concerns it alone.
        before: the state that the first day has to continue from, read under the lock of the table: the ``state_out``
            of the day before, or :data:`EMPTY` if it starts from the empty state.
    """
    found: dict[Day, str] = {}
    for day, link in links.items():
        if found:
            found[day] = f"{next(iter(found))}, on which it depends, was left out"
        elif day in wrong:
            found[day] = wrong[day]
        elif link.state_in != before:
            found[day] = "it was computed from a state other than the one at the end of the day before"
        before = link.state_out
    return found
