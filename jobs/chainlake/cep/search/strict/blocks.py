"""Events of some keys at a time, key by key, so that what neighbours of one key need is close together in fast memory.

If all branches of a pattern are ``SEQ STRICT OF KEY``, no match has events of two keys, and no event of another key
rejects one (docs/semantics.md#neighbours).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from chainlake.cep.events.clock import Clock
from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.dataset import of_types
from chainlake.cep.events.order import by_number
from chainlake.cep.events.series import codes_of
from chainlake.cep.language import ast
from chainlake.cep.pattern import Pattern
from chainlake.cep.values.arrow import int64_array, text_array

#: The least number of codes that are counted at a time.
_COUNTED = 1 << 20


@dataclass(frozen=True)
class Block:
    """Some of the events.

    Args:
        events: their table.
        rows: for each event, its row in the whole table; None if this is the whole table.
        parts: as in ``SearchOptions``.
        clock: how the times of the parts are moved, if that is known.
    """

    events: pa.Table
    rows: np.ndarray | None
    parts: np.ndarray | None
    clock: Clock | None = None


def blocks(pattern: Pattern, events: pa.Table, parts: np.ndarray | None, most: int) -> Iterator[Block]:
    """The events in blocks whose matches together are those of all events.

    Args:
        pattern: the pattern.
        events: the events table.
        parts: a number for each event, if events of different parts never meet.
        most: how many events a block has at most, unless one key has more.
    """
    key, ts = pattern.key, ticks_of(events["ts"], "ts") if "ts" in events.column_names else None
    alone = all(branch.stream is not None and branch.stream.by_key for branch in pattern.branches)
    if not alone or key is None or key not in events.column_names or ts is None:
        yield Block(events, None, parts)
        return
    taken = _Taken.of(pattern, events)
    order, counts = _by_key(taken, key, parts)
    if not len(order):
        yield Block(events.slice(0, 0), order, None)
        return
    clock = Clock.over(int(ts.min()), int(ts.max()), pattern.window_us)
    keys = max(1, clock.most_parts)
    ends = np.cumsum(counts)
    first = at = 0
    while first < len(counts):
        enough = int(np.searchsorted(ends, at + most, "right"))
        last = min(max(enough, first + 1), first + keys)
        some = order[at : int(ends[last - 1])]
        numbers = np.repeat(np.arange(last - first), counts[first:last])
        yield taken.block(some, numbers, clock)
        first, at = last, int(ends[last - 1])


def _by_key(taken: _Taken, key: str, parts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The rows to search, part by part and key by key, and how many each key has."""
    codes, number = codes_of(taken.events[key])
    if parts is not None:
        codes = np.where(codes < 0, -1, parts.astype(np.int64, copy=False) * number + codes)
        number = int(codes.max(initial=-1)) + 1
    searched = taken.searched
    if codes.min(initial=0) < 0:
        searched = codes >= 0 if searched is None else searched & (codes >= 0)
    # The smallest possible integer type, since fresh memory costs more than what is computed in it.
    small = codes.astype(np.min_scalar_type(number))
    if searched is not None:
        # Rows that are not searched come last.
        np.copyto(small, number, where=~searched, casting="unsafe")
    counts = np.zeros(number + 1, np.int64)
    step = max(number, _COUNTED)
    for low in range(0, len(small), step):
        counts += np.bincount(small[low : low + step], minlength=number + 1)
    return by_number(small)[: len(small) - counts[number]], counts[:number][counts[:number] > 0]


@dataclass(frozen=True)
class _Taken:
    """The columns and events that a search looks at.

    Args:
        pattern: the pattern.
        events: these columns of the table, each in one piece.
        searched: which events have a type that is asked for; None for all.
        one_type: the type to give all searched events, if their types make no difference; else None.
    """

    pattern: Pattern
    events: pa.Table
    searched: np.ndarray | None
    one_type: str | None

    @classmethod
    def of(cls, pattern: Pattern, events: pa.Table) -> _Taken:
        """The columns of a table that the pattern needs."""
        wanted = {"event_id", "type", "ts", "seq", pattern.key} | pattern.mentioned | pattern.carried
        some = events.select([name for name in events.column_names if name in wanted])
        if "type" in some.column_names and pa.types.is_string(some.schema.field("type").type):
            # Codes are quicker to move than strings, and are looked up once for all blocks.
            at = some.column_names.index("type")
            some = some.set_column(at, "type", some["type"].dictionary_encode())
        some = some.unify_dictionaries().combine_chunks()
        if "type" not in some.column_names:
            return cls(pattern, some, None, None)
        types, computed = pattern.event_types, [one.node for one in pattern.extras.computed]
        one_type = next(iter(types)) if len(types) == 1 and "type" not in pattern.mentioned else None
        if one_type == ast.ANY_TYPE and any(isinstance(node, ast.Prev) and not node.of_any_type for node in computed):
            one_type = None
        if any(isinstance(node, ast.Place) or isinstance(node, ast.Prev) and node.of_any_type for node in computed):
            # Events of other types count as earlier events, too.
            return cls(pattern, some, None, one_type if one_type == ast.ANY_TYPE else None)
        return cls(pattern, some, of_types(some["type"], types), one_type)

    def block(self, rows: np.ndarray, numbers: np.ndarray, clock: Clock) -> Block:
        """The events of some rows; the numbers of their keys replace the keys unless a condition mentions these."""
        events, key, mentioned = self.events, str(self.pattern.key), self.pattern.mentioned
        apart = {"event_id"} if key in mentioned else {"event_id", key}
        index = int64_array(rows)
        if self.one_type is not None:
            apart.add("type")
        found = events.select([name for name in events.column_names if name not in apart]).take(index)
        if self.one_type is not None:
            found = found.append_column("type", _constant(self.one_type, len(rows)))
        if key not in mentioned:
            found = found.append_column(key, int64_array(numbers))
        if "event_id" in events.column_names:
            # An id that no condition mentions is needed only to order events of equal time.
            ts = ticks_of(found["ts"], "ts")
            needless = "id" not in mentioned and np.all((ts[1:] > ts[:-1]) | (numbers[1:] != numbers[:-1]))
            found = found.append_column("event_id", index if needless else events["event_id"].take(index))
        return Block(found, rows, *((numbers, clock) if numbers[-1] else (None, None)))


def _constant(text: str, rows: int) -> pa.Array:
    """A column with one string in all rows."""
    codes = pa.Array.from_buffers(pa.int8(), rows, [None, pa.py_buffer(np.zeros(rows, np.int8))])
    return pa.DictionaryArray.from_arrays(codes, text_array([text]))
