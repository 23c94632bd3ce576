"""Random queries with histories: every construct, and every pair of constructs in turn, on small histories."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tests.cep.language_oracle.conditions import AGGREGATES, KINDS, Conditions
from tests.cep.language_oracle.histories import history
from tests.cep.language_oracle.matches import matches
from tests.cep.language_oracle.model import (
    ANY,
    Branch,
    Event,
    Group,
    Item,
    Query,
    Structure,
    expanded,
    leaves,
    ordinary,
)
from tests.cep.strategies import Random

_STRUCTURE = (
    "and", "nested", "many", "sizes", "optional", "or inside", "or at the top", "not", "collect", "collect?",
    "collect sizes", "until", "any type", "strict", "of key",
)  # fmt: skip
_TAIL = ("pause", "no within", "maximal", "outermost", "measures")
_DATA = ("key", "seq", "ties")
#: What a query and its history may have; a seed forces two of them.
CONSTRUCTS = (*_STRUCTURE, *_TAIL, *_DATA, *KINDS[1:])
#: What cannot be together.
_NEVER = {
    frozenset(pair)
    for pair in (("maximal", "outermost"), ("and", "strict"), ("and", "of key"), ("and", "no within"),
                 ("nested", "strict"), ("nested", "of key"), ("nested", "no within"))
}  # fmt: skip
#: Two constructs for each seed, in turn.
FOCUS = [pair for pair in itertools.combinations(CONSTRUCTS, 2) if frozenset(pair) not in _NEVER]
#: How many histories are tried until one has matches.
_TRIES = 8


@dataclass(frozen=True)
class Pair:
    """A query, a history, and the matches wanted.

    Args:
        seed: it came from.
        query: the query.
        events: the history, rows in any order.
        key: the attribute of the source's key, or None.
        focus: the two constructs that were forced.
        wanted: its matches by the definition.
    """

    seed: int
    query: Query
    events: list[Event]
    key: str | None
    focus: tuple[str, str]
    wanted: list[dict]


def pair(seed: int) -> Pair:
    """The pair of a seed."""
    pick = Random(f"language {seed}")
    focus = FOCUS[seed % len(FOCUS)]
    made = _Query(pick, set(focus))
    query = made.query()
    key = "k" if made.has("key", 6) or _is_keyed(query) else None
    for _ in range(_TRIES):
        events = history(pick, query, key, made.want)
        wanted = matches(query, events, key)
        if wanted:
            break
    return Pair(seed, query, events, key, focus, wanted)


def _is_keyed(query: Query) -> bool:
    return any(isinstance(b.structure, Group) and b.structure.of_key for b in query.branches)


class _Query:
    """Draws one query."""

    def __init__(self, pick: Random, want: set[str]) -> None:
        self.pick, self.want = pick, set(want)
        if want & {"of key", "no within"}:
            self.want.add("strict")
        if "no within" in want:
            self.want.add("pause")
        if want & set(AGGREGATES) and not want & {"many", "sizes", "collect", "collect?", "collect sizes"}:
            self.want.add(pick.one(("many", "collect", "collect", "collect?")))
        never = {"and", "nested"} if "strict" in self.want else {"strict"} if self.want & {"and", "nested"} else set()
        self.off = never
        self.strict = self.has("strict", 5)
        self.keyed = self.strict and self.has("of key", 3)
        self.keep = "MAXIMAL" if "maximal" in want else "OUTERMOST" if "outermost" in want else pick.one(
            ("", "", "", "", "", "MAXIMAL", "OUTERMOST"))  # fmt: skip
        self.timeless = self.strict and self.has("no within", 5)
        if self.strict:
            self.off = {"and", "nested"}

    def has(self, construct: str, one_in: int) -> bool:
        """Whether a construct is in: always if it is wanted, else once in so many times."""
        if construct in self.want:
            return True
        return construct not in self.off and self.pick.one(range(one_in)) == 0

    def query(self) -> Query:
        """A query."""
        pick = self.pick
        names = _names()
        structures = [self.structure(names)]
        if self.has("or at the top", 7):
            self.want -= {"collect sizes", "sizes"}
            again = _names() if pick.one((False, True)) else names
            other = self.structure(again)
            if _fit(structures[0], other):
                structures.append(other)
            else:
                structures.append(self.structure(names))
        kinds = [kind for kind in KINDS if kind in self.want]
        split = len(structures) > 1
        branches = []
        for structure in structures:
            own = self.where([structure], kinds if not split or pick.one((False, True)) else [], structures)
            branches.append(Branch(structure, own))
        shared = self.where(structures, kinds, structures) if split else None
        before = bool(self.want & {"prev", "prev n", "prev gap"})
        pause = pick.one((1, 2, 2, 3, 4)) if self.timeless or self.has("pause", 2 if before else 6) else None
        within = None if self.timeless else pick.one((2, 4, 5, 6, 7, 9))
        measures = self.measures(structures) if self.has("measures", 6) else []
        return Query(tuple(branches), shared, within, pause, self.keep, tuple(measures))

    def measures(self, structures: list[Structure]) -> list[tuple[str, tuple]]:
        """Some measures, each of the names of one branch without OR and ``?``."""
        choices = [one for structure in structures for one in expanded(structure)]
        return [
            (f"m{number}", self.conditions(self.pick.one(choices), structures).measure())
            for number in range(self.pick.one((1, 2, 3)))
        ]

    def conditions(self, structure: Structure, every: list[Structure]) -> Conditions:
        """What draws conditions on the names of a branch; aggregates are of names that are sets in every branch."""
        single = {i.name for one in every for i in leaves(one) if i.role == "EVENT" and not i.many}
        items = {item.name: item for item in leaves(structure)}
        sets = {name for name, item in items.items() if item.many or item.role.startswith("COLLECT")} - single
        if self.keep and not self.strict:
            sets -= {item.name for item in ordinary(structure)}
        lists = {i.name for one in every for i in leaves(one) if i.many}
        return Conditions(self.pick, items, sets, lists)

    def where(self, structures: list[Structure], kinds: list[str], every: list[Structure]) -> tuple | None:
        """A condition, each part of it on the names of one branch without OR and ``?``."""
        pick = self.pick
        choices = [one for structure in structures for one in expanded(structure)]
        rest = [pick.one(KINDS) for _ in range(pick.one((0, 0, 0, 1, 1)))]
        parts = []
        for kind in [*kinds, *rest]:
            for structure in pick.shuffled(choices)[:4]:
                drawn = self.conditions(structure, every)
                part = drawn.conjunct(kind)
                if part is not None:
                    parts.append(part)
                    break
        if parts and pick.one(range(6)) == 0:
            two = drawn.two_sets()
            parts += [two] if two else []
        return ("and", tuple(parts)) if len(parts) > 1 else parts[0] if parts else None

    # ---- structure

    def structure(self, names: Iterator[str]) -> Structure:
        """The structure of a branch."""
        pick = self.pick
        number = pick.one((1, 2, 2, 2, 3, 3, 4))
        items: list[Structure] = [self.event(names) for _ in range(number)]
        sets = 2 if self.strict else 1
        if self.has("many", 4):
            items = self.with_many(items, False, sets)
        if self.has("sizes", 8):
            items = self.with_many(items, True, 2)
        if self.has("or inside", 8):
            items[pick.one(range(len(items)))] = self.alternatives(names)
        if self.has("nested", 8) and not self.strict:
            inner: list[Structure] = [self.event(names) for _ in range(pick.one((1, 2)))]
            if pick.one((False, True)):
                inner.insert(pick.one(range(len(inner) + 1)), self.special(pick.one(("NOT", "COLLECT")), names))
            kind = "SEQ" if "and" in self.want else pick.one(("AND", "SEQ"))
            items.insert(pick.one(range(len(items) + 1)), Group(kind, tuple(inner)))
        if self.has("optional", 8):
            items.insert(pick.one(range(len(items) + 1)), self.event(names, optional=True))
        if self.timeless:
            items = [self.event(names), *items] if isinstance(items[0], Item) and items[0].optional else items
            items = [*items, self.event(names)] if isinstance(items[-1], Item) and items[-1].optional else items
        for construct, role in (("not", "NOT"), ("collect", "COLLECT"), ("collect?", "COLLECT?"), ("until", "UNTIL"),
                                ("collect sizes", "COLLECT{")):  # fmt: skip
            if self.has(construct, 8):
                if self.timeless and len(items) == 1:
                    items.append(self.event(names))
                lo, hi = (1, len(items)) if self.timeless else (0, len(items) + 1)
                items.insert(pick.one(range(lo, hi)), self.special(role, names))
        kind = "SEQ" if self.strict or ("and" not in self.want and pick.one(range(4))) else "AND"
        return Group(kind, tuple(items), self.strict, self.keyed)

    def event(self, names: Iterator[str], optional: bool = False) -> Item:
        """An ordinary event."""
        return Item("EVENT", self.type(), next(names), optional=optional)

    def type(self) -> str:
        """A type."""
        if "any type" in self.want and self.pick.one((False, True)):
            self.typed = True
            return ANY
        return ANY if self.pick.one(range(16)) == 0 else self.pick.one("AAABBC")

    def with_many(self, items: list[Structure], sizes: bool, most: int) -> list[Structure]:
        """Some single events become sets."""
        found = list(items)
        single = [i for i, item in enumerate(items) if isinstance(item, Item) and not item.many]
        for at in self.pick.shuffled(single)[: self.pick.one(range(1, most + 1))]:
            one = found[at]
            found[at] = Item(one.role, one.type, one.name, True, self.sizes() if sizes else None)
        return found

    def sizes(self) -> tuple[int, int | None]:
        """Limits of a size."""
        return self.pick.one(((1, 1), (1, 2), (2, 2), (2, 3), (1, None), (2, None)))

    def special(self, role: str, names: Iterator[str]) -> Item:
        """An event under NOT, COLLECT or UNTIL."""
        sized = role == "COLLECT{"
        if sized:
            role = self.pick.one(("COLLECT", "COLLECT?"))
        return Item(role, self.type(), next(names), sized, self.sizes() if sized else None)

    def alternatives(self, names: Iterator[str]) -> Group:
        """OR inside; the alternatives may have the same names."""
        pick = self.pick
        first = self.event(names)
        name = first.name if pick.one((False, True)) else next(names)
        other: Structure = Item("EVENT", self.type(), name)
        what = pick.one(range(4))
        if what == 0:
            other = Group("SEQ", (other, self.event(names)))
        elif what == 1 and not self.strict:
            more = self.event(names)
            return Group("OR", (Group("AND", (first, more)), Group("SEQ", (first, more))))
        elif what == 2:
            role = "NOT" if self.timeless else pick.one(("NOT", "COLLECT"))
            other = Group("SEQ", (other, self.special(role, names), self.event(names)))
        return Group("OR", tuple(pick.shuffled((first, other))))


def _names() -> Iterator[str]:
    """Names, short ones first."""
    return (letter + more for more in ("", "1") for letter in "abcdefghijklmnopqrstuvwxyz")


def _fit(one: Structure, other: Structure) -> bool:
    """Whether names that both have stand for the same kind of thing in both."""
    roles = {item.name: item.role for item in leaves(one)}
    return all(roles.get(item.name, item.role) == item.role for item in leaves(other))
