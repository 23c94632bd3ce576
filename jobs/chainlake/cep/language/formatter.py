"""Abstract syntax back to text, in one normal form: the text that is hashed (docs/semantics.md#definitions)."""

from __future__ import annotations

from fractions import Fraction

from chainlake.cep.language import ast
from chainlake.definitions.duration import UNITS


def format_query(query: ast.Query) -> str:
    """``query`` as text; equal queries give equal texts, and parsing the text gives the query back."""
    branches = [_structure(b.structure) + _where(b.where) for b in query.branches]
    head = branches[0] if len(branches) == 1 else f"OR({', '.join(branches)})"
    unit = f" {query.within.unit}" if query.within.unit else ""
    return f"PATTERN {head}{_where(query.where)} WITHIN {query.within.value}{unit}"


def _where(where: ast.Node | None) -> str:
    return "" if where is None else f" WHERE {format_node(where)}"


def _structure(item: ast.Structure) -> str:
    if isinstance(item, ast.Group):
        return f"{item.kind}({', '.join(_structure(i) for i in item.items)})"
    text = f"{item.type}{'*' if item.kleene else ''} {item.name}"
    return f"NOT({text})" if item.negated else text


def quoted(text: str) -> str:
    """A string as it is written in a query."""
    return "'" + text.replace("'", "''") + "'"


def format_node(node: ast.Node) -> str:
    """One condition or value as text, with parentheses around everything composed."""
    found = _value(node)
    return _condition(node) if found is None else found


def _value(node: ast.Node) -> str | None:
    """A value as text, or None if the node is a condition."""
    match node:
        case ast.Literal(value):
            return _literal(value)
        case ast.Duration(size, name):
            return _duration(size, name)
        case ast.Word(name):
            return name
        case ast.Ref(name, attr):
            return f"{name}.{attr}"
        case ast.Aggregate(function, name, attr):
            return f"{function}({name}{'' if attr is None else '.' + attr})"
        case ast.Call(function, args):
            return f"{function}({', '.join(map(format_node, args))})"
        case ast.Negative(of):
            return f"-({format_node(of)})"
        case ast.Arithmetic(op, left, right):
            return f"({format_node(left)} {op} {format_node(right)})"
    return None


def _condition(node: ast.Node) -> str:
    """A condition as text."""
    match node:
        case ast.Compare(op, left, right):
            return f"{format_node(left)} {op} {format_node(right)}"
        case ast.Member(value, negated, items):
            members = items if isinstance(items, str) else "{" + ", ".join(map(format_node, items)) + "}"
            return f"{format_node(value)} {'NOT ' if negated else ''}IN {members}"
        case ast.IsNull(value, negated):
            return f"{format_node(value)} IS {'NOT ' if negated else ''}NULL"
        case ast.Const(value):
            return str(value).upper()
        case ast.Not(of):
            return f"NOT ({format_node(of)})"
        case ast.All(of):
            return " AND ".join(f"({format_node(part)})" for part in of)
        case ast.Any(of):
            return " OR ".join(f"({format_node(part)})" for part in of)
    raise TypeError(f"not a node: {node!r}")


def _literal(value: int | float | str | bool) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return quoted(value) if isinstance(value, str) else repr(value)


def _duration(size: Fraction, name: str | None) -> str:
    if name is not None:
        return f"{name} {next(unit for unit, of_unit in UNITS.items() if of_unit == size)}"
    milliseconds = size * 1000
    return f"{milliseconds.numerator if milliseconds.denominator == 1 else float(milliseconds)!r} ms"
