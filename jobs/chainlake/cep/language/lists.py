"""Aggregates over lists: if ``last20`` holds lists, ``AVG(b.last20)`` is a value of each event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chainlake.cep.language import ast
from chainlake.cep.language.computed import rebuilt
from chainlake.definitions.derived import Series


@dataclass(frozen=True)
class Lists:
    """Distinguishes aggregates over lists from those over sets of events.

    Args:
        kinds: column name to kind, or None if the columns are not known; then an aggregate of a name that is not a set
            must be over a list, which is checked when events are seen.
        series: says which columns hold lists even if ``kinds`` is None.
    """

    kinds: Mapping[str, str] | None
    series: Series

    def query(self, query: ast.Query) -> ast.Query:
        """The resolved query with aggregates over lists as nodes of their own kind."""
        events = {e.name: e for b in query.branches for e in ast.events_of(b.structure)}
        sets = frozenset(
            e.name
            for b in query.branches
            for e in ast.events_of(b.structure)
            if e.kleene or e.role is ast.Role.COLLECTED
        )

        def node(of: ast.Node) -> ast.Node:
            if isinstance(of, ast.Aggregate):
                value = self._list(of, sets)
                if value is None:
                    return of
                return ast.ListAggregate(
                    of.function, value, events[of.name].type, of.at, distinct=of.distinct, share=of.share
                )
            return rebuilt(of, node)

        return replace(
            query,
            branches=tuple(
                replace(
                    b,
                    where=None if b.where is None else node(b.where),
                    score=None if b.score is None else b.score.with_values(node),
                )
                for b in query.branches
            ),
            where=None if query.where is None else node(query.where),
            measures=tuple(replace(one, value=node(one.value)) for one in query.measures),
            ranking=None if query.ranking is None else query.ranking.with_values(node),
        )

    def _list(self, node: ast.Aggregate, sets: frozenset[str]) -> ast.Ref | ast.Prev | None:
        """The list that an aggregate ranges over, or None if it ranges over a set."""
        value = node.of if node.attr is None else ast.Ref(node.name, node.attr, node.at)
        if not isinstance(value, ast.Ref | ast.Prev):
            return None
        holds = {one.name for one in self.series.histories} | self.series.lists
        if self.kinds is not None:
            known = self.kinds.get(value.attr) == "list"
        else:
            known = value.attr in holds or node.name not in sets
        return value if known else None
