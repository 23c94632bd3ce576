"""Finds the matches of one pattern in events that arrive in time order.

A large slice is matched piece by piece while its events arrive: a piece owns the decision times up to the last event
seen and keeps only events that later pieces can still need, so memory depends on what is in a window, not on the size
of a slice. If the pattern has a partition key, the events of a piece are searched key by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.any_type import ANY_TYPE
from chainlake.cep.events.clock import Clock
from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.event_ids import PACKED, packed, texts
from chainlake.cep.heavy.asking import Exchange
from chainlake.cep.heavy.calls import NUMBER, numbered
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.matches.candidates import find_candidates, keeps_all
from chainlake.cep.matches.consumed import Consumed
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.steps import routing
from chainlake.cep.search.find import candidates_of, dataset, find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.ownership import calls_of
from chainlake.cep.search.statistics import BestSearches, Statistics
from chainlake.detect.feed import KeyShare, accepted, between, of_streams, with_keys
from chainlake.errors import InfrastructureError
from chainlake.schemas.table import Table

#: Events that a slice collects before they are matched; more make larger arrays, fewer make more runs of some ms each.
PIECE_ROWS = 400_000

_AGAIN = "Nothing was published; run the step again."


@dataclass(frozen=True)
class Matcher:
    """Finds the matches of one pattern.

    Args:
        pattern: the pattern.
        table: schema of the match table.
        orders: binding order of each branch; if not given, every piece chooses its own.
        piece_rows: events that a slice collects before they are matched.
    """

    pattern: Pattern
    table: pa.Schema
    orders: Sequence[Sequence[str]] | None
    piece_rows: int = PIECE_ROWS

    @property
    def called(self) -> bool:
        """Whether functions of pairs are called for the pattern."""
        return any(True for branch in self.pattern.branches for _ in calls_of(self.pattern, branch))

    def slice_search(
        self,
        own: tuple[int, int],
        statistics: Statistics,
        limit: DayLimit,
        keys: KeyShare | None = None,
        consumed: Consumed | None = None,
        exchange: Exchange | None = None,
    ) -> SliceSearch:
        """The search of one slice.

        Args:
            own: its decision times, half-open, in ticks.
            statistics: filled in by the search.
            limit: counts the matches of a task.
            keys: only events with these keys are looked at; all if None.
            consumed: the events used up before; None if the pattern uses nothing up.
            exchange: what is known of pairs, and where others are asked for.
        """
        ids = "id" not in self.pattern.mentioned
        read = self.pattern.read_range(*own)
        found = SliceSearch(self, own, statistics, limit, keys, _Events(ids), read, consumed=consumed)
        return found if exchange is None else replace(found, exchange=exchange)

    def wanted(self, events: pa.Table, keys: KeyShare | None = None) -> pa.Table:
        """The events that some name accepts by its own conditions, with the columns that are needed."""
        pattern = self.pattern
        if not pattern.carried <= set(events.column_names):
            # Otherwise, values that depend on earlier events would be computed from the remaining events alone.
            raise EventsIncomplete.uncomputed(pattern.name)
        if any(clauses for branch in pattern.branches for clauses in routing(branch).values()):
            keep = of_streams(pattern, events)
            for rows in accepted(pattern, events):
                keep[rows] = True
        elif ANY_TYPE in pattern.event_types:
            keep = np.ones(len(events), bool)
        else:
            keep = pc.is_in(events["type"], value_set=pa.array(sorted(pattern.event_types))).to_numpy()
        events = events.select(columns_of(events.column_names, pattern, self.table))
        events = with_keys(pattern, events if keep.all() else events.filter(pa.array(keep)))
        return events if keys is None else events.filter(keys.rows(_keys_of(events, str(pattern.partition_key))))


def columns_of(there: Iterable[str], pattern: Pattern, table: pa.Schema) -> list[str]:
    """The columns in ``there`` that the kernel and the table's rows need; those that are not there are null in both."""
    wanted = {"event_id", "type", "ts"} | pattern.columns_needed | pattern.carried
    wanted |= set() if pattern.partition_key is None else {pattern.partition_key}
    for column in table:
        kind = column.type.value_type if pa.types.is_list(column.type) else column.type
        if pa.types.is_struct(kind):
            wanted |= {kind.field(i).name for i in range(kind.num_fields)}
    return [name for name in there if name in wanted]


def needed(pattern: Pattern, table: Table) -> set[str]:
    """The columns that a feed must have for the pattern and its match table."""
    kinds = [c.type.value_type if pa.types.is_list(c.type) else c.type for c in table.columns]
    fields = {kind.field(i).name for kind in kinds if pa.types.is_struct(kind) for i in range(kind.num_fields)}
    return {"event_id", "type", "ts", *pattern.columns_needed, *fields, *filter(None, [pattern.partition_key])}


@dataclass
class _Events:
    """Events that are kept for a while.

    Args:
        packs: whether their ids are kept packed (``chainlake.cep.events.event_ids``), as they are if no condition reads
            them and all look like the lake's.
        parts: the events.
        rows: number of events.
    """

    packs: bool
    parts: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0

    def add(self, events: pa.RecordBatch) -> None:
        self.rows += len(events)
        if self.packs:
            found = packed(events["event_id"])
            if found.type == PACKED:
                events = _with_ids(events, found)
            else:
                self.packs = False
                self.parts = [_with_ids(part, texts(part["event_id"])) for part in self.parts]
        self.parts.append(events)

    def together(self) -> pa.Table:
        """The events as one chunk, since every block of matches takes rows from all over it."""
        events = pa.Table.from_batches(self.parts).combine_chunks()
        self.parts = events.to_batches()
        return events

    def keep(self, events: pa.Table) -> None:
        """Keep only the given events."""
        self.parts, self.rows = events.to_batches(), len(events)


@dataclass
class SliceSearch:
    """The search of one slice, whose events arrive bit by bit.

    Args:
        matcher: what to look for.
        own: the slice's decision times.
        statistics: filled in by the search.
        limit: counts the matches.
        keys: only events with these keys are looked at; all if None.
        kept: events that are still needed.
        read: times of the events that are looked at, half-open.
        wait: the number of kept events at which they are matched.
        last: time of the last event.
        done: matches decided before this tick have been found.
        consumed: the events used up before these matches and by them; None if the pattern uses nothing up.
        best: for a ranked pattern, how its matches were found.
        looked_at: number of events that some name of the pattern accepts.
        inside: how many of these have times that the slice owns.
        memo: results of functions for pairs of these events.
        exchange: those that were known before, and where others are asked for.
    """

    matcher: Matcher
    own: tuple[int, int]
    statistics: Statistics
    limit: DayLimit
    keys: KeyShare | None
    kept: _Events
    read: tuple[int, int]
    wait: int = 0
    last: int | None = None
    done: int = field(init=False)
    consumed: Consumed | None = None
    best: BestSearches = field(default_factory=BestSearches)
    looked_at: int = 0
    inside: int = 0
    memo: Memo = field(default_factory=Memo)
    exchange: Exchange = field(default_factory=Exchange)

    def __post_init__(self) -> None:
        self.done = self.own[0]

    def add(self, events: pa.Table) -> Iterator[pa.Table]:
        """Take further events, in order of time; yield the matches found on the way, as rows of the table.

        Raises:
            LimitExceeded: the limit of a day is reached.
        """
        self._check_order(events)
        found = self.matcher.wanted(between(events, *self.read), self.keys)
        if self.matcher.called:
            # The pieces of a slice share events, which are recognised by their numbers.
            found = numbered(found, self.looked_at)
            self.exchange.given.numbered(found["event_id"], found[NUMBER].to_numpy())
        self.looked_at += len(found)
        self.inside += len(between(found, *self.own))
        for batch in found.combine_chunks().to_batches(max_chunksize=self.matcher.piece_rows):
            if not len(batch):
                continue
            self.kept.add(batch)
            if self.kept.rows >= max(self.wait, self.matcher.piece_rows):
                # More events with the last time stamp may come.
                yield from self._find(min(int(ticks_of(batch["ts"], "ts")[-1]), self.own[1]))
                self._forget()
                # If a window has more events than a piece, pieces grow, so that few of them read the same event.
                self.wait = 2 * self.kept.rows

    def finish(self) -> Iterator[pa.Table]:
        """The remaining matches, once all events have come."""
        yield from self._find(self.own[1])

    def _check_order(self, events: pa.Table) -> None:
        if not len(events):
            return
        ts = ticks_of(events["ts"], "ts")
        if np.any(ts[1:] < ts[:-1]) or (self.last is not None and self.last > int(ts[0])):
            raise EventsIncomplete.unordered(self.matcher.pattern.name)
        self.last = int(ts[-1])

    def _forget(self) -> None:
        """Keep only events that can be part of a later match or reject one: candidates of some name in later pieces."""
        pattern, later = self.matcher.pattern, (self.done, self.own[1])
        events = pa.Table.from_batches(self.kept.parts)
        data = dataset(pattern, events, later)
        keep = of_streams(pattern, events) & (ticks_of(events["ts"], "ts") >= pattern.read_range(*later)[0])
        for branch in pattern.branches:
            for candidates in candidates_of(pattern, branch, data, later).values():
                keep[data.rows_of(candidates.rows)] = True
        if not keep.all():
            self.kept.keep(events.filter(pa.array(keep)))
        if self.matcher.called:
            numbers = [part[NUMBER].to_numpy() for part in self.kept.parts]
            self.memo.only(np.sort(np.concatenate(numbers)) if numbers else np.zeros(0, np.int64))

    def _find(self, end: int) -> Iterator[pa.Table]:
        if end <= self.done:
            return
        if self.kept.rows:
            self.exchange.given.give(self.memo)
            events, own = self.kept.together(), (self.done, end)
            for some, parts in _parts(self.matcher.pattern, events):
                yield from self._search(some, own, parts)
        self.done = end

    def _search(self, events: pa.Table, own: tuple[int, int], parts: np.ndarray | None) -> Iterator[pa.Table]:
        pattern, policy = self.matcher.pattern, self.matcher.pattern.extras.policy
        used = None if self.consumed is None else self.consumed.since(pattern.read_range(*own)[0])
        ids = None if used is None else used.ids
        options = SearchOptions(
            orders=self.matcher.orders, parts=parts, used=ids, memo=self.memo, asks=self.exchange.asks
        )
        ranks = pattern.extras.ranking is not None
        thinned = ranks and not keeps_all(pattern)
        search = find_candidates if ranks else find
        found = search(pattern, events, own=own, statistics=self.statistics, options=options)
        more: list[Consumed] = []
        for matches in found:
            if not thinned:
                # In a thinned ranking only a day's best matches count, and which they are is known only at the end.
                self.limit.add(matches.decision_us)
            rows = match_rows(pattern, events, matches, self.matcher.table)
            if self.consumed is not None and policy is not None:
                more.append(Consumed.by(policy, rows))
            yield rows
        if self.consumed is not None:
            # Later events, or those of other keys, are searched next.
            self.consumed = Consumed.together([self.consumed, *more])
        self.best += BestSearches.of(self.statistics.best)


def _parts(pattern: Pattern, events: pa.Table) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
    """The events of as many keys at a time as their times allow, sorted by key, and the number of each event's key."""
    key = pattern.partition_key
    if key is None or key not in events.column_names:
        yield events, None
        return
    codes = events[key].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    order = np.argsort(codes, kind="stable")
    events, codes = events.take(pa.array(order)).combine_chunks(), codes[order]
    ts = ticks_of(events["ts"], "ts")
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1], [True]]))
    most = max(1, Clock.over(int(ts.min()), int(ts.max()), pattern.window_us).most_parts)
    for first in range(0, len(starts) - 1, most):
        bounds = starts[first : first + most + 1]
        parts = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) if len(bounds) > 2 else None
        yield events.slice(int(bounds[0]), int(bounds[-1] - bounds[0])), parts


def _keys_of(events: pa.Table, key: str) -> pa.ChunkedArray:
    """The keys of the events; a column that the events lack is null."""
    there = key in events.column_names
    return events[key] if there else pa.chunked_array([pa.nulls(len(events), pa.string())])


def _with_ids(events: pa.RecordBatch, ids: pa.Array) -> pa.RecordBatch:
    return events.set_column(events.schema.get_field_index("event_id"), "event_id", ids)


class EventsIncomplete(InfrastructureError):
    """Events reached a search in a form that it cannot use; nothing was published."""

    @classmethod
    def uncomputed(cls, pattern: str) -> EventsIncomplete:
        """The events lack the values computed from earlier events."""
        return cls(f"the events of {pattern} arrived without what is computed from them", hint=_AGAIN)

    @classmethod
    def unordered(cls, pattern: str) -> EventsIncomplete:
        """The events are not in order of time."""
        return cls(f"the events of {pattern} did not arrive in time order", hint=_AGAIN)
