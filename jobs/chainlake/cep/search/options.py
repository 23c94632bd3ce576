"""What is rarely asked of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.conditions.scan import BLOCK_ROWS
from chainlake.cep.errors import UnfitOption, UnfitOrder
from chainlake.cep.events.event_ids import PACKED, packed, texts
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.bounding.strategy import STRATEGIES
from chainlake.cep.search.choosing.backend import BACKENDS
from chainlake.cep.search.selection.modes import MODES
from chainlake.cep.values.arrow import numpy_of, plain


@dataclass(frozen=True)
class SearchOptions:
    """What is rarely asked of a search; none of it changes what is found but ``used``, ``parts``, ``ties_in_order``,
    ``shared_events``, ``trailing``, ``unranked`` and ``by_day``.

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
        unranked: of a ranked pattern all matches are given, and what they are ranked by.
        by_day: of a ranked pattern only matches that are decided on one UTC day compete, so that the best of all
            days can be chosen among what is found.
        strategy: how the best matches of a ranked pattern are found: ``auto``, or ``A``, ``B`` or ``C``
            (chainlake.cep.search.bounding.strategy), which all give the same rows; ``A`` alone looks at all matches, so
            that it counts those of each list.
        block_rows: bounds the memory.
        memo: what is known of pairs of events that have numbers (``chainlake.cep.heavy.calls``).
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
    by_day: bool = False
    strategy: str = "auto"
    block_rows: int = BLOCK_ROWS
    memo: Memo | None = None


def as_asked(pattern: Pattern, options: SearchOptions) -> Pattern:
    """The pattern with what only a caller can ask for.

    Raises:
        UsageError: it cannot be asked of this pattern.
    """
    if not (options.shared_events or options.trailing or options.ties_in_order):
        return pattern
    if any(branch.sets or branch.stream is not None for branch in pattern.branches):
        # Equal times are no obstacle to neighbours, and an order of sets among equal times is not defined.
        raise UnfitOption.not_single()
    if options.trailing:
        ranking = pattern.extras.ranking
        if ranking is None or ranking.rule.period.kind == "all":
            raise UnfitOption.no_period()
        pattern = replace(pattern, branches=pattern.extras.loose or pattern.branches)
    if options.shared_events:
        pattern = replace(pattern, branches=tuple(replace(branch, apart=False) for branch in pattern.branches))
    return pattern


def check_asked(pattern: Pattern, options: SearchOptions, order: Sequence[str] | None, backend: str) -> None:
    """Raise UsageError for what can be asked of no pattern, or not of this one."""
    if options.block_rows < 1:
        raise UnfitOption.block_rows()
    if options.by not in ("cost", "frequency"):
        raise UnfitOption.choice_of_order(options.by)
    if options.mode not in MODES:
        raise UnfitOption.unknown("mode", MODES, options.mode)
    if options.strategy not in STRATEGIES:
        raise UnfitOption.unknown("strategy", STRATEGIES, options.strategy)
    if options.strategy != "auto" and (pattern.extras.ranking is None or options.unranked):
        raise UnfitOption.unranked()
    if options.used is not None and pattern.extras.policy is None:
        raise UnfitOption.without_choice()
    if backend not in BACKENDS:
        raise UnfitOption.unknown("backend", BACKENDS, backend)
    strange = sorted(set(order or ()) - {name.name for name in pattern.names})
    if strange:
        raise UnfitOrder.strange(strange, pattern.name)


def used_rows(events: pa.Table, ids: Sequence[str] | pa.Array | None) -> np.ndarray | None:
    """Which events are among the ids, if any are; these are no packed ones, even where the events' are."""
    if ids is None or not len(ids):
        return None
    column, some = plain(events["event_id"]), ids if isinstance(ids, pa.Array) else pa.array(ids)
    if column.type == PACKED:
        some = packed(some)
        if some.type != PACKED:
            column = texts(column.combine_chunks())
    return numpy_of(pc.is_in(column, value_set=some.cast(column.type)))
