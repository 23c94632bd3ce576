"""The threshold of each list: the score of its last row, below which no match can be among its best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.language import ast
from chainlake.cep.ranking.rule import Rule, Score
from chainlake.cep.search.bounding.arrays import Columns
from chainlake.cep.search.bounding.lists import DayCompetition, Periods
from chainlake.cep.search.statistics import BestSearch
from chainlake.errors import InputError

#: Bounds are switched off if less than a share of the first partial matches that had a threshold was cut.
TRIED, WORTH = 5_000, 0.05
#: How many matches are found before thresholds are updated: at first, and later as a share of all so far.
BLOCK, SHARE = 256, 0.25
#: For how many lists thresholds are kept at most.
MOST_LISTS = 1 << 22
#: No limit on how many matches are found.
_ANY = 1 << 40
#: How far below a threshold a bound must be, to allow for rounding.
_SLACK = 1e-9


@dataclass(frozen=True)
class Bounds:
    """What the bounds of a branch depend on, apart from the events.

    Args:
        score: how criteria become a score.
        nodes: the criteria of the branch.
        period: ``all``; ``last`` or ``first`` for periods that the last or the first event alone decides; or ``hop``
            where no single event does, or a match is in several.
        end: the name whose event decides the period, or empty if only a whole match does.
        per: the names each of which gives the values of ``FOR EACH``; None if there is no ``FOR EACH``.
        strict: whether times are in µs.
    """

    score: Score
    nodes: tuple[ast.Node, ...]
    period: str
    end: str
    per: frozenset[str] | None
    strict: bool


@dataclass
class Thresholds:
    """The thresholds of all lists of one search, which grow while matches are found.

    Args:
        rule: the ranking.
        window: how many ticks apart the events of a match are at most.
        counts: counts what the bounds did.
        daily: whether and how matches compete by the day of the decision.
        on: whether bounds are used; they are switched off if they do not pay.
    """

    rule: Rule
    window: int
    counts: BestSearch
    daily: DayCompetition | None = None
    on: bool = True
    theta: np.ndarray = field(default_factory=lambda: np.zeros(0))
    per: dict[str, int] = field(default_factory=dict)
    _where: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    _kept: int = 0

    def begin(self, data: Dataset, per: Sequence[str]) -> str | None:
        """Set up the thresholds before any match is found.

        Args:
            data: the events.
            per: all values of ``FOR EACH`` that matches can have, as JSON arrays.

        Returns:
            why there are no thresholds for these events, or None.
        """
        try:
            self.periods = Periods(self.rule.period, self.window, data.real(data.ts), self.daily)
        except InputError:
            return "an event has no calendar date"
        self.per = {text: number for number, text in enumerate(dict.fromkeys(per or ["[]"]))}
        if len(self.periods) * len(self.per) > MOST_LISTS:
            return f"there are more than {MOST_LISTS:,} lists"
        least = -np.inf if self.rule.least is None else _below(self.rule.least)
        self.theta = np.full(len(self.periods) * len(self.per), least)
        self._floor = least
        return None

    @property
    def room(self) -> int:
        """How many matches may be found before thresholds are updated."""
        if not self.on:
            return _ANY
        return max(BLOCK, int(SHARE * self.counts.complete), self._kept)

    def learn(self, lists: SeenLists, worst: np.ndarray, kept: int) -> None:
        """Update the thresholds from the lists.

        Args:
            lists: all lists that were seen.
            worst: for the first of them, the sort key of the last row, infinite where a list is not full.
            kept: how many rows are remembered.
        """
        known = len(self._where)
        if len(lists.starts) > known:
            starts, days = (np.array(one[known:], np.int64) for one in (lists.starts, lists.days))
            codes = np.array([self.per[lists.text(number)] for number in range(known, len(lists.starts))], np.int64)
            where = self.periods.numbers(starts, days) * len(self.per) + codes
            self._where = np.concatenate([self._where, where])
        full = np.flatnonzero(np.isfinite(worst))
        score = -worst[full]
        if self.rule.quantum is not None:
            score = (score - 0.5) * self.rule.quantum
        self.theta[self._where[full]] = np.maximum(self._floor, _below(score))
        self._kept = kept

    def count(self, partial: int, tried: int, cut: int) -> None:
        """Count partial matches, and switch the bounds off if they do not pay."""
        before = self.counts.tried
        self.counts.partial += partial
        self.counts.tried += tried
        self.counts.cut += cut
        if before < TRIED <= self.counts.tried and self.counts.cut < WORTH * self.counts.tried:
            self.on, self.counts.switched_off = False, True


class SeenLists:
    """The lists that matches found so far belong to.

    Args:
        starts: the beginnings of their periods.
        per: the numbers of their values of ``FOR EACH``.
        days: the days of the decisions.
        texts: the values of ``FOR EACH``, by number, as JSON arrays.
    """

    def __init__(self, starts: Sequence[int], per: Sequence[int], days: Sequence[int], texts: Sequence[str]) -> None:
        self.starts, self.days, self._per, self._texts = starts, days, per, texts

    def text(self, number: int) -> str:
        """The values of ``FOR EACH`` of a list, as a JSON array."""
        return self._texts[self._per[number]]


@dataclass
class BoundedBranch:
    """A branch that is searched with thresholds.

    Args:
        thresholds: the thresholds.
        bounds: what its bounds depend on.
        per: for each name that gives them, the number of each candidate's values of ``FOR EACH``, by row of the data.
    """

    thresholds: Thresholds
    bounds: Bounds
    per: Mapping[str, np.ndarray]

    def columns(self, scan: Scan) -> Columns:
        """The columns from which bounds on a scan are computed."""
        return Columns(scan, self.bounds.strict)


def _below(score: np.ndarray | float) -> np.ndarray | float:
    return score - _SLACK * np.maximum(1.0, np.abs(score))
