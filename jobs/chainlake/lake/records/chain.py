"""Chained days, each of which goes on from the state that the day before it left: what is done, what a run does.

Of each published day the digests of the states at its two ends are kept, ``state_in`` and ``state_out``. A day is up to
date if and only if its row is that of its own input, definition and engine, *and* its ``state_in`` is the current
``state_out`` of the day before. So what a late file changes is computed again for as long as it has an effect on the
state, and not a day longer. Nothing here knows of tables: the decisions are functions of the digests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Day = TypeVar("Day")

#: The digest of the state in which a chain begins: nothing has been seen that a later day could depend on.
EMPTY = "empty"

#: Days that may turn out to be unaffected and are computed with the first ones that are to do; doubled as they are not.
_LOOK = 4


@dataclass(frozen=True)
class Chain:
    """The days of a chained definition as they are published, in columns.

    Args:
        numbers: the days, as days since 1970-01-01, ascending.
        own: whether a day's row is done, and from today's input, definition, engine and table.
        refused: whether its audit failed, on just these.
        ready: whether its events can be computed from.
        anew: whether it begins empty, whatever went before.
        state_in: that its row was computed from; None if it has none.
        state_out: that later days can go on from; None unless the row is done under today's definition and engine.
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
        """The published state that each day has to go on from; None where the day before has left none."""
        found = np.full(len(self.numbers), None, dtype=object)
        follows = np.flatnonzero(np.diff(self.numbers) == 1) + 1
        found[follows] = self.state_out[follows - 1]
        found[self.anew] = EMPTY
        return found

    def dense(self, lo: int, hi: int, ready: Callable[[int], bool], anew: Callable[[int], bool]) -> Chain:
        """All days ``[lo, hi)``, also those that nothing is noted of.

        Args:
            lo, hi: as in ``numbers``.
            ready, anew: of a day that is not among ``numbers``.
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
class Standing:
    """How days stand in their chain; a day that is none of these is as it would be by itself.

    Args:
        moved: to do, since it was computed from another state than the one the day before left.
        following: up to date by itself, but a day before it is to do, after which it may or may not be.
        waiting: a day before it cannot be finished for the time being.
        cause: position of that day before it, the first one; its own where there is none.
        unfinished: not up to date, or computed from another state than the day before has left, whatever it waits for.
    """

    moved: np.ndarray
    following: np.ndarray
    waiting: np.ndarray
    cause: np.ndarray
    unfinished: np.ndarray


def standing(chain: Chain) -> Standing:
    """How the days of a chain stand, as it is published; a day that begins anew depends on none before it."""
    n = len(chain.numbers)
    place = np.arange(n)
    linked = (chain.state_in == chain.before) & (chain.before != None)  # noqa: E711 (element by element)
    unfinished = ~(chain.own & linked)
    begin = np.maximum.accumulate(np.where(chain.anew, place, 0)) if n else place
    open_ = _first_since(unfinished, begin)
    behind = open_ < place
    stuck = unfinished & np.where(chain.own, ~behind & ~chain.ready, ~chain.ready | (chain.refused & (linked | behind)))
    held = _first_since(stuck, begin)
    waiting = held < place
    following = chain.own & behind & ~waiting
    moved = (chain.own | chain.refused) & ~linked & ~behind
    cause = np.where(waiting, held, np.where(following, open_, place))
    return Standing(moved, following, waiting, cause, unfinished)


def _first_since(flags: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Position of the first flagged day in each day's part of the chain, up to the day itself; n if there is none."""
    n = len(flags)
    place = np.arange(n)
    # The last flagged day that has none before it in its part; a part begins where it says so.
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
        possible: days that are computed if the state they go on from turns out to be another one.
    """

    certain: tuple[int, ...]
    possible: tuple[int, ...]

    @property
    def days(self) -> frozenset[int]:
        """All of them."""
        return frozenset((*self.certain, *self.possible))

    @classmethod
    def together(cls, parts: Sequence[Outlook]) -> Outlook:
        """What several runs will do that go through days of their own."""
        certain, possible = ({day for part in parts for day in getattr(part, name)} for name in ("certain", "possible"))
        return cls(tuple(sorted(certain)), tuple(sorted(possible)))

    def cut(self, end: int) -> tuple[Outlook, Outlook]:
        """The days before one, and the others."""
        before, after = (
            Outlook(*(tuple(day for day in days if (day < end) is first) for days in (self.certain, self.possible)))
            for first in (True, False)
        )
        return before, after


@dataclass(frozen=True)
class Stretch:
    """Consecutive days to be computed in one go.

    Args:
        begin: the first one.
        target: the first one that is to do; those before it are computed because no state is kept that it could go on
            from.
        end: the day after the last one.
        anew: whether the first one begins empty.
    """

    begin: int
    target: int
    end: int
    anew: bool


class Walk:
    """A run's way through the days of a chain: what is not up to date is computed, the rest passed over.

    Args:
        chain: all days from ``chain.numbers[0]`` on, without holes.
        first: where the run begins; the chain before it is taken as it is published.
        kept: (day, least) → the last day from ``least`` to ``day`` that can be begun with, since it begins anew, or a
            state is kept that it goes on from; ``least`` can be, if it is a day.
        longest: days of a stretch.
    """

    def __init__(self, chain: Chain, first: int, kept: Callable[[int, int], int], longest: int) -> None:
        self._chain, self._kept, self._longest = chain, kept, longest
        self._lo, self._end = int(chain.numbers[0]), int(chain.numbers[-1]) + 1
        self._at = first
        self._state: str | None = chain.before[first - self._lo]
        self._look = _LOOK
        self._held = -1
        self._stretch: Stretch | None = None
        self._states: Sequence[str] = ()

    def next(self) -> Stretch | None:
        """The next days to compute; None where no day is left that can be."""
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
            self._stretch = Stretch(begin, min(self._at, end), end, bool(self._chain.anew[begin - self._lo]))
            return self._stretch
        return None

    def _settled(self, day: int, state: str | None) -> bool:
        """Whether nothing is to do for a day that goes on from a state."""
        place, chain = day - self._lo, self._chain
        return bool((chain.own[place] or chain.refused[place]) and state is not None and chain.state_in[place] == state)

    def _next_anew(self, day: int) -> int:
        """The first day after one that depends on none before it."""
        later = np.flatnonzero(self._chain.anew[day + 1 - self._lo :])
        return day + 1 + int(later[0]) if len(later) else self._end

    def _until(self) -> int:
        """The end of a stretch from here: what is to do in any case, and some days that may be."""
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
        """The day that the run has come to; nothing before it is left."""
        return self._at

    def shorten(self) -> bool:
        """That the stretch could not be computed as a whole: half of it comes next; whether it has so many days."""
        assert self._stretch is not None
        self._longest = (self._stretch.end - self._stretch.begin) // 2
        return self._longest > 0

    def came(self, states: Sequence[str]) -> int:
        """What a stretch gave.

        Args:
            states: at the end of each of its days.

        Returns:
            how many of them are to be published: from the first on that goes on from the state that it was computed
            from, all of them are as they are published.
        """
        stretch = self._stretch
        assert stretch is not None and len(states) == stretch.end - stretch.begin
        self._states = states
        for day in range(stretch.begin + 1, stretch.end):
            state = states[day - 1 - stretch.begin]
            if self._chain.anew[day - self._lo] and state != EMPTY:
                # It does not go on from what was computed.
                return day - stretch.begin
            if day > stretch.target and self._settled(day, state):
                return day - stretch.begin
        self._look = min(2 * self._look, self._longest)
        return len(states)

    def published(self, days: int) -> None:
        """That the first ``days`` days of the stretch are published and no others; the run goes on after them.

        Where these are fewer than were to be published the chain cannot go on, and :meth:`next` must not be called.
        """
        assert self._stretch is not None
        self._at = self._held = self._stretch.begin + days
        self._state = self._states[days - 1]

    def outlook(self) -> Outlook:
        """What is before the run: a run that goes on after every stretch does this."""
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
    """Which of consecutive days are not published, and why: the first that is wrong, and all after it.

    Args:
        links: of every day, ascending.
        wrong: days that cannot be published for reasons of their own, with these.
        before: the state that the first one has to go on from, as it is under the lock of the table: the ``state_out``
            of the day before, or :data:`EMPTY` if it begins anew.
    """
    found: dict[Day, str] = {}
    for day, link in links.items():
        if found:
            found[day] = f"{next(iter(found))}, on which it depends, was left out"
        elif day in wrong:
            found[day] = wrong[day]
        elif link.state_in != before:
            found[day] = "the state that it was computed from is not the one that the day before it has left"
        before = link.state_out
    return found
