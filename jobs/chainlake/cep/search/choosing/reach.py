"""Leaves out events of long patterns that no match can hold, since too few events come before or after them.

A search binds names one after another, so with n events of one type for n names in sequence it would look at 2ⁿ
beginnings, only one of which can be completed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.estimate.cost import EXACT_NAMES
from chainlake.cep.events.clock import MOST_TICKS
from chainlake.cep.language.normal_form import Branch

#: Before and after all ticks, and so far apart that a difference fits in 64 bits.
_NEVER = MOST_TICKS


def within_reach(branch: Branch, candidates: Mapping[str, Candidates], window: int) -> dict[str, Candidates]:
    """The candidates of each name, except those around which ≺ and the window leave no room for the other names.

    With up to ``EXACT_NAMES`` single names, all stay, since a search is quicker than this.

    Args:
        branch: the branch.
        candidates: those of every name.
        window: in ticks.
    """
    singles = [name for name in branch.positive if name not in branch.kleene]
    found = dict(candidates)
    if len(singles) <= EXACT_NAMES:
        return found
    starts = {name: candidates[name].ts.copy() for name in singles}
    ends = {name: candidates[name].ts.copy() for name in singles}
    for name in sorted(singles, key=lambda name: len(branch.before[name])):
        ts = candidates[name].ts
        for other in branch.before[name].intersection(singles):
            # the latest beginning of a sequence that leads to one of the other name's events before this one
            best = np.append(-_NEVER, np.maximum.accumulate(starts[other]))
            starts[name] = np.minimum(starts[name], best[np.searchsorted(candidates[other].ts, ts, "left")])
    for name in sorted(singles, key=lambda name: len(branch.after[name])):
        ts = candidates[name].ts
        for other in branch.after[name].intersection(singles):
            best = np.append(np.minimum.accumulate(ends[other][::-1])[::-1], _NEVER)
            ends[name] = np.maximum(ends[name], best[np.searchsorted(candidates[other].ts, ts, "right")])
    for name in singles:
        known = (starts[name] > -_NEVER) & (ends[name] < _NEVER)
        keep = known & (np.where(known, ends[name], 0) - np.where(known, starts[name], 0) <= window)
        if not keep.all():
            found[name] = Candidates(candidates[name].data, candidates[name].rows[keep])
    return found
