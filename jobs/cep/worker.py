"""What a Python worker does with its share of a pattern's events: Arrow batches in, matches and one report out.

Events arrive group by group (a slice, or one key in a slice) in the order of time. A large group is matched piece by
piece while it arrives: a piece owns the decision times up to the last event seen and keeps only the events that later
pieces can still need, so memory depends on what lies in a window and not on the size of a group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.cep.columns import ticks_of
from jobs.cep.event_ids import PACKED, packed, texts
from jobs.cep.kernel import candidates_of, dataset, find
from jobs.cep.limits import DayLimit
from jobs.cep.output import match_rows
from jobs.cep.pattern import Pattern
from jobs.cep.search import Statistics
from jobs.errors import ChainlakeError, InfrastructureError

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
        group: _Group | None = None
        for batch in batches:
            for begins, ends, name in _segments(batch, self.pattern.partition_key):
                if group is None or group.name != name:
                    if group is not None:
                        yield from group.finish()
                    packs = "id" not in self.pattern.mentioned
                    group = _Group(self, name, statistics, self.own[name[0]][0], packs=packs)
                yield from group.add(batch.slice(begins, ends - begins).drop_columns([SLICE]))
        if group is not None:
            yield from group.finish()


@dataclass
class _Group:
    """The events of one slice (and key) as they arrive.

    Args:
        matcher: what is looked for.
        name: number of the slice, and the key.
        statistics: filled.
        done: matches decided before this tick have been found.
        parts: events that are still needed.
        rows: how many.
        wait: match when there are so many.
        last: time of the last event.
        packs: whether the events' ids are kept packed (``jobs.cep.event_ids``).
    """

    matcher: Matcher
    name: tuple[int, Any]
    statistics: Statistics
    done: int
    parts: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    wait: int = 0
    last: int | None = None
    packs: bool = True

    def add(self, events: pa.RecordBatch) -> Iterator[pa.Table]:
        """Take further events; give the matches that are found meanwhile."""
        ts = ticks_of(events["ts"], "ts")
        if np.any(ts[1:] < ts[:-1]) or self.last is not None and ts[0] < self.last:
            raise InfrastructureError(
                f"the events of slice {self.name[0]} of {self.matcher.pattern.name} did not arrive in order",
                hint="Nothing was published; run the step again.",
            )
        self.last = int(ts[-1])
        kept = self._light(events)
        self.parts.append(kept)
        self.rows += len(events)
        if self.rows >= max(self.wait, self.matcher.piece_rows):
            # Of the last time stamp more events may come.
            yield from self._find(min(self.last, self.own[1]))
            self._forget()
            # With more events in a window than in a piece, pieces grow, so that few of them read an event.
            self.wait = 2 * self.rows

    def _light(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The events as they are kept: with packed ids, if no condition reads them and all are like the lake's."""
        if not self.packs:
            return events
        found = packed(events["event_id"])
        if found.type != PACKED:
            self.packs = False
            self.parts = [_with_ids(part, texts(part["event_id"])) for part in self.parts]
            return events
        return _with_ids(events, found)

    def _forget(self) -> None:
        """Keep only what can be part of a later match, or reject one: candidates of some name in later pieces."""
        pattern, later = self.matcher.pattern, (self.done, self.own[1])
        events = pa.Table.from_batches(self.parts)
        data = dataset(pattern, events, later)
        keep = np.zeros(len(events), bool)
        for branch in pattern.branches:
            for candidates in candidates_of(pattern, branch, data, later).values():
                keep[data.rows_of(candidates.rows)] = True
        if not keep.all():
            events = events.filter(pa.array(keep))
            self.parts, self.rows = events.to_batches(), len(events)

    def finish(self) -> Iterator[pa.Table]:
        """The matches that are left when all events have come."""
        yield from self._find(self.own[1])

    @property
    def own(self) -> tuple[int, int]:
        return self.matcher.own[self.name[0]]

    def _find(self, end: int) -> Iterator[pa.Table]:
        if end <= self.done:
            return
        if not self.rows:
            self.done = end
            return
        # In one piece, since every block of matches takes rows from all over it.
        events = pa.Table.from_batches(self.parts).combine_chunks()
        self.parts = events.to_batches()
        pattern = self.matcher.pattern
        found = find(
            pattern, events, orders=self.matcher.orders, own=(self.done, end), statistics=self.statistics
        )
        for matches in found:
            yield match_rows(pattern, events, matches, self.matcher.table)
        self.done = end


def _with_ids(events: pa.RecordBatch, ids: pa.Array) -> pa.RecordBatch:
    return events.set_column(events.schema.get_field_index("event_id"), "event_id", ids)


def _segments(batch: pa.RecordBatch, key: str | None) -> Iterator[tuple[int, int, tuple[int, Any]]]:
    """Runs of rows of one group: ``(begin, end, (slice, key))``."""
    if not len(batch):
        return
    numbers = batch[SLICE].to_numpy()
    breaks = numbers[1:] != numbers[:-1]
    if key is not None:
        codes = batch[key].dictionary_encode().indices.fill_null(-1).to_numpy()
        breaks = breaks | (codes[1:] != codes[:-1])
    bounds = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(batch)]
    for begin, end in zip(bounds, bounds[1:], strict=False):
        yield begin, end, (int(numbers[begin]), None if key is None else batch[key][begin].as_py())
