"""Which matches of a ranked pattern can be among its best, and what their rows say so that they can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.lists import Values
from chainlake.cep.ranking.rule import value_names
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.ranked import Best
from chainlake.cep.values.arrow import int64_array, numpy_of
from chainlake.days import US_PER_DAY


def keeps_all(pattern: Pattern) -> bool:
    """Whether no match of a ranked pattern may be left out: each can use events up, or exclude a worse one."""
    policy, ranking = pattern.extras.policy, pattern.extras.ranking
    return (policy is not None and policy.consumes) or (ranking is not None and ranking.rule.non_overlapping)


class Candidates:
    """Takes all matches of a search, gives those that can be among the best, with what they are compared by.

    What is left out is worse than enough others that are decided on the same day, so that it does not matter which
    matches of other days there are, or come.

    Args:
        pattern: with a ranking.
        events: the table in which the matches were found.

    Attributes:
        unscored: matches without a score: a criterion is missing or not finite.
    """

    def __init__(self, pattern: Pattern, events: pa.Table) -> None:
        self._pattern = _by_day(pattern)
        self._best = Best(self._pattern, events, trailing=False)
        self._all = keeps_all(pattern)
        self.unscored = 0

    def of(self, batches: Iterable[MatchBatch]) -> Iterator[MatchBatch]:
        """The candidates among all matches of a search.

        Raises:
            InputError: a criterion of a product is not from 0 to 1.
        """
        for batch in batches:
            dated = self._dated(batch)
            self.unscored += int(np.isnan(self._best.scores(dated)[:, 0]).sum())
            if self._all:
                yield self._described(dated)
            else:
                self._best.add_all([dated])
        entries = self._best.keeper.entries()
        if entries is None:
            return
        kept = np.unique(entries.match)
        for numbers, batch in self._best.pool:
            some = batch.only(np.isin(numbers, kept))
            if some.n:
                yield self._described(some)

    def _dated(self, batch: MatchBatch) -> MatchBatch:
        """With the day of the decision as the last value that says which list a match is in."""
        _, per, _ = value_names(self._best.rule)
        return replace(batch, measures={**batch.measures, per[-1]: int64_array(batch.decision_us // US_PER_DAY)})

    def _described(self, batch: MatchBatch) -> MatchBatch:
        """With the columns that ``ranking_columns`` names in the place of the values that they are made of."""
        criteria, per, distinct = value_names(self._best.rule)
        score = self._best.scores(batch)
        visible = [one.name for one in self._pattern.extras.measures]
        columns: dict[str, pa.Array] = {name: batch.measures[name] for name in visible}
        columns["per"] = _texts(batch, per[:-1])
        columns["distinct_on"] = _texts(batch, distinct)
        for number in range(score.shape[1]):
            columns[f"score_{number + 1}"] = _numbers(score[:, number])
        for number, name in enumerate(criteria):
            values = batch.measures[name]
            found = np.full(batch.n, np.nan)
            if not pa.types.is_null(values.type):
                found = numpy_of(pc.fill_null(values.cast(pa.float64(), safe=False), float("nan")))
            columns[f"criterion_{number + 1}"] = _numbers(found)
        return replace(batch, measures=columns)


def _by_day(pattern: Pattern) -> Pattern:
    """The pattern with a list for each day on which matches are decided."""
    ranking = pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    rule = replace(ranking.rule, per=ranking.rule.per + 1)
    return replace(pattern, extras=replace(pattern.extras, ranking=replace(ranking, rule=rule)))


def _numbers(values: np.ndarray) -> pa.Array:
    """Doubles, NaN as null."""
    return pa.array(values, pa.float64(), mask=np.isnan(values))


def _texts(batch: MatchBatch, names: tuple[str, ...]) -> pa.Array:
    """Values of each match as a JSON array."""
    values = Values()
    codes = values.codes([batch.measures[name] for name in names], batch.n)
    return pa.array(values.texts or [json.dumps([])], pa.string()).take(int64_array(codes))
