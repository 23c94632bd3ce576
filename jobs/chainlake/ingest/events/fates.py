"""What becomes of raw rows: a row gives an event, or it is a duplicate, conflicting or superseded.

Rows are resolved place by place, a place being one (type, key, ts), in the order (file, line, entry). The result
depends on these rows alone, not on the order in which they arrived or on what was resolved before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.definitions.source import Source
from chainlake.ingest.events.hashes import content_hashes

#: By the word of ``on_conflict``, whether the rows of a place are looked at from the last one back: the content of the
#: row that is looked at last wins. Where all are to be quarantined, that only tells whether they differ.
_FROM_THE_LAST = {"first": True, "latest": False, "quarantine_all": True}
#: The largest whole number that several keys of a row are put together in.
_MOST = 2**62


class Fate(IntEnum):
    """What became of a raw row."""

    EVENT, DUPLICATE, CONFLICT, SUPERSEDED = range(4)


@dataclass(frozen=True)
class Fates:
    """What becomes of each row.

    Args:
        event: whether the row gives an event.
        conflict: whether it lost against a row of the same event; it is a duplicate if neither flag is set.
        copy: number of the row, from 0, among equal rows of its file, or of all files if these are disjoint; 0 if one
            event stands for all.
        seq: position of the event among those of its place, from 0; 0 if there is no event.
    """

    event: np.ndarray
    conflict: np.ndarray
    copy: np.ndarray
    seq: np.ndarray


def with_fates(source: Source, rows: pa.Table, order: np.ndarray, superseded: np.ndarray) -> pa.Table:
    """All rows of some places with their fates.

    Args:
        source: says what identifies an event.
        rows: the raw rows.
        order: rank of the file of each row.
        superseded: flag per row that a correction has replaced.

    Returns:
        the rows in the order (file, line, entry), with ``_fate``, the hashes of their content ``_c1`` and ``_c2``, and
        ``seq`` and ``_copy``, which are null for rows that give no event.
    """
    first, second = content_hashes(source, rows)
    more = {"_order": order, "_superseded": superseded, "_c1": first, "_c2": second}
    for name, values in more.items():
        rows = rows.append_column(name, pa.array(values))
    rows = sorted_by(rows, ("_order", "line", "entry"))
    alive = ~rows["_superseded"].to_numpy()
    live = chosen(rows, alive)
    place = codes([live["ts"], live[source.key], live["type"]])
    found = decide(source, place, codes([live["_c1"], live["_c2"]]), live["_order"].to_numpy())
    fate = np.full(len(rows), Fate.SUPERSEDED, np.int8)
    fate[alive] = np.where(found.event, Fate.EVENT, np.where(found.conflict, Fate.CONFLICT, Fate.DUPLICATE))
    event = fate == Fate.EVENT
    seq, copy = np.zeros((2, len(rows)), np.int64)
    seq[alive], copy[alive] = found.seq, found.copy
    rows = rows.drop_columns(["_order", "_superseded"]).append_column("_fate", pa.array(fate))
    rows = rows.append_column("seq", pa.array(seq, mask=~event))
    return rows.append_column("_copy", pa.array(copy, mask=~event))


def decide(source: Source, place: np.ndarray, content: np.ndarray, order: np.ndarray) -> Fates:
    """The fates of rows.

    Args:
        source: says what identifies an event.
        place: an integer per row, equal if type, key and ts are.
        content: likewise for the attributes.
        order: rank of each row's file.
    """
    nothing = np.zeros(len(place), np.int64)
    if source.identity != "multiset":
        return Fates(*_unique(source, place, content), nothing, nothing)
    if source.delivery == "disjoint":
        copy, event = nth(place, content), np.ones(len(place), bool)
    else:
        copy = nth(place, content, order)
        # The first file that has the copy gives the event; later files only repeat it.
        event = nth(place, content, copy) == 0
    seq = nothing.copy()
    seq[event] = nth(place[event])
    return Fates(event, np.zeros(len(place), bool), copy, seq)


def sorted_by(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows in the ascending order of some columns of whole numbers or times without nulls.

    Rows of a file mostly have that order already, and a look costs a hundredth of sorting them all.
    """
    ascends = np.ones(max(0, len(rows) - 1), bool)
    for name in reversed(names):
        steps = np.diff(_whole(rows[name]))
        ascends = (steps > 0) | ((steps == 0) & ascends)
    return rows if ascends.all() else rows.sort_by([(name, "ascending") for name in names])


def chosen(rows: pa.Table, wanted: np.ndarray) -> pa.Table:
    """The rows with a flag in ``wanted``; no copy is made if all have one."""
    return rows if wanted.all() else rows.filter(pa.array(wanted))


def _whole(column: pa.ChunkedArray) -> np.ndarray:
    numbers = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    found: np.ndarray = numbers.to_numpy()
    return found


def codes(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """A whole number from 0 on per row, equal for rows that are equal in all columns (a missing value equals a missing
    value)."""
    found: list[np.ndarray] = []
    for column in columns:
        if pa.types.is_floating(column.type):
            # -0.0 becomes 0.0.
            column = pc.add(column, 0.0)
        encoded = column.combine_chunks().dictionary_encode()
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        index = encoded.indices.fill_null(len(encoded.dictionary))
        found.append(index.to_numpy(zero_copy_only=False).astype(np.int64))
    return _joined(found)


def nth(*keys: np.ndarray) -> np.ndarray:
    """For each row, how many earlier rows have the same keys (whole numbers from 0 on)."""
    joined = _joined(keys)
    sort = np.argsort(joined, kind="stable")
    ordered = joined[sort]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.empty(0, np.int64)
    lengths = np.diff(np.r_[starts, len(ordered)])
    found = np.empty(len(joined), np.int64)
    found[sort] = np.arange(len(joined)) - np.repeat(starts, lengths)
    return found


def _joined(keys: Sequence[np.ndarray]) -> np.ndarray:
    """A whole number from 0 on per row, equal for rows with the same keys, which are such numbers, too."""
    joined = keys[0]
    for key in keys[1:]:
        many = int(key.max(initial=0)) + 1
        if int(joined.max(initial=0)) >= _MOST // many:
            # Ranks need a sort, and are only needed where the numbers would not fit.
            joined = _ranks(joined)
        joined = joined * many + key
    return joined


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value among the distinct values."""
    return np.unique(values, return_inverse=True)[1]


def _unique(source: Source, place: np.ndarray, content: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(event, conflict)`` per row: each place has one event, with the content that wins there."""
    place = _ranks(place)
    winner = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    # If several rows are assigned to one index, the last one stays.
    rows = slice(None, None, -1 if _FROM_THE_LAST[source.on_conflict] else 1)
    winner[place[rows]] = content[rows]
    conflict = content != winner[place]
    if source.on_conflict == "quarantine_all":
        torn = np.zeros(len(winner), bool)
        torn[place[conflict]] = True
        conflict = torn[place]
    return ~conflict & (nth(place, content) == 0), conflict
