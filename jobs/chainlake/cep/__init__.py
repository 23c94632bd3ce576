"""The matching engine: event patterns over tables of events (docs/semantics.md, docs/automata.md)."""

from __future__ import annotations

from chainlake.cep.library import match
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_names import PositiveName
from chainlake.cep.search.batch import MatchBatch
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics

#: Raised by hand when results can change (docs/semantics.md#definitions).
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
