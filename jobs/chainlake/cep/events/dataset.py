"""The events of one run as NumPy columns, sorted by time, with one sorted vocabulary for all strings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.any_type import ANY_TYPE
from chainlake.cep.events.clock import MOST_TICKS, Clock
from chainlake.cep.events.columns import encoded, filled, kind_of, ticks_of, values_of
from chainlake.cep.events.errors import UnfitColumn
from chainlake.cep.events.order import in_order, moved_order
from chainlake.cep.values.arrow import FALSE, MINUS_ONE, ZERO, int64_array, numpy_of, plain, text_array
from chainlake.cep.values.texts import Texts
from chainlake.cep.values.values import NULL, Value


@dataclass(frozen=True)
class Wanted:
    """What is read of an events table, and how.

    Args:
        types: event types to keep; ``ANY_TYPE`` among them keeps all.
        attributes: attributes (and ``id``, ``type``) that conditions mention.
        words: all strings that conditions mention.
        lo: first tick to keep, or None.
        hi: first tick not to keep, or None.
        by_id: whether ties of ts must be in the order of the ids.
        strict: whether ``ts`` is a time (else a number).
        in_stream: whether the order of the stream, (ts, seq, id), is asked for.
        by_seq: whether the rows themselves must be in that order.
        others: whether events of other types may stay if they are few, since leaving them out takes longer than
            passing over them.
    """

    types: Iterable[str]
    attributes: Iterable[str]
    words: Iterable[str]
    lo: int | None = None
    hi: int | None = None
    by_id: bool = False
    strict: bool = True
    in_stream: bool = False
    by_seq: bool = False
    others: bool = False


class Dataset:
    """Some rows of an events table, sorted by (ts, id).

    Args:
        events: columns ``event_id``, ``type``, ``ts`` and attributes.
        wanted: which of its rows and columns are read.
        apart: a clock and the part of each event, if events of different parts never meet; rows are then sorted by
            the clock's times.
    """

    def __init__(self, events: pa.Table, wanted: Wanted, apart: tuple[Clock, np.ndarray] | None = None) -> None:
        names = events.schema.names
        for column in ("event_id", "type", "ts"):
            if column not in names:
                raise UnfitColumn.absent(column)
        ts = ticks_of(events["ts"], "ts")
        codes, self._codes_of = _type_codes(events["type"], sorted({*wanted.types} - {ANY_TYPE}))
        keep = _kept(ts, codes, self._codes_of, wanted)
        known = keep is not None and apart is None and _may_stay(events, ts, keep, wanted)
        #: whether events of other types are among the rows
        self.has_others = known or ANY_TYPE in wanted.types
        #: for each sorted row, its row in the events table; None if they are the same
        self._picked = None if keep is None or known else np.flatnonzero(keep)
        self.clock = None if apart is None else apart[0]
        self._parts = None if apart is None else apart[1]
        searched = ts if apart is None else apart[0].moved(ts, apart[1])
        kept = self.pick(searched)
        ids = plain(events["event_id"]) if wanted.by_id or wanted.in_stream else None
        if wanted.by_seq:
            order = None if known else moved_order(events, kept, rows=self._picked)
            if order is not None:
                self._picked = order if self._picked is None else self._picked[order]
                kept = searched[self._picked]
        elif not known and (not _is_sorted(kept) or ids is not None and not _ties_sorted(kept, ids, self._picked)):
            rows = np.arange(len(ts)) if self._picked is None else self._picked
            if ids is not None:
                table = pa.table({"ts": int64_array(kept), "id": ids.take(int64_array(rows))})
                order = numpy_of(pc.sort_indices(table, [("ts", "ascending"), ("id", "ascending")]))
            else:
                order = np.argsort(kept, kind="stable")
            self._picked = rows[order]
            kept = searched[self._picked]
        self.ts = kept
        self._types = self.pick(codes)
        #: place of each sorted row in the stream, if that was asked for and is not the order of the rows
        self.places = self._places(events) if wanted.in_stream else None
        self.vocabulary: dict[str, int] = {}
        #: what searches know of pairs of these events (``chainlake.cep.heavy.calls``); None until one asks
        self.calls: Any = None
        own_times = kept if apart is None else self.pick(ts)
        self.columns: dict[str, Value] = {"ts": Value(own_times, None, "time" if wanted.strict else "number")}
        self._load(events, sorted(set(wanted.attributes) - {"ts"}), set(wanted.words))

    @cached_property
    def rows(self) -> np.ndarray:
        """For each sorted row, its row in the events table."""
        return self.every if self._picked is None else self._picked

    @cached_property
    def every(self) -> np.ndarray:
        """All sorted rows."""
        return np.arange(len(self.ts))

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest of the events' own times; 0 if there are none."""
        times = self.columns["ts"].values
        if self.clock is None:
            times = self.ts[[0, -1]] if len(self.ts) else self.ts
        return (int(times.min()), int(times.max())) if len(times) else (0, 0)

    def rows_of(self, sorted_rows: np.ndarray) -> np.ndarray:
        """The rows in the events table of some sorted rows."""
        return sorted_rows if self._picked is None else self._picked[sorted_rows]

    def real(self, searched: np.ndarray) -> np.ndarray:
        """The events' own times, for times as they are searched."""
        return searched if self.clock is None else self.clock.real(searched)

    def pick(self, values: np.ndarray) -> np.ndarray:
        """A column of the events table, in the order of the sorted rows."""
        return values if self._picked is None else values.take(self._picked)

    def marks(self, name: str) -> np.ndarray:
        """Which sorted rows are of this type; one to eight false entries follow, so that eight can be read at once."""
        n = len(self._types)
        if name == ANY_TYPE:
            every = np.zeros((n // 8 + 1) * 8, bool)
            every[:n] = True
            return every
        if name not in self._codes_of:
            return np.zeros((n // 8 + 1) * 8, bool)
        found = np.empty((n // 8 + 1) * 8, bool)
        found[n:] = False
        np.equal(self._types, self._codes_of[name], out=found[:n])
        return found

    def of_type(self, name: str) -> np.ndarray:
        """The sorted rows of the events of this type."""
        return np.flatnonzero(self.marks(name))

    @cached_property
    def parts(self) -> np.ndarray | None:
        """The part of each sorted row, if events of different parts never meet."""
        return None if self._parts is None else self.pick(self._parts)

    def have_only(self, names: Collection[str]) -> bool:
        """Whether nothing but these types was asked for."""
        return not self.has_others and self._codes_of.keys() <= set(names)

    def have_types(self, names: Iterable[str]) -> np.ndarray:
        """Which of the sorted rows have one of these types."""
        found = np.zeros(len(self.ts), bool)
        for code in (self._codes_of[name] for name in names if name in self._codes_of):
            found |= self._types == code
        return found

    def code(self, word: str) -> int:
        """The code of a string of the conditions; codes are ordered as the strings are."""
        return self.vocabulary[word]

    @cached_property
    def texts(self) -> Texts:
        """What the codes of strings stand for."""
        return Texts(self.vocabulary)

    def _places(self, events: pa.Table) -> np.ndarray | None:
        """The place of each sorted row in the order (ts, seq, id); None if the rows have that order already."""
        if "seq" not in events.column_names or pa.types.is_null(events.schema.field("seq").type):
            return None
        seq = events["seq"]
        if not pa.types.is_integer(seq.type):
            raise UnfitColumn.seq(seq.type)
        numbers = self.pick(numpy_of(filled(seq.cast(pa.int64()), ZERO)))
        if not np.any((self.ts[1:] == self.ts[:-1]) & (numbers[1:] < numbers[:-1])):
            return None
        places = np.empty(len(numbers), np.int64)
        # Rows of one time are in the order of their ids, and stay so among those of one seq.
        places[np.lexsort((numbers, self.ts))] = np.arange(len(numbers))
        return places

    def _load(self, events: pa.Table, attributes: list[str], words: set[str]) -> None:
        index = None if self._picked is None else int64_array(self._picked)
        texts: dict[str, tuple[np.ndarray, list[str]]] = {}
        names = events.schema.names
        for attr in attributes:
            stored = "event_id" if attr == "id" else attr
            if stored not in names:
                self.columns[attr] = NULL
                continue
            column = events[stored] if index is None else events[stored].take(index)
            kind = kind_of(column.type)
            if kind == "string":
                texts[attr] = encoded(column)
            elif kind is None:
                raise UnfitColumn.unusable(attr, column.type)
            else:
                self.columns[attr] = values_of(column, kind, attr)
        vocabulary = sorted(words.union(*(found for _, found in texts.values())))
        self.vocabulary = {word: code for code, word in enumerate(vocabulary)}
        for attr, (codes, found) in texts.items():
            recode = np.array([self.vocabulary[word] for word in found] + [-1], np.int64)
            valid = codes >= 0
            self.columns[attr] = Value(recode[codes], None if valid.all() else valid, "string")


def of_types(column: pa.ChunkedArray, types: Collection[str]) -> np.ndarray | None:
    """Which events have one of these types, ``ANY_TYPE`` being all of them; None if all have."""
    if ANY_TYPE in types:
        return None
    return _with_types(*_type_codes(column, sorted(types)))


def _with_types(codes: np.ndarray, codes_of: dict[str, int]) -> np.ndarray | None:
    """Which rows have one of the types, or None if all have."""
    known = sorted(codes_of.values()) == list(range(len(codes_of)))
    if known and len(codes) and int(codes.view(f"u{codes.itemsize}").max()) < len(codes_of):
        # One pass over the codes, in which -1 is the largest unsigned number, instead of two for each type.
        return None
    found = np.zeros(len(codes), bool)
    for code in codes_of.values():
        found |= codes == code
    return found


def _kept(ts: np.ndarray, codes: np.ndarray, codes_of: dict[str, int], wanted: Wanted) -> np.ndarray | None:
    """Which rows have wanted types and times; None if all have."""
    keep = None if ANY_TYPE in wanted.types else _with_types(codes, codes_of)
    if wanted.lo is not None:
        keep = ts >= wanted.lo if keep is None else keep & (ts >= wanted.lo)
    if wanted.hi is not None:
        keep = ts < wanted.hi if keep is None else keep & (ts < wanted.hi)
    return None if keep is None or keep.all() else keep


def _may_stay(events: pa.Table, ts: np.ndarray, keep: np.ndarray, wanted: Wanted) -> bool:
    """Whether rows that are not wanted may stay: they are few, all rows are in order, and attributes are numbers."""
    if not wanted.others or wanted.lo is not None or wanted.hi is not None or 2 * np.count_nonzero(keep) < len(ts):
        return False
    columns = [events[attr] for attr in {*wanted.attributes} - {"ts", "id"} if attr in events.column_names]
    plain_numbers = all(kind_of(one.type) == "number" and not one.null_count for one in columns)
    # Times that far away are an error, except for events that nobody asked for.
    near = bool(ts[0] > -MOST_TICKS and ts[-1] < MOST_TICKS)
    return plain_numbers and near and "id" not in wanted.attributes and in_order(ts)


def _is_sorted(ts: np.ndarray) -> bool:
    return bool((ts[1:] >= ts[:-1]).all())


def _ties_sorted(ts: np.ndarray, ids: pa.ChunkedArray, picked: np.ndarray | None) -> bool:
    """Whether events of one time follow each other in the order of their ids; ``ts`` is ascending."""
    ties = np.flatnonzero(ts[1:] == ts[:-1])
    if not len(ties):
        return True
    one, next_one = (ids.take(int64_array(at if picked is None else picked[at])) for at in (ties, ties + 1))
    return bool(numpy_of(pc.fill_null(pc.less_equal(one, next_one), FALSE)).all())


def _type_codes(column: pa.ChunkedArray, names: list[str]) -> tuple[np.ndarray, dict[str, int]]:
    """A small whole number for each event's type, and the numbers of all ``names`` that occur.

    The codes of a dictionary are taken as they are, without a pass over the rows.
    """
    if column.num_chunks == 1 and pa.types.is_dictionary(column.type) and not column.null_count:
        entries = column.chunk(0).dictionary.to_pylist()
        if len(set(entries)) == len(entries):
            found = {entry: code for code, entry in enumerate(entries)}
            return numpy_of(column.chunk(0).indices), {name: found[name] for name in names if name in found}
    return _codes(column, names), {name: code for code, name in enumerate(names)}


def _codes(column: pa.ChunkedArray | pa.Array, names: list[str]) -> np.ndarray:
    """For each text, its place in ``names``, or -1."""
    if isinstance(column, pa.ChunkedArray):
        parts = [_codes(chunk, names) for chunk in column.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
    if pa.types.is_null(column.type) or not names:
        return np.full(len(column), -1, np.int32)
    if isinstance(column.type, pa.DictionaryType):
        of_entry: np.ndarray = np.append(_codes(column.dictionary, names), np.int32(-1))
        if not column.indices.null_count:
            return of_entry.take(numpy_of(column.indices))
        entries = pc.fill_null(column.indices.cast(pa.int64()), int64_array(np.array([len(of_entry) - 1]))[0])
        return of_entry.take(numpy_of(entries))
    found = pc.index_in(column.cast(pa.string()), value_set=text_array(names))
    return numpy_of(pc.fill_null(found, MINUS_ONE.cast(pa.int32())))
