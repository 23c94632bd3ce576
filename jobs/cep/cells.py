"""Columns of a CSV file that are numbers but for some cells: what a pattern that compares them with numbers sees."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from jobs.cep import ast
from jobs.cep.arrow import NO_TEXT, text_array
from jobs.cep.columns import kind_of
from jobs.cep.pattern import Pattern
from jobs.cep.places import NUMBER

_IS_NUMBER = "^" + NUMBER.pattern.replace(r"\Z", "$")


def spoilt(events: pa.Table, names: Collection[str]) -> set[str]:
    """Those of the attributes ``names`` that are texts at least half of which, but not all, are numbers."""
    found = set()
    for name in events.schema.names:
        if name in names and pa.types.is_string(events.schema.field(name).type):
            numbers, wrong = _counts(events[name])
            if numbers >= wrong > 0:
                found.add(name)
    return found


def _counts(column: pa.ChunkedArray) -> tuple[int, int]:
    """How many texts are numbers, and how many neither that nor a way to write "no value"."""
    numbers = pc.sum(pc.match_substring_regex(column, _IS_NUMBER)).as_py() or 0
    nothing = pc.sum(pc.is_in(column, value_set=text_array(no_values()))).as_py() or 0
    return numbers, len(column) - column.null_count - numbers - nothing


def no_values() -> list[str]:
    """What stands for "no value" in a column of numbers of a CSV file, besides blank cells."""
    import pyarrow.csv

    return [text for text in pyarrow.csv.ConvertOptions().null_values if text]


def meant_as_numbers(pattern: Pattern, columns: Mapping[str, pa.DataType], names: set[str]) -> set[str]:
    """Those of ``names`` that the pattern computes with, puts in order, or compares with numbers.

    An order of texts that are numbers for the most part (``'10' < '9'``) is never meant. Equality of two such columns
    (``a.code = b.code``) can be, and they stay texts.

    Args:
        pattern: compiled without columns.
        columns: the columns of its events.
        names: columns of texts.
    """
    literals = [literal for b in pattern.branches for c in b.clauses for literal in c.literals]
    numbers = {name for name, kind in columns.items() if kind_of(kind) == "number"}
    found: set[str] = set()
    while new := {n for literal in literals for n in _numeric(literal, numbers | found, names)} & names - found:
        found |= new
    return found


def _numeric(literal: ast.Node, numbers: set[str], names: set[str]) -> Iterator[str]:
    """Attributes that a literal of a clause uses as numbers, if ``numbers`` are and ``names`` may be."""
    for node in literal.walk():
        match node:
            case ast.Compare(op, left, right):
                for side, other in ((left, right), (right, left)):
                    in_order = numbers if op in ("=", "!=") else numbers | names
                    if isinstance(side, ast.Ref) and _is_number(other, in_order):
                        yield side.attr
            case ast.Member(ast.Ref(_, attr), _, items) if any(_is_number(item, numbers) for item in items):  # type: ignore[arg-type]
                yield attr
            case ast.Arithmetic() | ast.Negative() | ast.Call():
                yield from (part.attr for part in node.parts() if isinstance(part, ast.Ref))
            case ast.Aggregate(function, _, str(attr)) if function != "COUNT":
                yield attr


def _is_number(node: ast.Node, numbers: set[str]) -> bool:
    match node:
        case ast.Literal(value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.Ref(_, attr):
            return attr in numbers
    return isinstance(node, ast.Arithmetic | ast.Negative | ast.Aggregate | ast.Call)


def as_numbers(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """The texts as numbers, whole ones if all are, with null for what is none; and how many of those are a mistake."""
    good = pc.match_substring_regex(column, _IS_NUMBER)
    texts = pc.replace_substring_regex(pc.if_else(good, column, NO_TEXT), r"^\s*\+?(.*?)\s*$", r"\1")
    wrong = _counts(column)[1]
    try:
        return texts.cast(pa.int64()), wrong
    except pa.ArrowInvalid:
        return texts.cast(pa.float64()), wrong
