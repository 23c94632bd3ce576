"""Chooses among matches, while no events are used up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainlake.cep.policy import PickRule
from chainlake.cep.search.selection.order import NONE, Ranked


def chosen(found: Ranked, select: str) -> np.ndarray:
    """The numbers of the selected matches, in ascending order.

    Args:
        found: matches in the order in which they are published.
        select: ``each``, ``first``, ``last`` or ``per_initiator``: for each terminator, all matches, the first, the
            last, or the first of each initiator.
    """
    if select == "each" or not len(found):
        return np.arange(len(found))
    ends = found.terminators
    if select == "first":
        return np.flatnonzero(np.diff(ends, prepend=-2))
    if select == "last":
        back = found.backward(np.arange(len(found)))
        order = np.lexsort((back, ends))
        return np.sort(order[np.flatnonzero(np.diff(ends[order], append=-2))])
    groups = np.stack([ends, found.initiators], axis=1)
    _, firsts = np.unique(groups, axis=0, return_index=True)
    return np.sort(firsts)


def picked(found: Ranked, names: Sequence[str], picks: tuple[PickRule, ...]) -> np.ndarray:
    """The numbers of the matches of one terminator that are left after all picks, in ascending order.

    Args:
        found: the matches of one terminator.
        names: the names of the columns of ``found``.
        picks: in the order in which they are made.
    """
    columns = list(names)
    left = np.arange(len(found))
    later = [columns.index(pick.name) for pick in picks]
    for number, pick in enumerate(picks):
        column = columns.index(pick.name)
        # Names that no clause mentions, and names already picked, decide which matches compete.
        fixed = [i for i in range(len(columns)) if i not in later[number:]]
        ranks = found.ranks[left]
        bound = ranks[:, column]
        keys = np.concatenate([ranks[:, fixed], (bound == NONE)[:, None]], axis=1)
        _, group = np.unique(keys, axis=0, return_inverse=True)
        group = group.reshape(-1)
        best = np.full(group.max(initial=-1) + 1, NONE, np.int64)
        value = bound if pick.last else -bound
        best[:] = np.iinfo(np.int64).min
        np.maximum.at(best, group, value)
        left = left[value == best[group]]
    return left


def accumulated(found: Ranked) -> tuple[np.ndarray, ...]:
    """For each name, all of its events in the matches of one terminator, ascending."""
    return tuple(np.unique(column[column != NONE]) for column in found.ranks.T)
