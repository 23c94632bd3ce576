"""The events of a source as a task needs them: in time order, few in memory at a time, with everything computed from
them. Files say which day they belong to, and their row groups which times they hold, so no task reads all of them or
asks another task for an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.conditions.computed import add_computed
from chainlake.cep.events.any_type import ANY_TYPE
from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.history import LIST, add_histories
from chainlake.cep.events.previous import ORDERED_BY, last_of_each, places
from chainlake.cep.language import ast
from chainlake.cep.language.computed import Computed
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.find import candidates_of, dataset
from chainlake.days import US_PER_DAY, day_start_us
from chainlake.definitions.derived import History
from chainlake.lake.store.event_files import TYPES

#: About how many events are read at a time (100 MB); a day with more is read in parts, as if its events were spread
#: evenly.
CHUNK_ROWS = 1_000_000


class Events(Protocol):
    """The events of a source as ``chainlake.lake.store.event_files.EventFiles`` has them."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the files."""

    @property
    def rows(self) -> Mapping[date, int]:
        """The number of events of each day that has any."""

    def within(self, lo: int, hi: int) -> list[date]:
        """The days that hold events with ts in ``[lo, hi)`` µs, ascending."""

    def read(self, day: date, columns: Sequence[str], types: Iterable[str] | None, lo: int, hi: int) -> pa.Table:
        """The events of a day with the given types (all if None) and ts in ``[lo, hi)`` µs, in any order."""


class Numbers:
    """Numbers events that arrive in order of time, continuing from those before.

    Args:
        wanted: the columns to add, all of which are numbers of events.
        key: the source's key column.
    """

    def __init__(self, wanted: Sequence[Computed], key: str) -> None:
        self._wanted, self._key = wanted, key
        self._before = 0
        self._of_key: Counter[object] = Counter()

    def added(self, events: pa.Table) -> pa.Table:
        """The next events with their numbers; events with the same time must come in one call."""
        if not self._wanted:
            return events
        codes = events[self._key].combine_chunks().dictionary_encode()
        values = codes.dictionary.to_pylist()
        of_key = pa.array([self._of_key[value] for value in values], pa.int64()).take(codes.indices)
        for one in self._wanted:
            by_key = isinstance(one.node, ast.Place) and one.node.by_key
            number = places(events, self._key if by_key else None)
            events = events.append_column(one.column, pc.add(number, of_key if by_key else pa.scalar(self._before)))
        self._before += len(events)
        # 0.0 and -0.0 are one key, as in a Python dict.
        for value, count in zip(*pc.value_counts(codes.indices).flatten(), strict=True):
            if value.is_valid:
                self._of_key[values[value.as_py()]] += count.as_py()
        return events


@dataclass(frozen=True)
class Feed:
    """What some patterns need of a source's files, read once for all of them.

    Args:
        files: the events.
        key: the source's key column.
        columns: the columns wanted, including histories.
        types: the event types wanted; ``ANY_TYPE`` stands for all.
        histories: the histories wanted.
        chunk_rows: about how many events are read at a time.
        computed: what else is computed from the events; it is added to the chunks here, because it may depend on events
            that a task drops later.
    """

    files: Events = field(repr=False)
    key: str
    columns: frozenset[str]
    types: frozenset[str]
    histories: tuple[History, ...] = ()
    chunk_rows: int = CHUNK_ROWS
    computed: tuple[Computed, ...] = ()

    @classmethod
    def of(cls, files: Events, key: str, patterns: Iterable[Pattern], columns: Iterable[str]) -> Feed:
        """The feed that these patterns need if they use these columns; columns that do not exist are null for them."""
        types: frozenset[str] = frozenset()
        histories: dict[str, History] = {}
        computed: dict[str, Computed] = {}
        read = set(columns)
        for pattern in patterns:
            types |= pattern.event_types
            histories |= {one.name: one for one in pattern.histories}
            computed |= {one.column: one for one in pattern.extras.computed}
            read |= pattern.mentioned if pattern.extras.computed else set()
        return cls(files, key, frozenset(read), types, tuple(histories.values()), computed=tuple(computed.values()))

    def chunks(self, spans: Iterable[tuple[int, int]]) -> Iterator[pa.Table]:
        """The events with ts in the spans ``[lo, hi)`` µs, each once, in order of time, with ties in any order."""
        numbers = Numbers([one for one in self.computed if isinstance(one.node, ast.Place)], self.key)
        for lo, hi in merged(spans):
            if self.histories or self._earlier:
                yield from self._with_earlier(lo, hi, numbers)
            else:
                yield from self._alone(lo, hi, numbers)

    def empty(self) -> pa.Table:
        """A chunk without events."""
        fields = [self.files.schema.field(name) for name in self._read]
        kind = pa.string() if self._of_any_type else TYPES
        fields = [pa.field("type", kind) if one.name == "type" else one for one in fields]
        fields += [pa.field(one.name, LIST) for one in self.histories]
        return add_computed(pa.schema(fields).empty_table(), self.computed, self.key)

    @property
    def _earlier(self) -> list[ast.Prev]:
        """The computed values of earlier events."""
        return [one.node for one in self.computed if isinstance(one.node, ast.Prev)]

    @property
    def _places(self) -> list[ast.Place]:
        """The computed numbers of events."""
        return [one.node for one in self.computed if isinstance(one.node, ast.Place)]

    @property
    def _of_any_type(self) -> bool:
        """Whether events of all types are read, since every type is part of a history and counts for a number."""
        return bool(self.histories or self._places) or ANY_TYPE in self.types

    @property
    def _read(self) -> list[str]:
        """The columns to read: the wanted ones that exist, and those from which histories and other columns are
        computed.
        """
        wanted = set(self.columns) | ({"event_id"} if "id" in self.columns else set())
        if self.histories or self._earlier or self._places:
            wanted |= {self.key, *ORDERED_BY, *(one.of for one in self.histories)}
        return sorted(wanted & set(self.files.schema.names))

    def _events(self, lo: int, hi: int, numbers: Numbers) -> Iterator[pa.Table]:
        columns, types = self._read, None if self._of_any_type else self.types
        for day in self.files.within(lo, hi):
            start = day_start_us(day)
            first, end = max(lo, start), min(hi, start + US_PER_DAY)
            parts = max(1, -(-self.files.rows[day] * (end - first) // (US_PER_DAY * self.chunk_rows)))
            edges = [first + (end - first) * part // parts for part in range(parts + 1)]
            for begin, until in zip(edges, edges[1:], strict=False):
                events = by_time(self.files.read(day, columns, types, begin, until))
                if len(events):
                    yield numbers.added(events)

    def _alone(self, lo: int, hi: int, numbers: Numbers) -> Iterator[pa.Table]:
        for events in self._events(lo, hi, numbers):
            yield add_computed(events, self.computed, self.key)

    def _with_earlier(self, lo: int, hi: int, numbers: Numbers) -> Iterator[pa.Table]:
        earlier = self._earlier
        reach = max([one.reach_us for one in self.histories] + [one.reach for one in earlier])
        before: pa.Table | None = None
        for events in self._events(lo - reach, hi, numbers):
            known = events if before is None else pa.concat_tables([before, events])
            ts = ticks_of(known["ts"], "ts")
            begin = max(0 if before is None else len(before), int(np.searchsorted(ts, lo)))
            if begin < len(known):
                found = add_histories(known, [self.key], self.histories) if self.histories else known
                yield add_computed(found, self.computed, self.key).slice(begin)
            # Later events come after these, so this is all that they can look back to.
            before = known.slice(int(np.searchsorted(ts, ts[-1] - reach)))
            if not self.histories:
                before = last_of_each(before, self.key, max(one.steps for one in earlier))


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same times in as few spans as possible, ascending."""
    found: list[tuple[int, int]] = []
    for lo, hi in sorted(spans):
        if found and lo <= found[-1][1]:
            found[-1] = found[-1][0], max(hi, found[-1][1])
        else:
            found.append((lo, hi))
    return found


@dataclass(frozen=True)
class KeyShare:
    """The partition keys of a pattern whose hash modulo ``of`` is ``number``."""

    number: int
    of: int

    def rows(self, keys: pa.ChunkedArray) -> pa.Array:
        """A flag per row that has one of these keys."""
        encoded = keys.combine_chunks().dictionary_encode()
        named = np.array([crc32(repr(key).encode()) % self.of for key in [*encoded.dictionary.to_pylist(), None]])
        codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
        return pa.array(named[codes] == self.number)


def accepted(pattern: Pattern, events: pa.Table) -> list[np.ndarray]:
    """The rows that each name of each branch accepts by its own conditions.

    Args:
        pattern: the pattern.
        events: events in order of time; the ids may be left out if no condition reads them.
    """
    if "event_id" not in events.column_names:
        events = events.append_column("event_id", pa.nulls(len(events), pa.string()))
    data = dataset(pattern, events, by_id=False)
    every = (candidates_of(pattern, branch, data) for branch in pattern.branches)
    return [data.rows_of(candidates.rows) for those in every for candidates in those.values()]


def of_streams(pattern: Pattern, events: pa.Table) -> np.ndarray:
    """A flag per event in a stream of neighbours, where even events that no name accepts come between others."""
    if not pattern.neighbours:
        return np.zeros(len(events), bool)
    types = next(branch.stream.types for branch in pattern.branches if branch.stream is not None)
    if types is None:
        return np.ones(len(events), bool)
    return np.asarray(pc.is_in(events["type"], value_set=pa.array(sorted(types))).to_numpy())


def between(events: pa.Table, lo: int, hi: int) -> pa.Table:
    """The events, given in order of time, that have ts in ``[lo, hi)``."""
    begin, end = np.searchsorted(ticks_of(events["ts"], "ts"), (lo, hi)).tolist()
    return events.slice(begin, end - begin)


def by_time(events: pa.Table) -> pa.Table:
    """The events in order of time, with ties in any order."""
    ts = ticks_of(events["ts"], "ts")
    return events if np.all(ts[1:] >= ts[:-1]) else events.take(pa.array(np.argsort(ts)))


def with_keys(pattern: Pattern, events: pa.Table) -> pa.Table:
    """The events whose partition key allows them to be in a match or to reject one; all if the pattern has no such key.

    Equal keys are also made equal as strings.
    """
    key = pattern.partition_key
    if key is None or key not in events.column_names:
        return events
    keys = events[key]
    if pa.types.is_floating(keys.type):
        # NaN counts as null, and 0.0 and -0.0 as equal, although Arrow's dictionaries tell the two apart.
        keys = pc.add(pc.if_else(pc.is_nan(keys), pa.scalar(None, keys.type), keys), pa.scalar(0.0, keys.type))
        events = events.set_column(events.column_names.index(key), key, keys)
    if all(len(branch.positive) > 1 or branch.stream is not None for branch in pattern.branches):
        # An equality with an unknown value is never true, so an event without a key is in no match and rejects none. (A
        # lone positive name has equalities only with negated names, which its event need not fulfil.)
        events = events.filter(pc.is_valid(keys))
    return events
