"""Queries as plain data, and what their parts mention.

Conditions and values are tuples:

* condition: ``("cmp", op, value, value)``, ``("between", value, negated, low, high)``, ``("in", value, negated,
  literals)``, ``("null", value, negated)``, ``("like" or "matches", value, negated, text)``, ``("const", bool)``,
  ``("not", c)``, ``("and", parts)``, ``("or", parts)``
* value: ``("lit", v)``, ``("ref", name, attr)``, ``("agg", function, name, of, more)`` where ``of`` is an attribute, a
  value on one event of the set, or None for its events, and ``more`` the share of PERCENTILE, ``("prev", name, attr, n
  or None, gap or None)``, ``("op", op, value, value)``, ``("neg", value)``, ``("call", function, values)``, ``("case",
  ((condition, value), …), value or None)``

Events are dicts ``{id, type, ts, seq (may be left out), attrs}`` with whole-number ts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

Event = dict[str, Any]
#: Any type.
ANY = "*"


@dataclass(frozen=True)
class Item:
    """An event, or one under NOT, COLLECT or UNTIL.

    Args:
        role: EVENT, NOT, COLLECT, COLLECT? or UNTIL.
        type: its type, or ``*``.
        name: its name.
        many: whether it is a set of events (``+``); of a COLLECT only with ``sizes``.
        sizes: the least and the greatest number of its events, None for no upper limit.
        optional: ``B? b``.
    """

    role: str
    type: str
    name: str
    many: bool = False
    sizes: tuple[int, int | None] | None = None
    optional: bool = False


@dataclass(frozen=True)
class Group:
    """SEQ, AND or OR of items and groups; a SEQ may be STRICT, and that OF KEY."""

    kind: str
    items: tuple[Item | Group, ...]
    strict: bool = False
    of_key: bool = False


Structure = Item | Group


@dataclass(frozen=True)
class Branch:
    """A branch of the OR at the top, or the only one."""

    structure: Structure
    where: tuple | None = None


@dataclass(frozen=True)
class Query:
    """A query.

    Args:
        branches: of the OR at the top, or one.
        where: the condition of a query of several branches that they share.
        within: the window, or None.
        pause: the longest pause, or None.
        keep: MAXIMAL, OUTERMOST or nothing.
        measures: names and values.
    """

    branches: tuple[Branch, ...]
    where: tuple | None = None
    within: int | None = None
    pause: int | None = None
    keep: str = ""
    measures: tuple[tuple[str, tuple], ...] = ()


def leaves(structure: Structure) -> list[Item]:
    """The items of a structure, from left to right."""
    return [structure] if isinstance(structure, Item) else [x for part in structure.items for x in leaves(part)]


def ordinary(structure: Structure) -> list[Item]:
    """Those that bind events."""
    return [item for item in leaves(structure) if item.role == "EVENT"]


def expanded(structure: Structure) -> list[Structure]:
    """The structures without OR and ``?`` that this one stands for (the OR at the top is none of them)."""
    return [one for one in _choices(structure) if one is not None]


def _choices(structure: Structure) -> Iterator[Structure | None]:
    """Every choice of alternatives; None where nothing is left."""
    if isinstance(structure, Item):
        yield replace(structure, optional=False)
        if structure.optional:
            yield None
    elif structure.kind == "OR":
        for alternative in structure.items:
            yield from _choices(alternative)
    else:
        for choice in itertools.product(*(list(_choices(part)) for part in structure.items)):
            items = tuple(part for part in choice if part is not None)
            yield replace(structure, items=items) if items else None


def precedences(structure: Structure) -> set[tuple[str, str]]:
    """All pairs (n, m) of names with n before m; those of UNTIL have no place."""
    if isinstance(structure, Item):
        return set()
    pairs = set().union(*(precedences(part) for part in structure.items))
    if structure.kind == "SEQ":
        for left, right in itertools.combinations(structure.items, 2):
            pairs |= {(n.name, m.name) for n in leaves(left) for m in leaves(right)}
    return pairs


# ---- conditions


Clause = tuple[tuple[tuple, bool], ...]


def clauses(condition: tuple | None, negate: bool = False) -> list[Clause]:
    """The condition as AND of clauses, each an OR of literals ``(atom, negated)``."""
    if condition is None:
        return []
    kind = condition[0]
    if kind == "not":
        return clauses(condition[1], not negate)
    if kind == "between":
        _, value, negated, low, high = condition
        both = ("and", (("cmp", ">=", value, low), ("cmp", "<=", value, high)))
        return clauses(both, negate != negated)
    if kind in ("and", "or"):
        parts = [clauses(part, negate) for part in condition[1]]
        if (kind == "and") != negate:
            return [clause for part in parts for clause in part]
        return [tuple(literal for clause in choice for literal in clause) for choice in itertools.product(*parts)]
    return [((condition, negate),)]


@lru_cache(maxsize=10_000)
def references(node: Any) -> frozenset[tuple[str, bool]]:
    """``(name, inside an aggregate)`` of everything that a condition or value mentions."""
    if not isinstance(node, tuple) or not node:
        return frozenset()
    if node[0] in ("ref", "prev"):
        return frozenset({(node[1], False)})
    if node[0] == "agg":
        return frozenset({(node[2], True)})
    if node[0] == "lit":
        return frozenset()
    return frozenset().union(*(references(part) for part in node))


@lru_cache(maxsize=10_000)
def names_of(node: Any) -> set[str]:
    """The names that a condition, clause or value mentions."""
    return {name for name, _ in references(node)}


@lru_cache(maxsize=10_000)
def plain(node: Any) -> set[str]:
    """The names whose single events it looks at."""
    return {name for name, aggregated in references(node) if not aggregated}


@lru_cache(maxsize=10_000)
def aggregated(node: Any) -> set[str]:
    """The names that it has aggregates of."""
    return {name for name, inside in references(node) if inside}
