"""Strings by code: the strings behind a column of codes while functions are computed on it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from chainlake.cep.values.arrow import numpy_of, text_array
from chainlake.cep.values.values import NULL, Value


class Words(NamedTuple):
    """A column of strings that have no codes yet, or one string for all rows.

    Args:
        words: the strings.
        places: for each row, the index of its text in ``words``.
        valid: which entries are not null; None if all are.
    """

    words: list[str]
    places: np.ndarray | int
    valid: np.ndarray | None


class Texts:
    """Strings with codes, which count from 0 in the order in which strings are added.

    Args:
        codes: the codes of strings that are known already, ordered as the strings are; new strings are added to it.
    """

    def __init__(self, codes: dict[str, int] | None = None) -> None:
        self._codes = {} if codes is None else codes
        self._known = len(self._codes)
        self._words: list[str] = []
        self._sorted = np.zeros(0, np.int64)
        self._mapped: dict[Hashable, tuple[int, np.ndarray]] = {}

    @property
    def words(self) -> list[str]:
        """All strings, by code."""
        if len(self._words) < len(self._codes):
            self._words += islice(self._codes, len(self._words), None)
        return self._words

    @property
    def in_order(self) -> bool:
        """Whether the codes are ordered as the strings are."""
        return len(self._codes) == self._known

    def code(self, word: str) -> int:
        """The code of a string, a new one if it has none yet."""
        return self._codes.setdefault(word, len(self._codes))

    def coded(self, words: Words) -> Value:
        """A column of strings as codes."""
        codes = np.array([*map(self.code, words.words), -1], np.int64)
        return Value(_plain(codes[words.places]), words.valid, "string")

    def column(self, value: Value, rows: int) -> pa.Array:
        """A column of codes as strings."""
        codes = np.broadcast_to(np.asarray(value.values, np.int64), (rows,))
        valid = np.ones(rows, bool) if value.valid is None else value.valid
        return text_array(self.words).take(masked(codes, valid))

    def ranked(self, value: Value) -> Value:
        """The codes as numbers in the order of the strings."""
        if value.kind != "string":
            return value
        ranks = np.full(len(self.words) + 1, -1, np.int64)
        ranks[self._order()[:-1]] = np.arange(len(self.words))
        return value._replace(values=_plain(ranks[value.values]))

    def unranked(self, value: Value) -> Value:
        """The codes from which ``ranked`` made these numbers."""
        return value._replace(values=_plain(self._order()[value.values])) if value.kind == "string" else value

    def _order(self) -> np.ndarray:
        """The codes in the order of their strings, followed by -1."""
        words = self.words
        if len(self._sorted) <= len(words):
            self._sorted = np.array([*sorted(range(len(words)), key=words.__getitem__), -1], np.int64)
        return self._sorted

    def mapped(self, value: Value, function: Callable[[pa.Array], pa.Array], key: Hashable) -> Value | Words:
        """A function of one string, applied to each row of a column; it is called once, with all different strings.

        Args:
            value: codes.
            function: from strings to strings, whole numbers or booleans.
            key: equal for equal functions.
        """
        if value.kind == "null":
            return NULL
        known, found = self._mapped.get(key, (-1, np.zeros(0)))
        if known != len(self.words):
            results = function(text_array([*self.words, ""]))
            if pa.types.is_string(results.type):
                found = np.array(results.to_pylist(), object)
            else:
                found = numpy_of(results if pa.types.is_boolean(results.type) else results.cast(pa.int64()))
            self._mapped[key] = len(self.words), found
        if found.dtype == object:
            return Words(found.tolist(), value.values, value.valid)
        return Value(_plain(found[value.values]), value.valid, "bool" if found.dtype == bool else "number")


def _plain(found: Any) -> Any:
    """One value as a Python scalar; a column as it is."""
    return found if isinstance(found, np.ndarray) else found.item()


def masked(values: np.ndarray, valid: np.ndarray) -> pa.Array:
    """Whole numbers as an Arrow array, with null where they are not valid."""
    there = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [there, pa.py_buffer(np.ascontiguousarray(values, np.int64))])


def is_unicode(text: str) -> bool:
    """Whether a string holds no lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
