"""The matches of a query by trying everything: rules 1 to 6 of a match, and what the other words add to them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.cep.language_oracle.model import (
    ANY,
    Clause,
    Event,
    Group,
    Item,
    Query,
    Structure,
    aggregated,
    clauses,
    expanded,
    leaves,
    names_of,
    ordinary,
    plain,
    precedences,
)  # fmt: skip
from tests.cep.language_oracle.values import Binding, World, attribute, compute, holds, listed, place


def matches(query: Query, events: list[Event], key: str | None = None) -> list[dict[str, Any]]:
    """The matches as mappings from names to ids, and from measures to values (numbers as rounded doubles), each once.

    Args:
        query: the query.
        events: the history.
        key: the attribute of the source's key, or None.
    """
    lists = {
        item.name
        for branch in query.branches
        for item in leaves(branch.structure)
        if item.many or item.role.startswith("COLLECT")
    }
    found: dict[str, tuple[dict[str, Any], dict[str, frozenset[str]], dict[str, Any]]] = {}
    for structure, own in branches(query):
        bound_names = {item.name for item in ordinary(structure)}
        for binding, world in branch_matches(query, structure, own, events, key):
            shown = {
                name: [e["id"] for e in members] if name in lists else members[0]["id"]
                for name, members in binding.items()
            }
            ids = {name: frozenset(e["id"] for e in binding[name]) for name in bound_names}
            found.setdefault(repr(sorted(shown.items())), (shown, ids, _measures(query, binding, lists, world)))
    return [
        shown | values
        for shown, ids, values in found.values()
        if not any(drops(query.keep, ids, other) for _, other, _ in found.values())
    ]


def rounded(value: Any) -> Any:
    """A value of a measure as it is compared."""
    return round(float(value), 9) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def branches(query: Query) -> list[tuple[Structure, list[Clause]]]:
    """The branches after OR and ``?`` are written out, each with the clauses all of whose names it has."""
    result = []
    for branch in query.branches:
        for structure in expanded(branch.structure):
            names = {item.name for item in leaves(structure)}
            every = clauses(branch.where) + clauses(query.where)
            result.append((structure, [clause for clause in every if names_of(clause) <= names]))
    return result


def drops(keep: str, one: dict[str, frozenset[str]], other: dict[str, frozenset[str]]) -> bool:
    """Whether MAXIMAL or OUTERMOST drops a match because of another."""
    if keep == "MAXIMAL":
        empty: frozenset[str] = frozenset()
        names = one.keys() | other.keys()
        within = all(one.get(name, empty) <= other.get(name, empty) for name in names)
        return within and any(one.get(name, empty) != other.get(name, empty) for name in names)
    if keep == "OUTERMOST":
        return frozenset().union(*one.values()) < frozenset().union(*other.values())
    return False


def _measures(query: Query, binding: Binding, lists: set[str], world: World) -> dict[str, Any]:
    """Values of a match; null where the branch lacks a name."""
    one = {name: members[0] for name, members in binding.items() if name not in lists}
    return {
        name: rounded(compute(value, one, binding, world)) if names_of(value) <= binding.keys() else None
        for name, value in query.measures
    }


def branch_matches(
    query: Query, structure: Structure, own: list[Clause], events: list[Event], key: str | None
) -> Iterator[tuple[Binding, World]]:
    """The bindings of a branch that are matches, COLLECT sets included; a STRICT OF KEY lives in each key by itself."""
    strict = isinstance(structure, Group) and structure.strict
    worlds = [events]
    if strict and structure.of_key:
        keys = {attribute(e, key) for e in events} - {None}
        worlds = [[e for e in events if attribute(e, key) == one] for one in sorted(keys)]
    longest = query.pause if query.pause is not None else query.within
    for existing in worlds:
        world = World(existing, {item.name: item.type for item in leaves(structure)}, key, longest)
        rules = Rules(query, structure, own, world)
        for binding in stretches(query, structure, existing) if strict else choices(rules):
            if rules.accept(binding):
                sets = rules.sets(binding)
                if sets is not None:
                    order = [item.name for item in leaves(structure)]
                    every = binding | sets
                    yield {name: every[name] for name in order if name in every}, world


def stretches(query: Query, structure: Structure, events: list[Event]) -> Iterator[Binding]:
    """Every stretch of the stream, shared out to the names in their order in every way."""
    types = {item.type for branch in query.branches for item in ordinary(branch.structure)}
    stream = sorted((e for e in events if ANY in types or e["type"] in types), key=place)
    items = ordinary(structure)
    for start, end in itertools.combinations(range(len(stream) + 1), 2):
        for cuts in itertools.combinations(range(start + 1, end), len(items) - 1):
            bounds = [start, *cuts, end]
            parts = [stream[lo:hi] for lo, hi in itertools.pairwise(bounds)]
            if all(fits(item, part) for item, part in zip(items, parts, strict=True)):
                yield {item.name: tuple(sorted(part, key=listed)) for item, part in zip(items, parts, strict=True)}


def fits(item: Item, members: list[Event] | tuple[Event, ...]) -> bool:
    """Whether these events may be the whole of a name, by type and number."""
    if not all(item.type in (ANY, e["type"]) for e in members):
        return False
    low, high = item.sizes or ((1, None) if item.many else (1, 1))
    return low <= len(members) and (high is None or len(members) <= high)


def choices(rules: Rules) -> Iterator[Binding]:
    """Every choice of events for the names; what breaks the order or the window already is not completed."""
    partial: list[Binding] = [{}]
    for item in ordinary(rules.structure):
        fitting = sorted((e for e in rules.world.events if item.type in (ANY, e["type"])), key=listed)
        sizes = range(1, len(fitting) + 1) if item.many else (1,)
        options = [s for size in sizes for s in itertools.combinations(fitting, size) if fits(item, s)]
        extended = ({**binding, item.name: option} for binding in partial for option in options)
        partial = [binding for binding in extended if rules.consistent(binding)]
    yield from partial


class Rules:
    """The rules of one branch.

    Args:
        query: the query.
        structure: the branch's structure, without OR and ``?``.
        own: its clauses.
        world: the events that exist for it.
    """

    def __init__(self, query: Query, structure: Structure, own: list[Clause], world: World) -> None:
        self.query, self.structure, self.own, self.world = query, structure, own, world
        self.before = precedences(structure)
        items = leaves(structure)
        self.collected = [item for item in items if item.role.startswith("COLLECT")]
        self.forbidden = [item for item in items if item.role in ("NOT", "UNTIL")]
        self.special = {item.name for item in self.collected + self.forbidden}

    def consistent(self, binding: Binding) -> bool:
        """No event under two names, the order by time, and the window."""
        bound = [e["id"] for members in binding.values() for e in members]
        if len(set(bound)) < len(bound):
            return False
        for n, m in self.before:
            if n in binding and m in binding:
                if not all(x["ts"] < y["ts"] for x in binding[n] for y in binding[m]):
                    return False
        return self.in_window(binding)

    def in_window(self, binding: Binding) -> bool:
        """The whole window, closed."""
        times = [e["ts"] for members in binding.values() for e in members]
        return self.query.within is None or max(times) - min(times) <= self.query.within

    def accept(self, binding: Binding) -> bool:
        """The window, the pauses, the conditions on ordinary names, NOT and UNTIL."""
        times = sorted(e["ts"] for members in binding.values() for e in members)
        pause = self.query.pause
        if not self.in_window(binding):
            return False
        if pause is not None and any(later - earlier > pause for earlier, later in itertools.pairwise(times)):
            return False
        if not all(holds(clause, binding, self.world) for clause in self.own if not names_of(clause) & self.special):
            return False
        return not any(self.completed(item, x, binding) for item in self.forbidden for x in self.world.events)

    def completed(self, item: Item, x: Event, binding: Binding) -> bool:
        """Whether an event is one that NOT or UNTIL forbids beside the ordinary names."""
        own = [clause for clause in self.own if item.name in names_of(clause)]
        times = [e["ts"] for members in binding.values() for e in members]
        if not self.free(item, x, binding):
            return False
        if not (min(times) < x["ts"] < max(times) if item.role == "UNTIL" else self.beside(item, x, binding)):
            return False
        return all(holds(clause, {**binding, item.name: (x,)}, self.world) for clause in own)

    def free(self, item: Item, x: Event, binding: Binding) -> bool:
        """Whether an event has the item's type and no ordinary name binds it."""
        return item.type in (ANY, x["type"]) and all(x["id"] != e["id"] for m in binding.values() for e in m)

    def beside(self, item: Item, x: Event, binding: Binding) -> bool:
        """Whether an event fits into the item's place by time, whatever the order of the stream says."""
        for n, m in self.before:
            if m == item.name and n in binding and not all(e["ts"] < x["ts"] for e in binding[n]):
                return False
            if n == item.name and m in binding and not all(x["ts"] < e["ts"] for e in binding[m]):
                return False
        return self.in_window({**binding, item.name: (x,)})

    def sets(self, binding: Binding) -> Binding | None:
        """The COLLECT sets beside the ordinary names, or None if one of them, or a clause on them, rejects."""
        found: Binding = {}
        for item in self.collected:
            choosing = [c for c in self.own if item.name in plain(c) and item.name not in aggregated(c)]
            members = [
                x
                for x in sorted(self.world.events, key=listed)
                if self.free(item, x, binding)
                and self.beside(item, x, binding)
                and all(holds(clause, {**binding, item.name: (x,)}, self.world) for clause in choosing)
            ]
            if not members and item.role == "COLLECT":
                return None
            if members and item.sizes is not None and not fits(item, members):
                return None
            found[item.name] = tuple(members)
        whole = {**binding, **found}
        for clause in self.own:
            if aggregated(clause) & found.keys() and not holds(clause, whole, self.world):
                return None
        return found
