"""Random small patterns and streams: all operators, ties, nulls, equal values, several negations, OR.

They are made by picks. Hypothesis makes the picks where it shall shrink what fails; a plain random generator makes them
twenty times faster where thousands of pairs are wanted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from hypothesis import strategies as st

TYPES = ("A", "B", "C")
_NUMBERS = (None, 0, 1, 1, 2, 3, 0.5)
_ORDER = ("<", "<=", ">", ">=", "=", "!=")


class Pick(Protocol):
    """Where choices come from."""

    def one(self, of: Sequence) -> Any:
        """One of these."""

    def shuffled(self, of: Sequence) -> list:
        """All of these in some order."""


class _Drawn:
    """Choices of Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one(self, of: Sequence) -> Any:
        return self.draw(st.sampled_from(of))

    def shuffled(self, of: Sequence) -> list:
        return self.draw(st.permutations(of))


class Random:
    """Choices of a seed."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed)

    def one(self, of: Sequence) -> Any:
        return of[int(self.random.random() * len(of))]

    def shuffled(self, of: Sequence) -> list:
        return self.random.sample(of, len(of))


@st.composite
def streams(draw: st.DrawFn, most: int = 7) -> list[dict[str, Any]]:
    """As ``stream``."""
    return stream(_Drawn(draw), most)


@st.composite
def queries(draw: st.DrawFn, most: int = 4) -> tuple:
    """As ``query``."""
    return query(_Drawn(draw), most)


def stream(pick: Pick, most: int = 7) -> list[dict[str, Any]]:
    """Up to ``most`` events on few ticks, in any row order, some of them equal but for their id."""
    events = []
    for number in range(pick.one(range(most + 1))):
        attrs = {"x": pick.one(_NUMBERS), "y": pick.one((0, 1, 2)), "k": pick.one("ppq")}
        if pick.one(range(6)) == 0:
            del attrs["k"]
        events.append({"id": f"e{number}", "type": pick.one("AAABBC"), "ts": pick.one(range(7)), "attrs": attrs})
    return events


def structure(pick: Pick, most: int = 4, kleenes: int = 2) -> tuple:
    """A structure with at most ``most`` positive names."""
    left = {"positive": most, "negated": 2, "kleene": kleenes}
    names = iter("abcdefgh")

    def event() -> tuple:
        left["positive"] -= 1
        kleene = left["kleene"] > 0 and pick.one(range(5)) == 0
        left["kleene"] -= kleene
        return "EVENT", pick.one(TYPES), next(names), kleene

    def group(depth: int) -> tuple:
        kind = pick.one(("SEQ", "SEQ", "AND"))
        items: list[tuple] = [event()]
        for _ in range(pick.one(range(4))):
            what = pick.one(("event", "event", "not", "group"))
            if what == "not" and left["negated"]:
                left["negated"] -= 1
                items.append(("NOT", pick.one(TYPES), next(names)))
            elif left["positive"] and what == "group" and depth:
                items.append(group(depth - 1))
            elif left["positive"]:
                items.append(event())
        return kind, pick.shuffled(items)

    return group(1) if pick.one(range(10)) else event()


def _leaves(structure: tuple) -> list[tuple]:
    return [structure] if structure[0] in ("EVENT", "NOT") else [x for item in structure[1] for x in _leaves(item)]


def where(pick: Pick, structure: tuple) -> tuple | None:
    """A condition over the names of ``structure``; each conjunct mentions at most one negated name."""
    leaves = _leaves(structure)
    positive = [leaf[2] for leaf in leaves if leaf[0] == "EVENT"]
    kleene = [leaf[2] for leaf in leaves if leaf[0] == "EVENT" and leaf[3]]
    negated = [leaf[2] for leaf in leaves if leaf[0] == "NOT"]

    def value(pool: list[str], depth: int = 1) -> tuple:
        what = pick.one(("ref", "ref", "ref", "lit", "agg", "op", "fn"))
        if what == "agg" and kleene:
            function = pick.one(("AVG", "SUM", "MIN", "MAX", "COUNT", "ALL"))
            if function == "ALL":
                return "agg", "COUNT", pick.one(kleene), None
            return "agg", function, pick.one(kleene), pick.one(("x", "y"))
        if what == "op" and depth:
            return "op", pick.one("+-*/"), value(pool, 0), value(pool, 0)
        if what == "fn" and depth:
            return pick.one(("neg", "abs")), value(pool, 0)
        if what == "lit":
            return "lit", pick.one((0, 1, 2, 0.5))
        return "ref", pick.one(pool), pick.one(("x", "x", "y", "ts"))

    def atom(pool: list[str]) -> tuple:
        what = pick.one(range(10))
        if what == 0:
            return (
                "in",
                value(pool),
                pick.one((False, True)),
                [pick.one((0, 1, 2, "p")) for _ in range(pick.one((1, 1, 2, 3)))],
            )
        if what == 1:
            return "cmp", pick.one(("=", "!=")), ("ref", pick.one(pool), "k"), ("lit", "p")
        if what == 2:
            one, other = pick.one(pool), pick.one(pool)
            return "cmp", pick.one(_ORDER), ("ref", one, "k"), ("ref", other, "k")
        if what == 3:
            return "const", pick.one((False, True))
        if what == 4:
            of = ("ref", pick.one(pool), "k") if pick.one((False, True)) else value(pool)
            return "null", of, pick.one((False, True))
        return "cmp", pick.one(_ORDER), value(pool), value(pool)

    def condition(pool: list[str], depth: int) -> tuple:
        what = pick.one(range(7))
        if depth and what == 0:
            return "not", condition(pool, depth - 1)
        if depth and what <= 2:
            return pick.one(("and", "or")), [condition(pool, depth - 1) for _ in range(2)]
        return atom(pool)

    parts = []
    for _ in range(pick.one(range(4))):
        pool = list(positive)
        if negated and pick.one((False, True)):
            pool.append(pick.one(negated))
        parts.append(condition(pool, 2))
    return ("and", parts) if len(parts) > 1 else parts[0] if parts else None


def query(pick: Pick, most: int = 4) -> tuple:
    """A query of one branch, sometimes of two or three; later branches may be earlier ones with another condition."""
    branches = [structure(pick, most)]
    for _ in range(pick.one((0, 0, 0, 1, 2))):
        again = pick.one((False, True))
        branches.append(_varied(pick, pick.one(branches)) if again else structure(pick, most))
    found = [(branch, where(pick, branch)) for branch in branches]
    shared = where(pick, branches[0]) if pick.one(range(5)) == 0 else None
    return found, shared, pick.one(range(7))


def _varied(pick: Pick, structure: tuple) -> tuple:
    """The same names in another arrangement: what OR must not report twice."""
    if structure[0] == "EVENT":
        return "EVENT", structure[1], structure[2], pick.one((False, True))
    if structure[0] == "NOT":
        return structure
    items = [_varied(pick, item) for item in structure[1]]
    return pick.one(("SEQ", "AND")), pick.shuffled(items)


# ---- as text


def text_of(query: tuple) -> str:
    """A query in the language."""
    branches, shared, window = query
    parts = [_structure(s) + (f" WHERE {_condition(c)}" if c else "") for s, c in branches]
    if len(parts) > 1:
        head = f"OR({', '.join(parts)})"
        return f"PATTERN {head}{f' WHERE {_condition(shared)}' if shared else ''} WITHIN {window}"
    conditions_ = [_condition(c) for c in (branches[0][1], shared) if c]
    where = f" WHERE {' AND '.join(f'({c})' for c in conditions_)}" if conditions_ else ""
    return f"PATTERN {_structure(branches[0][0])}{where} WITHIN {window}"


def _structure(structure: tuple) -> str:
    if structure[0] == "EVENT":
        return f"{structure[1]}{'*' if structure[3] else ''} {structure[2]}"
    if structure[0] == "NOT":
        return f"NOT({structure[1]} {structure[2]})"
    return f"{structure[0]}({', '.join(map(_structure, structure[1]))})"


def _condition(c: tuple) -> str:
    if c[0] == "cmp":
        return f"{_value(c[2])} {c[1]} {_value(c[3])}"
    if c[0] == "in":
        return f"{_value(c[1])} {'NOT ' if c[2] else ''}IN {{{', '.join(_literal(v) for v in c[3])}}}"
    if c[0] == "null":
        return f"{_value(c[1])} IS {'NOT ' if c[2] else ''}NULL"
    if c[0] == "const":
        return str(c[1]).upper()
    if c[0] == "not":
        return f"NOT ({_condition(c[1])})"
    return f" {c[0].upper()} ".join(f"({_condition(part)})" for part in c[1])


def _literal(v: Any) -> str:
    return f"'{v}'" if isinstance(v, str) else repr(v)


def _value(v: tuple) -> str:
    if v[0] == "lit":
        return _literal(v[1])
    if v[0] == "ref":
        return f"{v[1]}.{v[2]}"
    if v[0] == "agg":
        return f"{v[1]}({v[2]}{'.' + v[3] if v[3] else ''})"
    if v[0] == "op":
        return f"({_value(v[2])} {v[1]} {_value(v[3])})"
    return f"-({_value(v[1])})" if v[0] == "neg" else f"Abs({_value(v[1])})"
