"""The matching engine: event patterns over tables of events (docs/semantics.md, docs/automata.md)."""

from __future__ import annotations

from chainlake.cep.compiling.names import PositiveName
from chainlake.cep.library import match
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics

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


__all__ = [
    "ENGINE_VERSION",
    "MatchBatch",
    "Pattern",
    "PositiveName",
    "SearchOptions",
    "Statistics",
    "compile_pattern",
    "engine_version",
    "find",
    "match",
    "match_rows",
]
