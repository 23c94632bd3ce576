"""Counts and samples of the events of patterns: tasks read the files in one pass for all patterns.

They count the events that names accept by all their own conditions, tested as in the search itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.steps import routing
from chainlake.days import Days
from chainlake.detect.division.curve import CELLS, count_cells
from chainlake.detect.feed import Feed, accepted, between, merged, with_keys
from chainlake.lake.store.event_files import EventFiles
from chainlake.run.tasks import LocalTasks, Tasks

T = TypeVar("T")

#: Up to this many events this process counts by itself, in less time than it takes to start a task.
HERE_ROWS = 100_000
#: How many counting tasks there are per task that runs at a time, so that all end at about the same time.
_TASKS = 4


@dataclass(frozen=True)
class Ask:
    """What is asked about a pattern.

    Args:
        pattern: the pattern.
        reads: ranges ``[lo, hi)`` µs; its events are those with ts in one of them, but others in between may count,
            too.
        length: length of the buckets by which events are counted, µs.
    """

    pattern: Pattern
    reads: tuple[tuple[int, int], ...]
    length: int

    @property
    def span(self) -> tuple[int, int]:
        """The smallest range that holds all ranges."""
        return min(lo for lo, _ in self.reads), max(hi for _, hi in self.reads)

    @property
    def names(self) -> list[str]:
        """The names of all branches, one after another."""
        return [name for branch in self.pattern.branches for name in routing(branch)]

    @property
    def columns(self) -> set[str]:
        """The columns that must be read to know which events its names accept."""
        key = self.pattern.partition_key
        wanted = {"type", "ts"} | self.pattern.mentioned | ({key} if key else set())
        return wanted | ({"event_id"} if "id" in wanted else set())


@dataclass(frozen=True)
class Survey:
    """Counts of events per name, with the names of all branches one after another.

    Args:
        numbers: the buckets that hold events, ascending.
        counts: events per name and bucket, shape (names, buckets).
        cells: events per name in consecutive ones of the span's ``CELLS`` equal parts, shape (names, parts); all other
            parts have none.
        first: number of the first of these parts.
    """

    numbers: np.ndarray
    counts: np.ndarray
    cells: np.ndarray
    first: int = 0

    @property
    def all_cells(self) -> np.ndarray:
        """``cells`` for all parts of the span, shape (names, ``CELLS``)."""
        found = np.zeros((len(self.cells), CELLS))
        found[:, self.first : self.first + self.cells.shape[1]] = self.cells
        return found


@dataclass(frozen=True)
class Draw:
    """A sample of events to be drawn: every n-th of each name, in some buckets.

    Args:
        ask: the pattern, and how long a bucket is.
        buckets: their numbers.
        thinning: the n of each name.
        columns: the columns wanted.
    """

    ask: Ask
    buckets: tuple[int, ...]
    thinning: tuple[int, ...]
    columns: frozenset[str]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The times of the buckets, clipped to the range asked about."""
        lo, hi = self.ask.span
        length = self.ask.length
        every = ((max(lo, number * length), min(hi, (number + 1) * length)) for number in self.buckets)
        return merged(span for span in every if span[0] < span[1])


@dataclass(frozen=True)
class Counting:
    """Counts the events of a run's files.

    Args:
        tasks: the tasks that read the files.
        files: the events.
        key: the source's key column.
    """

    tasks: Tasks
    files: EventFiles = field(repr=False)
    key: str

    def surveys(self, asks: Sequence[Ask]) -> list[Survey]:
        """One survey per pattern; each event is read once."""
        return self._counted(
            [span for ask in asks for span in ask.reads],
            self._feed(asks, set().union(*(ask.columns for ask in asks))),
            lambda chunk: [_survey(ask, chunk) for ask in asks],
            lambda parts: [_sum(of, ask) for of, ask in zip(zip(*parts, strict=True), asks, strict=True)],
        )

    def draw(self, draws: Sequence[Draw]) -> list[pa.Table]:
        """The samples, in any order; which events they have depends on the events' ids alone."""
        return self._counted(
            [span for one in draws for span in one.spans],
            self._feed([one.ask for one in draws], set().union(*(one.ask.columns | one.columns for one in draws))),
            lambda chunk: [_drawn(one, chunk) for one in draws],
            lambda parts: [pa.concat_tables(of) for of in zip(*parts, strict=True)],
        )

    def cells(self, ask: Ask, cells: Sequence[tuple[int, int]], parts: int) -> np.ndarray:
        """Events per name in each part of each cell, as :data:`chainlake.detect.division.curve.Count`."""
        return self._counted(
            cells,
            self._feed([ask], ask.columns),
            lambda chunk: count_cells(_times(ask, chunk), cells, parts),
            lambda found: np.sum(found, axis=0),
        )

    def _feed(self, asks: Iterable[Ask], columns: Iterable[str]) -> Feed:
        return Feed.of(self.files, self.key, [ask.pattern for ask in asks], columns)

    def _counted(
        self,
        spans: Iterable[tuple[int, int]],
        feed: Feed,
        count: Callable[[pa.Table], T],
        add: Callable[[list[T]], T],
    ) -> T:
        """The counts of all chunks together, with one task per group of days."""
        wanted = merged(spans)
        days = sorted({day for span in wanted for day in self.files.within(*span)})
        few = sum(self.files.rows[day] for day in days) <= HERE_ROWS
        tasks: Tasks = LocalTasks() if few else self.tasks

        def of_group(bounds: tuple[int, int]) -> T:
            lo, hi = bounds
            inside = ((max(lo, first), min(hi, end)) for first, end in wanted)
            parts = [count(chunk) for chunk in feed.chunks(span for span in inside if span[0] < span[1])]
            return add(parts or [count(feed.empty())])

        return add([count(feed.empty()), *tasks.map(of_group, self._groups(days, tasks.parallelism))])

    def _groups(self, days: Sequence[date], parallelism: int) -> list[tuple[int, int]]:
        """The days in groups with about equally many events, as time ranges in µs."""
        if not days:
            return []
        rows = np.array([self.files.rows[day] for day in days])
        end, most = np.cumsum(rows), min(len(days), _TASKS * parallelism)
        # Days are assigned by their middle, so that a few events more or less move no day to the next group.
        places = (2 * end - rows) * most // (2 * end[-1])
        return [
            Days(days[int(mine[0])], Days.one(days[int(mine[-1])]).end).micros()
            for mine in (np.flatnonzero(places == place) for place in np.unique(places))
        ]


def _survey(ask: Ask, chunk: pa.Table) -> Survey:
    times = _times(ask, chunk)
    buckets = [np.unique(ts // ask.length, return_counts=True) for ts in times]
    numbers = np.unique(np.concatenate([of for of, _ in buckets]))
    counts = np.zeros((len(times), len(numbers)))
    for row, (of, count) in zip(counts, buckets, strict=True):
        row[np.searchsorted(numbers, of)] = count
    return _trimmed(numbers, counts, count_cells(times, [ask.span], CELLS))


def _times(ask: Ask, chunk: pa.Table) -> list[np.ndarray]:
    """Per name, the times of the events that it accepts."""
    events = with_keys(ask.pattern, between(chunk, *ask.span))
    ts = ticks_of(events["ts"], "ts")
    return [ts[rows] for rows in accepted(ask.pattern, events)]


def _sum(surveys: Sequence[Survey], ask: Ask) -> Survey:
    """The sum of the counts of some chunks."""
    numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.numbers for one in surveys)]))
    counts, cells = np.zeros((len(ask.names), len(numbers))), np.zeros((len(ask.names), CELLS))
    for one in surveys:
        counts[:, np.searchsorted(numbers, one.numbers)] += one.counts
        cells += one.all_cells
    return _trimmed(numbers, counts, cells)


def _trimmed(numbers: np.ndarray, counts: np.ndarray, cells: np.ndarray) -> Survey:
    """A survey without empty cells at its ends: a chunk fills few, and this process holds all surveys at once."""
    held = np.flatnonzero(cells.any(axis=0))
    first, end = (int(held[0]), int(held[-1]) + 1) if len(held) else (0, 0)
    return Survey(numbers, counts, cells[:, first:end].copy(), first)


def _drawn(draw: Draw, chunk: pa.Table) -> pa.Table:
    there = [name for name in sorted(draw.columns) if name in chunk.column_names]
    events = with_keys(draw.ask.pattern, between(chunk, *draw.ask.span))
    numbers = ticks_of(events["ts"], "ts") // draw.ask.length
    events = events.filter(pa.array(np.isin(numbers, draw.buckets)))
    taken = np.zeros(len(events), bool)
    for rows, every in zip(accepted(draw.ask.pattern, events), draw.thinning, strict=True):
        taken[rows if every == 1 else rows[_hashes(events["event_id"].take(pa.array(rows))) % every == 0]] = True
    return events.select(there).filter(pa.array(taken))


def _hashes(ids: pa.ChunkedArray) -> np.ndarray:
    return np.array([crc32(one.encode()) for one in ids.to_pylist()], np.int64)
