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
#: Of patterns that publish some of their matches: equal times are in the order of seq, other names are other matches.
_OF_CHOSEN = 6
#: Of those of them whose matches are sets: each is in the order of (ts, id), and so is the match's id made.
_OF_SETS = 7


def engine_version(pattern: Pattern) -> int:
    """The version of what finds a pattern's matches: days that another version found are computed again."""
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
