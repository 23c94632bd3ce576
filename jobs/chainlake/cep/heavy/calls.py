"""Calls of functions of pairs in conditions and measures: only new pairs are evaluated, the values of others are
remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from chainlake.cep.heavy.asking import Asks, worth_asking
from chainlake.cep.heavy.batches import in_order
from chainlake.cep.heavy.memo import Memo, pair_keys
from chainlake.cep.heavy.shape import Shape
from chainlake.cep.language import ast
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
        asks: takes the pairs that are not known instead of a function; None if functions are called for them.
        events: the events table.
    """

    memo: Memo = field(default_factory=Memo)
    counted: Counted = field(default_factory=Counted)
    numbers: np.ndarray | None = None
    asks: Asks | None = None
    events: pa.Table | None = field(default=None, repr=False)
    _shapes: dict[str, Shape] = field(default_factory=dict, repr=False)
    _words: np.ndarray = field(default_factory=lambda: np.zeros(0, object), repr=False)

    @classmethod
    def of(cls, events: pa.Table, given: Memo | None, own: Memo, counted: Counted, asks: Asks | None = None) -> Calls:
        """The calls of a search.

        Args:
            events: the events that are searched.
            given: the known pairs of numbered events, if the caller keeps them from one search to the next.
            own: the known pairs of rows of these events.
            counted: the counts of calls.
            asks: takes the pairs of numbered events that are not known.
        """
        if given is None or NUMBER not in events.column_names:
            return cls(own, counted)
        return cls(given, counted, events[NUMBER].to_numpy(), asks, events)

    def value(
        self,
        node: ast.Call,
        args: Sequence[Value],
        left: np.ndarray,
        texts: Texts,
        rows: Callable[[str], np.ndarray],
    ) -> tuple[Value, np.ndarray]:
        """The value of a call, null where one of its arguments is; and in which rows it is not known yet.

        Args:
            node: the call.
            args: its arguments.
            left: for each row, whether an argument depends on a call that is not known yet, so that it may be wrong.
            texts: what codes of strings stand for.
            rows: gives, for a name, the row in the events table of the event that each row binds to it.

        Raises:
            FunctionFailed: the function does not give one known value for each pair.
        """
        assert node.own is not None and node.own.heavy is not None, "resolve.py says which functions are called so"
        function = node.own.heavy
        n, known = len(left), ~left
        for arg in args:
            known &= np.broadcast_to(np.asarray(not_null(arg), bool), (n,))
        asked = np.flatnonzero(known)
        found = np.zeros(len(asked), bool if function.result == "bool" else np.float64)
        if len(asked):
            found, there = self._known(node, function, asked, rows, lambda at: self._columns(args, at, texts))
            if not there.all():
                left = left.copy()
                left[asked[~there]] = True
            asked, found = asked[there], found[there]
        if function.result == "bool":
            truth, known = np.zeros(n, bool), np.zeros(n, bool)
            truth[asked], known[asked] = found, True
            return Value(truth, None if len(asked) == n else known, "bool"), left
        values = np.full(n, np.nan)
        values[asked] = found
        return Value(values, None, "number"), left

    @property
    def doubt(self) -> bool:
        """Whether conditions were left open, so that nothing is asked for what is computed of matches."""
        return self.asks is not None and self.asks.doubt

    def note(self, left: np.ndarray) -> None:
        """Take in which rows a condition is not known yet."""
        if self.asks is not None and left.any():
            self.asks.doubt = True

    def _known(
        self,
        node: ast.Call,
        function: Heavy,
        asked: np.ndarray,
        rows: Callable[[str], np.ndarray],
        columns: Callable[[np.ndarray], list[np.ndarray]],
    ) -> tuple[np.ndarray, np.ndarray]:
        """What the function gives for the rows ``asked``, and for which of them that is known."""
        asks = self.asks if worth_asking(function) else None
        shape = self._shapes.get(node.written)
        if shape is None:
            shape = self._shapes[node.written] = Shape.of(node, function)
        if shape.names is None:
            # A call with three events or with sets is unlikely to be repeated.
            if asks is not None:
                asks.open = True
                return np.zeros(len(asked)), np.zeros(len(asked), bool)
            self.counted.evaluations += len(asked)
            return in_order(function, columns(asked)), np.ones(len(asked), bool)
        bound = [rows(name)[asked] for name in (shape.names[0], shape.names[-1])]
        keys = pair_keys(*(self._number(one) for one in bound), either_way=shape.either_way)
        keys, first, place = np.unique(keys, return_index=True, return_inverse=True)
        found = np.zeros(len(keys), bool if function.result == "bool" else np.float64)
        table = self.memo.table(shape.key)
        there = table.find(keys, found)
        new = np.flatnonzero(~there)
        place = place.reshape(-1)
        if asks is not None and len(new):
            assert self.events is not None, "events are numbered where pairs are asked for"
            ends = [one[first[new]] for one in bound]
            asks.ask(shape, keys[new], self.events, ends, lambda some: columns(asked[first[new[some]]]))
        elif len(new):
            found[new], there[new] = in_order(function, columns(asked[first[new]])), True
            table.add(keys[new], found[new])
            self.memo.bound()
            self.counted.evaluations += len(new)
        self.counted.hits += len(asked) - (len(new) if asks is None else int(np.count_nonzero(~there[place])))
        return found[place], there[place]

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
        if value.kind == "number" and values.dtype == object:  # whole numbers beyond int64
            values = values.astype(np.float64)
        if value.kind == "string":
            if len(self._words) < len(texts.words):
                self._words = np.array(texts.words, object)
            values = self._words[values.astype(np.int64)]
        if value.kind in ("time", "duration"):
            whole = np.floor(values).astype(np.int64)
            values = whole.view("M8[us]" if value.kind == "time" else "m8[us]")
        return np.asarray(values)


def numbered(events: pa.Table, first: int) -> pa.Table:
    """The events, numbered from ``first`` on, so that the next search recognises their pairs."""
    return events.append_column(NUMBER, int64_array(np.arange(first, first + len(events), dtype=np.int64)))
