"""Where a kernel writes matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Output:
    """Where a kernel writes matches: names of the slots.

    Args:
        start: smallest ts of each match.
        end: largest ts of each match.
        rows: for each name, the row of its event, or the rows of all members of its sets.
        offsets: for each repeated name, where each set begins in ``rows``.
        sizes: for each repeated name, the place in the state that holds how many members were written.
        maps: for each name, the table from candidates to rows.
    """

    start: str
    end: str
    rows: Mapping[str, str]
    offsets: Mapping[str, str]
    sizes: Mapping[str, str]
    maps: Mapping[str, str]
