"""Options of a search that are rarely needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.conditions.scan import BLOCK_ROWS
from chainlake.cep.errors import UnfitOption, UnfitOrder
from chainlake.cep.events.event_ids import PACKED, packed, texts
from chainlake.cep.heavy.asking import Asks
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.bounding.strategy import STRATEGIES
from chainlake.cep.search.choosing.backend import BACKENDS
from chainlake.cep.search.selection.modes import MODES
from chainlake.cep.values.arrow import numpy_of, plain


@dataclass(frozen=True)
class SearchOptions:
    """Options that are rarely needed; they do not change what is found, except ``used``, ``parts``, ``ties_in_order``,
    ``shared_events``, ``trailing``, ``unranked`` and ``by_day``.

    Args:
        orders: one binding order for each branch.
        rates: events per name in any common unit; default: the front matter's.
        by: without order and rates, ``cost`` takes the order of the fewest estimated seconds
            (chainlake.cep.search.choosing.seconds), ``frequency`` the rarest name first.
        mode: how matches are chosen if the pattern wants only some of them: ``auto``, or ``S``, ``P`` or ``B``
            (chainlake.cep.search.selection.modes), which all give the same rows.
        used: ids of events that are already used up, so that no match has one; negation and conditions still see them.
            So a search can continue where one of earlier events ended, whose rows say what was used up.
        parts: a whole number from 0 up for each event, in the order of the rows; each part is searched by itself. So
            all keys of a partitioned pattern can be searched at a time.
        ties_in_order: whether events of equal time follow one another in the order of (seq, id), so that they can be in
            sequence; only for patterns of single events, and not with ``own`` or ``parts``.
        shared_events: whether an event may be bound to several names that are in no order; only for patterns of single
            events.
        trailing: for a ranked pattern, a group with its own window binds events within that time before the end of the
            period, instead of events that lie close to each other; only for patterns of single events.
        unranked: for a ranked pattern, all matches are given, with the values by which they are ranked.
        by_day: for a ranked pattern, only matches decided on the same UTC day compete, so that the best of all days
            can be chosen among what is found.
        strategy: how the best matches of a ranked pattern are found: ``auto``, or ``A``, ``B`` or ``C``
            (chainlake.cep.search.bounding.strategy), which all give the same rows; only ``A`` looks at all matches, and
            so counts those of each list.
        block_rows: bounds the memory.
        memo: the known pairs of numbered events (``chainlake.cep.heavy.calls``).
        asks: takes those that are not known; then what depends on them is left out.
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
    asks: Asks | None = None


def as_asked(pattern: Pattern, options: SearchOptions) -> Pattern:
    """The pattern changed by options that only a caller can set.

    Raises:
        UsageError: they are not possible with this pattern.
    """
    if not (options.shared_events or options.trailing or options.ties_in_order):
        return pattern
    if any(branch.sets or branch.stream is not None for branch in pattern.branches):
        # Neighbours may have equal times anyway, and no order of sets among equal times is defined.
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
    """Raise UsageError for options that are not possible at all, or not with this pattern."""
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
    """Which events have one of the ids, or None for no ids; these are not packed, even if the events' are."""
    if ids is None or not len(ids):
        return None
    column, some = plain(events["event_id"]), ids if isinstance(ids, pa.Array) else pa.array(ids)
    if column.type == PACKED:
        some = packed(some)
        if some.type != PACKED:
            column = texts(column.combine_chunks())
    return numpy_of(pc.is_in(column, value_set=some.cast(column.type)))
