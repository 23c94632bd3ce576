"""Compiles a ranking as written into a rule of plain numbers and the values that it compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chainlake.cep.compiling.errors import UnfitAmount, UnfitRanking
from chainlake.cep.compiling.tail import Measure, Ranking, check_members, in_branch
from chainlake.cep.language import ast
from chainlake.cep.language.check import Checker
from chainlake.cep.language.errors.structure import NotTogether, TakenName
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.ranking.rule import COLUMNS, Criterion, Period, Rule, Score, value_names

#: How many windows a match can be in at most.
MOST_WINDOWS = 1000


def ranking_of(
    source: SourceText, query: ast.Query, branches: tuple[Branch, ...], resolver: Resolver, checker: Checker
) -> Ranking | None:
    """The ranking of a resolved query, or None if the query wants all matches.

    Raises:
        DefinitionError: it is incomplete, contradicts itself, or cannot be combined with the rest.
    """
    own = [branch.score for branch in query.branches]
    wanted = query.ranking
    if wanted is None:
        for score in own:
            if score is not None:
                raise UnfitRanking.no_top(source, score.at)
        return None
    scores = _scores(source, wanted, own)
    _check_rest(source, query)
    amounts = _Amounts(source, resolver)
    compiled = tuple(map(amounts.score, scores))
    if len({score.width for score in compiled}) > 1:
        raise UnfitRanking.unlike_lengths(source, scores[-1].at)
    rule = amounts.rule(wanted, compiled)
    criteria = [one for score in scores for one in score.criteria]
    ends = tuple(
        tuple((end, checker.kind(amounts.resolved(end))) for end in one.norm) if one.norm else () for one in criteria
    )
    written = (*(one.value for one in criteria), *wanted.per, *wanted.distinct)
    found = Ranking(rule, (), written, len(criteria), ends)
    found.check(source, checker)
    for branch in branches:
        for value in _values(wanted, scores, branch):
            check_members(source, value, branch)
    names = [name for group in value_names(rule) for name in group]
    null = ast.Case((), None)
    each = [list(_values(wanted, scores, branch, rule.criteria)) for branch in branches]
    values = tuple(
        Measure(name, "any", tuple(in_branch(of[number] or null, b) for of, b in zip(each, branches, strict=True)))
        for number, name in enumerate(names)
    )
    return replace(found, values=values)


def _scores(source: SourceText, wanted: ast.Ranking, own: list[ast.Score | None]) -> tuple[ast.Score, ...]:
    """The one score of all branches, or one for each branch."""
    scores = tuple(score for score in own if score is not None)
    if wanted.score is not None:
        if scores:
            raise UnfitRanking.two_places(source, scores[0].at)
        return (wanted.score,)
    if not scores:
        raise UnfitRanking.no_score(source, wanted.at)
    if len(scores) < len(own):
        raise UnfitRanking.branch_without(source, scores[0].at, own.index(None) + 1)
    return scores


def _values(
    wanted: ast.Ranking, scores: tuple[ast.Score, ...], branch: Branch, criteria: int = 0
) -> Iterator[ast.Node]:
    """The values computed for the matches of a branch, with nulls added up to a number of criteria."""
    score = scores[branch.written if len(scores) > 1 else 0]
    yield from (one.value for one in score.criteria)
    yield from (ast.Case((), None) for _ in range(criteria - len(score.criteria)))
    yield from (*wanted.per, *wanted.distinct)


def _check_rest(source: SourceText, query: ast.Query) -> None:
    """Check that nothing else in the query conflicts with a ranking."""
    selection = query.selection
    if selection is not None and selection.context == "cumulative":
        raise NotTogether.cumulative_and_rank(source, selection.at)
    named = [(event.name, event.at) for b in query.branches for event in ast.events_of(b.structure)]
    for name, at in (*named, *((one.name, one.at) for one in query.measures)):
        if name.lower() in COLUMNS:
            raise TakenName.ranked_column(source, at, name)


@dataclass(frozen=True)
class _Amounts:
    """Reads the numbers and durations of a ranking.

    Args:
        source: for errors.
        resolver: knows the parameters.
    """

    source: SourceText
    resolver: Resolver

    def rule(self, wanted: ast.Ranking, scores: tuple[Score, ...]) -> Rule:
        """The rule that the ranking states."""
        for node, word in ((wanted.least, "AT LEAST"), (wanted.quantum, "QUANTUM")):
            if node is not None and scores[0].combine == "lex":
                raise UnfitRanking.several_numbers(self.source, node.at, word)
        least = None if wanted.least is None else self.number(wanted.least)
        quantum = None if wanted.quantum is None else self.number(wanted.quantum)
        if quantum is not None and wanted.quantum is not None and not quantum > 0:
            raise UnfitAmount.quantum(self.source, wanted.quantum.at)
        return Rule(
            scores,
            self.whole(wanted.count, "TOP"),
            self.period(wanted.period),
            wanted.with_ties,
            len(wanted.per),
            len(wanted.distinct),
            1 if wanted.most is None else self.whole(wanted.most, "AT MOST"),
            wanted.non_overlapping,
            least,
            quantum,
        )

    def score(self, score: ast.Score) -> Score:
        """A score."""
        several = len(score.criteria) > 1
        if several and not score.combine:
            raise UnfitRanking.uncombined(self.source, score.criteria[1].at)
        for one in score.criteria:
            if one.weight is not None and score.combine != "wsum":
                raise UnfitRanking.weight(self.source, one.weight.at)
        return Score(
            tuple(self.criterion(one) for one in score.criteria),
            "" if score.combine == "lex" and not several else score.combine,
        )

    def criterion(self, one: ast.Criterion) -> Criterion:
        """A criterion."""
        weight = 1.0 if one.weight is None else self.number(one.weight)
        if one.norm is None:
            return Criterion(one.highest, None, weight)
        low, high = map(self.number, one.norm)
        if not low < high:
            raise UnfitRanking.norm_order(self.source, one.norm[0].at)
        return Criterion(one.highest, (low, high), weight)

    def period(self, period: ast.Period) -> Period:
        """A period."""
        second = 1_000_000 if self.resolver.strict else 1
        zone = period.zone or "UTC"
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise UnfitAmount.zone(self.source, period.at, zone) from None
        size = 0 if period.size is None else self.ticks(period.size, period.kind.upper())
        step = 0 if period.step is None else self.ticks(period.step, "STEP")
        if period.step is not None and size > MOST_WINDOWS * step:
            raise UnfitAmount.windows(self.source, period.step.at, MOST_WINDOWS)
        offset = 0 if period.offset is None else self.ticks(period.offset, "OFFSET", signed=True)
        return Period(period.kind, size, step, offset, period.by_first, zone, second)

    def resolved(self, node: ast.Node) -> ast.Node:
        """The node with parameters replaced."""
        return self.resolver.computed(node, frozenset())

    def number(self, node: ast.Node) -> float:
        """A number, or the seconds of a duration."""
        found = self.resolved(node)
        if isinstance(found, ast.Duration):
            return float(found.seconds)
        value = found.value if isinstance(found, ast.Literal) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnfitAmount.number(self.source, node.at)
        return float(value)

    def whole(self, node: ast.Node, word: str) -> int:
        """A whole number of at least 1."""
        found = self.resolved(node)
        value = found.value if isinstance(found, ast.Literal) else None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UnfitAmount.whole(self.source, node.at, word)
        return value

    def ticks(self, node: ast.Node, word: str, *, signed: bool = False) -> int:
        """A duration in ticks."""
        found = self.resolved(node)
        if isinstance(found, ast.Duration):
            size = found.seconds * 1_000_000
        elif self.resolver.strict:
            raise UnfitAmount.unit(self.source, node.at, word)
        else:
            size = Fraction(repr(self.number(node)))
        whole = int(size // 1)
        if whole < 1 and not signed or abs(whole) >= 1 << 61:
            raise UnfitAmount.length(self.source, node.at, word, whole)
        return whole
