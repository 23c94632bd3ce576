"""Columns that are computed from the events before the search, in one pass each (docs/semantics.md#functions)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.evaluate import View
from chainlake.cep.events.columns import encoded, kind_of, ticks_of, values_of
from chainlake.cep.events.errors import NoKey, UnfitColumn, UnfitValue
from chainlake.cep.events.previous import STORED, add_previous, places
from chainlake.cep.heavy.calls import Calls
from chainlake.cep.language import ast
from chainlake.cep.language.computed import EVENT, Computed
from chainlake.cep.language.formatter import format_node
from chainlake.cep.values.texts import Texts, Words, masked
from chainlake.cep.values.values import NULL, Value, as_float


def add_computed(events: pa.Table, computed: Sequence[Computed], key: str | None, strict: bool = True) -> pa.Table:
    """``events`` with a column for each of ``computed`` that it does not have yet.

    Args:
        events: columns ``event_id``, ``type``, ``ts`` (timestamp or ticks) and attributes; missing ones are
            null.
        computed: the columns, in an order in which each needs only earlier ones.
        key: the column that says which events are of one series, or None.
        strict: whether ``ts`` is a time.

    Raises:
        InputError: a column cannot be used.
    """
    missing = [one for one in computed if one.column not in events.column_names]
    before = [(one.column, one.node) for one in missing if isinstance(one.node, ast.Prev)]
    if before:
        events = add_previous(events, key, before, strict)
    for column, node in [(one.column, one.node) for one in missing if isinstance(one.node, ast.Place)]:
        if node.by_key and key is None:
            raise NoKey.of_window()
        events = events.append_column(column, places(events, key if node.by_key else None))
    others = [one for one in missing if not isinstance(one.node, ast.Prev | ast.Place)]
    if not others:
        return events
    rows = Rows(events, strict)
    for one in others:
        events = events.append_column(one.column, rows.computed(one))
    return events


@dataclass
class _Coded:
    """Gives strings their codes."""

    texts: Texts
    calls: Calls | None = None

    def code(self, word: str) -> int:
        return self.texts.code(word)

    def rows_of(self, sorted_rows: np.ndarray) -> np.ndarray:
        return sorted_rows


class Rows(View):
    """All rows of a table; its strings have codes in the order in which they appear."""

    def __init__(self, events: pa.Table, strict: bool) -> None:
        self._texts = Texts()
        super().__init__(_Coded(self._texts), len(events), {}, {})
        self._events, self._strict = events, strict
        self._columns: dict[str, Value] = {}

    def computed(self, one: Computed) -> pa.Array:
        """A computed column; those computed later may refer to it by name."""
        value = self.fits(one.node) if isinstance(one.node, ast.Like) else self.value(one.node)
        self._columns[one.column] = value
        return self._arrow(value, one)

    def value(self, node: ast.Node) -> Value:
        if isinstance(node, ast.Ref):
            if node.attr not in self._columns:
                self._columns[node.attr] = self._column(node.attr)
            return self._columns[node.attr]
        return super().value(node)

    def events(self, name: str) -> np.ndarray:
        return np.arange(self.n)

    def _column(self, attr: str) -> Value:
        if attr == "ts":
            return Value(ticks_of(self._events["ts"], "ts"), None, "time" if self._strict else "number")
        stored = STORED.get(attr, attr)
        if stored not in self._events.column_names:
            return NULL
        column = self._events[stored]
        kind = kind_of(column.type)
        if kind is None:
            raise UnfitColumn.unusable(attr, column.type)
        if kind != "string":
            return values_of(column, kind, attr)
        codes, words = encoded(column)
        known = codes >= 0
        return self._texts.coded(Words(words, codes, None if known.all() else known))

    def _arrow(self, value: Value, one: Computed) -> pa.Array:
        rows = self.n
        if value.kind == "null":
            return pa.nulls(rows)
        if value.kind == "string":
            return self._texts.column(value, rows)
        values = np.broadcast_to(np.asarray(value.values), (rows,))
        if values.dtype == object:
            raise UnfitValue.beyond(format_node(one.node).replace(EVENT + ".", ""))
        if values.dtype.kind == "f":
            doubles = np.broadcast_to(as_float(value), (rows,))
            return pa.Array.from_buffers(pa.float64(), rows, [None, pa.py_buffer(np.ascontiguousarray(doubles))])
        valid = np.ones(rows, bool) if value.valid is None else value.valid
        whole = masked(values.astype(np.int64, copy=False), valid)
        kinds = {"bool": pa.bool_(), "time": pa.timestamp("us", tz="UTC"), "duration": pa.duration("us")}
        return whole.cast(kinds.get(value.kind, pa.int64()))
