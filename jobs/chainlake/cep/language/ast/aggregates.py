"""The aggregates of the language (docs/semantics.md#conditions): what each ranges over, and what it gives.

All that its name says of an aggregate is said here; its value is computed in ``chainlake.cep.values.aggregates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Known:
    """What is known of an aggregate.

    Args:
        kinds: the kinds of values that it ranges over, each with the kind of what it gives; None: it says how many
            there are. Such a one is 0 of none, where all others are null, and takes DISTINCT and a name alone
            (``COUNT(b)``).
        numbers: what a column of its numbers holds: ``whole`` numbers, doubles, or numbers of the ``same`` type as the
            column that it ranges over.
        by_place: whether it goes by the order of the stream.
        share: whether it takes a share from 0 to 1, too.
    """

    kinds: Mapping[str, str] | None
    numbers: Literal["whole", "same", "double"]
    by_place: bool = False
    share: bool = False

    @property
    def counts(self) -> bool:
        """Whether it says how many there are."""
        return self.kinds is None

    def gives(self, kind: str) -> str | None:
        """The kind of what it gives over values of a kind, or None if it does not range over them."""
        return "number" if self.kinds is None else self.kinds.get(kind)


_SIZES = {"number": "number", "duration": "duration", "any": "any", "null": "null"}
_POINTS = {**_SIZES, "time": "time"}
_SINGLE = {**_POINTS, "string": "string", "bool": "bool"}

#: By name.
AGGREGATES: Mapping[str, Known] = {
    "COUNT": Known(None, "whole"),
    "SUM": Known(_SIZES, "double"),
    "AVG": Known(_SIZES, "double"),
    "STDDEV": Known(_SIZES, "double"),
    "MIN": Known(_POINTS, "same"),
    "MAX": Known(_POINTS, "same"),
    "MEDIAN": Known(_POINTS, "double"),
    "PERCENTILE": Known(_POINTS, "double", share=True),
    "FIRST": Known(_SINGLE, "same", by_place=True),
    "LAST": Known(_SINGLE, "same", by_place=True),
}
