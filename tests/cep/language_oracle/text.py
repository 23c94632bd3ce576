"""Queries in the language."""

from __future__ import annotations

from typing import Any

from tests.cep.language_oracle.model import Branch, Item, Query, Structure


def text_of(query: Query) -> str:
    """A query as text."""
    if len(query.branches) > 1:
        head = f"OR({', '.join(_branch(branch) for branch in query.branches)})"
        where = f" WHERE {_condition(query.where)}" if query.where else ""
    else:
        head, where = _structure(query.branches[0].structure), _where(query)
    tail = "" if query.within is None else f" WITHIN {query.within}"
    tail += "" if query.pause is None else f" PAUSE {query.pause}"
    tail += f" {query.keep}" if query.keep else ""
    if query.measures:
        tail += " MEASURES " + ", ".join(f"{value_text(value)} AS {name}" for name, value in query.measures)
    return f"PATTERN {head}{where}{tail}"


def _where(query: Query) -> str:
    parts = [c for c in (query.branches[0].where, query.where) if c]
    return f" WHERE {_condition(('and', tuple(parts)) if len(parts) > 1 else parts[0])}" if parts else ""


def _branch(branch: Branch) -> str:
    return _structure(branch.structure) + (f" WHERE {_condition(branch.where)}" if branch.where else "")


def _structure(structure: Structure) -> str:
    if isinstance(structure, Item):
        size = "+" if structure.many and structure.sizes is None else "?" if structure.optional else ""
        if structure.sizes is not None:
            low, high = structure.sizes
            size = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
        event = f"{structure.type}{size} {structure.name}"
        return event if structure.role == "EVENT" else f"{structure.role}({event})"
    strict = f" STRICT{' OF KEY' if structure.of_key else ''} " if structure.strict else ""
    return f"{structure.kind}{strict}({', '.join(map(_structure, structure.items))})"


def _condition(c: tuple) -> str:
    kind = c[0]
    if kind == "const":
        return str(c[1]).upper()
    if kind == "not":
        return f"NOT ({_condition(c[1])})"
    if kind in ("and", "or"):
        return f" {kind.upper()} ".join(f"({_condition(part)})" for part in c[1])
    if kind == "cmp":
        return f"{value_text(c[2])} {c[1]} {value_text(c[3])}"
    left, negated = value_text(c[1]), "NOT " if c[2] else ""
    if kind == "null":
        return f"{left} IS {negated}NULL"
    if kind == "between":
        return f"{left} {negated}BETWEEN {value_text(c[3])} AND {value_text(c[4])}"
    if kind == "in":
        return f"{left} {negated}IN {{{', '.join(map(_literal, c[3]))}}}"
    return f"{left} {negated}{kind.upper()} {_literal(c[3])}"


def _literal(v: Any) -> str:
    return f"'{v}'" if isinstance(v, str) else str(v).upper()


def value_text(v: tuple) -> str:
    """A value as text."""
    kind = v[0]
    if kind == "lit":
        return _literal(v[1])
    if kind == "ref":
        return f"{v[1]}.{v[2]}"
    if kind == "prev":
        more = "" if v[3] is None else f", {v[3]}" + ("" if v[4] is None else f", {v[4]}")
        return f"PREV({v[1]}.{v[2]}{more})"
    if kind == "agg":
        _, function, name, of, more = v
        function, distinct = ("COUNT", "DISTINCT ") if function == "COUNT DISTINCT" else (function, "")
        of = name if of is None else value_text(of if isinstance(of, tuple) else ("ref", name, of))
        inner = of[1:-1] if of[0] == "(" else of
        return f"{function}({distinct}{inner}{f', {more}' if more is not None else ''})"
    if kind == "op":
        return f"({value_text(v[2])} {v[1]} {value_text(v[3])})"
    if kind == "neg":
        return f"-({value_text(v[1])})"
    if kind == "call":
        return f"{v[1]}({', '.join(map(value_text, v[2]))})"
    cases = " ".join(f"WHEN {_condition(condition)} THEN {value_text(then)}" for condition, then in v[1])
    return f"CASE {cases}{'' if v[2] is None else f' ELSE {value_text(v[2])}'} END"
