"""Branches in normal form: names, their order ≺, and clauses (docs/semantics.md#normal-form)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product

from chainlake.cep.language import ast
from chainlake.cep.language.source_text import SourceText

#: Distributing OR over AND can square the number of clauses again and again; more than this is a mistake.
MAX_CLAUSES = 4096
#: Names of one branch at most: choosing an order of search takes minutes from a few hundred on.
MAX_NAMES = 64

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "!=", "!=": "="}


@dataclass(frozen=True)
class Clause:
    """A disjunction of comparisons, memberships, tests for null and constants; no NOT is left in it."""

    literals: tuple[ast.Node, ...]

    @cached_property
    def plain(self) -> frozenset[str]:
        """Names with a plain reference."""
        return frozenset().union(*(literal.plain for literal in self.literals))

    @cached_property
    def aggregated(self) -> frozenset[str]:
        """Names inside an aggregate."""
        return frozenset().union(*(literal.aggregated for literal in self.literals))

    @cached_property
    def names(self) -> frozenset[str]:
        """All names mentioned."""
        return self.plain | self.aggregated


@dataclass(frozen=True)
class Branch:
    """One branch ``(P, K, N, type, ≺, C)``; the window is the pattern's.

    Args:
        positive: positive names in the order written.
        kleene: those of them under Kleene closure.
        negated: negated names in the order written.
        types: name to event type.
        before: name to all names (positive and negated) that precede it in ≺.
        clauses: the conjunctive normal form of its conditions.
    """

    positive: tuple[str, ...]
    kleene: frozenset[str]
    negated: tuple[str, ...]
    types: dict[str, str]
    before: dict[str, frozenset[str]]
    clauses: tuple[Clause, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """Positive and negated names."""
        return frozenset(self.types)

    @cached_property
    def after(self) -> dict[str, frozenset[str]]:
        """Name to all names that follow it in ≺."""
        return {n: frozenset(m for m in self.types if n in self.before[m]) for n in self.types}

    @cached_property
    def alone(self) -> dict[str, tuple[Clause, ...]]:
        """Per name the clauses that mention it alone and no aggregate."""
        return {name: tuple(c for c in self.clauses if c.names == {name} and not c.aggregated) for name in self.types}

    def ordered(self, one: str, other: str) -> bool:
        """Whether ≺ says anything about the two names."""
        return one in self.before[other] or other in self.before[one]

    @cached_property
    def positive_clauses(self) -> tuple[Clause, ...]:
        """The clauses without negated names."""
        return tuple(c for c in self.clauses if not c.names & set(self.negated))

    def clauses_of(self, negated: str) -> tuple[Clause, ...]:
        """The clauses that mention the negated name."""
        return tuple(c for c in self.clauses if negated in c.names)

    def open_right(self, negated: str) -> bool:
        """Whether no positive name follows the negated name in ≺."""
        return not self.after[negated] & set(self.positive)

    def open_left(self, negated: str) -> bool:
        """Whether no positive name precedes the negated name in ≺."""
        return not self.before[negated] & set(self.positive)


def normal_form(source: SourceText, query: ast.Query) -> tuple[Branch, ...]:
    """The branches of a resolved query.

    Raises:
        DefinitionError: too many names, a duplicate name, a branch without a positive event, a clause over two
            negated names, an aggregate over a name that is not repeated, a shared clause that fits no branch.
    """
    for one in query.branches:
        _check_number(source, one)
    shared = () if query.where is None else _clauses(source, query.where)
    names = [frozenset(e.name for e in ast.events_of(b.structure)) for b in query.branches]
    for clause in shared:
        if not any(clause.names <= own for own in names):
            raise source.error(
                "this condition needs names of different branches, so no branch can test it",
                _place(clause),
                hint="Give each branch of OR its own WHERE.",
            )
    found = []
    for branch, own in zip(query.branches, names, strict=True):
        clauses = () if branch.where is None else _clauses(source, branch.where)
        clauses += tuple(c for c in shared if c.names <= own)
        found.append(_branch(source, branch, clauses))
    return tuple(found)


def _place(clause: Clause) -> tuple[int, int]:
    return clause.literals[0].at


def _check_number(source: SourceText, branch: ast.Branch) -> None:
    events = ast.events_of(branch.structure)
    beyond = next(islice(events, MAX_NAMES, None), None)
    if beyond is not None:
        raise source.error(
            f"a branch has at most {MAX_NAMES} events, and {beyond.name} is one more",
            beyond.at,
            hint="One repeated event, such as A+ a, stands for any number of events of a type.",
        )


def _branch(source: SourceText, branch: ast.Branch, clauses: tuple[Clause, ...]) -> Branch:
    events: dict[str, ast.Event] = {}
    for event in ast.events_of(branch.structure):
        if event.name in events:
            raise source.error(
                f"duplicate name {event.name} in a branch", event.at, hint="Give each event its own name."
            )
        events[event.name] = event
    positive = tuple(name for name, event in events.items() if not event.negated)
    if not positive:
        raise source.error("a branch needs a positive event", branch.at)
    before: dict[str, set[str]] = {name: set() for name in events}
    _order(branch.structure, before)
    found = Branch(
        positive=positive,
        kleene=frozenset(name for name, event in events.items() if event.kleene),
        negated=tuple(name for name, event in events.items() if event.negated),
        types={name: event.type for name, event in events.items()},
        before={name: frozenset(those) for name, those in before.items()},
        clauses=clauses,
    )
    for clause in clauses:
        _check_clause(source, found, clause)
    return found


def _order(structure: ast.Structure, before: dict[str, set[str]]) -> set[str]:
    """Fill ``before`` for all names below ``structure``; return these names."""
    if isinstance(structure, ast.Event):
        return {structure.name}
    earlier: set[str] = set()
    for item in structure.items:
        names = _order(item, before)
        if structure.kind == "SEQ":
            for name in names:
                before[name] |= earlier
        earlier |= names
    return earlier


def _check_clause(source: SourceText, branch: Branch, clause: Clause) -> None:
    negated = sorted(clause.names & set(branch.negated))
    if len(negated) > 1:
        raise source.error(
            f"a condition may mention one negated event only, not {' and '.join(negated)}",
            _place(clause),
            hint="The two events are forbidden independently of each other.",
        )
    for literal in clause.literals:
        for node in literal.walk():
            if isinstance(node, ast.Aggregate) and node.name not in branch.kleene:
                raise source.error(
                    f"{node.function} needs a repeated event, and {node.name} is a single one",
                    node.at,
                    hint=f"Write {branch.types[node.name]}* {node.name} in the pattern, or use {node.name}.attribute.",
                )


def _clauses(source: SourceText, where: ast.Node) -> tuple[Clause, ...]:
    return tuple(Clause(literals) for literals in _cnf(source, _push_not(where, False)))


def _push_not(node: ast.Node, negate: bool) -> ast.Node:
    """Negation normal form: NOT only inside comparisons and memberships, where three-valued logic allows it."""
    match node:
        case ast.Not(of):
            return _push_not(of, not negate)
        case ast.All(parts) | ast.Any(parts):
            kind = ast.All if isinstance(node, ast.All) != negate else ast.Any
            return kind(tuple(_push_not(part, negate) for part in parts), node.at)
        case ast.Compare(op) if negate:
            return replace(node, op=_OPPOSITE[op])
        case ast.Member(_, negated) | ast.IsNull(_, negated) if negate:
            return replace(node, negated=not negated)
        case ast.Const(value) if negate:
            return replace(node, value=not value)
    return node


def _cnf(source: SourceText, node: ast.Node) -> list[tuple[ast.Node, ...]]:
    if isinstance(node, ast.All):
        return [clause for part in node.of for clause in _cnf(source, part)]
    if isinstance(node, ast.Any):
        found: list[tuple[ast.Node, ...]] = [()]
        for part in node.of:
            clauses = _cnf(source, part)
            if len(found) * len(clauses) > MAX_CLAUSES:
                raise source.error(
                    f"this condition becomes more than {MAX_CLAUSES} clauses",
                    node.at,
                    hint="Split the alternatives over branches of OR.",
                )
            found = [one + other for one, other in product(found, clauses)]
        return found
    return [(node,)]
