"""The aggregates of the language: what each ranges over, and what it returns (docs/semantics.md#conditions).

All that the name of an aggregate implies is stated here; values are computed in ``chainlake.cep.values.aggregates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class AggregateRule:
    """What is known of an aggregate.

    Args:
        kinds: the kinds of values that it ranges over, each with the kind of its result. None for a count, which is 0
            for an empty set (others are null), and takes DISTINCT or a name alone (``COUNT(b)``).
        numbers: what a column of its numbers holds: ``whole`` numbers, doubles, or numbers of the ``same`` type as the
            column that it ranges over.
        by_place: whether it depends on the order of the stream.
        share: whether it also takes a share from 0 to 1.
    """

    kinds: Mapping[str, str] | None
    numbers: Literal["whole", "same", "double"]
    by_place: bool = False
    share: bool = False

    @property
    def counts(self) -> bool:
        """Whether it counts."""
        return self.kinds is None

    def gives(self, kind: str) -> str | None:
        """The kind of its result over values of a kind, or None if it does not range over them."""
        return "number" if self.kinds is None else self.kinds.get(kind)


_SIZES = {"number": "number", "duration": "duration", "any": "any", "null": "null"}
_POINTS = {**_SIZES, "time": "time"}
_SINGLE = {**_POINTS, "string": "string", "bool": "bool"}

#: All aggregates, by name.
AGGREGATES: Mapping[str, AggregateRule] = {
    "COUNT": AggregateRule(None, "whole"),
    "SUM": AggregateRule(_SIZES, "double"),
    "AVG": AggregateRule(_SIZES, "double"),
    "STDDEV": AggregateRule(_SIZES, "double"),
    "MIN": AggregateRule(_POINTS, "same"),
    "MAX": AggregateRule(_POINTS, "same"),
    "MEDIAN": AggregateRule(_POINTS, "double"),
    "PERCENTILE": AggregateRule(_POINTS, "double", share=True),
    "FIRST": AggregateRule(_SINGLE, "same", by_place=True),
    "LAST": AggregateRule(_SINGLE, "same", by_place=True),
}
