"""The aggregates of a plan."""

from __future__ import annotations

from chainlake.cep.language import ast
from chainlake.cep.plan.steps import Plan


def aggregates_of(plan: Plan, name: str) -> list[ast.Aggregate]:
    """The aggregates over a repeated name in any clause of the branch, each once."""
    nodes = (node for clause in plan.branch.clauses for literal in clause.literals for node in literal.walk())
    return list(dict.fromkeys(node for node in nodes if isinstance(node, ast.Aggregate) and node.name == name))
