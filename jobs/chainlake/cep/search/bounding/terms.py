"""A score as a sum of terms, each of one event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chainlake.cep.language import ast
from chainlake.cep.ranking.kinds import COMBINES
from chainlake.cep.ranking.rule import Criterion, Score
from chainlake.cep.search.bounding.score import is_leaf


@dataclass(frozen=True)
class Term:
    """A part of a score that looks at one event.

    Args:
        name: the name of the event; empty if the term is the same for all matches.
        node: its value.
        sign: 1 or -1; the value is multiplied by it first.
        criterion: the criterion that it is a part of, whose weight applies, and whose ``NORM``, if it is of one event.
    """

    name: str
    node: ast.Node
    sign: int
    criterion: Criterion


def terms_of(score: Score, nodes: Sequence[ast.Node]) -> tuple[Term, ...] | str:
    """The terms of a score, or why it is not a sum of terms of one event each.

    Args:
        score: how criteria are combined.
        nodes: the values of the criteria.
    """
    if score.combine and not COMBINES[score.combine].adds:
        return f"COMBINE {score.combine} is not a sum"
    found: list[Term] = []
    for criterion, node in zip(score.criteria, nodes, strict=True):
        if criterion.norm is not None and not is_leaf(node):
            return "NORM of several events is not a sum of terms of one event each"
        for part, sign in _parts(node, 1):
            if not is_leaf(part):
                return "the score is not a sum of terms of one event each"
            if not part.names:
                found.append(Term("", part, sign, criterion))
            else:
                found.append(Term(next(iter(part.names)), part, sign, criterion))
    return tuple(found)


def _parts(node: ast.Node, sign: int) -> Iterator[tuple[ast.Node, int]]:
    """The summands of a value, split until they look at one event where possible, with their signs."""
    match node:
        case _ if is_leaf(node):
            yield node, sign
        case ast.Negative(of):
            yield from _parts(of, -sign)
        case ast.Arithmetic("+" | "-" as op, left, right):
            yield from _parts(left, sign)
            yield from _parts(right, sign if op == "+" else -sign)
        case _:
            yield node, sign
