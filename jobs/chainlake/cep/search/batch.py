"""Some matches of one branch, as arrays of rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class MatchBatch:
    """Some matches of one branch.

    Args:
        branch: its number.
        n: how many matches.
        start_us: smallest ts of each match (µs, or native units of a pattern that is not strict).
        end_us: largest ts of each match.
        decision_us: decision time of each match.
        single: name to row of its event in the events table.
        kleene: name to (offsets, rows) of its events, each match's in (ts, id) order.
        measures: name to the values of a computed column.
    """

    branch: int
    n: int
    start_us: np.ndarray
    end_us: np.ndarray
    decision_us: np.ndarray
    single: dict[str, np.ndarray]
    kleene: dict[str, tuple[np.ndarray, np.ndarray]]
    measures: dict[str, pa.Array] = field(default_factory=dict)
