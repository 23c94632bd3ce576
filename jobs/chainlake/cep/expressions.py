"""Conditions and values of one event, outside a pattern: attributes are written without an event's name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from chainlake.cep.compiling.names import kinds_of
from chainlake.cep.conditions.computed import Rows
from chainlake.cep.events.previous import STORED
from chainlake.cep.language import ast
from chainlake.cep.language.check import FIXED_COLUMNS, OPEN, PSEUDO, Checker
from chainlake.cep.language.computed import EVENT, rebuilt
from chainlake.cep.language.errors.kinds import UnfitExpression
from chainlake.cep.language.errors.names import UnknownAttribute, UnknownEvent
from chainlake.cep.language.formatter import hashed_text, identifier
from chainlake.cep.language.parsing.conditions import Conditions
from chainlake.cep.language.parsing.habits import advised
from chainlake.cep.language.parsing.lexer import Token
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.values.values import as_float
from chainlake.errors import DefinitionError


@dataclass(frozen=True)
class Expression:
    """A condition on one event, or a number computed from it.

    Args:
        text: the expression in normal form; parsing it gives the same expression.
        node: what is computed.
        stored: the columns of an events table that it reads, sorted.
        source: the text as it was written, for errors.
    """

    text: str
    node: ast.Node
    stored: tuple[str, ...]
    source: SourceText

    def check(self, columns: Mapping[str, pa.DataType], histories: Collection[str] = ()) -> None:
        """Check it against the columns of events; ``histories``: derived columns, which only patterns can use.

        Raises:
            DefinitionError: with line and column in the text: there is no such attribute, or its kind does not fit.
        """
        with _advice(self.source.text):
            _check(self.source, self.node, columns, histories)

    def holds(self, events: pa.Table) -> np.ndarray:
        """For each event, whether the condition is TRUE; where a null makes it unknown, it is not.

        Args:
            events: the columns ``stored``; ``ts`` in µs or as timestamps.

        Raises:
            DefinitionError: as :meth:`check`. InputError: a column cannot be used.
        """
        self.check(_types(events))
        truth = Rows(events, strict=True).truth(self.node)
        return np.broadcast_to(np.asarray(truth, bool), (len(events),))

    def numbers(self, events: pa.Table) -> np.ndarray:
        """For each event, the value as a double, NaN where it is null; arguments and errors as in :meth:`holds`."""
        self.check(_types(events))
        value = Rows(events, strict=True).value(self.node)
        if value.kind == "null":
            return np.full(len(events), np.nan)
        found: np.ndarray = np.broadcast_to(as_float(value), (len(events),))
        return found


@lru_cache(maxsize=1024)
def condition(text: str) -> Expression:
    """A condition on one event, such as ``pct_observed >= 80 AND Weekday(ts, 'America/New_York') <= 5``.

    Raises:
        DefinitionError: with line and column in the text, excerpt and hint.
    """
    return _compiled(text, condition=True)


@lru_cache(maxsize=1024)
def value(text: str) -> Expression:
    """A number computed from one event, such as ``(high - low) / close``.

    Raises:
        DefinitionError: as :func:`condition`.
    """
    return _compiled(text, condition=False)


@contextmanager
def _advice(text: str) -> Iterator[None]:
    """Where the text has the syntax of another language, the error says how it is written here."""
    try:
        yield
    except DefinitionError as error:
        raise advised(error, text, of_one=True) from None


def _compiled(text: str, *, condition: bool) -> Expression:
    source = SourceText(text)
    with _advice(text):
        node = _OneEvent(source, 0).whole(condition)
        node = _lists(Resolver(source, {}, strict=True).node(node, frozenset({EVENT})))
        _check(source, node, None)
    refs = {STORED.get(ref.attr, ref.attr) for ref in _refs(node)}
    if not refs and not condition:
        raise UnfitExpression.constant(source)
    shown = hashed_text(_without_name(node))
    if isinstance(node, ast.Arithmetic):
        shown = shown[1:-1]
    return Expression(shown, node, tuple(sorted(refs)), source)


class _OneEvent(Conditions):
    """The grammar of conditions in which every bare word is an attribute of the one event."""

    def __init__(self, source: SourceText, start: int) -> None:
        super().__init__(source, start)
        self.tokens[-1] = Token("end", "the end", self.tokens[-1].at)

    def whole(self, condition: bool) -> ast.Node:
        """The whole text as a condition or a value."""
        at = self.token.at
        node = self.condition() if condition else self.as_value(self.disjunction(), at)
        if self.token.kind != "end":
            raise UnfitExpression.goes_on(self.source, self.token.at, self.token.shown)
        return node

    def factor(self) -> ast.Node:
        """A factor as everywhere, or an attribute in double quotes."""
        if self.token.kind == "keyword" and self.token.text not in ("TRUE", "FALSE"):
            raise UnfitExpression.reserved(self.source, self.token.at, self.token.text)
        if self.token.kind != "quoted":
            return super().factor()
        token = self.take()
        return ast.Ref(EVENT, token.text, token.at)

    def identifier(self, token: Token) -> ast.Node:
        """An identifier as everywhere, but a bare word is an attribute."""
        found = super().identifier(token)
        if isinstance(found, ast.Ref):
            raise UnknownEvent.of_one(self.source, token.at, token.text, identifier(found.attr))
        if isinstance(found, ast.Word) and found.name.upper() != "NULL":
            return ast.Ref(EVENT, found.name, found.at)
        return found

    def prev(self, token: Token) -> ast.Node:
        """An error: there is no earlier event."""
        raise UnfitExpression.earlier(self.source, token.at)


def _lists(node: ast.Node) -> ast.Node:
    """Aggregates range over the list that an attribute holds, since there is only one event."""
    if isinstance(node, ast.Aggregate):
        of = node.of if node.attr is None else ast.Ref(EVENT, node.attr, node.at)
        if isinstance(of, ast.Ref):
            return ast.ListAggregate(node.function, of, "", node.at, distinct=node.distinct, share=node.share)
    return rebuilt(node, _lists)


def _check(
    source: SourceText, node: ast.Node, columns: Mapping[str, pa.DataType] | None, histories: Collection[str] = ()
) -> None:
    kinds = None if columns is None else kinds_of(columns)
    for part in node.walk():
        if isinstance(part, ast.Aggregate) or isinstance(part, ast.ListAggregate) and _is_single(part, kinds):
            raise UnfitExpression.several(source, part.at, part.function)
    if kinds is not None:
        for ref in _refs(node):
            if ref.attr in histories:
                raise UnknownAttribute.history(source, ref.at, ref.attr)
            _known(source, ref, kinds)
    checker = Checker(source, kinds, strict=True)
    if isinstance(node, ast.CONDITIONS):
        checker.condition(node)
        return
    kind = checker.kind(node)
    if kind not in OPEN | {"number"}:
        raise UnfitExpression.no_number(source, kind)


def _is_single(node: ast.ListAggregate, kinds: Mapping[str, str] | None) -> bool:
    return kinds is not None and kinds.get(node.of.attr) not in (None, "list", "null")


def _known(source: SourceText, ref: ast.Ref, kinds: Mapping[str, str]) -> None:
    if ref.attr in PSEUDO or ref.attr in kinds and ref.attr not in FIXED_COLUMNS:
        return
    raise UnknownAttribute.of_one(source, ref.at, ref.attr, {*kinds, *PSEUDO} - FIXED_COLUMNS)


def _refs(node: ast.Node) -> list[ast.Ref]:
    return [part for part in node.walk() if isinstance(part, ast.Ref)]


def _without_name(node: ast.Node) -> ast.Node:
    """The node with each attribute as users write it, without an event's name."""
    if isinstance(node, ast.Ref):
        # A bare NULL is not an attribute.
        word = f'"{node.attr}"' if node.attr.upper() == "NULL" else identifier(node.attr)
        return replace(node, of=ast.Word(word, node.at))
    return rebuilt(node, _without_name)


def _types(events: pa.Table) -> dict[str, pa.DataType]:
    return dict(zip(events.schema.names, events.schema.types, strict=True))
