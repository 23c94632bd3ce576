"""Comparisons of single events, as the conditions of a plan state and imply them."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.cep.events.dataset import Dataset
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.steps import Plan
from chainlake.cep.search.compiled.text.comparison import MIRRORED, both, comparison
from chainlake.cep.search.compiled.text.facts import Form, form_of

SMALLER = ("<", "<=")
#: A name and an attribute of its events.
_Value = tuple[str, str]


@dataclass(frozen=True)
class PreFilter:
    """A comparison of a candidate with another event of its match.

    Args:
        name: the name whose candidates are compared.
        attr: their attribute.
        op: ``candidate op other``.
        other: the other name.
        other_attr: its attribute.
        before: whether events of ``other`` may come before the candidate.
        behind: whether they may come after it.
    """

    name: str
    attr: str
    op: str
    other: str
    other_attr: str
    before: bool
    behind: bool

    @classmethod
    def between(cls, branch: Branch, one: _Value, op: str, other: _Value) -> PreFilter:
        """The comparison ``one op other`` of a branch."""
        before, behind = (other[0] not in names[one[0]] for names in (branch.after, branch.before))
        return cls(*one, op, *other, before, behind)


def prefilters_of(plan: Plan, number: int, data: Dataset) -> list[PreFilter]:
    """The comparisons of a step with single events that are bound before it."""
    bound = plan.order[:number]
    return [
        PreFilter.between(plan.branch, (plan.order[number], attr), op, other)
        for attr, op, other in _stated(plan, number, data)
        if other[0] in bound
    ]


def all_prefilters(plan: Plan, data: Dataset) -> list[PreFilter]:
    """The comparisons of any two single events of a match that the conditions state or imply, from both sides.

    With ``a.x < b.x AND b.x < c.x``, each a is also below its c.
    """
    found: dict[tuple[_Value, _Value], str] = {}
    for number, step in enumerate(plan.steps):
        for attr, op, other in _stated(plan, number, data):
            _note(found, (step.name, attr), op, other)
    size = 0
    while size != len(found):
        size = len(found)
        for (one, middle), first in list(found.items()):
            for (again, other), second in list(found.items()):
                implied = both(first, second) if again == middle and other[0] != one[0] else None
                if implied:
                    _note(found, one, implied, other)
    return [PreFilter.between(plan.branch, one, op, other) for (one, other), op in found.items()]


def _stated(plan: Plan, number: int, data: Dataset) -> list[tuple[str, str, _Value]]:
    """The comparisons that a step's clauses are: an attribute of its event, the operator, and the other value."""
    step, found = plan.steps[number], list[tuple[str, str, _Value]]()
    if step.kleene or step.scope.apart_from:
        return found
    for clause in step.clauses:
        match comparison(step.name, clause):
            case (op, ast.Ref(_, attr), ast.Ref(other, other_attr)) if op != "=":
                form = form_of(data.columns[attr])
                if other not in plan.branch.kleene and _is_ordered(form) and form == form_of(data.columns[other_attr]):
                    found.append((attr, op, (other, other_attr)))
    return found


def _note(found: dict[tuple[_Value, _Value], str], one: _Value, op: str, other: _Value) -> None:
    """Note a comparison from both sides, unless one that is as strict is known."""
    known = found.get((one, other))
    if known is None or known == op + "=":
        found[one, other] = op
        found[other, one] = MIRRORED[op]


def _is_ordered(form: Form) -> bool:
    return form.letter in ("f", "i") and not form.nullable
