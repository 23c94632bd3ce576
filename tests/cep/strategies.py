"""Random small patterns and streams: all operators, ties, nulls, equal values, several negations, OR."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TYPES = ("A", "B", "C")
_NUMBERS = st.sampled_from([None, 0, 1, 1, 2, 3, 0.5])
_ORDER = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])


@st.composite
def streams(draw: st.DrawFn, most: int = 7) -> list[dict[str, Any]]:
    """Up to ``most`` events on few ticks, in any row order, some of them equal but for their id."""
    n = draw(st.integers(0, most))
    events = []
    for number in range(n):
        attrs = {"x": draw(_NUMBERS), "y": draw(st.sampled_from([0, 1, 2])), "k": draw(st.sampled_from("ppq"))}
        if draw(st.integers(0, 5)) == 0:
            del attrs["k"]
        events.append(
            {
                "id": f"e{number}",
                "type": draw(st.sampled_from("AAABBC")),
                "ts": draw(st.integers(0, 6)),
                "attrs": attrs,
            }
        )
    return events


@st.composite
def structures(draw: st.DrawFn, most: int = 4, kleenes: int = 2) -> tuple:
    """A structure with at most ``most`` positive names."""
    left = {"positive": most, "negated": 2, "kleene": kleenes}
    names = iter("abcdefgh")

    def event() -> tuple:
        left["positive"] -= 1
        kleene = left["kleene"] > 0 and draw(st.integers(0, 4)) == 0
        left["kleene"] -= kleene
        return "EVENT", draw(st.sampled_from(TYPES)), next(names), kleene

    def group(depth: int) -> tuple:
        kind = draw(st.sampled_from(["SEQ", "SEQ", "AND"]))
        items: list[tuple] = [event()]
        for _ in range(draw(st.integers(0, 3))):
            what = draw(st.sampled_from(["event", "event", "not", "group"]))
            if what == "not" and left["negated"]:
                left["negated"] -= 1
                items.append(("NOT", draw(st.sampled_from(TYPES)), next(names)))
            elif left["positive"] and what == "group" and depth:
                items.append(group(depth - 1))
            elif left["positive"]:
                items.append(event())
        return kind, draw(st.permutations(items))

    return group(1) if draw(st.integers(0, 9)) else event()


def _leaves(structure: tuple) -> list[tuple]:
    return [structure] if structure[0] in ("EVENT", "NOT") else [x for item in structure[1] for x in _leaves(item)]


@st.composite
def conditions(draw: st.DrawFn, structure: tuple) -> tuple | None:
    """A condition over the names of ``structure``; each conjunct mentions at most one negated name."""
    leaves = _leaves(structure)
    positive = [leaf[2] for leaf in leaves if leaf[0] == "EVENT"]
    kleene = [leaf[2] for leaf in leaves if leaf[0] == "EVENT" and leaf[3]]
    negated = [leaf[2] for leaf in leaves if leaf[0] == "NOT"]

    def value(pool: list[str], depth: int = 1) -> tuple:
        what = draw(st.sampled_from(["ref", "ref", "ref", "lit", "agg", "op", "fn"]))
        if what == "agg" and kleene:
            function = draw(st.sampled_from(["AVG", "SUM", "MIN", "MAX", "COUNT", "ALL"]))
            if function == "ALL":
                return "agg", "COUNT", draw(st.sampled_from(kleene)), None
            return "agg", function, draw(st.sampled_from(kleene)), draw(st.sampled_from(["x", "y", "ts"][:2]))
        if what == "op" and depth:
            return "op", draw(st.sampled_from("+-*/")), value(pool, 0), value(pool, 0)
        if what == "fn" and depth:
            return draw(st.sampled_from(["neg", "abs"])), value(pool, 0)
        if what == "lit":
            return "lit", draw(st.sampled_from([0, 1, 2, 0.5]))
        return "ref", draw(st.sampled_from(pool)), draw(st.sampled_from(["x", "x", "y", "ts"]))

    def atom(pool: list[str]) -> tuple:
        what = draw(st.integers(0, 9))
        if what == 0:
            return "in", value(pool), draw(st.booleans()), draw(st.lists(st.sampled_from([0, 1, 2, "p"]), min_size=1))
        if what == 1:
            return "cmp", draw(st.sampled_from(["=", "!="])), ("ref", draw(st.sampled_from(pool)), "k"), ("lit", "p")
        if what == 2:
            one, other = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
            return "cmp", draw(_ORDER), ("ref", one, "k"), ("ref", other, "k")
        if what == 3:
            return "const", draw(st.booleans())
        return "cmp", draw(_ORDER), value(pool), value(pool)

    def condition(pool: list[str], depth: int) -> tuple:
        what = draw(st.integers(0, 6))
        if depth and what == 0:
            return "not", condition(pool, depth - 1)
        if depth and what <= 2:
            return draw(st.sampled_from(["and", "or"])), [condition(pool, depth - 1) for _ in range(2)]
        return atom(pool)

    parts = []
    for _ in range(draw(st.integers(0, 3))):
        pool = list(positive)
        if negated and draw(st.booleans()):
            pool.append(draw(st.sampled_from(negated)))
        parts.append(condition(pool, 2))
    return ("and", parts) if len(parts) > 1 else parts[0] if parts else None


@st.composite
def queries(draw: st.DrawFn, most: int = 4) -> tuple:
    """A query of one branch, sometimes of two or three; later branches may be earlier ones with another condition."""
    branches = [draw(structures(most))]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        again = draw(st.booleans())
        branches.append(_varied(draw, draw(st.sampled_from(branches))) if again else draw(structures(most)))
    found = [(structure, draw(conditions(structure))) for structure in branches]
    shared = draw(conditions(branches[0])) if draw(st.integers(0, 4)) == 0 else None
    return found, shared, draw(st.integers(0, 6))


def _varied(draw: st.DrawFn, structure: tuple) -> tuple:
    """The same names in another arrangement: what OR must not report twice."""
    if structure[0] == "EVENT":
        return "EVENT", structure[1], structure[2], draw(st.booleans())
    if structure[0] == "NOT":
        return structure
    items = [_varied(draw, item) for item in structure[1]]
    return draw(st.sampled_from(["SEQ", "AND"])), draw(st.permutations(items))


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
