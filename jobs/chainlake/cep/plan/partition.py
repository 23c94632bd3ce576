"""What is known of a pattern before any event is read: a partition key, and a coarse filter for the scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.plan.steps import routing


def partition_key(branches: tuple[Branch, ...]) -> str | None:
    """A column such that equal values of it link all names, negated ones included, of every branch."""
    columns = [column for b in branches for clause in b.clauses if (column := _linked(clause)[0]) is not None]
    for column in dict.fromkeys(columns):
        if all(_links_all(branch, column) for branch in branches):
            return column
    return None


def _linked(clause: Clause) -> tuple[str | None, frozenset[str]]:
    """``(column, {name, name})`` of a clause ``name.column = name.column``."""
    match clause.literals:
        case (ast.Compare("=", ast.Ref(one, a), ast.Ref(other, b)),):
            if a == b and one != other and a not in ("id", "ts"):
                return a, frozenset({one, other})
    return None, frozenset()


def _links_all(branch: Branch, column: str) -> bool:
    """Whether all events that a match or its rejection takes have one value of the column.

    A clause with a negated name says which event rejects, and nothing about the match itself: it links the negated name
    to the match, but neither two positive names nor the members of a set.
    """
    linked = [names for c in branch.clauses for key, names in [_linked(c)] if key == column]
    positive = set(branch.positive)
    if len(positive) == 1 and branch.kleene:
        return False
    reached = {branch.positive[0]}
    while new := {n for names in linked if names & reached and names <= positive for n in names} - reached:
        reached |= new
    return reached == positive and all(any(name in names for names in linked) for name in branch.negated)


def candidate_sql(branches: tuple[Branch, ...], kinds: Mapping[str, str] | None) -> str | None:
    """A Spark SQL condition on the columns of the events table that every candidate of every name fulfils.

    Clauses that SQL might read differently (unknown columns, mixed kinds, times) are left out: the filter may let too
    much through, never too little.
    """
    parts = dict.fromkeys(sql for branch in branches for sql in name_sql(branch, kinds).values())
    return " OR ".join(parts) or None


def name_sql(branch: Branch, kinds: Mapping[str, str] | None) -> dict[str, str]:
    """The same condition for each name of a branch, negated names included."""
    found = {}
    for name, clauses in routing(branch).items():
        tests = [f"type = {_quote(branch.types[name])}"]
        tests += [sql for clause in clauses if (sql := _clause_sql(clause, kinds)) is not None]
        found[name] = "(" + " AND ".join(tests) + ")"
    return found


def _clause_sql(clause: Clause, kinds: Mapping[str, str] | None) -> str | None:
    found = [_literal_sql(literal, kinds or {}) for literal in clause.literals]
    texts = [text for text in found if text is not None]
    return "(" + " OR ".join(texts) + ")" if len(texts) == len(found) else None


def _literal_sql(literal: ast.Node, kinds: Mapping[str, str]) -> str | None:
    match literal:
        case ast.Compare(op, ast.Ref(_, attr), ast.Literal(value)) if _same_kind(attr, [value], kinds):
            return f"`{attr}` {_spark(op)} {_constant(value)}"
        case ast.Compare(op, ast.Literal(value), ast.Ref(_, attr)) if _same_kind(attr, [value], kinds):
            return f"{_constant(value)} {_spark(op)} `{attr}`"
        case ast.Member(ast.Ref(_, attr), negated, items) if items and not isinstance(items, str):
            values = [item.value for item in items if isinstance(item, ast.Literal)]
            if _same_kind(attr, values, kinds):
                return f"`{attr}` {'NOT ' if negated else ''}IN ({', '.join(map(_constant, values))})"
        case ast.IsNull(ast.Ref(_, attr), negated) if kinds.get(attr) in ("number", "string", "bool"):
            if negated:
                return f"`{attr}` IS NOT NULL"
            # NaN is a missing value, too, and SQL does not take it for one.
            return f"(`{attr}` IS NULL OR isnan(`{attr}`))" if kinds[attr] == "number" else f"`{attr}` IS NULL"
    return None


def _same_kind(attr: str, values: Sequence[object], kinds: Mapping[str, str]) -> bool:
    wanted = {"number": (int, float), "string": (str,), "bool": (bool,)}.get(kinds.get(attr, ""), ())
    return bool(wanted) and _read_alike(values) and all(
        isinstance(value, wanted) and isinstance(value, bool) == (wanted == (bool,)) for value in values
    )  # fmt: skip


def _read_alike(values: Sequence[object]) -> bool:
    """Whether SQL compares numbers with these as ``values.compare`` and ``values.member`` do.

    It takes whole numbers beyond 64 bits for decimals, and all of a set for doubles if one of it is.
    """
    largest = max((abs(value) for value in values if isinstance(value, int)), default=0)
    return largest < (2**53 if any(isinstance(value, float) for value in values) else 2**63)


def _spark(op: str) -> str:
    return "<>" if op == "!=" else op


def _constant(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote(value)
    return f"{value!r}D" if isinstance(value, float) else repr(value)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
