"""The matching engine: event patterns over tables of events (spec pattern-detection, design §5)."""

from __future__ import annotations

from chainlake.cep.library import match
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern, PositiveName, compile_pattern
from chainlake.cep.search.batch import MatchBatch
from chainlake.cep.search.find import SearchOptions, find
from chainlake.cep.search.statistics import Statistics

#: Raised by hand when results can change (design §4).
ENGINE_VERSION = 5

__all__ = [
    "ENGINE_VERSION",
    "MatchBatch",
    "Pattern",
    "PositiveName",
    "SearchOptions",
    "Statistics",
    "compile_pattern",
    "find",
    "match",
    "match_rows",
]
