"""Notes on columns that do not hold what a pattern seems to expect, for the person who reads the matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from chainlake.cep.compiling.names import kinds_of
from chainlake.cep.language import ast
from chainlake.cep.language.check import Checker
from chainlake.cep.lint.warnings import unlike_kinds
from chainlake.cep.pattern import Pattern
from chainlake.cep.plain_files.cells import spelled_alike
from chainlake.cep.plain_files.errors import UnfitCell, shown
from chainlake.cep.plain_files.read import Events
from chainlake.errors import DefinitionError


def notes_of(pattern: Pattern, columns: Mapping[str, pa.DataType], events: Events) -> Iterator[str]:
    """The notes on a pattern and the columns of its events, each column once.

    Args:
        pattern: compiled without columns.
        columns: their types by name.
        events: the events as read, with the cells that decided the types.
    """
    kinds = kinds_of(columns)
    literals = pattern.extras.conditions
    for name in sorted(events.texts):
        if any(name in _as_numbers(literal, kinds) for literal in literals):
            yield str(UnfitCell.in_order(events.texts[name].said(name)))
    for name, cells in sorted(events.cells.items()):
        if any(name in _equal(literal) for literal in literals) and (two := spelled_alike(cells)):
            if name in events.texts:
                yield str(UnfitCell.unlike(events.texts[name].said(name), *two))
            else:
                one, other = (f"'{shown(text)}'" for text in two)
                hint = f"--type-of {name}=text keeps them apart."
                yield f"{name} holds numbers, so {one} and {other} are equal\nhint: {hint}"
    checker = Checker(pattern.text, kinds, pattern.strict)
    for branch in pattern.extras.written:
        try:
            found = list(unlike_kinds(branch, checker, pattern.text))
        except DefinitionError:
            return  # The pattern does not fit the columns, which compiling it with them will report.
        for warning in found:
            yield str(warning)


def _as_numbers(literal: ast.Node, kinds: Mapping[str, str]) -> set[str]:
    """Attributes that a literal of a clause computes with, compares by order, or compares with numbers."""
    found: set[str] = set()
    for node in literal.walk():
        match node:
            case ast.Compare(op, left, right):
                for side, other in ((left, right), (right, left)):
                    if isinstance(side, ast.Ref) and (op not in ("=", "!=") or _is_number(other, kinds)):
                        found.add(side.attr)
            case ast.Member(ast.Ref(_, attr)) if any(_is_number(item, kinds) for item in node.literals):
                found.add(attr)
            case ast.Arithmetic() | ast.Negative() | ast.Call():
                found |= {part.attr for part in node.parts() if isinstance(part, ast.Ref)}
            case ast.Aggregate(function, _, str(attr)) if not ast.AGGREGATES[function].counts:
                found.add(attr)
    return found


def _is_number(node: ast.Node, kinds: Mapping[str, str]) -> bool:
    match node:
        case ast.Literal(value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.Ref(_, attr):
            return kinds.get(attr) == "number"
    return isinstance(node, ast.Arithmetic | ast.Negative | ast.Aggregate | ast.Call)


def _equal(literal: ast.Node) -> set[str]:
    """Attributes that a literal of a clause tests for equality."""
    match literal:
        case ast.Compare("=" | "!=", left, right):
            return {side.attr for side in (left, right) if isinstance(side, ast.Ref)}
        case ast.Member(ast.Ref(_, attr)):
            return {attr}
    return set()
