"""Gives names, parameters and words of a parsed query their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from chainlake.cep.language import ast, functions
from chainlake.cep.language.errors.kinds import WrongKind
from chainlake.cep.language.errors.names import (
    UnfitFunction,
    UnfitParameter,
    UnfitWord,
    UnknownEvent,
    UnknownFunction,
    UnknownParameter,
)
from chainlake.cep.language.errors.structure import BeyondLimit
from chainlake.cep.language.source_text import NOWHERE, At, SourceText
from chainlake.definitions.duration import parse_duration, seconds

TICKS_PER_SECOND = 1_000_000
#: Names of these roles are part of a match.
IN_A_MATCH = (ast.Role.BOUND, ast.Role.COLLECTED)
#: Computed values: if one is compared with a parameter that holds a duration, this is read as a duration.
_COMPUTED = (ast.Arithmetic, ast.Negative, ast.Call, ast.Aggregate, ast.Duration)


@dataclass(frozen=True)
class Resolver:
    """Gives identifiers their meaning.

    Args:
        source: for errors.
        params: parameter name to number, string, boolean or tuple of these.
        strict: whether durations carry units and ticks are microseconds; else ticks are the native unit (1 s).
        own: the functions that the pattern declares, by lower-case name.
    """

    source: SourceText
    params: Mapping[str, Any]
    strict: bool
    own: Mapping[str, functions.Function] = field(default_factory=dict)

    def query(self, query: ast.Query) -> ast.Query:
        """``query`` with every word and parameter replaced by its value.

        Raises:
            DefinitionError: unknown names, functions, sets or parameters, or a word where none is allowed.
        """
        roles = [{e.name: e for e in ast.events_of(b.structure)} for b in query.branches]
        own = [frozenset(names) for names in roles]
        # Measures and scores are computed on matches, of which no forbidden event is a part.
        held = [frozenset(e.name for e in names.values() if e.role in IN_A_MATCH) for names in roles]
        branches = tuple(
            replace(
                b,
                where=None if b.where is None else self.node(b.where, names),
                score=None if b.score is None else b.score.with_values(partial(self.computed, names=in_match)),
            )
            for b, names, in_match in zip(query.branches, own, held, strict=True)
        )
        every, kept = frozenset().union(*own), frozenset().union(*held)
        return replace(
            query,
            branches=branches,
            where=None if query.where is None else self.node(query.where, every),
            measures=tuple(replace(one, value=self.computed(one.value, kept)) for one in query.measures),
            ranking=None if query.ranking is None else query.ranking.with_values(partial(self.computed, names=kept)),
        )

    def window(self, within: ast.Within, word: str = "window") -> int:
        """The window or pause in ticks (microseconds if strict, else native units), rounded down."""
        value: Any = within.value
        if isinstance(value, str):
            if value not in self.params:
                raise UnknownParameter.of(self.source, within.at, value, self.params)
            value = self.params[value]
            length = parse_duration(value) if isinstance(value, str) and within.unit is None else None
            if length is not None and length < 0:
                raise UnfitParameter.negative(self.source, within.at, within.value, value, word)
            if length is not None:
                return self.ticks(length, within.at, word)
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise UnfitParameter.no_duration(self.source, within.at, within.value)
        if within.unit is not None:
            return self.ticks(seconds(value, within.unit), within.at, word)
        if self.strict:
            raise WrongKind.unit_missing(self.source, within.at, word, within.value)
        return self.ticks(Fraction(repr(value)), within.at, word)

    def ticks(self, size: Fraction, at: At, word: str = "window") -> int:
        """A duration in ticks, rounded down."""
        ticks = int(size * (TICKS_PER_SECOND if self.strict else 1))
        if ticks > 2**61:
            raise BeyondLimit.ticks(self.source, at, word)
        return ticks

    def node(self, node: ast.Node, names: frozenset[str]) -> ast.Node:
        """One condition or value, resolved; ``names``: the event names that it may mention."""
        match node:
            case ast.Ref(name, _, at):
                self.known(name, names, at)
                return node
            case ast.Aggregate() | ast.Prev() | ast.Case() | ast.Like():
                return self.longer(node, names)
            case ast.Word(name, at):
                if name not in self.params:
                    self.stray_word(name, names, at)
                return self.scalar(name, at)
            case ast.Duration():
                return self.duration(node)
            case ast.Call(function, args, at):
                found = self.call(function, len(args), at)
                own = None if found.heavy is None else found
                return replace(node, args=tuple(self.computed(arg, names) for arg in args), own=own)
            case ast.IsNull(value):
                return replace(node, value=self.node(value, names))
            case ast.Negative(of):
                return replace(node, of=self.computed(of, names))
            case ast.Not(of):
                return replace(node, of=self.node(of, names))
            case ast.All(parts) | ast.Any(parts):
                return replace(node, of=tuple(self.node(part, names) for part in parts))
            case ast.Arithmetic(_, left, right):
                return replace(node, left=self.computed(left, names), right=self.computed(right, names))
            case ast.Compare(op, left, right):
                if isinstance(left, _COMPUTED) or isinstance(right, _COMPUTED):
                    left, right = self.length(left), self.length(right)
                words = op in ("=", "!=")
                return replace(node, left=self.operand(left, names, words), right=self.operand(right, names, words))
            case ast.Member(value, _, items, at):
                return replace(node, value=self.operand(value, names, True), items=self.items(items, names, at))
        return node

    def longer(self, node: ast.Aggregate | ast.Prev | ast.Case | ast.Like, names: frozenset[str]) -> ast.Node:
        """An aggregate, PREV, CASE, LIKE or MATCHES, resolved."""
        match node:
            case ast.Aggregate(_, name, _, at):
                self.known(name, names, at)
                of = None if node.of is None else self.computed(node.of, names)
                if of is not None and of.heavy:
                    raise UnfitFunction.of_pairs(self.source, of.heavy[0].at, of.heavy[0].function, node.function)
                return replace(node, of=of)
            case ast.Prev(name, _, _, gap, _, at):
                self.known(name, names, at)
                return replace(node, gap=self.gap(gap)) if isinstance(gap, ast.Node) else node
            case ast.Case(whens, otherwise):
                return replace(
                    node,
                    whens=tuple((self.node(when, names), self.computed(then, names)) for when, then in whens),
                    otherwise=None if otherwise is None else self.computed(otherwise, names),
                )
            case ast.Like(value, text):
                return replace(node, value=self.computed(value, names), pattern=self.text(text))

    def computed(self, node: ast.Node, names: frozenset[str]) -> ast.Node:
        """A value used in a computation, resolved."""
        return self.node(self.length(node), names)

    def gap(self, node: ast.Node) -> int:
        """The longest gap of PREV in ticks."""
        found = self.node(self.length(node), frozenset())
        if isinstance(found, ast.Duration):
            return self.ticks(found.seconds, found.at, "gap")
        value = found.value if isinstance(found, ast.Literal) else None
        if self.strict or isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            at = getattr(node, "at", NOWHERE)
            raise WrongKind.gap(self.source, at)
        return self.ticks(Fraction(repr(value)), NOWHERE, "gap")

    def text(self, node: ast.Node) -> ast.Literal:
        """The pattern of LIKE or MATCHES."""
        found = self.scalar(node.name, node.at) if isinstance(node, ast.Word) and node.name in self.params else node
        if not isinstance(found, ast.Literal) or not isinstance(found.value, str):
            name = node.name if isinstance(node, ast.Word) else "it"
            raise UnfitParameter.no_text(self.source, getattr(node, "at", NOWHERE), name, self.params)
        return found

    def length(self, node: ast.Node) -> ast.Node:
        """The duration that a parameter such as ``30 min`` stands for in computations; any other node as it is."""
        value = self.params.get(node.name) if isinstance(node, ast.Word) else None
        size = parse_duration(value) if isinstance(value, str) else None
        return node if size is None else ast.Duration(size, None, node.at)

    def operand(self, node: ast.Node, names: frozenset[str], words: bool) -> ast.Node:
        if isinstance(node, ast.Word) and node.name not in self.params and words:
            return self.word(node, names)
        return self.node(node, names)

    def word(self, node: ast.Word, names: frozenset[str]) -> ast.Node:
        if node.name in names:
            raise UnfitWord.event(self.source, node.at, node.name)
        if node.name.upper() == "NULL":
            raise UnfitWord.null(self.source, node.at, node.name)
        return ast.Literal(node.name, node.at)

    def stray_word(self, name: str, names: frozenset[str], at: At) -> None:
        self.word(ast.Word(name, at), names)
        raise UnknownParameter.or_word(self.source, at, name, self.params)

    def known(self, name: str, names: frozenset[str], at: At) -> None:
        if name not in names:
            raise UnknownEvent.here(self.source, at, name, names)

    def scalar(self, name: str, at: At) -> ast.Literal:
        value = self.params[name]
        if isinstance(value, tuple):
            raise UnfitParameter.a_set(self.source, at, name)
        return ast.Literal(value, at)

    def duration(self, node: ast.Duration) -> ast.Node:
        size = node.seconds
        if node.name is not None:
            if node.name not in self.params:
                raise UnknownParameter.of(self.source, node.at, node.name, self.params)
            value = self.scalar(node.name, node.at).value
            if isinstance(value, bool | str):
                raise UnfitParameter.no_number(self.source, node.at, node.name)
            size = Fraction(repr(value)) * size
        if self.strict:
            return ast.Duration(size, None, node.at)
        return ast.Literal(size.numerator if size.denominator == 1 else float(size), node.at)

    def call(self, function: str, arity: int, at: At) -> functions.Function:
        found = self.own.get(function) or functions.lookup(function)
        if found is None:
            known = [*self.own, *functions.known(), "avg", "sum", "min", "max", "count"]
            raise UnknownFunction.of(self.source, at, function, known)
        least, most = found.takes
        if not least <= arity <= most:
            raise UnfitFunction.takes(self.source, at, function, found.takes, arity)
        return found

    def items(self, items: tuple[ast.Node, ...] | str, names: frozenset[str], at: At) -> tuple[ast.Node, ...]:
        if isinstance(items, str):
            if items not in self.params:
                raise UnknownParameter.of_set(self.source, at, items, self.params)
            values = self.params[items]
            if not isinstance(values, tuple):
                raise UnfitParameter.no_set(self.source, at, items)
            return tuple(ast.Literal(value, at) for value in values)
        return tuple(self.operand(item, names, True) if isinstance(item, ast.Word) else item for item in items)
