"""What a Python worker does with its share of a pattern's events: Arrow batches in, matches and one report out.

Events arrive group by group (a slice, or one key in a slice) in the order of time. A large group is matched piece by
piece while it arrives: a piece owns the decision times up to the last event seen and keeps only the events that later
pieces can still need, so memory depends on what lies in a window and not on the size of a group. Keys with few events
wait for each other and are searched together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.clock import Clock
from chainlake.cep.events.dataset import ticks_of
from chainlake.cep.events.event_ids import PACKED, packed, texts
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.find import SearchOptions, candidates_of, dataset, find
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import ChainlakeError, InfrastructureError

#: Events that a group collects before they are matched; more make larger arrays, fewer cost a run each (some ms).
PIECE_ROWS = 400_000
#: The number of a row's slice.
SLICE = "_slice"
#: The column beside the table's that carries what a worker has to say; no name of a pattern can be like it.
REPORT = pa.schema([pa.field("#report", pa.string())])
COUNTS = ("evaluations", "evaluations_neg", "evaluations_pre")


@dataclass(frozen=True)
class Matcher:
    """Finds the matches of one pattern.

    Args:
        pattern: the pattern.
        table: schema of the match table.
        own: number of a slice to the decision times it owns, half-open, in ticks.
        orders: binding order of each branch; if not given, every piece chooses its own.
        piece_rows: events that a group collects before they are matched.
    """

    pattern: Pattern
    table: pa.Schema
    own: Mapping[int, tuple[int, int]]
    orders: Sequence[Sequence[str]] | None
    piece_rows: int = PIECE_ROWS

    @property
    def schema(self) -> pa.Schema:
        """Schema of what is given: the table's columns, all nullable, and the report."""
        return pa.unify_schemas([pa.schema([pa.field(f.name, f.type) for f in self.table]), REPORT])

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches, and a last row that only holds the report: evaluations, or the error that ended the run.

        Args:
            batches: columns ``_slice``, ``event_id``, ``type``, ``ts``, and what the pattern needs; rows in the order
                of (slice, partition key, ts).
        """
        statistics, limit = Statistics(), DayLimit(self.pattern)
        try:
            for matches in self._groups(batches, statistics):
                limit.add(pc.cast(matches["decision_ts"], pa.int64()).to_numpy())
                for batch in matches.to_batches():
                    columns = [*batch.columns, pa.nulls(len(batch), pa.string())]
                    yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
            report: dict[str, Any] = {name: int(getattr(statistics, name)) for name in COUNTS}
        except ChainlakeError as error:
            # An exception would reach the driver as text inside a Spark stack; a row keeps its type and place.
            report = {"error": type(error).__name__, "what": error.what, "details": error.details()}
        nothing = [pa.nulls(1, f.type) for f in self.table]
        yield pa.RecordBatch.from_arrays([*nothing, pa.array([json.dumps(report)])], schema=self.schema)

    def _groups(self, batches: Iterable[pa.RecordBatch], statistics: Statistics) -> Iterator[pa.Table]:
        group: _Group | _Keys | None = None
        for batch in batches:
            for begin, end, number in _slices_in(batch):
                if group is None or group.number != number:
                    if group is not None:
                        yield from group.finish()
                    kind = _Group if self.pattern.partition_key is None else _Keys
                    group = kind(self, number, statistics, _Events("id" not in self.pattern.mentioned))
                yield from group.add(batch.slice(begin, end - begin).drop_columns([SLICE]))
        if group is not None:
            yield from group.finish()

    def search(
        self, events: pa.Table, own: tuple[int, int], statistics: Statistics, parts: np.ndarray | None = None
    ) -> Iterator[pa.Table]:
        """The matches in events that are in one piece, as rows."""
        options = SearchOptions(orders=self.orders, parts=parts)
        found = find(self.pattern, events, own=own, statistics=statistics, options=options)
        for matches in found:
            yield match_rows(self.pattern, events, matches, self.table)

    def in_order(self, number: int, ordered: bool) -> None:
        """Check that the events of a slice came in order."""
        if not ordered:
            raise InfrastructureError(
                f"the events of slice {number} of {self.pattern.name} did not arrive in order",
                hint="Nothing was published; run the step again.",
            )


@dataclass
class _Events:
    """Events that are kept for a while.

    Args:
        packs: whether their ids are kept packed (``chainlake.cep.events.event_ids``): if no condition reads them and
            all are like the lake's.
        parts: the events.
        rows: how many.
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
        """The events in one piece, since every block of matches takes rows from all over it."""
        events = pa.Table.from_batches(self.parts).combine_chunks()
        self.parts = events.to_batches()
        return events

    def keep(self, events: pa.Table) -> None:
        """Keep only these of the events."""
        self.parts, self.rows = events.to_batches(), len(events)


@dataclass
class _Keys:
    """The events of one slice as they arrive, key by key.

    Args:
        matcher: what is looked for.
        number: of the slice.
        statistics: filled.
        waiting: events of whole keys, and of the last one.
        begins: for each batch of them, which rows are the first ones of a key.
        large: the last key, if it is searched by itself.
        last: key and time of the last event.
    """

    matcher: Matcher
    number: int
    statistics: Statistics
    waiting: _Events
    begins: list[np.ndarray] = field(default_factory=list)
    large: _Group | None = None
    last: tuple[Any, int] | None = None

    def add(self, events: pa.RecordBatch) -> Iterator[pa.Table]:
        """Take further events; give the matches that are found meanwhile."""
        begins = self._begins(events)
        if self.large is not None:
            first = int(np.argmax(begins)) if begins.any() else len(events)
            if first:
                yield from self.large.add(events.slice(0, first))
            if first == len(events):
                return
            yield from self.large.finish()
            self.large = None
            events, begins = events.slice(first), begins[first:]
        self.waiting.add(events)
        self.begins.append(begins)
        if self.waiting.rows >= self.matcher.piece_rows:
            yield from self._search_whole()

    def finish(self) -> Iterator[pa.Table]:
        """The matches that are left when all events have come."""
        if self.large is not None:
            yield from self.large.finish()
        elif self.waiting.rows:
            yield from self._search(self.waiting.together(), np.concatenate(self.begins))

    def _begins(self, events: pa.RecordBatch) -> np.ndarray:
        keys, ts = events[str(self.matcher.pattern.partition_key)], ticks_of(events["ts"], "ts")
        codes = keys.dictionary_encode().indices.fill_null(-1).to_numpy()
        begins = np.ones(len(events), bool)
        begins[1:] = codes[1:] != codes[:-1]
        ordered = not np.any((ts[1:] < ts[:-1]) & ~begins[1:])
        if self.last is not None and self.last[0] == keys[0].as_py():
            begins[0] = False
            ordered &= self.last[1] <= int(ts[0])
        self.matcher.in_order(self.number, ordered)
        self.last = keys[-1].as_py(), int(ts[-1])
        return begins

    def _search_whole(self) -> Iterator[pa.Table]:
        """Search all keys but the last, of which more may come; that one by itself, if it is large."""
        events, begins = self.waiting.together(), np.concatenate(self.begins)
        last = len(begins) - 1 - int(np.argmax(begins[::-1]))
        if last:
            yield from self._search(events.slice(0, last), begins[:last])
        self.waiting.keep(events.slice(last))
        self.begins = [begins[last:]]
        if self.waiting.rows >= self.matcher.piece_rows:
            self.large = _Group(self.matcher, self.number, self.statistics, _Events(self.waiting.packs))
            for part in self.waiting.parts:
                yield from self.large.add(part)
            self.waiting, self.begins = _Events(self.waiting.packs), []

    def _search(self, events: pa.Table, begins: np.ndarray) -> Iterator[pa.Table]:
        own, ts = self.matcher.own[self.number], ticks_of(events["ts"], "ts")
        starts = np.append(np.flatnonzero(begins), len(events))
        most = max(1, Clock.over(int(ts.min()), int(ts.max()), self.matcher.pattern.window_us).most_parts)
        for first in range(0, len(starts) - 1, most):
            bounds = starts[first : first + most + 1]
            parts = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) if len(bounds) > 2 else None
            some = events.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))
            yield from self.matcher.search(some, own, self.statistics, parts)


@dataclass
class _Group:
    """The events of one slice (or of one key in it) as they arrive.

    Args:
        matcher: what is looked for.
        number: of the slice.
        statistics: filled.
        kept: events that are still needed.
        wait: match when there are so many.
        last: time of the last event.
        done: matches decided before this tick have been found.
    """

    matcher: Matcher
    number: int
    statistics: Statistics
    kept: _Events
    wait: int = 0
    last: int | None = None
    done: int = field(init=False)

    def __post_init__(self) -> None:
        self.done = self.own[0]

    def add(self, events: pa.RecordBatch) -> Iterator[pa.Table]:
        """Take further events; give the matches that are found meanwhile."""
        ts = ticks_of(events["ts"], "ts")
        self.matcher.in_order(
            self.number, not np.any(ts[1:] < ts[:-1]) and (self.last is None or self.last <= int(ts[0]))
        )
        self.last = int(ts[-1])
        self.kept.add(events)
        if self.kept.rows >= max(self.wait, self.matcher.piece_rows):
            # Of the last time stamp more events may come.
            yield from self._find(min(self.last, self.own[1]))
            self._forget()
            # With more events in a window than in a piece, pieces grow, so that few of them read an event.
            self.wait = 2 * self.kept.rows

    def _forget(self) -> None:
        """Keep only what can be part of a later match, or reject one: candidates of some name in later pieces."""
        pattern, later = self.matcher.pattern, (self.done, self.own[1])
        events = pa.Table.from_batches(self.kept.parts)
        data = dataset(pattern, events, later)
        keep = np.zeros(len(events), bool)
        for branch in pattern.branches:
            for candidates in candidates_of(pattern, branch, data, later).values():
                keep[data.rows_of(candidates.rows)] = True
        if not keep.all():
            self.kept.keep(events.filter(pa.array(keep)))

    def finish(self) -> Iterator[pa.Table]:
        """The matches that are left when all events have come."""
        yield from self._find(self.own[1])

    @property
    def own(self) -> tuple[int, int]:
        return self.matcher.own[self.number]

    def _find(self, end: int) -> Iterator[pa.Table]:
        if end <= self.done:
            return
        if self.kept.rows:
            yield from self.matcher.search(self.kept.together(), (self.done, end), self.statistics)
        self.done = end


def _with_ids(events: pa.RecordBatch, ids: pa.Array) -> pa.RecordBatch:
    return events.set_column(events.schema.get_field_index("event_id"), "event_id", ids)


def _slices_in(batch: pa.RecordBatch) -> Iterator[tuple[int, int, int]]:
    """Runs of rows of one slice: ``(begin, end, its number)``."""
    if not len(batch):
        return
    numbers = batch[SLICE].to_numpy()
    bounds = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(batch)]
    for begin, end in zip(bounds, bounds[1:], strict=False):
        yield begin, end, int(numbers[begin])
