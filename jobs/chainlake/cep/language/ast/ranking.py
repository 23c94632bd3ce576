"""Which matches are the best: the criteria, how they are combined, and among which matches a match competes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from chainlake.cep.language.ast.nodes import AT, Node, Placed
from chainlake.cep.language.source_text import At


@dataclass(frozen=True)
class Criterion(Placed):
    """``MAX(value) NORM 0 .. 0.1 WEIGHT 2``.

    Args:
        highest: whether more is better (``MAX``).
        value: what is compared.
        norm: the values that count as worst and best (under ``MIN`` as best and worst), or None.
        weight: the weight under ``COMBINE wsum``, or None.
    """

    highest: bool
    value: Node
    norm: tuple[Node, Node] | None = None
    weight: Node | None = None
    at: At = AT


@dataclass(frozen=True)
class Score(Placed):
    """``RANK BY criterion, … COMBINE word``.

    Args:
        criteria: in the order written.
        combine: ``sum``, ``avg``, ``wsum``, ``min``, ``max``, ``product``, ``lex``, or empty.
    """

    criteria: tuple[Criterion, ...]
    combine: str = ""
    at: At = AT

    def with_values(self, change: Callable[[Node], Node]) -> Score:
        """The score with each value changed."""
        return replace(self, criteria=tuple(replace(one, value=change(one.value)) for one in self.criteria))


@dataclass(frozen=True)
class Period(Placed):
    """By time, the matches among which a match competes.

    Args:
        kind: a word of ``cep/ranking/kinds.py`` in small letters.
        zone: the time zone of a calendar period; empty for UTC.
        size: of ``bucket`` and ``hop``.
        step: of ``hop``.
        by_first: whether a match belongs where its first event is, not its last.
        offset: of ``bucket`` and ``hop``, or None.
    """

    kind: str
    zone: str = ""
    size: Node | None = None
    step: Node | None = None
    by_first: bool = False
    offset: Node | None = None
    at: At = AT


@dataclass(frozen=True)
class Ranking(Placed):
    """What a query says about its best matches.

    Args:
        score: the score of all branches, or None if each has its own.
        count: how many matches of a period are kept: a number, or a parameter.
        period: the period within which they compete.
        with_ties: whether matches as good as the last one are kept, too.
        per: values; each combination of them has its own list.
        distinct: values in which at most ``most`` kept matches agree.
        most: see ``distinct``.
        non_overlapping: whether no event is in two kept matches.
        least: the smallest score that is kept, or None.
        quantum: the step of scores: those that round to the same multiple are equal; or None.
    """

    score: Score | None
    count: Node
    period: Period
    with_ties: bool = False
    per: tuple[Node, ...] = ()
    distinct: tuple[Node, ...] = ()
    most: Node | None = None
    non_overlapping: bool = False
    least: Node | None = None
    quantum: Node | None = None
    at: At = AT

    def with_values(self, change: Callable[[Node], Node]) -> Ranking:
        """The ranking with each value changed that is computed from a match."""
        return replace(
            self,
            score=None if self.score is None else self.score.with_values(change),
            per=tuple(map(change, self.per)),
            distinct=tuple(map(change, self.distinct)),
        )

    @property
    def amounts(self) -> Iterator[Node]:
        """The numbers and durations that are the same for all matches."""
        period = self.period
        some = (self.count, self.most, self.least, self.quantum, period.size, period.step, period.offset)
        yield from (one for one in some if one is not None)
