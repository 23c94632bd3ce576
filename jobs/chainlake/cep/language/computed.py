"""Values of one event that are computed once per event, so that conditions see them as columns.

What a condition computes from one event alone, by a function, LIKE, CASE or PREV, does not depend on what else is
bound. So it becomes a column of the events before the search, which, as machine code too, only ever reads columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from chainlake.cep.language import ast
from chainlake.cep.language.formatter import format_node
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.language.source_text import NOWHERE

#: The name that stands for the event in the value of a computed column.
EVENT = "@"
#: No attribute begins with this character, so no attribute has the name of a computed column.
_MARK = "\x1f"
#: Functions that the search computes itself, since their arguments may be of several events.
NATIVE = frozenset({"abs", "corr"})

N = TypeVar("N", bound=ast.Node)


@dataclass(frozen=True)
class Computed:
    """A column that is computed from others.

    Args:
        column: its name; equal columns have equal names.
        node: the value, with ``EVENT`` for the event's name; or ``PREV``.
    """

    column: str
    node: ast.Node


@dataclass
class Columns:
    """Collects the columns that conditions need.

    Args:
        gap: the longest gap of a ``PREV`` that states none, in ticks.
        found: the columns by name, in an order in which each needs only earlier ones.
    """

    gap: int
    found: dict[str, Computed] = field(default_factory=dict)

    def branch(self, branch: Branch) -> Branch:
        """``branch`` with references to columns in place of what is computed per event."""
        return replace(
            branch,
            clauses=tuple(self.clause(one, branch.types) for one in branch.clauses),
            late=tuple(self.clause(one, branch.types) for one in branch.late),
        )

    def clause(self, clause: Clause, types: Mapping[str, str]) -> Clause:
        """One clause with references to columns."""
        return Clause(tuple(self.node(literal, types) for literal in clause.literals))

    def node(self, node: ast.Node, types: Mapping[str, str]) -> ast.Node:
        """One condition or value with references to columns.

        Args:
            node: what is to be computed.
            types: name to event type.
        """
        return self._functions(self._previous(node, types))

    def _previous(self, node: ast.Node, types: Mapping[str, str]) -> ast.Node:
        if isinstance(node, ast.Place):
            return ast.Ref(node.name, self._column(replace(node, name=EVENT)), node.at, node)
        if not isinstance(node, ast.Prev):
            return rebuilt(node, lambda part: self._previous(part, types))
        gap = self.gap if node.gap is None else node.gap
        any_type = types[node.name] == ast.ANY_TYPE
        column = self._column(replace(node, name=EVENT, gap=gap, of_any_type=any_type), " of any type" * any_type)
        return ast.Ref(node.name, column, node.at, node)

    def _functions(self, node: ast.Node) -> ast.Node:
        if isinstance(node, ast.Aggregate) and node.of is not None:
            of = self._functions(node.of)
            return replace(node, attr=of.attr if isinstance(of, ast.Ref) else self._column(_of_event(of)))
        if isinstance(node, ast.Call) and node.own is not None:
            return replace(node, args=tuple(map(self._of_pair, node.args)))
        called = not node.heavy and (
            isinstance(node, ast.Case | ast.Like | ast.ListAggregate)
            or isinstance(node, ast.Call)
            and node.function not in NATIVE
        )
        if called and not node.aggregated and len(node.plain) == 1:
            name = next(iter(node.plain))
            if not isinstance(node, ast.Like):
                return ast.Ref(name, self._column(_of_event(node)), node.at, node)
            # Unknown is neither true nor false, so a null text passes neither LIKE nor NOT LIKE.
            column = self._column(_of_event(replace(node, negated=False)))
            test = ast.Ref(name, column, node.at, replace(node, negated=False))
            return ast.Compare("=", test, ast.Literal(not node.negated, node.at), node.at)
        return rebuilt(node, self._functions)

    def _of_pair(self, node: ast.Node) -> ast.Node:
        """An argument of a function of pairs: what is computed from one event becomes a column of that event."""
        if node.aggregated or len(node.plain) != 1 or isinstance(node, ast.Ref) or node.heavy:
            return self._functions(node)
        return ast.Ref(next(iter(node.plain)), self._column(_of_event(node)), getattr(node, "at", NOWHERE), node)

    def _column(self, node: ast.Node, more: str = "") -> str:
        column = f"{_MARK}{format_node(node)}{more}"
        self.found.setdefault(column, Computed(column, node))
        return column


def is_computed(column: str) -> bool:
    """Whether a column is computed."""
    return column.startswith(_MARK)


def shown(column: str) -> str:
    """A column's name as shown to people."""
    return column.replace(_MARK, "").replace(f"{EVENT}.", "").replace('"', "") if is_computed(column) else column


def _of_event(node: ast.Node) -> ast.Node:
    """The same value of the event called ``EVENT``."""
    if isinstance(node, ast.Ref):
        # A computed column refers to other columns by name, not by the expressions that compute them.
        return replace(node, name=EVENT, of=None)
    return rebuilt(node, _of_event)


def rebuilt(node: N, change: Callable[[ast.Node], ast.Node]) -> N:
    """The node with each node directly below it changed."""
    new: dict[str, object] = {}
    for one in fields(node):
        value = getattr(node, one.name)
        if isinstance(value, ast.Node):
            new[one.name] = change(value)
        elif isinstance(value, tuple) and one.name not in ("at", "items"):
            new[one.name] = tuple(
                tuple(change(part) for part in item) if isinstance(item, tuple) else change(item) for item in value
            )
    return replace(node, **new) if new else node
