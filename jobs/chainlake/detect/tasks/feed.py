"""The events of a pattern from the files of its source to a worker that matches or counts them, without Spark's rows.

A worker reads the days of a slice one after another: where there is no partition key, a day is all that is in memory at
a time. Events of a keyed pattern arrive key by key, so there it is a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.dataset import ticks_of
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.steps import routing
from chainlake.cep.search.find import candidates_of, dataset
from chainlake.detect.tasks.slices import Slice
from chainlake.detect.tasks.worker import PIECE_ROWS, SLICE


class Events(Protocol):
    """The events of a source as ``chainlake.lake.delta.event_files.EventFiles`` has them."""

    def within(self, lo: int, hi: int) -> list[date]:
        """The days that hold events with ts in ``[lo, hi)`` µs, ascending."""
        ...

    def read(self, day: date, columns: Sequence[str], types: Iterable[str], lo: int, hi: int) -> pa.Table:
        """Some events of a day, in any order."""
        ...


@dataclass(frozen=True)
class Feed:
    """What a pattern needs of its source's files.

    Args:
        files: the events.
        pattern: the pattern, without histories.
        columns: columns of the files that are needed, ``event_id``, ``type`` and ``ts`` among them.
    """

    files: Events
    pattern: Pattern
    columns: tuple[str, ...]

    def day(self, day: date, lo: int, hi: int) -> pa.Table:
        """The events of a day with ts in ``[lo, hi)`` that some name accepts by its own conditions, by time."""
        events = by_time(self.files.read(day, self.columns, self.pattern.event_types, lo, hi))
        if not any(clauses for branch in self.pattern.branches for clauses in routing(branch).values()):
            return events
        data = dataset(self.pattern, events, by_id=False)
        keep = np.zeros(len(events), bool)
        for branch in self.pattern.branches:
            for candidates in candidates_of(self.pattern, branch, data).values():
                keep[data.rows_of(candidates.rows)] = True
        return events if keep.all() else events.filter(pa.array(keep))

    def slice(self, one: Slice) -> Iterator[pa.RecordBatch]:
        """The events that a slice reads, as ``chainlake.detect.tasks.worker.Matcher`` takes them."""
        days = (self.day(day, *one.read) for day in self.files.within(*one.read))
        for part in days if self.pattern.partition_key is None else self._together(list(days)):
            number = pa.array(np.full(len(part), one.number, np.int32))
            for batch in part.append_column(SLICE, number).combine_chunks().to_batches(max_chunksize=PIECE_ROWS):
                if len(batch):
                    yield batch

    def _together(self, days: Sequence[pa.Table]) -> list[pa.Table]:
        return [by_key(self.pattern, pa.concat_tables(days))] if days else []


def by_time(events: pa.Table) -> pa.Table:
    """The events in the order of time; ties lie anyhow."""
    ts = ticks_of(events["ts"], "ts")
    return events if np.all(ts[1:] >= ts[:-1]) else events.take(pa.array(np.argsort(ts)))


def by_key(pattern: Pattern, events: pa.Table) -> pa.Table:
    """The events of a keyed pattern, given in the order of time, in the order of (key, time)."""
    events = with_keys(pattern, events)
    codes = events[str(pattern.partition_key)].combine_chunks().dictionary_encode().indices
    return events.take(pa.array(np.argsort(codes.fill_null(-1).to_numpy(), kind="stable")))


def with_keys(pattern: Pattern, events: pa.Table) -> pa.Table:
    """The events of a keyed pattern with keys that are equal if and only if they are alike, as
    :func:`chainlake.detect.tasks.by_shuffle.candidates` gives them."""
    key = str(pattern.partition_key)
    keys = events[key]
    if pa.types.is_floating(keys.type):
        # NaN is null, and the two zeros are equal, though told apart as entries of a dictionary.
        keys = pc.add(pc.if_else(pc.is_nan(keys), pa.scalar(None, keys.type), keys), pa.scalar(0.0, keys.type))
        events = events.set_column(events.column_names.index(key), key, keys)
    if all(len(branch.positive) > 1 for branch in pattern.branches):
        # An equality with an unknown value is never true, so such an event is in no match and rejects none. (A lone
        # positive name has equalities with negated ones only, which such an event need not fulfil.)
        events = events.filter(pc.is_valid(keys))
    return events
