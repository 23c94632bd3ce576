"""Clauses that are one comparison of a name's event with something bound, and what two of them imply."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.plan.steps import Plan, Step

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_DOWN, _UP = ("<", "<="), (">", ">=")


def comparison(name: str, clause: Clause) -> tuple[str, ast.Node, ast.Node] | None:
    """``op``, the side of ``name`` and the other side of a clause that is one comparison of these."""
    match clause.literals:
        case (ast.Compare(op, left, right),) if op in MIRRORED and not clause.aggregated:
            if left.names == {name} and name not in right.names:
                return op, left, right
            if right.names == {name} and name not in left.names:
                return MIRRORED[op], right, left
    return None


@dataclass(frozen=True)
class Pairing:
    """The last two steps can be run in reverse order.

    Args:
        number: the number of the last step.
        clause: what the two steps imply between the last name and one that is bound before both.
    """

    number: int
    clause: Clause

    def step(self, plan: Plan) -> Step:
        """The last step as it is while the preceding one has bound nothing."""
        last = plan.steps[self.number]
        return replace(last, scope=last.scope.among(plan.order[: self.number - 1]), clauses=(self.clause,))


def pairing_of(plan: Plan) -> Pairing | None:
    """The pairing that allows the last two steps to be run in reverse order, or None."""
    number = len(plan.steps) - 1
    if number < 2:
        return None
    middle, last = plan.steps[number - 1 :]
    if any(step.kleene or step.forbidden or step.scope.apart_from for step in (middle, last)):
        return None
    for one in last.clauses:
        match comparison(last.name, one):
            case (first, ast.Ref() as mine, ast.Ref(name, attr)) if name == middle.name:
                for other in middle.clauses:
                    match comparison(middle.name, other):
                        case (second, ast.Ref(_, same), ast.Ref(bound) as limit) if same == attr:
                            op = both(first, second)
                            if op and bound in plan.order[: number - 1] and bound not in plan.branch.kleene:
                                return Pairing(number, Clause((ast.Compare(op, mine, limit),)))
    return None


def both(first: str, second: str) -> str | None:
    """How x compares with z if ``x first y`` and ``y second z``, which must have one direction; else None."""
    for ops in (_DOWN, _UP):
        if first in ops and second in ops:
            return ops[int(first == second == ops[1])]
    return None
