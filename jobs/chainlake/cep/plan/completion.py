"""What remains to be done once all ordinary names of a match are bound: PAUSE, UNTIL, COLLECT.

The rules are docs/semantics.md#sets.

None of it changes which combinations of ordinary events are looked at, so every kind of search ends with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.plan.pause import neighbours
from chainlake.cep.plan.steps import Forbidden, Scope, scope_of


@dataclass(frozen=True)
class Gathering:
    """How the set of a collected name is gathered.

    Args:
        name: the name.
        may_be_empty: whether a match may have none of its events.
        scope: where its events are once all ordinary names are bound.
        clauses: the conditions on each member, except those on it alone, which its candidates have passed already.
        sizes: conditions on nothing but the number of members.
    """

    name: str
    may_be_empty: bool
    scope: Scope
    clauses: tuple[Clause, ...]
    sizes: tuple[Clause, ...]


@dataclass(frozen=True)
class Completion:
    """What is done with bindings of all ordinary names.

    Args:
        pause: neighbouring events are at most this many ticks apart; None if nothing is left to test.
        until: the tests of UNTIL.
        gatherings: one per collected name.
        finished: conditions on finished sets, except those on sizes.
        kleene: repeated names.
        sets: names bound to sets, collected ones among them.
    """

    pause: int | None
    until: tuple[Forbidden, ...]
    gatherings: tuple[Gathering, ...]
    finished: tuple[Clause, ...]
    kleene: frozenset[str]
    sets: frozenset[str]

    @property
    def is_nothing(self) -> bool:
        """Whether a binding of all ordinary names is a match already."""
        return self.pause is None and not self.until and not self.gatherings


def completion_of(branch: Branch, pause: int | None) -> Completion:
    """What completes the bindings that a search of the branch finds.

    Args:
        branch: the branch, in which conditions express the pause where they can.
        pause: the pattern's, in ticks.
    """
    tested_by_search = branch.stream is not None or neighbours(branch) is not None
    sizes = {one.name: tuple(c for c in branch.finished if _is_size(c, one.name)) for one in branch.collected}
    among_sizes = {clause for clauses in sizes.values() for clause in clauses}
    return Completion(
        None if tested_by_search else pause,
        tuple(Forbidden(name, scope_of(branch, name, branch.positive), _own(branch, name)) for name in branch.until),
        tuple(
            Gathering(
                one.name,
                one.may_be_empty,
                scope_of(branch, one.name, branch.positive),
                _own(branch, one.name),
                sizes[one.name],
            )
            for one in branch.collected
        ),
        tuple(clause for clause in branch.finished if clause not in among_sizes),
        branch.kleene,
        branch.sets,
    )


def _own(branch: Branch, name: str) -> tuple[Clause, ...]:
    """The conditions on each event of a name, except those on it alone."""
    return tuple(clause for clause in branch.clauses_of(name) if clause not in branch.alone[name])


def _is_size(clause: Clause, name: str) -> bool:
    """Whether a condition is on nothing but the number of members of a name's set."""
    nodes = [node for literal in clause.literals for node in literal.walk()]
    counts = [node for node in nodes if isinstance(node, ast.Aggregate)]
    return clause.names == {name} and not clause.plain and all(node.attr is None and node.of is None for node in counts)
