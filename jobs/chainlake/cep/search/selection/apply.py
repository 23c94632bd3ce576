"""Picks, from all matches of a search, those that the pattern wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.order import total_order
from chainlake.cep.policy import Policy
from chainlake.cep.search.found.batch import MatchBatch, concatenated
from chainlake.cep.search.selection.order import NONE, Ranked
from chainlake.cep.search.selection.resolve import Published, published

#: How many matches are in memory at a time if they use up events; with more, the search is cut into blocks of time.
MOST_MATCHES = 5_000_000
#: How many matches are gathered before they are reduced.
_REDUCED = 1 << 18


class Selection:
    """Chooses among all matches of a search.

    Args:
        policy: which matches are wanted.
        names: the positive names in the order written.
        events: the table in which the matches are found.
    """

    def __init__(self, policy: Policy, names: tuple[str, ...], events: pa.Table) -> None:
        self.policy, self.names = policy, names
        ts = ticks_of(events["ts"], "ts")
        self.order = total_order(events, ts)
        self.times = ts[self.order]
        self._place = np.full(len(ts) + 1, NONE, np.int64)
        self._place[self.order] = np.arange(len(ts))
        self._used = np.zeros(len(ts), bool)
        if policy.accumulates:
            # Sets are in the order of (ts, id), as everywhere, whatever the seq of their events.
            self._by_id = np.empty(len(ts), np.int64)
            self._by_id[total_order(events.select(["event_id"]), ts)] = np.arange(len(ts))
        #: how many blocks the search was cut into
        self.blocks = 0

    def all(self, batches: Iterable[MatchBatch]) -> Iterator[MatchBatch]:
        """The matches that are wanted, in the order in which they are published."""
        policy = self.policy
        reduces = not policy.consumes and policy.select != "each"
        every, size, most = list[MatchBatch](), 0, _REDUCED
        for batch in batches:
            every.append(batch)
            size += batch.n
            if reduces and size > most:
                # A match that is not wanted among some of a last event's matches is not wanted among all of them.
                every = list(self._published(every))
                size = sum(batch.n for batch in every)
                most = max(_REDUCED, 2 * size)
        yield from self._published(every)

    def chosen(self, batches: Iterable[MatchBatch]) -> Iterator[MatchBatch]:
        """Matches of one branch that a kernel chose, in the order of its own times, as they are published."""
        if not self.policy.accumulates:
            yield from self.all(batches)
            return
        every = [batch for batch in batches if batch.n]
        if not every:
            return
        # Each row has a last event of its own, so these alone say the order.
        rows = concatenated(every)
        last = np.max([np.maximum.reduceat(self._place[at], begin[:-1]) for begin, at in rows.kleene.values()], axis=0)
        ordered = rows.at(np.argsort(last))
        groups = {}
        for name, (begin, at) in ordered.kleene.items():
            of_row = np.repeat(np.arange(rows.n), np.diff(begin))
            groups[name] = (begin, at[np.lexsort((self._by_id[at], of_row))])
        yield replace(ordered, kleene=groups)

    def in_blocks(
        self,
        found: Iterable[MatchBatch],
        search: Callable[[tuple[int, int]], Iterable[MatchBatch]],
        own: tuple[int, int],
        *,
        halve: bool = False,
    ) -> Iterator[MatchBatch]:
        """The same if matches use up events: block by block, so that the matches of one block fit in memory.

        Args:
            found: all matches decided in ``own``.
            search: gives all matches decided in ``[lo, hi)``.
            own: the range that is searched.
            halve: whether to cut the range in two without trying it whole.
        """
        lo, hi = np.searchsorted(self.times, own)
        middle = int(self.times[(lo + hi) // 2]) if lo < hi else own[0]
        can_halve = lo < hi and own[0] < middle
        whole = None if halve and can_halve else _some(found, MOST_MATCHES if can_halve else None)
        if whole is not None:
            self.blocks += 1
            yield from self._published(whole)
            return
        for half in ((own[0], middle), (middle, own[1])):
            yield from self.in_blocks(search(half), search, half)

    def _published(self, batches: Iterable[MatchBatch]) -> Iterator[MatchBatch]:
        """The wanted ones of some matches; what they use up is remembered."""
        every = [batch for batch in batches if batch.n]
        if not every:
            return
        begin = np.cumsum([0, *(batch.n for batch in every)])
        rows = np.full((int(begin[-1]), len(self.names)), NONE, np.int64)
        for first, batch in zip(begin, every, strict=False):
            for name, bound in batch.single.items():
                rows[first : first + batch.n, self.names.index(name)] = bound
        wanted = published(Ranked(self._place[rows], self.times), self.names, self.policy, self._used)
        self._used = wanted.consumed
        origin = np.searchsorted(begin, wanted.rows, "right") - 1
        branches = np.array([batch.branch for batch in every])[origin]
        if self.policy.accumulates:
            yield from self._accumulated(wanted, branches)
            return
        yield from _runs(every, begin, wanted.rows, branches)

    def _accumulated(self, wanted: Published, branches: np.ndarray) -> Iterator[MatchBatch]:
        """One row per terminator, whose names are bound to sets; the rows of a batch bind the same names."""
        sets = wanted.sets or ()
        bound = [tuple(len(ranks) > 0 for ranks in one) for one in sets]
        first = 0
        while first < len(sets):
            last = first + 1
            while last < len(sets) and bound[last] == bound[first]:
                last += 1
            some = sets[first:last]
            ends = self.times[[max(int(ranks[-1]) for ranks in one if len(ranks)) for one in some]]
            starts = self.times[[min(int(ranks[0]) for ranks in one if len(ranks)) for one in some]]
            groups = {}
            for column, name in enumerate(self.names):
                if bound[first][column]:
                    sizes = [len(one[column]) for one in some]
                    rows = self.order[np.concatenate([one[column] for one in some])]
                    in_sets = np.lexsort((self._by_id[rows], np.repeat(np.arange(len(some)), sizes)))
                    groups[name] = (np.cumsum([0, *sizes]), rows[in_sets])
            yield MatchBatch(int(branches[first]), len(some), starts, ends, ends, {}, groups)
            first = last


def _some(batches: Iterable[MatchBatch], most: int | None) -> list[MatchBatch] | None:
    """All batches, or None if they hold more than ``most`` matches."""
    found, size = list[MatchBatch](), 0
    for batch in batches:
        found.append(batch)
        size += batch.n
        if most is not None and size > most:
            return None
    return found


@dataclass(frozen=True)
class _Part:
    """The wanted matches of one branch.

    Args:
        batch: the matches, as they were found.
        order: the places of the wanted matches in ``batch``, in the order in which they are published.
    """

    batch: MatchBatch
    order: np.ndarray


def _runs(every: list[MatchBatch], begin: np.ndarray, rows: np.ndarray, branches: np.ndarray) -> Iterator[MatchBatch]:
    """The matches ``rows``, numbered over all batches, in that order; consecutive ones of one branch are a batch."""
    parts = {int(branch): _part(every, begin, rows[branches == branch]) for branch in np.unique(branches)}
    done = dict.fromkeys(parts, 0)
    bounds = np.flatnonzero(np.diff(branches, prepend=-1))
    for branch, size in zip(branches[bounds].tolist(), np.diff([*bounds, len(rows)]).tolist(), strict=True):
        part, first = parts[branch], done[branch]
        done[branch] = first + size
        yield part.batch.at(part.order[first : first + size])


def _part(every: list[MatchBatch], begin: np.ndarray, rows: np.ndarray) -> _Part:
    """The matches ``rows`` of one branch, gathered from the batches in which they were found."""
    ascending = np.sort(rows)
    cuts = np.searchsorted(ascending, begin)
    found = [
        batch.at(ascending[lo:hi] - first)
        for batch, first, lo, hi in zip(every, begin, cuts, cuts[1:], strict=False)
        if hi > lo
    ]
    return _Part(concatenated(found), np.searchsorted(ascending, rows))
