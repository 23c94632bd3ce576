"""The values by which a query ranks its matches."""

from __future__ import annotations

from collections.abc import Iterator

from chainlake.cep.language import ast
from chainlake.cep.language.resolve import IN_A_MATCH


def ranked_values(query: ast.Query) -> Iterator[tuple[ast.Node, frozenset[str]]]:
    """The values by which matches are ranked, each with the names of events that it may mention."""
    names = [frozenset(e.name for e in ast.events_of(b.structure) if e.role in IN_A_MATCH) for b in query.branches]
    every = frozenset().union(*names)
    scores = [(branch.score, own) for branch, own in zip(query.branches, names, strict=True)]
    if query.ranking is not None:
        scores.append((query.ranking.score, every))
        yield from ((value, every) for value in (*query.ranking.per, *query.ranking.distinct))
    yield from ((one.value, own) for score, own in scores if score is not None for one in score.criteria)
