"""Which matches of a ranked pattern can be among its best, and the columns by which their rows are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.lists import texts_of
from chainlake.cep.ranking.rule import value_names
from chainlake.cep.search.bounding.strategy import said, strategies
from chainlake.cep.search.find import best_of, find
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.ranked import Best
from chainlake.cep.search.statistics import BestSearch, Statistics
from chainlake.cep.values.arrow import numpy_of


def keeps_all(pattern: Pattern) -> bool:
    """Whether no match of a ranked pattern may be left out, since each can use up events or exclude a worse match."""
    policy, ranking = pattern.extras.policy, pattern.extras.ranking
    return (policy is not None and policy.consumes) or (ranking is not None and ranking.rule.non_overlapping)


def find_candidates(
    pattern: Pattern,
    events: pa.Table,
    *,
    own: tuple[int, int] | None = None,
    backend: str = "auto",
    statistics: Statistics | None = None,
    options: SearchOptions | None = None,
) -> Iterator[MatchBatch]:
    """The matches that can be among the best, with the values by which they are compared.

    A match is left out if enough matches decided on the same day are better, whatever matches other days have or will
    have. So the result is a function of the day's matches alone: all ways of finding them give the same rows.

    Args:
        pattern: with a ranking.
        events, own, backend, statistics, options: as in :func:`chainlake.cep.search.find.find`; ``statistics.best``
            says how the matches were found. For a day that ``own`` cuts, there may be more matches than for the whole
            day (:func:`chainlake.cep.matches.best.thinned`).

    Raises:
        as ``find``; InputError: a criterion of a product is not from 0 to 1.
        UsageError: the strategy that is asked for is not allowed.
    """
    statistics = Statistics() if statistics is None else statistics
    options = SearchOptions() if options is None else options
    if keeps_all(pattern):
        best = Best(pattern, events, trailing=False)
        statistics.best = search = BestSearch("A", said(strategies(pattern).why_not))
        options = replace(options, unranked=True, strategy="auto" if options.strategy == "A" else options.strategy)
        for batch in find(pattern, events, own=own, backend=backend, statistics=statistics, options=options):
            search.complete += batch.n
            search.unscored += int(np.isnan(best.scores(batch)[:, 0]).sum())
            yield _described(best, batch)
        return
    options = replace(options, by_day=True)
    best = best_of(pattern, events, own=own, backend=backend, statistics=statistics, options=options)
    entries = best.keeper.entries()
    if entries is None:
        return
    kept = np.unique(entries.match)
    for numbers, batch in best.pool:
        some = batch.only(np.isin(numbers, kept))
        if some.n:
            yield _described(best, some)


def _described(best: Best, batch: MatchBatch) -> MatchBatch:
    """The batch with the columns of ``ranking_columns`` in place of the values that they are made from."""
    criteria, per, distinct = value_names(best.rule)
    score = best.scores(batch)
    visible = [one.name for one in best.pattern.extras.measures]
    columns: dict[str, pa.Array] = {name: batch.measures[name] for name in visible}
    columns["per"] = texts_of([batch.measures[name] for name in per], batch.n)
    columns["distinct_on"] = texts_of([batch.measures[name] for name in distinct], batch.n)
    for number in range(score.shape[1]):
        columns[f"score_{number + 1}"] = _numbers(score[:, number])
    for number, name in enumerate(criteria):
        values = batch.measures[name]
        found = np.full(batch.n, np.nan)
        if not pa.types.is_null(values.type):
            found = numpy_of(pc.fill_null(values.cast(pa.float64(), safe=False), float("nan")))
        columns[f"criterion_{number + 1}"] = _numbers(found)
    return replace(batch, measures=columns)


def _numbers(values: np.ndarray) -> pa.Array:
    """Doubles, NaN as null."""
    return pa.array(values, pa.float64(), mask=np.isnan(values))
