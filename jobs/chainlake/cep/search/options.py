"""What is rarely asked of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.scan import BLOCK_ROWS
from chainlake.cep.pattern import Pattern
from chainlake.errors import UsageError


@dataclass(frozen=True)
class SearchOptions:
    """What is rarely asked of a search; none of it changes what is found but ``used``, ``parts``, ``ties_in_order``,
    ``shared_events``, ``trailing`` and ``unranked``.

    Args:
        orders: the binding order of each branch by itself.
        rates: events per name in any common unit; default: the front matter's.
        by: without order and rates: ``cost`` takes the order of the fewest estimated seconds
            (chainlake.cep.search.choosing.seconds), ``frequency`` the rarest name first.
        mode: how matches are chosen where the pattern wants some of them: ``auto``, or ``S``, ``P`` or ``B``
            (chainlake.cep.search.selection.modes), which all give the same rows.
        used: ids of events that are used up already: no match has one. Forbidden events and conditions look at them all
            the same. So a search can go on where one of earlier events ended, whose rows say what was used up.
        parts: a whole number from 0 on for each event, in the order of the rows: the matches are those of the events of
            each number by itself. So all keys of a partitioned pattern can be searched at a time.
        ties_in_order: events of equal time follow one another in the order of (seq, id), so that they can be in
            sequence; not with ``own`` and ``parts``, and of patterns of single events.
        shared_events: an event may be bound to several names that are in no order; of patterns of single events.
        trailing: of a ranked pattern, a group with a window of its own does not bind events that lie near each other,
            but events of the last such time of the period; of patterns of single events.
        unranked: of a ranked pattern all matches are given, as ``chainlake.cep.matches.part`` takes them.
        strategy: how the best matches of a ranked pattern are found: ``auto``, or ``A``, ``B`` or ``C``
            (chainlake.cep.search.bounding.strategy), which all give the same rows; ``A`` alone looks at all matches, so
            that it counts those of each list.
        block_rows: bounds the memory.
    """

    orders: Sequence[Sequence[str]] | None = None
    rates: Mapping[str, float] | None = None
    by: str = "cost"
    mode: str = "auto"
    used: Sequence[str] | pa.Array | None = None
    parts: np.ndarray | None = None
    ties_in_order: bool = False
    shared_events: bool = False
    trailing: bool = False
    unranked: bool = False
    strategy: str = "auto"
    block_rows: int = BLOCK_ROWS


def as_asked(pattern: Pattern, options: SearchOptions) -> Pattern:
    """The pattern with what only a caller can ask for.

    Raises:
        UsageError: it cannot be asked of this pattern.
    """
    if not (options.shared_events or options.trailing):
        return pattern
    if any(branch.sets or branch.stream is not None for branch in pattern.branches):
        raise UsageError("shared_events and trailing are for patterns of single events")
    if options.trailing:
        ranking = pattern.extras.ranking
        if ranking is None or ranking.rule.period.kind == "all":
            raise UsageError("trailing windows end with a period, so they need a pattern ranked by one")
        pattern = replace(pattern, branches=pattern.extras.loose or pattern.branches)
    if options.shared_events:
        pattern = replace(pattern, branches=tuple(replace(branch, apart=False) for branch in pattern.branches))
    return pattern
