"""How far apart neighbouring events of a match may be, where the order of its names determines which are neighbours."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch, Clause


def neighbours(branch: Branch) -> tuple[tuple[str, str], ...] | None:
    """The pairs of names whose events are neighbours in every match; None if that differs from match to match."""
    if branch.kleene or branch.stream is not None:
        return None
    names = sorted(branch.positive, key=lambda name: len(branch.before[name].intersection(branch.positive)))
    pairs = tuple(pairwise(names))
    return pairs if all(one in branch.before[other] for one, other in pairs) else None


def with_pause(branch: Branch, pause: int | None, strict: bool) -> Branch:
    """The branch with the pause as conditions, which a search tests early; the same branch if none can express it.

    Args:
        branch: the branch.
        pause: in ticks, or None.
        strict: whether times are in µs (else plain numbers).
    """
    pairs = neighbours(branch)
    if pause is None or pairs is None:
        return branch
    length = ast.Duration(Fraction(pause, 1_000_000)) if strict else ast.Literal(pause)
    clauses = tuple(
        Clause((ast.Compare("<=", ast.Ref(later, "ts"), ast.Arithmetic("+", ast.Ref(earlier, "ts"), length)),))
        for earlier, later in pairs
    )
    return replace(branch, clauses=(*branch.clauses, *clauses))
