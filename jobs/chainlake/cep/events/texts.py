"""Texts by number: what a column of codes stands for while functions are computed of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from chainlake.cep.events.arrow import numpy_of, text_array
from chainlake.cep.events.values import NULL, Value


class Words(NamedTuple):
    """A column of texts that have no codes yet.

    Args:
        words: the texts.
        index: per row the place of its text among them.
        valid: which entries are not null; None if all are.
    """

    words: list[str]
    index: np.ndarray
    valid: np.ndarray | None


class Texts:
    """Texts with a code each, from 0 on in the order in which they came.

    Args:
        words: those that have the first codes.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words = list(words)
        self._codes = {word: code for code, word in enumerate(self._words)}
        self._sorted = np.zeros(0, np.int64)
        self._mapped: dict[Hashable, tuple[int, np.ndarray]] = {}

    def code(self, word: str) -> int:
        """The code of a text, a new one if it has none yet."""
        code = self._codes.setdefault(word, len(self._words))
        if code == len(self._words):
            self._words.append(word)
        return code

    def coded(self, words: Words) -> Value:
        """A column of texts as codes."""
        codes = np.array([*map(self.code, words.words), -1], np.int64)
        return Value(codes.take(words.index), words.valid, "string")

    def column(self, value: Value, rows: int) -> pa.Array:
        """A column of codes as texts."""
        array = text_array(self._words)
        codes = np.broadcast_to(np.asarray(value.values, np.int64), (rows,))
        valid = np.ones(rows, bool) if value.valid is None else value.valid
        return array.take(masked(codes, valid))

    def ranked(self, value: Value) -> Value:
        """The codes as numbers in the order of the texts."""
        if value.kind != "string":
            return value
        ranks = np.full(len(self._words) + 1, -1, np.int64)
        ranks[self._order()[:-1]] = np.arange(len(self._words))
        return _picked(ranks, value)

    def unranked(self, value: Value) -> Value:
        """What ``ranked`` made of codes as codes again."""
        return _picked(self._order(), value) if value.kind == "string" else value

    def _order(self) -> np.ndarray:
        """The codes in the order of their texts, and -1."""
        if len(self._sorted) <= len(self._words):
            self._sorted = np.array([*sorted(range(len(self._words)), key=self._words.__getitem__), -1], np.int64)
        return self._sorted

    def mapped(self, value: Value, function: Callable[[pa.Array], pa.Array], key: Hashable) -> Value | Words:
        """A function of one text, for each text of a column; it is called once with every text that there is.

        Args:
            value: codes.
            function: from texts to texts, whole numbers or truths.
            key: equal for equal functions.
        """
        if value.kind == "null":
            return NULL
        known, found = self._mapped.get(key, (-1, np.zeros(0)))
        if known != len(self._words):
            results = function(text_array([*self._words, ""]))
            if pa.types.is_string(results.type):
                found = np.array(results.to_pylist(), object)
            else:
                found = numpy_of(results if pa.types.is_boolean(results.type) else results.cast(pa.int64()))
            self._mapped[key] = len(self._words), found
        if found.dtype == object:
            index = np.broadcast_to(np.asarray(value.values, np.int64), np.shape(value.values) or (1,))
            return Words(found.tolist(), index, value.valid)
        kind = "bool" if found.dtype == bool else "number"
        return _picked(found, value)._replace(kind=kind)


def _picked(found: np.ndarray, value: Value) -> Value:
    """What codes stand for."""
    picked = found[value.values]
    return value._replace(values=picked if isinstance(picked, np.ndarray) else picked.item())


def masked(values: np.ndarray, valid: np.ndarray) -> pa.Array:
    """Whole numbers as an Arrow array, null where they are not valid."""
    there = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [there, pa.py_buffer(np.ascontiguousarray(values, np.int64))])
