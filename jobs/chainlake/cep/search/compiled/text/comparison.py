"""Clauses that are one comparison of a name's event with something bound."""

from __future__ import annotations

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Clause

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def comparison(name: str, clause: Clause) -> tuple[str, ast.Node, ast.Node] | None:
    """``op``, the side of ``name`` and the other side of a clause that is one comparison of these."""
    match clause.literals:
        case (ast.Compare(op, left, right),) if op in _MIRRORED and not clause.aggregated:
            if left.names == {name} and name not in right.names:
                return op, left, right
            if right.names == {name} and name not in left.names:
                return _MIRRORED[op], right, left
    return None
