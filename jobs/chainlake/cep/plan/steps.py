"""Makes steps from a branch and an order: scopes, clauses of each step, negation tests (docs/automata.md)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from chainlake.cep.events.any_type import share_events
from chainlake.cep.language import ast
from chainlake.cep.language.ast import ANY_SIZE, Size
from chainlake.cep.language.normal_form import Branch, Clause


@dataclass(frozen=True)
class Scope:
    """Where the events of a name may lie, given the bound names (docs/automata.md#scopes).

    Args:
        after: bound names that precede it; it lies strictly after the latest of their events.
        before: bound names that follow it.
        apart_from: bound names that ≺ does not order, so that they could have the same event; it must be another one.
    """

    after: tuple[str, ...]
    before: tuple[str, ...]
    apart_from: tuple[str, ...]

    def among(self, bound: Container[str]) -> Scope:
        """The same scope while only ``bound`` are bound."""
        return Scope(
            tuple(n for n in self.after if n in bound),
            tuple(n for n in self.before if n in bound),
            tuple(n for n in self.apart_from if n in bound),
        )


@dataclass(frozen=True)
class Forbidden:
    """The test of one negated name.

    Args:
        name: the negated name.
        scope: as for a positive name, with all positive names bound.
        clauses: its clauses with other names.
    """

    name: str
    scope: Scope
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Step:
    """Bind one name.

    Args:
        name: the name.
        kleene: whether it is bound to a set.
        scope: where its events are.
        member_clauses: for a set, the clauses that each member must pass on its own, whatever the other members are;
            heavy ones come last.
        clauses: clauses tested on the extended binding, in the same order.
        forbidden: negated names that can be tested exactly from here on.
        size: how many members a set may have.
    """

    name: str
    kleene: bool
    scope: Scope
    member_clauses: tuple[Clause, ...]
    clauses: tuple[Clause, ...]
    forbidden: tuple[Forbidden, ...]
    size: Size = ANY_SIZE


@dataclass(frozen=True)
class Plan:
    """How one branch is searched.

    Args:
        branch: the branch.
        steps: one per positive name, sets last.
        routing: name (positive or negated) to the clauses on that name alone.
        constant: clauses without names.
    """

    branch: Branch
    steps: tuple[Step, ...]
    routing: dict[str, tuple[Clause, ...]]
    constant: tuple[Clause, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """The binding order."""
        return tuple(step.name for step in self.steps)

    def aggregates_of(self, name: str) -> list[ast.Aggregate]:
        """The aggregates over a repeated name in any clause of the branch, each once."""
        nodes = (node for clause in self.branch.clauses for literal in clause.literals for node in literal.walk())
        return list(dict.fromkeys(node for node in nodes if isinstance(node, ast.Aggregate) and node.name == name))


def routing(branch: Branch) -> dict[str, tuple[Clause, ...]]:
    """For each name, the clauses on it alone, without aggregates; they decide which events are its candidates."""
    return branch.alone


def make_plan(branch: Branch, order: tuple[str, ...]) -> Plan:
    """The plan of ``branch`` for ``order`` (all positive names, repeated ones last)."""
    routed = routing(branch)
    done = {clause for clauses in routed.values() for clause in clauses}
    open_clauses = [c for c in branch.clauses if c.names and c not in done]
    negations = {f: _depends_on(branch, f) for f in branch.negated}
    steps: list[Step] = []
    bound: list[str] = []
    for name in order:
        scope = scope_of(branch, name, bound)
        bound.append(name)
        ready = sorted((c for c in open_clauses if c.names <= set(bound)), key=lambda clause: clause.heavy)
        open_clauses = [c for c in open_clauses if c not in ready]
        kleene = name in branch.kleene
        single = [c for c in ready if kleene and name not in c.aggregated]
        testable = [f for f, names in negations.items() if names <= set(bound)]
        steps.append(
            Step(
                name=name,
                kleene=kleene,
                scope=scope,
                member_clauses=tuple(single),
                clauses=tuple(c for c in ready if c not in single),
                forbidden=tuple(_forbidden(branch, f, routed[f]) for f in testable),
                size=branch.sizes.get(name, ANY_SIZE),
            )
        )
        negations = {f: names for f, names in negations.items() if f not in testable}
    return Plan(branch, tuple(steps), routed, tuple(c for c in branch.clauses if not c.names))


def scope_of(branch: Branch, name: str, bound: list[str] | tuple[str, ...]) -> Scope:
    """The scope of ``name`` when ``bound`` are bound. All bound names count: the tightest bound wins at run time."""
    return Scope(
        after=tuple(n for n in bound if n in branch.before[name]),
        before=tuple(n for n in bound if n in branch.after[name]),
        apart_from=tuple(n for n in bound if _can_meet(branch, n, name) and _is_apart(branch, name)),
    )


def _forbidden(branch: Branch, name: str, routed: tuple[Clause, ...]) -> Forbidden:
    clauses = sorted((c for c in branch.clauses_of(name) if c not in routed), key=lambda clause: clause.heavy)
    return Forbidden(name, scope_of(branch, name, branch.positive), tuple(clauses))


def _depends_on(branch: Branch, negated: str) -> frozenset[str]:
    """The positive names that must be bound before the negated name can be tested exactly.

    See docs/automata.md#negation. Names that can have the same event are among them, since an event bound to one of
    them later would not count as forbidden.
    """
    positive = set(branch.positive)
    earlier, later = branch.before[negated] & positive, branch.after[negated] & positive
    names = {n for n in earlier if not branch.after[n] & earlier}
    names |= {n for n in later if not branch.before[n] & later}
    if not earlier:
        names |= {n for n in positive if not branch.after[n] & positive}
    if not later:
        names |= {n for n in positive if not branch.before[n] & positive}
    for clause in branch.clauses_of(negated):
        names |= clause.names & positive
    names |= {n for n in positive if _can_meet(branch, n, negated)}
    return frozenset(names)


def _can_meet(branch: Branch, one: str, other: str) -> bool:
    """Whether an event can fit both names, by their types and ≺."""
    return share_events(branch.types[one], branch.types[other]) and not branch.ordered(one, other)


def _is_apart(branch: Branch, name: str) -> bool:
    """Whether this name must have a separate event; a forbidden event is never one of the match."""
    return branch.apart or name not in branch.positive
