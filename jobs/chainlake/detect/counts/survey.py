"""Where the events of patterns lie, counted by the workers that read them: one pass for all patterns of a source.

Counted are the events that the names accept by all their own conditions, as the kernel itself tests them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.steps import routing
from chainlake.cep.search.find import candidates_of, dataset
from chainlake.days import US_PER_DAY, day_start_us
from chainlake.detect.tasks.feed import by_time, with_keys
from chainlake.detect.tasks.kept_days import KeptDays, Read
from chainlake.detect.tasks.slices import CELLS, count_cells
from chainlake.lake.delta.event_files import EventFiles


@dataclass(frozen=True)
class Ask:
    """What is asked about a pattern.

    Args:
        pattern: the pattern, without histories.
        reads: its events are those with ts in one of these ranges ``[lo, hi)`` µs; others between them may count, too.
        length: of the stretches that are counted, µs.
    """

    pattern: Pattern
    reads: tuple[tuple[int, int], ...]
    length: int

    @property
    def span(self) -> tuple[int, int]:
        """The smallest range that holds all."""
        return min(lo for lo, _ in self.reads), max(hi for _, hi in self.reads)

    def days(self, files: EventFiles) -> list[date]:
        """The days to read, ascending."""
        return sorted({day for span in self.reads for day in files.within(*span)})

    @property
    def names(self) -> list[str]:
        """The names of all branches, one after another."""
        return [name for branch in self.pattern.branches for name in routing(branch)]

    def columns(self, files: EventFiles, *more: str) -> set[str]:
        """What must be read to know which events its names accept, and ``more`` columns."""
        wanted = {"type", "ts", *more} | self.pattern.mentioned
        wanted |= {"event_id"} if "id" in wanted else set()
        return wanted & set(files.schema.names)


@dataclass(frozen=True)
class Survey:
    """Counts of events per name; the names of all branches one after another, as
    ``chainlake.cep.plan.partition.name_sql``.

    Args:
        numbers: the stretches that hold events, ascending.
        counts: events per name and stretch, shape (names, stretches).
        cells: events per name in those of ``CELLS`` equal parts of the span from ``first`` on, shape (names, parts);
            there are none in others.
    """

    numbers: np.ndarray
    counts: np.ndarray
    cells: np.ndarray
    first: int = 0


def accepted(pattern: Pattern, events: pa.Table) -> list[np.ndarray]:
    """The rows that each name of each branch accepts by its own conditions.

    Args:
        pattern: the pattern.
        events: sorted by time; the ids may be left out if no condition reads them.
    """
    if "event_id" not in events.column_names:
        events = events.append_column("event_id", pa.nulls(len(events), pa.string()))
    data = dataset(pattern, events, by_id=False)
    every = (candidates_of(pattern, branch, data) for branch in pattern.branches)
    return [data.rows_of(candidates.rows) for those in every for candidates in those.values()]


def survey_day(files: EventFiles, day: date, asks: Sequence[Ask]) -> list[Survey | Exception]:
    """The events of a day, read once, as each pattern sees them; what goes wrong with one stops no other."""
    columns = sorted(set().union(*(ask.columns(files) for ask in asks)))
    types = set().union(*(ask.pattern.event_types for ask in asks))
    lo, hi = min(ask.span[0] for ask in asks), max(ask.span[1] for ask in asks)
    events = by_time(files.read(day, columns, types, lo, hi))
    found: list[Survey | Exception] = []
    for ask in asks:
        try:
            found.append(_survey(ask, events))
        except Exception as error:  # raised where the pattern has its turn
            found.append(error)
    return found


def _survey(ask: Ask, events: pa.Table) -> Survey:
    every = events["ts"].cast(pa.int64()).to_numpy()
    begin, end = np.searchsorted(every, ask.span).tolist()
    events, every = events.slice(begin, end - begin), every[begin:end]
    times = [every[rows] for rows in accepted(ask.pattern, events)]
    stretches = [np.unique(ts // ask.length, return_counts=True) for ts in times]
    numbers = np.unique(np.concatenate([of for of, _ in stretches]))
    counts = np.zeros((len(times), len(numbers)))
    for row, (of, count) in zip(counts, stretches, strict=True):
        row[np.searchsorted(numbers, of)] = count
    cells = count_cells(times, [ask.span], CELLS)
    # A day lies in few cells of a year; those of all days and patterns are in the driver at a time.
    held = np.flatnonzero(cells.any(axis=0))
    first, end = (int(held[0]), int(held[-1]) + 1) if len(held) else (0, 0)
    return Survey(numbers, counts, cells[:, first:end].copy(), first)


def together(surveys: Sequence[Survey], ask: Ask) -> Survey:
    """The counts of some days, or none, as those of all."""
    numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.numbers for one in surveys)]))
    counts, cells = np.zeros((len(ask.names), len(numbers))), np.zeros((len(ask.names), CELLS))
    for one in surveys:
        counts[:, np.searchsorted(numbers, one.numbers)] += one.counts
        cells[:, one.first : one.first + one.cells.shape[1]] += one.cells
    return Survey(numbers, counts, cells)


def cells_of_day(
    files: EventFiles, day: date, ask: Ask, cells: Sequence[tuple[int, int]], parts: int, key: Any
) -> np.ndarray:
    """``chainlake.detect.tasks.slices.Cells.by_cell`` of one day."""
    lo, hi = min(cell[0] for cell in cells), max(cell[1] for cell in cells)
    events = _events(files, day, ask, max(lo, ask.span[0]), min(hi, ask.span[1]))
    if key is not None:
        events = events.filter(pc.equal(events[str(ask.pattern.partition_key)], pa.scalar(key)))
    ts = events["ts"].cast(pa.int64()).to_numpy()
    return count_cells((ts[rows] for rows in accepted(ask.pattern, events)), cells, parts)


def _events(files: EventFiles, day: date, ask: Ask, lo: int, hi: int) -> pa.Table:
    events = by_time(files.read(day, sorted(ask.columns(files)), ask.pattern.event_types, lo, hi))
    return events if ask.pattern.partition_key is None else with_keys(ask.pattern, events)


@dataclass(frozen=True)
class Draw:
    """Events that a sample is made of: of each name every n-th in some stretches.

    Args:
        ask: the pattern, and how long a stretch is.
        stretches: their numbers.
        thinning: per name, the n.
        columns: what of the events is wanted.
    """

    ask: Ask
    stretches: tuple[int, ...]
    thinning: tuple[int, ...]
    columns: tuple[str, ...]

    def days(self, files: EventFiles) -> list[date]:
        """The days to read, ascending."""
        return sorted({day for span in self._spans() for day in files.within(*span)} & set(self.ask.days(files)))

    def nothing(self, files: EventFiles) -> pa.Table:
        """What is drawn where there are no events."""
        fields = [files.schema.field(name) for name in self.columns if name in files.schema.names]
        return pa.schema([*fields, *(pa.field(f"_is{i}", pa.bool_()) for i in range(len(self.thinning)))]).empty_table()

    def read(self, files: EventFiles, day: date) -> Read:
        """What must be read of one of these days."""
        ask, begin = self.ask, day_start_us(day)
        here = [(lo, hi) for lo, hi in self._spans() if lo < begin + US_PER_DAY and hi > begin]
        lo, hi = max(ask.span[0], min(lo for lo, _ in here)), min(ask.span[1], max(hi for _, hi in here))
        return Read(sorted(ask.columns(files, *self.columns)), ask.pattern.event_types, lo, hi)

    def _spans(self) -> list[tuple[int, int]]:
        return [(number * self.ask.length, (number + 1) * self.ask.length) for number in self.stretches]


def drawn_of_day(files: EventFiles, day: date, draws: Sequence[Draw]) -> list[pa.Table | Exception]:
    """What is drawn of a day that is read once; what goes wrong with one draw stops no other.

    Returns:
        per draw its columns, and ``_is{i}``: whether the i-th name accepts the event; which events these are depends
        on their ids alone.
    """
    reads = [one.read(files, day) for one in draws]
    kept = KeptDays(files, reads)
    found: list[pa.Table | Exception] = []
    for one, read in zip(draws, reads, strict=True):
        try:
            found.append(_drawn(one, kept.read(day, read.columns, read.types, read.lo, read.hi)))
        except Exception as error:  # raised where the pattern has its turn
            found.append(error)
    return found


def _drawn(draw: Draw, events: pa.Table) -> pa.Table:
    there = [name for name in draw.columns if name in events.column_names]
    numbers = events["ts"].cast(pa.int64()).to_numpy() // draw.ask.length
    events = by_time(events.filter(pa.array(np.isin(numbers, draw.stretches))))
    flags = np.zeros((len(draw.thinning), len(events)), bool)
    for flag, rows in zip(flags, accepted(draw.ask.pattern, events), strict=True):
        flag[rows] = True
    taken = np.zeros(len(events), bool)
    for flag, every in zip(flags, draw.thinning, strict=True):
        taken |= flag if every == 1 else flag & (_hashes(events["event_id"]) % every == 0)
    found = events.select(there)
    for number, flag in enumerate(flags):
        found = found.append_column(f"_is{number}", pa.array(flag))
    return found.filter(pa.array(taken))


def _hashes(ids: pa.ChunkedArray) -> np.ndarray:
    return np.array([crc32(one.encode()) for one in ids.to_pylist()], np.int64)
