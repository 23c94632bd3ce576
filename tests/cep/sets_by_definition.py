"""Sets, UNTIL, PAUSE, sizes, * and what may be missing: the definition by trying everything, and random patterns.

The definition of conditions and of the rest is ``tests.cep.brute_force``. Structures are plain tuples:

* ``("EVENT", type, name, size, optional)``, where the size is None of a single event, else (least, most or None)
* ``("NOT", type, name)``, ``("UNTIL", type, name)``, ``("COLLECT", type, name, size or None, may be empty)``
* ``("SEQ", [items])``, ``("AND", [items])``, and inside these ``("OR", [items])``

A query is ``(structures of the branches, conditions joined by AND, window, pause or None)``.
"""

from __future__ import annotations

import itertools
from typing import Any

from tests.cep.brute_force import Binding, Event, cnf, consistent, holds, mentioned, references
from tests.cep.strategies import Pick, _condition

LEAVES = ("EVENT", "NOT", "UNTIL", "COLLECT")


def leaves(item: tuple) -> list[tuple]:
    """The events of a structure, from left to right."""
    return [item] if item[0] in LEAVES else [leaf for one in item[1] for leaf in leaves(one)]


def alternatives(item: tuple) -> list[tuple | None]:
    """A structure without OR and ?, for every choice; None where nothing is left of it."""
    if item[0] in LEAVES:
        return [item, None] if item[0] == "EVENT" and item[4] else [item]
    each = [alternatives(one) for one in item[1]]
    if item[0] == "OR":
        return [one for those in each for one in those]
    chosen = ([one for one in those if one is not None] for those in itertools.product(*each))
    return [(item[0], those) if those else None for those in chosen]


def order_of(item: tuple) -> set[tuple[str, str]]:
    """All pairs of names (n, m) with n before m; UNTIL has no place."""
    if item[0] in LEAVES:
        return set()
    pairs = set().union(*(order_of(one) for one in item[1]))
    if item[0] == "SEQ":
        for left, right in itertools.combinations(item[1], 2):
            pairs |= {(n[2], m[2]) for n in leaves(left) for m in leaves(right) if "UNTIL" not in (n[0], m[0])}
    return pairs


def by_definition(query: tuple, events: list[Event]) -> list[dict[str, Any]]:
    """The matches as mappings from names to ids, each once."""
    structures, conditions, window, pause = query
    every = [one for structure in structures for one in alternatives(structure)]
    sets = {leaf[2] for one in every for leaf in leaves(one) if leaf[0] == "COLLECT" or leaf[0] == "EVENT" and leaf[3]}
    found = {}
    for one in every:
        for binding in _matches(one, conditions, window, pause, events):
            shown = {
                name: [e["id"] for e in members] if name in sets else members[0]["id"]
                for name, members in binding.items()
            }
            found[repr(sorted(shown.items()))] = shown
    return [found[key] for key in sorted(found)]


def _matches(structure: tuple, conditions: list[tuple], window: int, pause: int | None, events: list[Event]) -> list:
    names = leaves(structure)
    of = {kind: [leaf for leaf in names if leaf[0] == kind] for kind in LEAVES}
    before, own = order_of(structure), {leaf[2] for leaf in names}
    clauses = [c for one in conditions for c in cnf(one) if mentioned(c) <= own]
    special = own - {leaf[2] for leaf in of["EVENT"]}
    choices = []
    for _, kind, _, size, _ in of["EVENT"]:
        fitting = [e for e in in_order(events) if kind in ("*", e["type"])]
        least, most = (1, 1) if size is None else size
        sizes = range(least, min(len(fitting), most or len(fitting)) + 1)
        choices.append([s for k in sizes for s in itertools.combinations(fitting, k)])
    found = []
    for choice in itertools.product(*choices):
        binding = dict(zip((leaf[2] for leaf in of["EVENT"]), choice, strict=True))
        if not consistent(binding, before, window) or not _close(binding, pause):
            continue
        if not all(holds(c, binding) for c in clauses if not mentioned(c) & special):
            continue
        if any(_beside(leaf, binding, before, window, clauses, events) for leaf in of["NOT"]):
            continue
        if any(_within(leaf, binding, clauses, events) for leaf in of["UNTIL"]):
            continue
        whole = _collected(of["COLLECT"], binding, before, window, clauses, events)
        if whole is not None:
            found.append(whole)
    return found


def in_order(events: list[Event]) -> list[Event]:
    """By (ts, id)."""
    return sorted(events, key=lambda e: (e["ts"], e["id"]))


def _close(binding: Binding, pause: int | None) -> bool:
    times = sorted(e["ts"] for members in binding.values() for e in members)
    return pause is None or all(later - earlier <= pause for earlier, later in itertools.pairwise(times))


def _others(leaf: tuple, binding: Binding, events: list[Event]) -> list[Event]:
    """The events of its type that the match does not bind."""
    bound = {e["id"] for members in binding.values() for e in members}
    return [e for e in in_order(events) if leaf[1] in ("*", e["type"]) and e["id"] not in bound]


def _counts(leaf: tuple, event: Event, binding: Binding, clauses: list) -> bool:
    """Whether all conditions on one event of the name are true; those on a finished set are none of them."""
    own = [c for c in clauses if (leaf[2], False) in _references(c) and not _is_finished(c, leaf)]
    return all(holds(c, {**binding, leaf[2]: (event,)}) for c in own)


def _references(clause: list) -> set[tuple[str, bool]]:
    return {one for atom, _ in clause for one in references(atom)}


def _is_finished(clause: list, leaf: tuple) -> bool:
    return leaf[0] == "COLLECT" and (leaf[2], True) in _references(clause)


def _beside(leaf: tuple, binding: Binding, before: set, window: int, clauses: list, events: list[Event]) -> list[Event]:
    """The events that fit beside the match in the place of the name, and fulfil its conditions."""
    return [
        e for e in _others(leaf, binding, events)
        if consistent({**binding, leaf[2]: (e,)}, before, window) and _counts(leaf, e, binding, clauses)
    ]  # fmt: skip


def _within(leaf: tuple, binding: Binding, clauses: list, events: list[Event]) -> bool:
    times = [e["ts"] for members in binding.values() for e in members]
    return any(
        min(times) < e["ts"] < max(times) and _counts(leaf, e, binding, clauses) for e in _others(leaf, binding, events)
    )


def _collected(
    names: list[tuple], binding: Binding, before: set, window: int, clauses: list, events: list[Event]
) -> Binding | None:
    """The match with its sets, or None if they reject it."""
    whole = dict(binding)
    for leaf in names:
        members = tuple(_beside(leaf, binding, before, window, clauses, events))
        least, most = leaf[3] or (1, None)
        if (
            members
            and (len(members) < least or most is not None and len(members) > most)
            or not members
            and not leaf[4]
        ):
            return None
        whole[leaf[2]] = members
    finished = (c for c in clauses if any(_is_finished(c, leaf) for leaf in names))
    return whole if all(holds(c, whole) for c in finished) else None


# ---- random ones


def stream(pick: Pick, most: int = 8, kinds: str = "AABBC") -> list[Event]:
    """Events on few ticks, some of them equal but for their id, some with a place among those of one time."""
    found = []
    for number in range(pick.one(range(most + 1))):
        attrs = {"x": pick.one((None, 0, 1, 2, 3, 0.5)), "k": pick.one("ppq")}
        if pick.one(range(6)) == 0:
            del attrs["k"]
        event = {"id": f"e{number}", "type": pick.one(kinds), "ts": pick.one(range(8)), "attrs": attrs}
        found.append(event | ({"seq": pick.one(range(3))} if pick.one((False, True)) else {}))
    return pick.shuffled(found)


def query(pick: Pick) -> tuple:
    """A query of one branch, or of two with the same names."""
    structure = _structure(pick)
    structures = [structure]
    if pick.one(range(4)) == 0:
        structures.append(_varied(pick, structure))
    pause = pick.one((None, None, 0, 1, 2, 3))
    return structures, _conditions(pick, structures), pick.one(range(9)), pause


def _structure(pick: Pick) -> tuple:
    names = iter("abcdefgh")
    left = {"sets": 1, "singles": 2}

    def event() -> tuple:
        kind = pick.one("AABBC*")
        if left["sets"] and pick.one(range(4)) == 0:
            left["sets"] -= 1
            return "EVENT", kind, next(names), pick.one(((1, None), (2, 2), (1, 2), (2, None), (1, 1))), False
        left["singles"] -= 1
        return "EVENT", kind, next(names), None, pick.one(range(6)) == 0

    def other() -> tuple:
        kind, name = pick.one("AABBC*"), next(names)
        what = pick.one(("COLLECT", "COLLECT", "COLLECT", "NOT", "UNTIL", "UNTIL"))
        if what != "COLLECT":
            return what, kind, name
        return what, kind, name, pick.one((None, None, None, (2, 3), (1, 2))), pick.one((False, True))

    items = [("EVENT", pick.one("AB*"), next(names), None, False)]
    for _ in range(pick.one((1, 2, 2, 3))):
        items.append(other() if pick.one(range(5)) < 3 or left["singles"] <= 0 else event())
    if left["singles"] > 0 and pick.one(range(4)) == 0:
        left["singles"] -= 2
        items.append(("OR", [event(), ("SEQ", [event(), other()])]))
    if len(items) > 2 and pick.one(range(3)) == 0:
        items = [("AND", items[:2]), *items[2:]]
    return pick.one(("SEQ", "SEQ", "AND")), pick.shuffled(items)


def _varied(pick: Pick, item: tuple) -> tuple:
    """The same names in another arrangement and with other roles: what must not be reported twice."""
    if item[0] in ("EVENT", "COLLECT"):
        kind = pick.one((item[1], item[1], item[1], "*"))
        if pick.one(range(5)) == 0:
            return "EVENT", kind, item[2], pick.one((None, (1, None))), False
        if item[0] == "COLLECT" and pick.one(range(5)) == 0:
            return item[0], kind, item[2], None, pick.one((False, True))
        return (item[0], kind, *item[2:])
    if item[0] in LEAVES:
        return item
    items = [_varied(pick, one) for one in item[1]]
    return item[0] if item[0] == "OR" else pick.one(("SEQ", "AND")), pick.shuffled(items)


def _conditions(pick: Pick, structures: list[tuple]) -> list[tuple]:
    every = [leaf for structure in structures for leaf in leaves(structure)]
    ordinary = sorted({leaf[2] for leaf in every if leaf[0] == "EVENT"})
    special = sorted({leaf[2] for leaf in every if leaf[0] != "EVENT"})
    sets = sorted({leaf[2] for leaf in every if leaf[0] == "COLLECT" or leaf[0] == "EVENT" and leaf[3]})

    def value(pool: list[str]) -> tuple:
        what = pick.one(("ref", "ref", "ref", "lit", "agg"))
        if what == "agg" and sets:
            functions = (
                "COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "DISTINCT", "STDDEV", "MEDIAN", "PERCENTILE 0.3",
            )  # fmt: skip
            return "agg", pick.one(functions), pick.one(sets), "x"
        if what == "lit":
            return "lit", pick.one((0, 1, 2, 0.5))
        return "ref", pick.one(pool), "x"

    def atom(pool: list[str]) -> tuple:
        what = pick.one(range(5))
        if what == 0:
            return "cmp", pick.one(("=", "!=")), ("ref", pick.one(pool), "k"), ("ref", pick.one(pool), "k")
        if what == 1 and sets:
            count = "agg", "COUNT", pick.one(sets), None
            return "cmp", pick.one(("<=", ">=", "=")), count, ("lit", pick.one((1, 2, 3)))
        return "cmp", pick.one(("<", "<=", ">=", "!=")), value(pool), value(pool)

    found = []
    for _ in range(pick.one(range(4))):
        pool = ordinary + ([pick.one(special)] if special and pick.one((True, True, False)) else [])
        one = atom(pool)
        found.append(("or", [one, atom(pool)]) if pick.one(range(5)) == 0 else one)
    return found


# ---- as text


def text_of(query: tuple) -> str:
    """A query in the language."""
    structures, conditions, window, pause = query
    texts = [_text(structure) for structure in structures]
    head = texts[0] if len(texts) == 1 else f"OR({', '.join(texts)})"
    where = " AND ".join(f"({_as_text(c)})" for c in conditions)
    limits = f"WITHIN {window}" + ("" if pause is None else f" PAUSE {pause}")
    return f"PATTERN {head}{f' WHERE {where}' if where else ''} {limits}"


def _as_text(condition: tuple) -> str:
    text = _condition(condition).replace("DISTINCT(", "COUNT(DISTINCT ")
    head, *others = text.split("PERCENTILE 0.3(")
    return head + "".join(f"PERCENTILE({one.replace(')', ', 0.3)', 1)}" for one in others)


def _text(item: tuple) -> str:
    if item[0] == "EVENT":
        size = "" if item[3] is None else _size(item[3])
        return f"{item[1]}{size}{'?' if item[4] else ''} {item[2]}"
    if item[0] == "COLLECT":
        return f"COLLECT{'?' if item[4] else ''}({item[1]}{_size(item[3]) if item[3] else ''} {item[2]})"
    if item[0] in LEAVES:
        return f"{item[0]}({item[1]} {item[2]})"
    return f"{item[0]}({', '.join(map(_text, item[1]))})"


def _size(size: tuple[int, int | None]) -> str:
    if size == (1, None):
        return "+"
    least, most = size
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
