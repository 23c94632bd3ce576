"""Keys and types that a pattern names but no event has; most are misspelt, so that nothing ever matches."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.language.source_text import At, SourceText
from chainlake.cep.lint.findings import UnknownValue
from chainlake.cep.pattern import Pattern
from chainlake.errors import DefinitionError


@dataclass(frozen=True)
class ObservedValues:
    """The keys and types that actual events have.

    Args:
        where: which events these are, in words that follow "no event".
        keys, types: those that occur.
    """

    where: str
    keys: Collection[str]
    types: Collection[str]


def named_keys(pattern: Pattern, key: str) -> dict[str, At]:
    """The texts with which conditions compare the key column, each with its first place."""
    found: dict[str, At] = {}
    for branch in pattern.branches:
        for literal in (literal for clause in branch.clauses for literal in clause.literals):
            for value in _compared(literal, key):
                if isinstance(value.value, str):
                    found.setdefault(value.value, value.at)
    return found


def unknown_values(
    pattern: Pattern, source: SourceText, key: str, observed: ObservedValues, types: Collection[str] | None = None
) -> list[DefinitionError]:
    """A warning for each key and each type that the pattern names and none of the events has.

    Args:
        pattern: the pattern.
        source: its text.
        key: the key column of its source.
        observed: what the events have.
        types: the types that the source can have, if it says so; others are not reported here.
    """
    found: list[DefinitionError] = [
        UnknownValue.value(source, at, observed.where, key, value, observed.keys)
        for value, at in named_keys(pattern, key).items()
        if value not in observed.keys
    ]
    possible = set(pattern.event_types) if types is None else set(pattern.event_types) & set(types)
    for kind in sorted(possible - set(observed.types)):
        found.append(UnknownValue.kind(source, observed.where, kind, observed.types))
    return found


def pinned(branch: Branch, key: str | None) -> frozenset[str]:
    """The names of a branch that have a condition naming the keys that their events may have."""
    found: set[str] = set()
    for clause in branch.clauses:
        if len(clause.names) == 1 and all(_names_keys(literal, key) for literal in clause.literals):
            found |= clause.names
    return frozenset(found)


def _names_keys(literal: ast.Node, key: str | None) -> bool:
    match literal:
        case ast.Compare("=", ast.Ref(_, attr), ast.Literal()) | ast.Compare("=", ast.Literal(), ast.Ref(_, attr)):
            return attr == key
        case ast.Member(ast.Ref(_, attr), False, _):
            return attr == key
    return False


def _compared(literal: ast.Node, key: str) -> Iterator[ast.Literal]:
    match literal:
        case ast.Compare("=" | "!=", ast.Ref(_, attr), ast.Literal() as value) | ast.Compare(
            "=" | "!=", ast.Literal() as value, ast.Ref(_, attr)
        ) if attr == key:
            yield value
        case ast.Member(ast.Ref(_, attr), _, items) if attr == key:
            yield from (item for item in items if isinstance(item, ast.Literal))
