"""Branches in normal form: names, their order ≺, and clauses (docs/semantics.md#normal-form)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product

from chainlake.cep.language import ast
from chainlake.cep.language.branches import expand
from chainlake.cep.language.errors.kinds import NoSet
from chainlake.cep.language.errors.structure import (
    BeyondLimit,
    NoPositiveEvent,
    NotTogether,
    TakenName,
    UnplacedCondition,
)
from chainlake.cep.language.source_text import SourceText

#: Distributing OR over AND can square the number of clauses repeatedly; more than this is taken for a mistake.
MAX_CLAUSES = 4096
#: How many names a branch has at most: with a few hundred, choosing an order of search takes minutes.
MAX_NAMES = 64

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "!=", "!=": "="}


@dataclass(frozen=True)
class Clause:
    """A disjunction of comparisons, memberships, tests for null and constants, without NOT."""

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

    @cached_property
    def heavy(self) -> float:
        """How many microseconds its calls of functions of pairs take for one combination; 0 without such calls."""
        calls = {call.written: call.own for literal in self.literals for call in literal.heavy}
        return sum(own.heavy.us for own in calls.values() if own is not None and own.heavy is not None)


@dataclass(frozen=True)
class Collected:
    """A name that stands for all events that fit (docs/semantics.md#sets).

    Args:
        name: the name.
        may_be_empty: whether a match may have no such event.
    """

    name: str
    may_be_empty: bool


@dataclass(frozen=True)
class Stream:
    """Which events of the source are neighbours in ``SEQ STRICT`` (docs/semantics.md#neighbours).

    Args:
        types: their types; None for all.
        by_key: whether only events of one key are neighbours, as if others did not exist.
    """

    types: frozenset[str] | None
    by_key: bool


@dataclass(frozen=True)
class Branch:
    """One branch ``(P, K, N, type, ≺, C)``; the window is the pattern's.

    Args:
        positive: positive names in the order written, except collected ones.
        kleene: the positive names under Kleene closure.
        negated: negated names in the order written.
        types: name to event type (``ast.ANY_TYPE`` for any), for all names.
        before: name to all names that precede it in ≺, for all names except those of ``until``.
        clauses: the conjunctive normal form of its conditions on positive and negated names.
        collected: names that stand for all events that fit.
        until: names of events that end a match.
        late: the other clauses, which mention a name of ``collected`` or ``until``.
        stream: which events are neighbours in ``SEQ STRICT``, else None.
        sizes: the sizes of sets, for those names of ``kleene`` that state one.
        windows: the windows of groups inside the structure, each with the names in the group.
        spans: the same windows with their lengths in ticks.
        written: the number of the branch as written from which it comes.
        apart: whether no event is bound to two names.
    """

    positive: tuple[str, ...]
    kleene: frozenset[str]
    negated: tuple[str, ...]
    types: dict[str, str]
    before: dict[str, frozenset[str]]
    clauses: tuple[Clause, ...]
    collected: tuple[Collected, ...] = ()
    until: tuple[str, ...] = ()
    late: tuple[Clause, ...] = ()
    stream: Stream | None = None
    sizes: dict[str, ast.Size] = field(default_factory=dict)
    windows: tuple[tuple[ast.Within, frozenset[str]], ...] = ()
    spans: tuple[tuple[int, frozenset[str]], ...] = ()
    written: int = 0
    apart: bool = True

    @cached_property
    def every_clause(self) -> tuple[Clause, ...]:
        """All of its clauses."""
        return (*self.clauses, *self.late)

    @cached_property
    def sets(self) -> frozenset[str]:
        """The names that are bound to sets, collected ones among them."""
        return self.kleene.union(one.name for one in self.collected)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names."""
        return frozenset(self.types)

    @cached_property
    def after(self) -> dict[str, frozenset[str]]:
        """Name to all names that follow it in ≺."""
        return {n: frozenset(m for m in self.types if n in self.before[m]) for n in self.types}

    @cached_property
    def own(self) -> dict[str, tuple[Clause, ...]]:
        """For each name, the clauses that mention only it and no aggregate; heavy ones come last."""
        single = sorted((c for c in self.every_clause if not c.aggregated), key=lambda c: c.heavy)
        return {name: tuple(c for c in single if c.names == {name}) for name in self.types}

    @cached_property
    def alone(self) -> dict[str, tuple[Clause, ...]]:
        """The cheap ones among ``own``, which are tested on all events, also where the work is divided."""
        return {name: tuple(c for c in clauses if not c.heavy) for name, clauses in self.own.items()}

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The functions of pairs that its conditions call."""
        return tuple(dict.fromkeys(call.function for c in self.every_clause for x in c.literals for call in x.heavy))

    def ordered(self, one: str, other: str) -> bool:
        """Whether ≺ says anything about the two names."""
        return one in self.before[other] or other in self.before[one]

    @cached_property
    def positive_clauses(self) -> tuple[Clause, ...]:
        """The clauses without negated names."""
        return tuple(c for c in self.clauses if not c.names & set(self.negated))

    def clauses_of(self, name: str) -> tuple[Clause, ...]:
        """The clauses that decide which events of a negated, collected or UNTIL name count."""
        return tuple(c for c in self.every_clause if name in c.plain and c not in self.finished)

    @cached_property
    def finished(self) -> tuple[Clause, ...]:
        """The clauses that are tested on finished sets: those with an aggregate over a collected name."""
        collected = {one.name for one in self.collected}
        return tuple(c for c in self.late if c.aggregated & collected)

    def open_right(self, name: str) -> bool:
        """Whether no positive name follows the name, which is negated or collected, in ≺."""
        return not self.after[name] & set(self.positive)

    def open_left(self, name: str) -> bool:
        """Whether no positive name precedes the name, which is negated or collected, in ≺."""
        return not self.before[name] & set(self.positive)

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """The names whose events are looked for around the positive ones: negated and collected."""
        return (*self.negated, *(one.name for one in self.collected))


def normal_form(source: SourceText, query: ast.Query) -> tuple[Branch, ...]:
    """The branches of a resolved query.

    Raises:
        DefinitionError: too many names or branches, a duplicate name, a branch without a positive event, a clause over
            two names that are negated, collected or of UNTIL, an aggregate over a name that is not a set, a shared
            clause that fits no branch, a structure that STRICT does not allow.
    """
    for one in query.branches:
        _check_number(source, one)
    written = [(branch, expand(source, branch)) for branch in query.branches]
    every = [(one, own) for _, found in written for one in found for own in [_names_of(one)]]
    shared = () if query.where is None else clauses_of(source, query.where)
    for clause in shared:
        if not any(clause.names <= own for _, own in every):
            raise UnplacedCondition.branches(source, _place(clause))
    types = _stream_types(query)
    found = []
    for number, (branch, alternatives) in enumerate(written):
        own_clauses = () if branch.where is None else clauses_of(source, branch.where)
        for clause in own_clauses:
            if not any(clause.names <= _names_of(one) for one in alternatives):
                raise UnplacedCondition.alternatives(source, _place(clause))
        for one in alternatives:
            own = _names_of(one)
            clauses = tuple(c for c in (*own_clauses, *shared) if c.names <= own)
            found.append(replace(_branch(source, one, clauses, types), written=number))
    return tuple(found)


def _names_of(branch: ast.Branch) -> frozenset[str]:
    return frozenset(event.name for event in ast.events_of(branch.structure))


def _stream_types(query: ast.Query) -> frozenset[str] | None:
    """The types of the ordinary names as written, before alternatives are taken apart; None for all."""
    events = (event for branch in query.branches for event in ast.events_of(branch.structure))
    types = frozenset(event.type for event in events if event.role is ast.Role.BOUND)
    return None if ast.ANY_TYPE in types else types


def _place(clause: Clause) -> tuple[int, int]:
    return clause.literals[0].at


def _check_number(source: SourceText, branch: ast.Branch) -> None:
    events = ast.events_of(branch.structure)
    beyond = next(islice(events, MAX_NAMES, None), None)
    if beyond is not None:
        raise BeyondLimit.events(source, beyond.at, MAX_NAMES, beyond.name)


def _branch(
    source: SourceText, branch: ast.Branch, clauses: tuple[Clause, ...], types: frozenset[str] | None
) -> Branch:
    events: dict[str, ast.Event] = {}
    for event in ast.events_of(branch.structure):
        if event.name in events:
            raise TakenName.duplicate(source, event.at, event.name)
        events[event.name] = event
    by_role = {role: tuple(name for name, event in events.items() if event.role is role) for role in ast.Role}
    if not by_role[ast.Role.BOUND]:
        raise NoPositiveEvent.of(source, branch.at)
    before: dict[str, set[str]] = {name: set() for name, event in events.items()}
    _order(branch.structure, before)
    special = set(by_role[ast.Role.COLLECTED] + by_role[ast.Role.UNTIL])
    sizes = tuple(clause for event in events.values() for clause in _size_clauses(event))
    every = (*clauses, *sizes)
    found = Branch(
        positive=by_role[ast.Role.BOUND],
        kleene=frozenset(name for name, event in events.items() if event.kleene),
        negated=by_role[ast.Role.FORBIDDEN],
        types={name: event.type for name, event in events.items()},
        before={name: frozenset(those) for name, those in before.items()},
        clauses=tuple(c for c in every if not c.names & special),
        collected=tuple(Collected(name, events[name].optional) for name in by_role[ast.Role.COLLECTED]),
        until=by_role[ast.Role.UNTIL],
        late=tuple(c for c in every if c.names & special),
        stream=_stream(source, branch.structure, types),
        sizes={name: event.size for name, event in events.items() if event.kleene and event.size != ast.ANY_SIZE},
        windows=tuple(ast.windows_of(branch.structure)),
    )
    for clause in clauses:
        _check_clause(source, found, clause)
    return found


def _stream(source: SourceText, structure: ast.Structure, types: frozenset[str] | None) -> Stream | None:
    if not isinstance(structure, ast.Group) or not structure.strict:
        return None
    for item in structure.items:
        if isinstance(item, ast.Group):
            raise NotTogether.group_in_strict(source, item.at, item.kind)
    return Stream(types, structure.strict == "key")


def _size_clauses(event: ast.Event) -> tuple[Clause, ...]:
    """The limits of a set's size as conditions."""
    count = ast.Aggregate("COUNT", event.name, None, event.at)
    empty: tuple[ast.Node, ...] = ()
    if event.role is ast.Role.COLLECTED and event.optional:
        empty = (ast.Compare("=", count, ast.Literal(0, event.at), event.at),)
    found = []
    if event.size.least > 1:
        found.append(Clause((*empty, ast.Compare(">=", count, ast.Literal(event.size.least, event.at), event.at))))
    if event.size.most is not None:
        found.append(Clause((*empty, ast.Compare("<=", count, ast.Literal(event.size.most, event.at), event.at))))
    return tuple(found)


def _order(structure: ast.Structure, before: dict[str, set[str]]) -> set[str]:
    """Fill ``before`` for all names below ``structure``; return these names. UNTIL has no place in the order."""
    if isinstance(structure, ast.Event):
        return set() if structure.role is ast.Role.UNTIL else {structure.name}
    earlier: set[str] = set()
    for item in structure.items:
        names = _order(item, before)
        if structure.kind == "SEQ":
            for name in names:
                before[name] |= earlier
        earlier |= names
    return earlier


def _check_clause(source: SourceText, branch: Branch, clause: Clause) -> None:
    collected = {one.name for one in branch.collected}
    alone = sorted(clause.names & {*branch.negated, *branch.until})
    # Members of a collected set are tested one by one, unless the clause tests the finished set.
    alone += sorted(clause.plain & collected - clause.aggregated)
    others = sorted(clause.names & {*branch.gaps, *branch.until})
    if alone and len(others) > 1:
        raise UnplacedCondition.several(source, _place(clause), others, negated=set(others) <= set(branch.negated))
    for literal in clause.literals:
        for node in literal.walk():
            if isinstance(node, ast.Aggregate) and node.name not in branch.sets:
                raise NoSet.single(source, node.at, node.function, node.name, branch.types[node.name])


def clauses_of(source: SourceText, where: ast.Node) -> tuple[Clause, ...]:
    """The clauses of a condition.

    Raises:
        DefinitionError: there are too many.
    """
    return tuple(Clause(literals) for literals in _cnf(source, push_not(where, False)))


def push_not(node: ast.Node, negate: bool) -> ast.Node:
    """A condition, or its negation, in negation normal form; in three-valued logic, NOT can move into comparisons."""
    match node:
        case ast.Not(of):
            return push_not(of, not negate)
        case ast.All(parts) | ast.Any(parts):
            kind = ast.All if isinstance(node, ast.All) != negate else ast.Any
            return kind(tuple(push_not(part, negate) for part in parts), node.at)
        case ast.Compare(op) if negate:
            return replace(node, op=_OPPOSITE[op])
        case ast.Member(_, negated) | ast.IsNull(_, negated) | ast.Like(_, _, negated) if negate:
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
                raise BeyondLimit.clauses(source, node.at, MAX_CLAUSES)
            found = [one + other for one, other in product(found, clauses)]
        return found
    return [(node,)]
