"""Some matches of one branch, as arrays of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.blocks import FAR
from chainlake.cep.conditions.evaluate import spread
from chainlake.cep.values.arrow import int64_array


@dataclass(frozen=True)
class MatchBatch:
    """Some matches of one branch.

    Args:
        branch: the number of the branch.
        n: how many matches there are.
        start_us: smallest ts of each match (µs, or native units if the pattern is not strict).
        end_us: largest ts of each match.
        decision_us: decision time of each match.
        single: for each name, the row of its event in the events table.
        kleene: for each name, (offsets, rows) of its events, in (ts, id) order for each match.
        measures: for each computed column, its values.
        within: bounds of the decision times, both included.
    """

    branch: int
    n: int
    start_us: np.ndarray
    end_us: np.ndarray
    decision_us: np.ndarray
    single: dict[str, np.ndarray]
    kleene: dict[str, tuple[np.ndarray, np.ndarray]]
    measures: dict[str, pa.Array] = field(default_factory=dict)
    within: tuple[int, int] = (-FAR, FAR)

    def at(self, rows: np.ndarray) -> MatchBatch:
        """The matches at ``rows``."""
        return MatchBatch(
            self.branch,
            len(rows),
            self.start_us[rows],
            self.end_us[rows],
            self.decision_us[rows],
            {name: places[rows] for name, places in self.single.items()},
            {name: spread(*group, rows) for name, group in self.kleene.items()},
            {name: values.take(int64_array(rows)) for name, values in self.measures.items()},
            self.within,
        )

    def of_rows(self, rows: np.ndarray) -> MatchBatch:
        """The same matches with rows of the whole table, of which the search had only ``rows``."""
        return replace(
            self,
            single={name: rows[places] for name, places in self.single.items()},
            kleene={name: (offsets, rows[places]) for name, (offsets, places) in self.kleene.items()},
        )

    def only(self, kept: np.ndarray) -> MatchBatch:
        """The matches where ``kept`` is true."""
        return self if kept.all() else self.at(np.flatnonzero(kept))


def concatenated(batches: Sequence[MatchBatch]) -> MatchBatch:
    """Batches of one branch (at least one) as one."""
    first = batches[0]
    if len(batches) == 1:
        return first
    groups = {}
    for name in first.kleene:
        sizes = np.concatenate([np.diff(batch.kleene[name][0]) for batch in batches])
        rows = np.concatenate([batch.kleene[name][1] for batch in batches])
        groups[name] = (np.concatenate([[0], np.cumsum(sizes)]), rows)
    return MatchBatch(
        first.branch,
        sum(batch.n for batch in batches),
        np.concatenate([batch.start_us for batch in batches]),
        np.concatenate([batch.end_us for batch in batches]),
        np.concatenate([batch.decision_us for batch in batches]),
        {name: np.concatenate([batch.single[name] for batch in batches]) for name in first.single},
        groups,
        {name: _values([batch.measures[name] for batch in batches]) for name in first.measures},
    )


def _values(parts: list[pa.Array]) -> pa.Array:
    """The values of several batches; whole numbers, doubles and untyped nulls may be mixed."""
    kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
    kind = pa.float64() if len(kinds) > 1 else next(iter(kinds), pa.null())
    return pa.concat_arrays([part.cast(kind, safe=False) for part in parts])
