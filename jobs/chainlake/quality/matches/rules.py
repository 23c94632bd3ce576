"""What the gate of match tables knows of a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chainlake.schemas.matches import FIXED_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection

    from chainlake.cep.pattern import Pattern


@dataclass(frozen=True)
class MatchRules:
    """What must be true of the matches of a pattern.

    Args:
        pattern: its name.
        window_us: W in microseconds.
        waits: matches decide at ``min(ts) + W`` (an open-right negation), else at ``max(ts)``.
        names: positive name → whether its column is an array (a set in any branch).
        computed: its other columns: measures, and counts of sets.
        branches: per branch its positive names, and the pairs (earlier, later) of them that the pattern orders.
    """

    pattern: str
    window_us: int
    waits: bool
    names: Mapping[str, bool]
    branches: tuple[tuple[frozenset[str], frozenset[tuple[str, str]]], ...]
    computed: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the match table."""
        return (*FIXED_COLUMNS, *self.names, *self.computed)

    def lacking(self, columns: Collection[str]) -> set[str]:
        """The columns of the match table that are not among ``columns``."""
        return set(self.columns).difference(columns)


def rules_of(pattern: Pattern) -> MatchRules:
    """The rules of a compiled pattern."""
    branches = []
    for branch in pattern.branches:
        bound = frozenset(branch.positive).difference(pattern.front.counted)
        order = frozenset((earlier, later) for later in bound for earlier in branch.before[later] & bound)
        branches.append((bound, order))
    return MatchRules(
        pattern=pattern.name,
        window_us=pattern.window_us,
        waits=pattern.decision == "start+W",
        names={name.name: name.kleene for name in pattern.names if name.name not in pattern.front.counted},
        branches=tuple(branches),
        computed=(*pattern.front.counted, *(one.name for one in pattern.extras.measures)),
    )
