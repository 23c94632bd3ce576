"""What the gate of match tables knows about a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chainlake.cep.compiling.tail import UNBOUNDED
from chainlake.cep.pattern_shape import ranking_columns
from chainlake.schemas.matches import FIXED_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection

    from chainlake.cep.pattern import Pattern


@dataclass(frozen=True)
class MatchRules:
    """What must be true of the matches of a pattern.

    Args:
        pattern: its name.
        window_us: how far apart the events of a match may be, in microseconds: the pattern's ``reach_us``, which is
            WITHIN (its ``window_us``) or, for a pattern without a window, the limit ``longest``. Whether matches wait
            for the end of a window depends on WITHIN alone.
        waits: matches are decided at ``min(ts) + W`` (an open-right negation), else at ``max(ts)``.
        names: positive name → whether its column is an array (a set in any branch).
        computed: the table's other columns: measures, and counts of sets.
        branches: for each branch its positive names, and the pairs (earlier, later) of names that the pattern orders.
        collected: for each branch the names that it collects, and those of them whose sets may be empty; empty if no
            branch collects any.
        pause_us: the pause, if a pause of the stream decides matches; ``waits`` then says that a window may end sooner.
        neighbours: the numbers of the branches whose events are neighbours, which may share a time.
        counts_bound: whether a match keeps, for some ordinary name, only the number of events bound, so that the first
            and last of them are not known.
        consume: which events of a match are used up: ``all``, ``initiator``, those of some names, or ``none``.
        together: whether matches with the same last event use events up only for later matches, not for each other.
    """

    pattern: str
    window_us: int
    waits: bool
    names: Mapping[str, bool]
    branches: tuple[tuple[frozenset[str], frozenset[tuple[str, str]]], ...]
    computed: tuple[str, ...] = ()
    collected: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    counts_bound: bool = False
    pause_us: int | None = None
    neighbours: frozenset[int] = frozenset()
    consume: str | tuple[str, ...] = "none"
    together: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the match table."""
        return (*FIXED_COLUMNS, *self.names, *self.computed)

    @property
    def sets(self) -> frozenset[str]:
        """The names that some branch collects; their events do not bound a match, and may be shared."""
        return frozenset[str]().union(*(names for names, _ in self.collected))

    def collected_by(self, branch: int) -> tuple[frozenset[str], frozenset[str]]:
        """The names that a branch collects, and those of them whose sets may be empty."""
        return self.collected[branch] if self.collected else (frozenset(), frozenset())

    def lacking(self, columns: Collection[str]) -> set[str]:
        """The columns of the match table that are not among ``columns``."""
        return set(self.columns).difference(columns)


def rules_of(pattern: Pattern) -> MatchRules:
    """The rules of a compiled pattern."""
    branches, collected = [], []
    for branch in pattern.branches:
        bound = frozenset(branch.positive).difference(pattern.front.counted)
        kept = [one for one in branch.collected if one.name not in pattern.front.counted]
        sets = frozenset(one.name for one in kept)
        # Collected names are not ordered among themselves.
        pairs = ((earlier, later) for later in bound | sets for earlier in branch.before[later] & (bound | sets))
        branches.append((bound, frozenset(pair for pair in pairs if not sets.issuperset(pair))))
        collected.append((sets, frozenset(one.name for one in kept if one.may_be_empty)))
    return MatchRules(
        pattern=pattern.name,
        window_us=pattern.reach_us,
        waits=pattern.decision == "start+W" or pattern.by_pause and pattern.window_us < UNBOUNDED,
        names={name.name: name.kleene for name in pattern.names if name.name not in pattern.front.counted},
        branches=tuple(branches),
        computed=(*pattern.front.counted, *(one.name for one in pattern.extras.measures), *_compared(pattern)),
        pause_us=pattern.extras.pause if pattern.by_pause else None,
        neighbours=frozenset(n for n, branch in enumerate(pattern.branches) if branch.stream is not None),
        collected=tuple(collected) if any(sets for sets, _ in collected) else (),
        counts_bound=any(set(branch.positive).intersection(pattern.front.counted) for branch in pattern.branches),
        consume="none" if pattern.extras.policy is None else pattern.extras.policy.consume,
        together=pattern.extras.policy is not None and pattern.extras.policy.together,
    )


def _compared(pattern: Pattern) -> tuple[str, ...]:
    """The columns by which the matches of a ranked pattern are compared."""
    ranking = pattern.extras.ranking
    return () if ranking is None else tuple(name for name, *_ in ranking_columns(ranking.rule))
