"""How far candidates are from fulfilling a condition that they fail, where that is a number."""

from __future__ import annotations

import numpy as np

from chainlake.cep.conditions.evaluate import View
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.values.values import as_float

#: Kinds of values that differ by a number.
_NUMBERS = ("number", "time", "duration")


def distances(clause: Clause, view: View) -> np.ndarray:
    """How far the two sides of a comparison are apart in each row; infinite where that is not a number.

    Args:
        clause: the condition; one of several comparisons, or of members of sets, has no distance.
        view: the rows.

    Returns:
        Distances in the unit of the comparison's values, times in µs.
    """
    unknown = np.full(view.n, np.inf)
    if len(clause.literals) != 1 or clause.heavy:
        # Functions of pairs are dear, and their answers were not kept.
        return unknown
    (literal,) = clause.literals
    if not isinstance(literal, ast.Compare) or literal.plain & _sets(view):
        return unknown
    left, right = view.value(literal.left), view.value(literal.right)
    if left.kind not in _NUMBERS or right.kind not in _NUMBERS:
        return unknown
    apart = np.abs(np.broadcast_to(as_float(left) - as_float(right), (view.n,)))
    return np.where(np.isnan(apart), np.inf, apart)


def _sets(view: View) -> frozenset[str]:
    above = frozenset() if view.parent is None else _sets(view.parent)
    return above | frozenset(view.groups)
