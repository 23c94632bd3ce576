"""Which ways of finding the best matches a ranked pattern allows (docs/semantics.md#ranking).

* ``A``: all matches are listed, and the best of each list kept.
* ``B``: one pass over the events keeps the best beginnings; matches are never listed.
* ``C``: the search leaves out partial matches whose best completion is worse than what has been found.

All of them give the same rows; B and C are allowed only where that is certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.completion import completion_of
from chainlake.cep.plan.partition import linked_by, same_in_match
from chainlake.cep.plan.pause import neighbours
from chainlake.cep.ranking.kinds import COMBINES
from chainlake.cep.ranking.rule import Rule
from chainlake.cep.search.bounding.lists import DayCompetition
from chainlake.cep.search.bounding.score import unbounded
from chainlake.cep.search.bounding.terms import terms_of
from chainlake.cep.search.bounding.thresholds import Bounds

STRATEGIES = ("auto", "A", "B", "C")


@dataclass(frozen=True)
class Strategies:
    """What a pattern allows.

    Args:
        why_not: for ``B`` and ``C``, unless they are allowed, why not, in one phrase.
    """

    why_not: Mapping[str, str]

    @property
    def allowed(self) -> tuple[str, ...]:
        """The strategies, the best one first."""
        return tuple(one for one in ("B", "C", "A") if one not in self.why_not)


def strategies(pattern: Pattern, *, ties_in_order: bool = False, trailing: bool = False) -> Strategies:
    """What a ranked pattern allows, whatever the events.

    Args:
        pattern: with a ranking.
        ties_in_order, trailing: as in ``SearchOptions``.
    """
    ranking = pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    general = _no_pruning(pattern, ranking.rule)
    if general is None and (ties_in_order or trailing):
        general = "an option of the library moves times or windows"
    if general is not None:
        return Strategies({"B": general, "C": general})
    found = {"B": _no_pass(pattern, ranking.rule), "C": _no_bounds(pattern, ranking.rule)}
    return Strategies({name: why for name, why in found.items() if why is not None})


def said(why_not: Mapping[str, str]) -> str:
    """Why no better strategy is used, in one phrase."""
    if len(why_not) == 2 and len(set(why_not.values())) == 1:
        return f"no B or C: {why_not['C']}"
    return "; ".join(f"no {name}: {why}" for name, why in sorted(why_not.items()))


def day_competition_of(pattern: Pattern) -> DayCompetition:
    """How the matches of a pattern compete by the day of the decision."""
    return DayCompetition(None if pattern.decision == "end" else pattern.window_us)


def bounds_of(pattern: Pattern, number: int, daily: DayCompetition | None = None) -> Bounds:
    """What the bounds of a branch depend on.

    Args:
        pattern: with a ranking.
        number: the number of the branch.
        daily: whether and how matches compete by the day of the decision.
    """
    ranking = pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    rule, branch = ranking.rule, pattern.branches[number]
    period = rule.period.kind
    if period not in ("all", "hop"):
        period = "first" if rule.period.by_first else "last"
    if daily is not None:
        # Either one event decides both the period and the day, or no single one does.
        period = "last" if daily.wait is None and period in ("all", "last") else "hop"
    pairs = neighbours(branch)
    ends = (
        (pairs[0][0], pairs[-1][1]) if pairs else (branch.positive[0],) * 2 if len(branch.positive) == 1 else ("", "")
    )
    end = "" if period in ("all", "hop") else ends[0 if period == "first" else 1]
    per = frozenset(per_values(pattern, number)) if rule.per else None
    return Bounds(rule.score(branch.written), criteria_of(pattern, number), period, end, per, pattern.strict)


def criteria_of(pattern: Pattern, number: int) -> tuple[ast.Node, ...]:
    """The criteria of a branch."""
    ranking = pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    count = len(ranking.rule.score(pattern.branches[number].written).criteria)
    return tuple(one.values[number] for one in ranking.values[:count])


def per_values(pattern: Pattern, number: int) -> dict[str, tuple[ast.Node, ...]]:
    """For each name whose event alone gives the values of ``FOR EACH``, these values; empty if there is none."""
    ranking = pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    rule, branch = ranking.rule, pattern.branches[number]
    values = tuple(one.values[number] for one in ranking.values[rule.criteria : rule.criteria + rule.per])
    names = frozenset[str]().union(*(value.names for value in values))
    if len(names) > 1 or any(value.aggregated for value in values):
        return {}
    by = names or frozenset(branch.positive[:1])
    match values:
        case (ast.Ref(_, attr, at),) if same_in_match(branch, attr):
            return {name: (ast.Ref(name, attr, at),) for name in branch.positive}
    return dict.fromkeys(by, values)


def _no_pruning(pattern: Pattern, rule: Rule) -> str | None:
    """Why all matches must be looked at, whatever their scores, or None."""
    extras = pattern.extras
    if extras.policy is not None:
        return "which matches are ranked is chosen among all of them"
    if extras.keep or pattern.neighbours:
        return "neighbours and largest matches are found block by block"
    if any(branch.sets for branch in pattern.branches):
        return "matches have sets"
    if rule.non_overlapping:
        return "with NON OVERLAPPING a better match can make room for worse ones"
    for score in rule.scores:
        how = COMBINES[score.combine] if score.combine else None
        if how is not None and how.within_one and any(one.norm is None for one in score.criteria):
            return f"with COMBINE {score.combine}, a number outside 0 to 1 is an error in any match"
        if how is not None and how.join is not None and how.bound is None:
            return f"scores of COMBINE {score.combine} have no bounds"
    return None


def _no_bounds(pattern: Pattern, rule: Rule) -> str | None:
    """Why C is not allowed, or None."""
    for number, branch in enumerate(pattern.branches):
        nodes = criteria_of(pattern, number)
        lex = rule.score(branch.written).combine == "lex"
        why = next((why for node in nodes[: 1 if lex else None] if (why := unbounded(node)) is not None), None)
        if why is not None:
            return why
        if rule.per and not per_values(pattern, number):
            return "FOR EACH looks at several events"
    return None


def _no_pass(pattern: Pattern, rule: Rule) -> str | None:
    """Why B is not allowed, whatever the events, or None."""
    branch = pattern.branches[0]
    pairs = neighbours(branch)
    if len(pattern.branches) > 1 or pairs is None:
        return "the pattern is not one sequence"
    if branch.negated or not completion_of(branch, pattern.extras.pause).is_nothing:
        return "forbidden events are looked for in whole matches"
    for word, said in (("WITH TIES", rule.with_ties), ("DISTINCT ON", rule.distinct), ("QUANTUM", rule.quantum)):
        if said:
            return f"{word} can ask for more than the best beginnings"
    if rule.period.by_first:
        return "the first event says which list a match is in"
    sequence = (pairs[0][0], *(later for _, later in pairs)) if pairs else branch.positive
    if tuple(name.name for name in pattern.names) != sequence:
        return "the names are not written in time order"
    why = _joined(pattern, branch)
    if why is not None:
        return why
    if rule.per and not _by_key(pattern):
        return "FOR EACH is not the key that all events of a match have in common"
    found = terms_of(rule.score(branch.written), criteria_of(pattern, 0))
    return found if isinstance(found, str) else None


def _by_key(pattern: Pattern) -> bool:
    """Whether ``FOR EACH`` has only the column that links all events of a match."""
    values = list(per_values(pattern, 0).values())
    match values:
        case [(ast.Ref(_, attr),), *_]:
            return attr == pattern.partition_key
    return False


def _joined(pattern: Pattern, branch: Branch) -> str | None:
    """Why not every beginning can be continued by any later event, or None."""
    key = pattern.partition_key
    for clause in branch.clauses:
        if len(clause.names) > 1 and (key is None or not linked_by(clause, key)):
            return "a condition compares events of a match"
    return None
