"""Where a kernel puts matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Output:
    """Where a kernel puts matches: names of the slots.

    Args:
        start: smallest ts of each match.
        end: largest ts.
        rows: name to the row of its event, or to the rows of all members of its sets.
        offsets: repeated name to where each set begins in ``rows``.
        sizes: repeated name to the place in the state that holds how many members were written.
        maps: name to the table from candidates to rows.
    """

    start: str
    end: str
    rows: Mapping[str, str]
    offsets: Mapping[str, str]
    sizes: Mapping[str, str]
    maps: Mapping[str, str]
