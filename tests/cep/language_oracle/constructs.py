"""Which constructs a pair has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cep.language_oracle.generate import Pair
from tests.cep.language_oracle.model import ANY, Group, Item, Query, Structure

_AGGREGATES = {
    "FIRST": "first, last", "LAST": "first, last", "COUNT": "count", "COUNT DISTINCT": "count distinct",
    "SUM": "sum, avg", "AVG": "sum, avg", "MIN": "min, max", "MAX": "min, max", "STDDEV": "stddev",
    "MEDIAN": "median", "PERCENTILE": "percentile",
}  # fmt: skip
_CONDITIONS = {
    "between": "between",
    "null": "is null",
    "like": "like",
    "matches": "matches",
    "in": "in",
    "case": "case",
}


def constructs(pair: Pair) -> set[str]:
    """The constructs of a pair, by the names that ``generate`` has for them."""
    query = pair.query
    found = {"measures"} if query.measures else set()
    found |= {"pause"} if query.pause is not None else set()
    found |= {"no within"} if query.within is None else set()
    found |= {query.keep.lower()} if query.keep else set()
    found |= {"or at the top"} if len(query.branches) > 1 else set()
    for branch in query.branches:
        found.update(_of_structure(branch.structure, True))
    for tree in _trees(query):
        found.update(_of_tree(tree))
    times = [e["ts"] for e in pair.events]
    found |= {"ties"} if len(set(times)) < len(times) else set()
    found |= {"seq"} if any("seq" in e for e in pair.events) else set()
    return found | ({"key"} if pair.key is not None else set())


def _of_structure(structure: Structure, top: bool) -> Iterator[str]:
    if isinstance(structure, Item):
        role = structure.role.lower()
        if structure.role != "EVENT":
            yield role
        if structure.sizes is not None:
            yield "sizes" if role == "event" else "collect sizes"
        elif structure.many:
            yield "many"
        if structure.optional:
            yield "optional"
        if structure.type == ANY:
            yield "any type"
        return
    if structure.strict:
        yield "strict"
    if structure.of_key:
        yield "of key"
    if structure.kind == "AND":
        yield "and"
    if structure.kind == "OR":
        yield "or inside"
    elif not top:
        yield "nested"
    for item in structure.items:
        yield from _of_structure(item, isinstance(structure, Group) and structure.kind == "OR")


def _trees(query: Query) -> list[Any]:
    conditions = [query.where, *(branch.where for branch in query.branches)]
    return [c for c in conditions if c is not None] + [value for _, value in query.measures]


def _of_tree(node: Any) -> Iterator[str]:
    if not isinstance(node, (tuple, list)) or not node:
        return
    kind = node[0]
    if kind == "lit":
        return
    if isinstance(kind, str) and kind in _CONDITIONS:
        yield _CONDITIONS[kind]
    if kind == "agg":
        yield _AGGREGATES[node[1]]
    elif kind == "prev":
        yield "prev gap" if node[4] is not None else "prev n" if (node[3] or 1) > 1 else "prev"
    elif kind == "call":
        yield "seconds" if node[1] == "SECONDS" else "function"
    elif kind == "ref" and node[2] in ("type", "id"):
        yield "type, id"
    for part in node:
        yield from _of_tree(part)
