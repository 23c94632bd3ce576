"""Chooses how the best matches are found: by the best strategy that the pattern and the events allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from chainlake.cep.errors import UnfitOption
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.bounding.begin import bounded_branches
from chainlake.cep.search.bounding.strategy import Strategies, day_competition_of, said
from chainlake.cep.search.bounding.thresholds import Thresholds
from chainlake.cep.search.branches import Run
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.paths.passing import paths
from chainlake.cep.search.statistics import BestSearch


@dataclass(frozen=True)
class StrategyRun:
    """How the best matches are found.

    Args:
        search: counts what is done.
        batches: under ``B``, the matches.
        thresholds, run: under ``C``, the thresholds, if they can cut anything, and the search that uses them.
    """

    search: BestSearch
    batches: Iterator[MatchBatch] | None = None
    thresholds: Thresholds | None = None
    run: Run | None = None


@dataclass(frozen=True)
class Asked:
    """What the caller asks for.

    Args:
        strategy: a strategy, or ``auto``.
        backend: the backend of a pass.
        by_day: whether only matches decided on the same UTC day compete.
    """

    strategy: str
    backend: str
    by_day: bool


def choose_strategy(
    pattern: Pattern, events: pa.Table, able: Strategies, asked: Asked, begin: Callable[[], Run]
) -> StrategyRun:
    """Choose the strategy, and begin it.

    Args:
        pattern: with a ranking.
        events: the events table.
        able: the strategies that the pattern allows.
        asked: what the caller asks for.
        begin: gives a search with the scans of all branches.

    Raises:
        UsageError: the strategy asked for is not allowed.
    """
    assert pattern.extras.ranking is not None, "only ranked patterns get here"
    daily, wanted = day_competition_of(pattern) if asked.by_day else None, asked.strategy
    why_not, run = dict(able.why_not), None
    for strategy in able.allowed if wanted == "auto" else (wanted,):
        if strategy == "A" or strategy in why_not:
            continue
        run = begin() if run is None else run
        search = BestSearch(strategy, "as asked for" if wanted == strategy else said(why_not))
        if strategy == "B":
            found = paths(pattern, run, events, asked.backend, search, daily)
            if not isinstance(found, str):
                return StrategyRun(search, batches=found)
            why_not["B"] = found
        else:
            thresholds = Thresholds(pattern.extras.ranking.rule, pattern.window_us, search, daily)
            branches = bounded_branches(pattern, run.scans, thresholds)
            if not isinstance(branches, str):
                if not thresholds.on:
                    return StrategyRun(search, run=run)
                run.bounded = branches
                return StrategyRun(search, thresholds=thresholds, run=run)
            why_not["C"] = branches
    if wanted in why_not:
        raise UnfitOption.strategy(wanted, why_not[wanted])
    return StrategyRun(BestSearch("A", "as asked for" if wanted == "A" else said(why_not)))
