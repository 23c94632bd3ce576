"""Calls of functions of pairs in conditions and measures: only new pairs are evaluated, the others are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from chainlake.cep.heavy.batches import evaluated
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.language import ast
from chainlake.cep.language.computed import rebuilt
from chainlake.cep.language.declared.function import Heavy
from chainlake.cep.values.arrow import int64_array
from chainlake.cep.values.texts import Texts
from chainlake.cep.values.values import Lists, Value, not_null

#: The column that numbers events across searches that have events in common.
NUMBER = "\x1fnumber"


@dataclass
class Counted:
    """How often functions were called.

    Args:
        evaluations: pairs with which a function was called.
        hits: pairs that were asked for and already known.
    """

    evaluations: int = 0
    hits: int = 0


@dataclass
class Calls:
    """The calls of one search.

    Args:
        memo: the values of known pairs.
        counted: the counts of calls.
        numbers: for each row of the events table, the number of its event; None if that is the row's own.
    """

    memo: Memo = field(default_factory=Memo)
    counted: Counted = field(default_factory=Counted)
    numbers: np.ndarray | None = None
    _shapes: dict[str, _Shape] = field(default_factory=dict, repr=False)
    _words: np.ndarray = field(default_factory=lambda: np.zeros(0, object), repr=False)

    @classmethod
    def of(cls, events: pa.Table, given: Memo | None, own: Memo, counted: Counted) -> Calls:
        """The calls of a search.

        Args:
            events: the events that are searched.
            given: the known pairs of numbered events, if the caller keeps them from one search to the next.
            own: the known pairs of rows of these events.
            counted: the counts of calls.
        """
        numbers = events[NUMBER].to_numpy() if NUMBER in events.column_names else None
        return cls(own if given is None or numbers is None else given, counted, numbers)

    def value(
        self, node: ast.Call, args: Sequence[Value], n: int, texts: Texts, rows: Callable[[str], np.ndarray]
    ) -> Value:
        """The value of a call in ``n`` rows; null where one of its arguments is.

        Args:
            node: the call.
            args: its arguments.
            n: how many rows.
            texts: what codes of texts stand for.
            rows: gives, for a name, the row in the events table of the event that each row binds to it.

        Raises:
            FunctionFailed: the function does not give one known value for each pair.
        """
        assert node.own is not None and node.own.heavy is not None, "resolve.py says which functions are called so"
        function = node.own.heavy
        known = np.ones(n, bool)
        for arg in args:
            known &= np.broadcast_to(np.asarray(not_null(arg), bool), (n,))
        asked = np.flatnonzero(known)
        found = np.zeros(len(asked), bool if function.result == "bool" else np.float64)
        if len(asked):
            found = self._known(node, function, asked, rows, lambda at: self._columns(args, at, texts))
        if function.result == "bool":
            truth = np.zeros(n, bool)
            truth[asked] = found
            return Value(truth, None if len(asked) == n else known, "bool")
        values = np.full(n, np.nan)
        values[asked] = found
        return Value(values, None, "number")

    def _known(
        self,
        node: ast.Call,
        function: Heavy,
        asked: np.ndarray,
        rows: Callable[[str], np.ndarray],
        columns: Callable[[np.ndarray], list[np.ndarray]],
    ) -> np.ndarray:
        """What the function gives for the rows ``asked``."""
        shape = self._shapes.get(node.written)
        if shape is None:
            shape = self._shapes[node.written] = _Shape.of(node, function)
        if shape.names is None:
            # A call with three events or with sets is unlikely to be repeated.
            self.counted.evaluations += len(asked)
            return _in_order(function, columns(asked))
        ends = [self._number(rows(name)[asked]) for name in shape.names]
        if shape.either_way:
            ends = [np.minimum(*ends), np.maximum(*ends)]
        keys = ends[0] << 32 | ends[1] if len(ends) == 2 else ends[0] << 32 | ends[0]
        keys, first, place = np.unique(keys, return_index=True, return_inverse=True)
        found = np.zeros(len(keys), bool if function.result == "bool" else np.float64)
        table = self.memo.table(shape.key)
        new = np.flatnonzero(~table.find(keys, found))
        found[new] = _in_order(function, columns(asked[first[new]])) if len(new) else found[:0]
        table.add(keys[new], found[new])
        self.memo.bound()
        self.counted.evaluations += len(new)
        self.counted.hits += len(asked) - len(new)
        return found[place.reshape(-1)]

    def _number(self, rows: np.ndarray) -> np.ndarray:
        return rows.astype(np.int64) if self.numbers is None else self.numbers[rows]

    def _columns(self, args: Sequence[Value], at: np.ndarray, texts: Texts) -> list[np.ndarray]:
        """The arguments of a function for some rows."""
        return [self._column(arg, at, texts) for arg in args]

    def _column(self, value: Value, at: np.ndarray, texts: Texts) -> np.ndarray:
        if isinstance(value.values, Lists):
            lists = value.values
            found = np.empty(len(at), object)
            for place, row in enumerate(lists.rows[at].tolist()):
                found[place] = lists.matrix[row, : lists.lengths[row]].copy()
            return found
        values = value.values[at] if isinstance(value.values, np.ndarray) else np.full(len(at), value.values)
        if value.kind == "string":
            if len(self._words) < len(texts.words):
                self._words = np.array(texts.words, object)
            values = self._words[values.astype(np.int64)]
        if value.kind in ("time", "duration"):
            whole = np.floor(values).astype(np.int64)
            values = whole.view("M8[us]" if value.kind == "time" else "m8[us]")
        return np.asarray(values)


@dataclass(frozen=True)
class _Shape:
    """How the pairs of a call are identified.

    Args:
        names: whose events they are: one name, or two; None if there are more, or sets.
        key: equal for calls that give the same value for the same events.
        either_way: whether the two events may be swapped.
    """

    names: tuple[str, ...] | None
    key: str
    either_way: bool

    @classmethod
    def of(cls, node: ast.Call, function: Heavy) -> _Shape:
        names = tuple(dict.fromkeys(ref.name for ref in node.walk() if isinstance(ref, ast.Ref)))
        if node.aggregated or not 1 <= len(names) <= 2 or frozenset(names) != node.plain:
            return cls(None, node.written, False)
        key = f"{function.name}: {_renamed(node, names).written}"
        half = len(node.args) // 2
        turned = ast.Call(node.function, (*node.args[half:], *node.args[:half]), node.at, node.own)
        same = len(names) == 2 and key == f"{function.name}: {_renamed(turned, names[::-1]).written}"
        return cls(names, key, function.symmetric and len(node.args) == 2 * half and same)


def _renamed(node: ast.Node, names: Sequence[str]) -> ast.Node:
    """The same node, with its events called 0 and 1."""
    if isinstance(node, ast.Ref):
        return ast.Ref(str(names.index(node.name)), node.attr)
    return rebuilt(node, lambda part: _renamed(part, names))


def _in_order(function: Heavy, columns: list[np.ndarray]) -> np.ndarray:
    """What a function gives; a symmetric one is always called with the smaller half of its arguments first, so that not
    even the last digit of a result depends on the order in which events were bound."""
    half = len(columns) // 2
    if function.symmetric and 2 * half == len(columns):
        swap = np.zeros(len(columns[0]), bool)
        tied = np.ones(len(columns[0]), bool)
        for one, other in zip(columns[:half], columns[half:], strict=True):
            if one.dtype.kind == "O" and any(isinstance(x, np.ndarray) for x in (*one[:1], *other[:1])):
                one, other = (_listed(side) for side in (one, other))
            swap |= tied & np.asarray(one > other, bool)
            tied &= np.asarray(one == other, bool)
        for at in range(half):
            one, other = columns[at], columns[at + half]
            if one.dtype != other.dtype:
                one, other = (side.astype(np.result_type(one, other)) for side in (one, other))
            columns[at], columns[at + half] = np.where(swap, other, one), np.where(swap, one, other)
    return evaluated(function, columns)


def _listed(arrays: np.ndarray) -> np.ndarray:
    found = np.empty(len(arrays), object)
    for at, one in enumerate(arrays):
        found[at] = one.tolist()
    return found


def numbered(events: pa.Table, first: int) -> pa.Table:
    """The events, numbered from ``first`` on, so that the next search recognises their pairs."""
    return events.append_column(NUMBER, int64_array(np.arange(first, first + len(events), dtype=np.int64)))
