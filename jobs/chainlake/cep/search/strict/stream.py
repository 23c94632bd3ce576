"""The stream of ``SEQ STRICT``: its events in their order, and which of them are neighbours
(docs/semantics.md#neighbours).

Times are searched as a clock gives them, key after key, so far apart that no window holds events of two keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.clock import Clock
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.events.order import by_number
from chainlake.cep.events.series import codes_of
from chainlake.cep.language import ast
from chainlake.cep.language.errors.structure import NotTogether
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.pattern import Pattern
from chainlake.cep.values.arrow import ZERO, int64_array, numpy_of
from chainlake.cep.values.values import Value


@dataclass(frozen=True)
class Source:
    """What streams are made from.

    Args:
        pattern: the pattern.
        events: the events table.
        data: the part of it that is looked at.
    """

    pattern: Pattern
    events: pa.Table
    data: Dataset

    @cached_property
    def judge(self) -> Stream | None:
        """The stream of all keys, if some branches use it and others the streams of single keys; then its pauses decide
        for all, since matches found in it may be larger. Else None: each branch's own stream decides."""
        every = [branch for branch in self.pattern.branches if branch.stream is not None]
        wide = [branch for branch in every if branch.stream is not None and not branch.stream.by_key]
        return next(streams(self, wide[0])) if wide and len(wide) < len(every) else None


class Placed(Candidates):
    """Some events with their searched times, in the order of these times.

    Args:
        data: the run's events.
        rows: their sorted rows in ``data``.
        ts: their times.
    """

    def __init__(self, data: Dataset, rows: np.ndarray, ts: np.ndarray) -> None:
        self.data, self.rows, self.ts = data, rows, ts
        self._columns = {}

    def column(self, attr: str) -> Value:
        """An attribute of these events."""
        return self.data.columns[attr] if self.rows is self.data.every else super().column(attr)

    def events(self, positions: np.ndarray) -> np.ndarray:
        """The rows in the events table of some of these events."""
        return self.data.rows_of(positions) if self.rows is self.data.every else super().events(positions)


@dataclass(frozen=True)
class Stream:
    """Events in the order in which they are neighbours: key by key, and within a key by (ts, seq, id).

    Args:
        data: the run's events.
        rows: the sorted row of each event in ``data``.
        times: the searched time of each event, ascending.
        first: whether each event is the first of its key.
        listed: the place of each event in the order (ts, id) of its key; None if that is the same order.
        clock: how the times were moved; None if they are the events' own.
        codes: key number of each row of ``data``, -1 for events that do not exist; None if all are of one key.
        window: in ticks, but never longer than the span of all events.
        bounded: whether the window bounds anything at all.
        pause: the longest time between neighbours, in ticks, or None.
    """

    data: Dataset
    rows: np.ndarray
    times: np.ndarray
    first: np.ndarray
    listed: np.ndarray | None
    clock: Clock | None
    codes: np.ndarray | None
    window: int
    bounded: bool
    pause: int | None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def candidates(self) -> Placed:
        """The events, with those of equal time in the order of their ids."""
        if self.listed is None:
            return Placed(self.data, self.rows, self.times)
        rows = np.empty_like(self.rows)
        rows[self.listed] = self.rows
        return Placed(self.data, rows, self.times)

    @cached_property
    def joined(self) -> np.ndarray:
        """Whether each event is a neighbour of the previous one, at most a pause after it."""
        joined = ~self.first
        if self.pause is not None and len(joined):
            joined[1:] &= self.times[1:] - self.times[:-1] <= self.pause
        return joined

    @cached_property
    def begins(self) -> np.ndarray:
        """Where the unbroken stretches begin."""
        return np.flatnonzero(~self.joined)

    def stretch(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last place of the unbroken stretch that holds each place."""
        number = np.searchsorted(self.begins, at, "right")
        return self.begins[number - 1], np.append(self.begins[1:], len(self))[number - 1] - 1

    def real(self, at: np.ndarray) -> np.ndarray:
        """The events' own times."""
        times = self.data.columns["ts"].values
        found: np.ndarray = times[at if self.rows is self.data.every else self.rows[at]]
        return found

    def near(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Whether two places, the first not after the last, are in one window."""
        if not self.bounded:
            return np.ones(len(first), bool)
        near: np.ndarray = self.times[last] - self.times[first] <= self.window
        return near

    def latest(self, at: np.ndarray, until: np.ndarray) -> np.ndarray:
        """The last places within a window after some places, but not after ``until``."""
        far = np.flatnonzero(~self.near(at, until)) if self.bounded else ()
        if not len(far):
            return until
        found = until.copy()
        found[far] = np.searchsorted(self.times, self.times[at[far]] + self.window, "right") - 1
        latest: np.ndarray = np.minimum(found, until)
        return latest

    def earliest(self, at: np.ndarray, since: np.ndarray) -> np.ndarray:
        """The first places within a window before some places, but not before ``since``."""
        far = np.flatnonzero(~self.near(since, at)) if self.bounded else ()
        if not len(far):
            return since
        found = since.copy()
        found[far] = np.searchsorted(self.times, self.times[at[far]] - self.window, "left")
        earliest: np.ndarray = np.maximum(found, since)
        return earliest

    def members(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The events from ``first`` to ``last`` of each row, as offsets and positions among the candidates."""
        sizes = last - first + 1
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        flat = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], sizes)
        if self.listed is not None:
            flat = self.listed[flat]
            row = np.repeat(np.arange(len(first)), sizes)
            flat = flat[np.lexsort((flat, row))]
        return offsets, flat

    def positions(self, at: np.ndarray) -> np.ndarray:
        """Places as positions among the candidates."""
        return at if self.listed is None else self.listed[at]

    def holds(self, branch: Branch, name: str, clauses: tuple[Clause, ...]) -> np.ndarray:
        """Which events a name accepts by its type and by conditions on single events."""
        kind = branch.types[name]
        found = np.ones(len(self), bool)
        if kind != ast.ANY_TYPE and not self.data.have_only([kind]):
            found = self.data.have_types([kind])
            found = found if self.rows is self.data.every else found[self.rows]
        for clause in clauses:
            if clause.heavy:
                here = np.flatnonzero(found)
                at = here if self.listed is None else self.listed[here]
                some = View(self.data, len(here), {name: (self.candidates, at)}, {})
                found = found.copy()
                found[here] = some.holds(clause, frozenset())
                continue
            truth = View.of_all(self.data, name, self.candidates).holds(clause, frozenset())
            found = found & (truth if self.listed is None else truth[self.listed])
        return found

    def others(self, branch: Branch, name: str, clauses: tuple[Clause, ...]) -> Placed:
        """The events that a name outside the stream, such as a negated one, accepts, of the same keys."""
        rows = self.data.of_type(branch.types[name])
        if self.codes is not None and self.clock is not None:
            rows = rows[self.codes[rows] >= 0]
            times = self.clock.moved(self.data.columns["ts"].values[rows], self.codes[rows])
            order = np.argsort(times, kind="stable")
            rows, times = rows[order], times[order]
        else:
            times = self.data.ts[rows]
        found = Placed(self.data, rows, times)
        keep = View.of_all(self.data, name, found).all_hold(clauses, frozenset())
        return found if keep.all() else Placed(self.data, rows[keep], times[keep])


def streams(source: Source, branch: Branch) -> Iterator[Stream]:
    """The stream of a branch; if it is by key, as many keys at a time as their times allow.

    Raises:
        DefinitionError: neighbours of one key are asked for, but no column says which key an event has.
    """
    assert branch.stream is not None
    data, pattern = source.data, source.pattern
    codes, number = _codes(source, branch.stream.by_key)
    rows = _rows(data, branch.stream.types, codes)
    own = data.columns["ts"].values
    low, high = data.ends
    window = min(pattern.window_us, high - low)
    reach = _Reach(window, window < high - low)
    if codes is None:
        times = data.ts if rows is data.every else data.ts[rows]
        yield _stream(source, rows, times, None, reach)
        return
    if data.clock is not None and codes is data.parts:
        # The events are already in the order of the stream, and their times have been moved.
        every = rows is data.every
        counts = np.bincount(codes if every else codes[rows])
        yield _stream(source, rows, data.ts if every else data.ts[rows], _Keys(data.clock, codes, counts), reach)
        return
    clock = Clock.over(low, high, window)
    for begin in range(0, max(number, 1), max(clock.most_parts, 1)):
        some, mine, of_mine = codes, rows, codes if rows is data.every else codes[rows]
        if number > clock.most_parts:
            some = np.where((codes >= begin) & (codes < begin + clock.most_parts), codes - begin, -1)
            mine = rows[some[rows] >= 0]
            of_mine = some[mine]
        if np.any(of_mine[1:] < of_mine[:-1]):
            order = by_number(of_mine)
            mine = order if mine is data.every else mine[order]
        counts = np.bincount(of_mine)
        times = own[mine]
        times += np.repeat(np.arange(len(counts)) * clock.period - clock.base, counts)
        yield _stream(source, mine, times, _Keys(clock, some, counts), reach)


def _rows(data: Dataset, types: frozenset[str] | None, codes: np.ndarray | None) -> np.ndarray:
    keep = None if types is None or data.have_only(types) else data.have_types(types)
    if codes is not None and codes.min(initial=0) < 0:
        keep = codes >= 0 if keep is None else keep & (codes >= 0)
    return data.every if keep is None or keep.all() else np.flatnonzero(keep)


class _Reach(NamedTuple):
    """A window, and whether it bounds anything at all."""

    window: int
    bounded: bool


class _Keys(NamedTuple):
    """How times were moved, the number of each row's key, and how many events of the stream each key has."""

    clock: Clock
    codes: np.ndarray
    counts: np.ndarray


def _stream(source: Source, rows: np.ndarray, times: np.ndarray, keys: _Keys | None, reach: _Reach) -> Stream:
    first = np.zeros(len(rows), bool)
    first[:1] = True
    if keys is not None:
        begins = np.cumsum(keys.counts) - keys.counts
        first[begins[keys.counts > 0]] = True
    ties = np.flatnonzero(times[1:] == times[:-1])
    listed = None
    if len(ties):
        rows, listed = _without_ties(source, rows, ties)
    clock, codes = (None, None) if keys is None else keys[:2]
    return Stream(source.data, rows, times, first, listed, clock, codes, *reach, source.pattern.extras.pause)


def _without_ties(source: Source, rows: np.ndarray, ties: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows with those of equal time in the order of (seq, id), and the place of each in the order by id.

    Args:
        source: what the stream is made from.
        rows: the rows, by key and time.
        ties: places at which the next row has the same key and time.
    """
    at = np.unique(np.concatenate([ties, ties + 1]))
    group = np.cumsum(np.concatenate([[True], ~np.isin(at[1:] - 1, ties)]))
    taken = int64_array(source.data.rows_of(rows[at]))
    ids = source.events["event_id"]
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    table = pa.table({"group": int64_array(group), "id": ids.take(taken)})
    by_id = numpy_of(pc.sort_indices(table, [("group", "ascending"), ("id", "ascending")]))
    rows = rows.copy()
    seq = source.events["seq"].take(taken) if "seq" in source.events.column_names else None
    if seq is None or pa.types.is_null(seq.type) or seq.null_count == len(seq):
        rows[at] = rows[at[by_id]]
        return rows, None
    ranks = np.empty(len(at), np.int64)
    ranks[by_id] = np.arange(len(at))
    numbers = numpy_of(pc.fill_null(seq.cast(pa.int64()), ZERO))
    order = np.lexsort((ranks, numbers, group))
    rows[at] = rows[at[order]]
    if np.array_equal(order, by_id):
        return rows, None
    listed = np.arange(len(rows))
    listed[at] = at[ranks[order]]
    return rows, listed


def _codes(source: Source, by_key: bool) -> tuple[np.ndarray | None, int]:
    """The number of each row's key, -1 for none, and how many keys there are; None if all rows are of one."""
    data = source.data
    parts = data.parts
    if not by_key:
        return parts, 0 if parts is None else int(parts.max(initial=-1)) + 1
    key = source.pattern.key
    if key is None:
        raise NotTogether.key_of_none(source.pattern.text)
    if key not in source.events.column_names:
        return np.full(len(data.ts), -1), 0
    codes, number = codes_of(source.events[key])
    codes = data.pick(codes)
    if parts is None:
        return codes, number
    known = codes >= 0
    if np.array_equal(parts, codes):
        return parts, number
    if np.all(np.diff(parts)[np.diff(codes) != 0] != 0):
        # Each part is of one key, as in a pattern that is partitioned by the key.
        return np.where(known, parts, -1), int(parts.max(initial=-1)) + 1
    both = parts * (number + 1) + codes
    found, codes = np.unique(both, return_inverse=True)
    return np.where(known, codes, -1), len(found)
