"""The smallest pair on which something still happens, for people to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from chainlake.errors import DefinitionError
from tests.cep.language_oracle.generate import Pair
from tests.cep.language_oracle.matches import matches
from tests.cep.language_oracle.model import Branch, Group, Item, Query, Structure


def smallest(pair: Pair, happens: Callable[[Pair], bool]) -> Pair:
    """A pair of which no part can be left out any more.

    Args:
        pair: on which it happens.
        happens: whether it does on another; a query that the language refuses counts as no, and any other error of
            the product ends the search.
    """
    current = pair
    while True:
        for candidate in smaller(current):
            try:
                wanted = matches(candidate.query, candidate.events, candidate.key)
            except ValueError:  # nothing is left of a structure: the definition says nothing of it
                continue
            smaller_pair = replace(candidate, wanted=wanted)
            try:
                found = happens(smaller_pair)
            except DefinitionError:
                continue
            if found:
                current = smaller_pair
                break
        else:
            return current


def smaller(pair: Pair) -> Iterator[Pair]:
    """The pair less one part."""
    for at in range(len(pair.events)):
        yield replace(pair, events=pair.events[:at] + pair.events[at + 1 :])
    for query in _queries(pair.query):
        yield replace(pair, query=query)
    if pair.key is not None:
        yield replace(pair, key=None)
    for at, event in enumerate(pair.events):
        for attr in event["attrs"]:
            less = {**event, "attrs": {name: v for name, v in event["attrs"].items() if name != attr}}
            yield replace(pair, events=[*pair.events[:at], less, *pair.events[at + 1 :]])
        if "seq" in event:
            less = {name: v for name, v in event.items() if name != "seq"}
            yield replace(pair, events=[*pair.events[:at], less, *pair.events[at + 1 :]])


def _queries(query: Query) -> Iterator[Query]:
    if len(query.branches) > 1:
        for at in range(len(query.branches)):
            yield replace(query, branches=query.branches[:at] + query.branches[at + 1 :])
    for where in _conditions(query.where):
        yield replace(query, where=where)
    for at, branch in enumerate(query.branches):
        for less in _branches(branch):
            yield replace(query, branches=(*query.branches[:at], less, *query.branches[at + 1 :]))
    if query.keep:
        yield replace(query, keep="")
    if query.pause is not None and query.within is not None:
        yield replace(query, pause=None)
    for at in range(len(query.measures)):
        yield replace(query, measures=query.measures[:at] + query.measures[at + 1 :])


def _branches(branch: Branch) -> Iterator[Branch]:
    for where in _conditions(branch.where):
        yield replace(branch, where=where)
    for structure in _structures(branch.structure):
        yield replace(branch, structure=structure)


def _conditions(condition: tuple | None) -> Iterator[tuple | None]:
    if condition is None:
        return
    yield None
    if condition[0] == "not":
        yield condition[1]
    if condition[0] in ("and", "or"):
        kind, parts = condition
        for at in range(len(parts)):
            rest = parts[:at] + parts[at + 1 :]
            yield rest[0] if len(rest) == 1 else (kind, rest)
        for at, part in enumerate(parts):
            for less in _conditions(part):
                if less is not None:
                    yield kind, (*parts[:at], less, *parts[at + 1 :])


def _structures(structure: Structure) -> Iterator[Structure]:
    if isinstance(structure, Item):
        if structure.optional or (structure.many and structure.role == "EVENT"):
            yield replace(structure, optional=False, many=False, sizes=None)
        return
    if structure.strict and structure.of_key:
        yield replace(structure, of_key=False)
    if structure.kind == "OR":
        yield from structure.items
    for at, item in enumerate(structure.items):
        if len(structure.items) > (2 if structure.kind == "OR" else 1):
            yield replace(structure, items=structure.items[:at] + structure.items[at + 1 :])
        for less in _structures(item):
            yield replace(structure, items=(*structure.items[:at], less, *structure.items[at + 1 :]))
        if isinstance(item, Group) and item.kind == structure.kind:
            yield replace(structure, items=(*structure.items[:at], *item.items, *structure.items[at + 1 :]))
