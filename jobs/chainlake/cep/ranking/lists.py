"""The lists in which matches compete: by period, values of ``FOR EACH``, and perhaps the day of the decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.cep.values.arrow import int64_array, numpy_of

#: Doubles up to this size that are whole are written as whole numbers.
_EXACT = 2**53


@dataclass
class Values:
    """A number for each combination of values that was seen.

    Args:
        texts: for each number, its values as a JSON array.
    """

    texts: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def codes(self, columns: Sequence[pa.Array], n: int) -> np.ndarray:
        """The numbers of ``n`` combinations."""
        combined = np.zeros(n, np.int64)
        values: list[tuple[Any, ...]] = [()]
        for column in columns:
            encoded = column.dictionary_encode(null_encoding="encode")
            found = encoded.dictionary.to_pylist()
            both = combined * len(found) + numpy_of(encoded.indices)
            there, combined = np.unique(both, return_inverse=True)
            values = [(*values[one // len(found)], found[one % len(found)]) for one in there.tolist()]
        known = [self._number(json.dumps([_plain(one) for one in some])) for some in values]
        return np.array(known, np.int64)[combined] if n else combined

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


def texts_of(columns: Sequence[pa.Array], n: int) -> pa.Array:
    """Columns of values of ``n`` matches as one JSON array per match."""
    values = Values()
    codes = values.codes(columns, n)
    return pa.array(values.texts or [json.dumps([])], pa.string()).take(int64_array(codes))


def _plain(value: Any) -> Any:
    """A value in the form that JSON has for it, the same for equal values."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value.isoformat() if isinstance(value, date | datetime) else value


@dataclass
class Lists:
    """A number for each list that was seen, and the counts of its matches.

    Args:
        starts, ends: the bounds of each list's period, in ticks.
        per: the number of each list's values of ``FOR EACH``.
        days: the day of the decision; 0 everywhere if matches of all days compete.
        candidates: how many matches each list has.
        excluded: how many of them have no score.
        below: how many of them have a score that is too small.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    per: list[int] = field(default_factory=list)
    days: list[int] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    _numbers: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)

    def numbers(
        self, starts: np.ndarray, ends: np.ndarray, per: np.ndarray, days: np.ndarray | None = None
    ) -> np.ndarray:
        """The number of the list of each entry; without days, matches of all days compete."""
        number = np.unique(starts, return_inverse=True)[1]
        if days is not None and len(days):
            number = number * (int(days.max() - days.min()) + 1) + days - days.min()
            number = np.unique(number, return_inverse=True)[1]
        width = int(per.max(initial=0)) + 1
        there, first, combined = np.unique(number * width + per, return_index=True, return_inverse=True)
        known = []
        for one, at in zip(there.tolist(), first.tolist(), strict=True):
            key = (int(starts[at]), one % width, 0 if days is None else int(days[at]))
            known.append(self._numbers.setdefault(key, len(self.starts)))
            if known[-1] == len(self.starts):
                self.starts.append(key[0])
                self.ends.append(int(ends[at]))
                self.per.append(key[1])
                self.days.append(key[2])
                for counts in (self.candidates, self.excluded, self.below):
                    counts.append(0)
        return np.array(known, np.int64)[combined] if len(starts) else combined

    def count(self, groups: np.ndarray, unknown: np.ndarray, below: np.ndarray) -> None:
        """Count entries: all of them, those without a score, those whose score is too small."""
        for counts, of in ((self.candidates, groups), (self.excluded, groups[unknown]), (self.below, groups[below])):
            for group, n in enumerate(np.bincount(of, minlength=len(self)).tolist()):
                counts[group] += n
