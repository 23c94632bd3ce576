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


def engine_version(pattern: Pattern) -> int:
    """The engine version for a pattern; days that were computed with another version are computed again."""
    policy = pattern.extras.policy
    if policy is not None and policy.accumulates:
        return _OF_SETS
    return _OF_CHOSEN if policy is not None or pattern.extras.keep else ENGINE_VERSION
