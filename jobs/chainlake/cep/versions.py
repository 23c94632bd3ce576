"""The version of the matching engine: days that were computed with another one are computed again."""

from __future__ import annotations

from chainlake.cep.pattern import Pattern

#: Raised by hand when results can change (docs/semantics.md#definitions).
ENGINE_VERSION = 5
#: For patterns that publish only some of their matches: events of equal time go in the order of seq, and the same
#: events under other names are another match.
_OF_CHOSEN = 6
#: For those of them whose matches are sets: a set is in the order of (ts, id), in which the match's id is made.
_OF_SETS = 7
#: For those of them, and for rankings, that have a name in a later alternative that is written before a name of an
#: earlier one: of equal matches, the order in which names are written decides.
_OF_ALTERNATIVES = 8


def engine_version(pattern: Pattern) -> int:
    """The engine version for a pattern; days that were computed with another version are computed again."""
    policy = pattern.extras.policy
    if (policy is not None or pattern.extras.ranking is not None) and _by_alternative(pattern):
        return _OF_ALTERNATIVES
    if policy is not None and policy.accumulates:
        return _OF_SETS
    return _OF_CHOSEN if policy is not None or pattern.extras.keep else ENGINE_VERSION


def _by_alternative(pattern: Pattern) -> bool:
    """Whether the alternatives, one after another, have the names in another order than the query."""
    names = [one.name for one in pattern.names]
    met = dict.fromkeys(name for branch in pattern.branches for name in branch.types)
    return names != [name for name in met if name in names]
