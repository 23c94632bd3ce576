"""Which conditions of a pattern fail for events that were expected to match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.explain.parts import conjunction, duration
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.find import dataset


def failing(pattern: Pattern, events: pa.Table, bound: Mapping[str, Sequence[int]]) -> list[str]:
    """The conditions that these events fail, in words; of several branches, those of the one that fails fewest.

    Args:
        pattern: the pattern.
        events: as for ``chainlake.cep.find``.
        bound: name → rows of its events.

    Returns:
        The conditions; empty if all hold, or no branch has these names.
    """
    data = dataset(pattern, events, by_id=True)
    at = {row: place for place, row in enumerate(data.rows_of(np.arange(len(data.ts))).tolist())}
    if any(row not in at for rows in bound.values() for row in rows):
        return []
    places = {name: np.array(sorted(at[row] for row in rows), np.int64) for name, rows in bound.items()}
    found = []
    for branch in pattern.branches:
        if set(branch.positive) <= set(places) <= set(branch.positive) | {one.name for one in branch.collected}:
            found.append([*_too_long(pattern, data, places), *_failing(branch, data, places)])
    return min(found, key=len, default=[])


def _too_long(pattern: Pattern, data: Dataset, places: Mapping[str, np.ndarray]) -> list[str]:
    times = data.ts[np.concatenate([*places.values()])]
    length = int(times.max() - times.min())
    return [f"WITHIN {duration(pattern, pattern.window_us)}"] if length > pattern.window_us else []


def _failing(branch: Branch, data: Dataset, places: Mapping[str, np.ndarray]) -> list[str]:
    singles: dict[str, tuple[Candidates, np.ndarray | slice]] = {}
    groups: dict[str, tuple[Candidates, np.ndarray, np.ndarray]] = {}
    for name, rows in places.items():
        if name in branch.sets:
            groups[name] = (Candidates(data, rows), np.array([0, len(rows)]), np.arange(len(rows)))
        else:
            singles[name] = (Candidates(data, rows), np.zeros(1, np.int64))
    view, known = View(data, 1, singles, groups), set(places)
    clauses = [clause for clause in branch.every_clause if clause.names <= known]
    return [conjunction([one]) for one in clauses if not view.holds(one, frozenset(groups))[0]]
