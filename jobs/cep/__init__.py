"""The matching engine: event patterns over tables of events (spec pattern-detection, design §5)."""

from __future__ import annotations

from jobs.cep.kernel import MatchBatch, find
from jobs.cep.library import match
from jobs.cep.output import match_rows
from jobs.cep.pattern import Pattern, PositiveName, compile_pattern
from jobs.cep.search import Statistics

#: Raised by hand when results can change (design §4).
ENGINE_VERSION = 5

__all__ = [
    "ENGINE_VERSION",
    "MatchBatch",
    "Pattern",
    "PositiveName",
    "Statistics",
    "compile_pattern",
    "find",
    "match",
    "match_rows",
]
