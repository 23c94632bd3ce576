"""Pairs whose values a search needs and does not know, so that other tasks evaluate each of them once; and the results.

A search leaves out whatever depends on an unknown value. Once it is given the values, it is run again, until it asks
for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.event_ids import texts
from chainlake.cep.heavy.batches import in_order
from chainlake.cep.heavy.memo import MOST_PAIRS, Memo, pair_keys
from chainlake.cep.heavy.shape import Shape
from chainlake.cep.language.declared.function import Heavy

#: Columns of a pair: the ids of its events, and the time of the earlier one in ticks.
ONE, OTHER, AT = "one", "other", "at"
#: A number of the pair from 0 to 2^32, by which pairs are divided.
HASH = "hash"
#: What the function gave.
VALUE = "value"
#: How many pairs are passed on at a time.
_AT_A_TIME = 1 << 17
#: Microseconds a pair from which a function is asked for; to write a cheaper one's pairs would take as long as calls.
ASKED_FROM = 100.0
_IDS = pa.dictionary(pa.int32(), pa.string())


def worth_asking(function: Heavy) -> bool:
    """Whether calls of a function take so long that others are asked rather than it is called twice."""
    return function.us >= ASKED_FROM


@dataclass(frozen=True)
class Asked:
    """Pairs for which a function is to be called.

    Args:
        key: of the call, as ``Shape`` has it.
        either_way: whether the events of a pair may be swapped; then the smaller id comes first.
        pairs: a row for each: its columns as named above, and the arguments.
    """

    key: str
    either_way: bool
    pairs: pa.Table = field(repr=False)


@dataclass
class Asks:
    """Takes the pairs that a search does not know, each once.

    Args:
        keep: takes some of them.
        most: how many are taken; what depends on others stays open.
        count: how many were taken.
        open: whether the search left out what depends on a value that is neither known nor asked for.
        doubt: whether a condition was left open, so that what is found may be no match.
    """

    keep: Callable[[Asked], None]
    most: int = MOST_PAIRS
    count: int = 0
    open: bool = False
    doubt: bool = False
    _asked: Memo = field(default_factory=Memo)

    def ask(
        self,
        shape: Shape,
        keys: np.ndarray,
        events: pa.Table,
        ends: Sequence[np.ndarray],
        columns: Callable[[np.ndarray], Sequence[np.ndarray]],
    ) -> None:
        """Take pairs.

        Args:
            shape: of the call.
            keys: of the pairs, ascending.
            events: the events.
            ends: the rows of the events of each pair.
            columns: gives the arguments of some of the pairs.
        """
        table = self._asked.table(shape.key)
        new = np.flatnonzero(~table.find(keys, np.zeros(len(keys))))
        fit = new[: max(0, self.most - self.count)]
        self.open |= len(fit) < len(new)
        table.add(keys[fit], np.zeros(len(fit)))
        self.count += len(fit)
        for first in range(0, len(fit), _AT_A_TIME):
            some = fit[first : first + _AT_A_TIME]
            pairs = _pairs(events, [end[some] for end in ends], columns(some), shape.either_way)
            self.keep(Asked(shape.key, shape.either_way, pairs))

    @property
    def complete(self) -> bool:
        """Whether the search knew everything."""
        return not self.count and not self.open


def _pairs(events: pa.Table, ends: Sequence[np.ndarray], columns: Sequence[np.ndarray], either_way: bool) -> pa.Table:
    ts = ticks_of(events["ts"], "ts")
    at = np.minimum(ts[ends[0]], ts[ends[1]])
    rows, place = np.unique(np.concatenate(ends), return_inverse=True)
    one, other = place.reshape(2, -1)
    ids = texts(events["event_id"].take(pa.array(rows)).combine_chunks())
    words = ids.to_pylist()
    if either_way:
        # By the ids, since the numbers of events with equal times differ from search to search.
        rank = np.argsort(np.argsort(np.array(words, object)))
        swap = rank[one] > rank[other]
        one, other = np.where(swap, other, one), np.where(swap, one, other)
    hashes = np.array([crc32(word.encode()) for word in words], np.uint64)
    # Multiplied by an odd number, the hash of a pair depends on which of its events comes first.
    hashed = (hashes[one] * np.uint64(2_654_435_761) + hashes[other]) % np.uint64(1 << 32)
    named = {
        ONE: pa.DictionaryArray.from_arrays(pa.array(one, pa.int32()), ids),
        OTHER: pa.DictionaryArray.from_arrays(pa.array(other, pa.int32()), ids),
        AT: pa.array(at, pa.int64()),
        HASH: pa.array(hashed.astype(np.int64)),
    }
    return pa.table(named | {str(number): _arrow(column) for number, column in enumerate(columns)})


def answered(function: Heavy, asked: pa.Table) -> pa.Table:
    """What a function gives for pairs, each once even if several searches asked for it, in order of ``AT``.

    Raises:
        FunctionFailed: as ``chainlake.cep.heavy.batches.evaluated``.
    """
    one, other = _coded(asked)[1].astype(np.int64)
    first = np.unique(pair_keys(one, other, either_way=False), return_index=True)[1]
    asked = asked.unify_dictionaries().take(pa.array(first))
    columns = [_numpy(asked[name]) for name in asked.column_names if name.isdigit()]
    found = in_order(function, columns) if len(asked) else np.zeros(0)
    return asked.select([ONE, OTHER, AT]).append_column(VALUE, pa.array(found.astype(np.float64))).sort_by(AT)


@dataclass
class Given:
    """Known values, which are remembered once both events of a pair have a number.

    Args:
        tables: for each call, the known pairs.
    """

    tables: list[_Table] = field(default_factory=list)

    @classmethod
    def of(cls, answers: Iterable[tuple[str, bool, pa.Table]]) -> Given:
        """Args: for each call its key, whether events may be swapped, and its answers."""
        return cls([_Table.of(*one) for one in answers if len(one[2])])

    def __len__(self) -> int:
        return sum(len(one.values) for one in self.tables)

    def numbered(self, ids: pa.ChunkedArray, numbers: np.ndarray) -> None:
        """Note the numbers of events."""
        for table in self.tables:
            at = pc.index_in(ids, value_set=table.ids).to_numpy()
            here = ~np.isnan(at) if at.dtype.kind == "f" else np.ones(len(at), bool)
            table.numbers[at[here].astype(np.int64)] = numbers[here]

    def give(self, memo: Memo) -> None:
        """Remember the pairs whose events all have numbers, and forget them here."""
        for table in self.tables:
            table.give(memo)


@dataclass
class _Table:
    key: str
    either_way: bool
    ids: pa.Array
    ends: np.ndarray
    values: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, key: str, either_way: bool, answers: pa.Table) -> _Table:
        ids, ends = _coded(answers)
        return cls(key, either_way, ids, ends, answers[VALUE].to_numpy(), np.full(len(ids), -1))

    def give(self, memo: Memo) -> None:
        one, other = self.numbers[self.ends]
        there = (one >= 0) & (other >= 0)
        keys = pair_keys(one[there], other[there], either_way=self.either_way)
        order = np.argsort(keys)
        memo.table(self.key).add(keys[order], self.values[there][order])
        self.ends, self.values = self.ends[:, ~there], self.values[~there]


def _coded(pairs: pa.Table) -> tuple[pa.Array, np.ndarray]:
    """The ids of all events, and the positions of each pair's two events among them, shape (2, pairs)."""
    coded = [pairs[name].cast(_IDS).unify_dictionaries().combine_chunks() for name in (ONE, OTHER)]
    ids = pa.concat_arrays([one.dictionary for one in coded]).unique()
    ends = [pc.index_in(one.dictionary, value_set=ids).to_numpy()[one.indices.to_numpy()] for one in coded]
    return ids, np.stack(ends)


def _arrow(column: np.ndarray) -> pa.Array:
    """A column of arguments; strings with each word once."""
    if column.dtype != object:
        return pa.array(column)
    if len(column) and isinstance(column[0], np.ndarray):
        return pa.array(column.tolist(), pa.list_(pa.float64()))
    return pa.array(column, pa.string()).dictionary_encode()


def _numpy(column: pa.ChunkedArray) -> np.ndarray:
    """What ``_arrow`` was made of."""
    if pa.types.is_dictionary(column.type):
        parts = [np.array(one.dictionary.to_pylist(), object)[one.indices.to_numpy()] for one in column.chunks]
        return np.concatenate([np.empty(0, object), *parts])
    if not pa.types.is_list(column.type):
        return np.asarray(column.to_numpy())
    found = np.empty(len(column), object)
    for at, one in enumerate(column):
        found[at] = one.values.to_numpy(zero_copy_only=False)
    return found


@dataclass
class Exchange:
    """What a search is given of pairs, and what it asks for.

    Args:
        given: the known pairs.
        asks: takes those that are not known; None if functions are called for them.
    """

    given: Given = field(default_factory=Given)
    asks: Asks | None = None
