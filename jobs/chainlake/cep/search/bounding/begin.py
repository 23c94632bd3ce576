"""Prepares the branches of a pattern to be searched with thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.lists import Values
from chainlake.cep.search.bounding.arrays import Whole
from chainlake.cep.search.bounding.score import Bound
from chainlake.cep.search.bounding.strategy import bounds_of, per_values
from chainlake.cep.search.bounding.thresholds import BoundedBranch, Thresholds
from chainlake.cep.search.found.measured import as_arrow


def bounded_branches(
    pattern: Pattern, scans: Sequence[Scan], thresholds: Thresholds
) -> tuple[BoundedBranch, ...] | str:
    """The branches of a pattern that allows bounds, with the thresholds that all of them share.

    Args:
        pattern: with a ranking.
        scans: those of all branches.
        thresholds: the thresholds, which are set up here.

    Returns:
        the branches, or why there are no bounds for these events. If bounds cannot cut anything, they are off.
    """
    every = [bounds_of(pattern, number, thresholds.daily) for number in range(len(scans))]
    seen = Values()
    per = [_per(pattern, number, scan, seen) for number, scan in enumerate(scans)]
    found = tuple(BoundedBranch(thresholds, bounds, codes) for bounds, codes in zip(every, per, strict=True))
    lacking: frozenset[str] = frozenset()
    for one, scan in zip(found, scans, strict=True):
        criteria = one.bounds.nodes[:1] if one.bounds.score.combine == "lex" else one.bounds.nodes
        columns = one.columns(scan)
        why = columns.unfit(criteria)
        if why is not None:
            return why
        lacking |= columns.lacking(criteria)
    thresholds.counts.lacking = tuple(sorted(lacking))
    if _level(found, scans):
        thresholds.on, thresholds.counts.switched_off = False, True
        return found
    why = thresholds.begin(scans[0].data, seen.texts)
    return found if why is None else why


def _level(found: Sequence[BoundedBranch], scans: Sequence[Scan]) -> bool:
    """Whether no match can be better than another, so that bounds cut nothing."""
    low, high = np.inf, -np.inf
    for one, scan in zip(found, scans, strict=True):
        bound, bounds = Bound(Whole(one.columns(scan))), one.bounds
        with np.errstate(all="ignore"):
            ends = [float(bound.score(bounds.score, bounds.nodes, upper)) for upper in (False, True)]
        low, high = min(low, ends[0]), max(high, ends[1])
    least = found[0].thresholds.rule.least
    return high <= low and (least is None or low >= least)


def _per(pattern: Pattern, number: int, scan: Scan, seen: Values) -> dict[str, np.ndarray]:
    """For each name, the numbers of the values of ``FOR EACH`` by row of the data; 0 for rows that it cannot take."""
    ranking = pattern.extras.ranking
    found = {}
    for name, values in (per_values(pattern, number) if ranking is not None and ranking.rule.per else {}).items():
        of = scan.candidates[name]
        columns = [as_arrow(scan.value(name, value), len(of), scan, pattern.strict) for value in values]
        found[name] = np.zeros(len(scan.data.ts), np.int32)
        found[name][of.rows] = seen.codes(columns, len(of))
    return found
