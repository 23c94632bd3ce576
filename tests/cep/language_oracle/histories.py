"""Random histories for a query: few events, most of them where a match may have them."""

from __future__ import annotations

from tests.cep.language_oracle.model import ANY, Event, Group, Query, expanded, leaves, ordinary
from tests.cep.strategies import Random


def history(pick: Random, query: Query, key: str | None, want: set[str]) -> list[Event]:
    """Up to nine events, in any order of rows.

    Args:
        pick: choices.
        query: whose names events are planted for.
        key: the attribute of the source's key, or None.
        want: constructs that it is about: ties, seq, and what looks at the event before.
    """
    before = bool(want & {"prev", "prev n", "prev gap"})
    ties = "ties" in want or pick.one(range(2 if want & {"seq", "first, last"} else 3)) == 0
    seq = "seq" in want or pick.one(range(2 if "first, last" in want else 4)) == 0
    ts, lonely = pick.one((0, 0, 3)), 4 if before else pick.one((6, 12))
    types = planted(pick, query)
    events = []
    for kind, name in zip(types, pick.shuffled([f"e{i}" for i in range(len(types))]), strict=True):
        ts += pick.one((0, 0, 1)) if ties else pick.one((0, 1, 1, 2, 2, 3) if before else (0, 1, 1, 1, 1, 2))
        attrs = {
            "x": pick.one((None, 0, 1, 1, 2, 2, 3, 0.5)),
            "y": pick.one((0, 1, 2)),
            "k": pick.one("ppppq") if key else pick.one("pq"),
            "s": pick.one(("u", "u", "uv", "v", "", None)),
        }
        if pick.one(range(lonely)) == 0:
            del attrs["k"]
        events.append({"id": name, "type": kind, "ts": ts, "attrs": attrs})
        if seq and pick.one(range(4)):
            events[-1]["seq"] = pick.one((0, 1, 2, 3))
    return pick.shuffled(events)


def planted(pick: Random, query: Query) -> list[str]:
    """Types in the order of time: those of a branch as written, and others between them."""
    sets = sum(item.many for branch in query.branches for item in ordinary(branch.structure))
    strict = any(isinstance(branch.structure, Group) and branch.structure.strict for branch in query.branches)
    most = 9 if strict else 8 if sets < 2 else 6
    types = []
    for item in leaves(pick.one(expanded(pick.one(query.branches).structure))):
        often = item.many or item.role.startswith("COLLECT")
        types += [pick.one("ABC") if item.type == ANY else item.type] * (pick.one((1, 2, 2, 3)) if often else 1)
    known = sorted({item.type for branch in query.branches for item in leaves(branch.structure)} - {ANY}) or ["A"]
    while len(types) < 4 or (len(types) < most and pick.one(range(4))):
        types.insert(pick.one(range(len(types) + 1)), pick.one((*known, *known, pick.one("ABCD"))))
    return types[:most]
