"""Random ranked queries and events for them, in the form of the worked cases."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

from tests.cep.ranking_by_definition import Event, declared, names_of, text, variables, walk

SHAPES: list[str] = ["ab", "abc", "a~b", "all", "all of seq", "seq of all", "or", "or scored", "any", "one", "star"]


def _leaf(draw: random.Random, name: str) -> dict[str, Any]:
    return {"var": name, "type": draw.choice("AAB")}


def _group(draw: random.Random, op: str, names: str) -> dict[str, Any]:
    return {"op": op, "items": [_leaf(draw, name) for name in names]}


def _pattern(draw: random.Random, shape: str) -> dict[str, Any]:
    if shape in ("ab", "abc"):
        return _group(draw, "SEQ", shape)
    if shape == "a~b":
        a, b = _leaf(draw, "a"), _leaf(draw, "b")
        return {"op": "SEQ", "items": [a, {"op": "NOT", "var": "n", "type": draw.choice("ABC")}, b]}
    if shape == "all":
        return _group(draw, "ALL", "ab")
    if shape in ("all of seq", "seq of all"):
        outer, inner = ("ALL", "SEQ") if shape == "all of seq" else ("SEQ", "ALL")
        groups = [_group(draw, inner, "ab"), _group(draw, inner, "cd") if draw.random() < 0.4 else _leaf(draw, "c")]
        for group in groups:
            if "items" in group and draw.random() < 0.6:
                group["within"] = draw.randrange(1, 8)
        return {"op": outer, "items": groups}
    if shape.startswith("or"):
        return {"op": "OR", "items": [_group(draw, "SEQ", "ab"), _group(draw, draw.choice(["SEQ", "ALL"]), "cd")]}
    if shape == "any":
        return {"op": "ANY", "m": draw.choice([1, 2, 2]), "items": [_leaf(draw, name) for name in "abc"]}
    return {"var": "a", "type": "A" if shape == "one" else "*"} if shape == "one" else {
        "op": "SEQ", "items": [{"var": "a", "type": "*"}, _leaf(draw, "b")]}  # fmt: skip


def _number(draw: random.Random, names: list[str], depth: int = 2) -> tuple:
    if depth == 0 or draw.random() < 0.3:
        if draw.random() < 0.15:
            return ("num", draw.choice([0, 1, 2, 0.5, 3]))
        return ("ref", draw.choice(names), draw.choice(["x", "x", "x", "y", "ts"]))
    kind = draw.choice(["+", "+", "-", "-", "*", "/", "abs", "sqrt", "least", "greatest", "coalesce"])
    parts = [_number(draw, names, depth - 1) for _ in range(1 if kind in ("abs", "sqrt") else 2)]
    return (kind, ("abs", parts[0])) if kind == "sqrt" else (kind, *parts)


def _score(draw: random.Random, names: list[str], width: int | None = None) -> dict[str, Any]:
    n = width or draw.choice([1, 1, 2, 3])
    how = draw.choice(["sum", "avg", "wsum", "min", "max", "product", "lex"]) if n > 1 else None
    criteria = []
    for _ in range(n):
        one: dict[str, Any] = {"dir": draw.choice(["max", "min"]), "expr": _number(draw, names)}
        if how == "product" or draw.random() < 0.3:
            low = draw.randrange(-4, 4)
            one["norm"] = [low, low + draw.randrange(1, 12)]
        criteria.append(one)
    found: dict[str, Any] = {"criteria": criteria}
    if how:
        found["combine"] = how
    if how == "wsum":
        found["weights"] = [draw.choice([-1, 0, 0.5, 2, 3]) for _ in range(n)]
    return found


def query(draw: random.Random) -> dict[str, Any]:
    """A random query, whose expressions are trees."""
    shape = draw.choice(SHAPES)
    pattern = _pattern(draw, shape)
    names = declared(pattern)
    together = [names_of(item) for item in pattern["items"]] if shape.startswith("or") else [set(names)]
    if shape == "any":
        together = [set(some) for some in itertools.combinations(names, pattern["m"])]
    found: dict[str, Any] = {"pattern": pattern, "k": draw.choice([1, 2, 3, 5, 20])}
    where = []
    for _ in range(draw.choice([0, 0, 0, 1, 2])):
        some = sorted(draw.choice(together))
        attr = draw.choice("kx")
        if len(some) > 1:
            one, other = draw.sample(some, 2)
            where.append((draw.choice(["=", "<", "<=", ">=", "<>"]), ("ref", one, attr), ("ref", other, attr)))
    if shape == "a~b" and draw.random() < 0.7:
        where.append(("=", ("ref", "n", "k"), ("ref", draw.choice("ab"), "k")))
    if where:
        found["where"] = where
    if draw.random() < 0.6:
        found["within"] = draw.randrange(2, 16)
    if shape == "or scored":
        width = draw.choice([1, 2])
        scores = [_score(draw, sorted(some), width) for some in together]
        if len({one.get("combine") == "lex" for one in scores}) > 1:
            scores = [{"criteria": one["criteria"], "combine": "sum"} for one in scores]
        found["branch_scores"] = scores
    else:
        found["score"] = _score(draw, names)
    lex = any(one.get("combine") == "lex" for one in found.get("branch_scores", [found.get("score")]))
    kind = draw.choice(["global", "hop", "hop", "bucket", "bucket"])
    if kind == "hop":
        found["scope"] = {"kind": "hop", "size": draw.randrange(3, 16), "step": draw.randrange(1, 6),
                          "offset": draw.randrange(-7, 7)}  # fmt: skip
    elif kind == "bucket":
        found["scope"] = {"kind": "bucket", "by": draw.choice(["last", "first"]), "size": draw.randrange(2, 16),
                          "offset": draw.randrange(-7, 7)}  # fmt: skip
    _options(draw, found, names, lex)
    return found


def sum_query(draw: random.Random) -> dict[str, Any]:
    """A random query of a sequence whose score is a sum of terms of one event each."""
    names = draw.choice(["a", "ab", "ab", "abc"])
    found: dict[str, Any] = {"pattern": _group(draw, "SEQ", names), "k": draw.choice([1, 2, 3, 5])}
    if len(names) > 1 and draw.random() < 0.3:
        found["where"] = [("=", ("ref", one, "k"), ("ref", other, "k")) for one, other in itertools.pairwise(names)]
        if draw.random() < 0.5:
            found["per"] = [("ref", draw.choice(names), "k")]
    count = draw.choice([1, 1, 2])
    criteria = []
    for _ in range(count):
        term: tuple = ("ref", draw.choice(names), draw.choice("xxy"))
        for name in draw.sample(names, draw.randrange(len(names) + 1)):
            further = ("ref", name, draw.choice(["x", "y", "x", "ts"]))
            if draw.random() < 0.3:
                further = ("*", further, ("num", draw.choice([0.1, 3, -0.7])))
            term = (draw.choice("+-"), term, further)
        one: dict[str, Any] = {"dir": draw.choice(["max", "max", "min"]), "expr": term}
        if len(variables(term)) == 1 and draw.random() < 0.4:
            one["norm"] = [0, draw.choice([4, 8])]
        criteria.append(one)
    found["score"] = {"criteria": criteria}
    if count > 1:
        found["score"]["combine"] = draw.choice(["sum", "avg", "wsum"])
        if found["score"]["combine"] == "wsum":
            found["score"]["weights"] = [draw.choice([-1, 0.3, 2]) for _ in range(count)]
    kind = draw.choice(["global", "global", "hop", "bucket"])
    if kind == "hop":
        found["scope"] = {"kind": "hop", "size": draw.randrange(3, 16), "step": draw.randrange(1, 6),
                          "offset": draw.randrange(-7, 7)}  # fmt: skip
    elif kind == "bucket":
        found["scope"] = {
            "kind": "bucket",
            "by": "last",
            "size": draw.randrange(2, 16),
            "offset": draw.randrange(-7, 7),
        }
    if draw.random() < 0.3:
        found["within"] = draw.randrange(12, 25)
    if draw.random() < 0.2:
        found["min_score"] = draw.choice([-3, 0, 0.5, 2])
    return found


def _options(draw: random.Random, found: dict[str, Any], names: list[str], lex: bool) -> None:
    one = draw.choice(names)
    if draw.random() < 0.35:
        found["per"] = [("ref", one, "k")] + ([("abs", ("ref", one, "x"))] if draw.random() < 0.3 else [])
    if draw.random() < 0.3:
        found["ties"] = "with_ties"
    if draw.random() < 0.25:
        key = [("ref", draw.choice(names), draw.choice(["id", "k"])) for _ in range(draw.choice([1, 1, 2]))]
        found["distinct_on"] = {"key": key, "m": draw.choice([1, 1, 2])}
    if draw.random() < 0.2:
        found["non_overlap"] = True
    if not lex and draw.random() < 0.25:
        found["min_score"] = draw.choice([-3, 0, 0.5, 2])
    if not lex and draw.random() < 0.25:
        found["quantum"] = draw.choice([0.5, 2, 5])
    if draw.random() < 0.15:
        found["order"] = "total"
    if draw.random() < 0.15:
        found["distinct_events"] = False
    if "scope" in found and draw.random() < 0.4 and any("within" in node for node in walk(found["pattern"])):
        found["component_window"] = "trailing"


def events(draw: random.Random) -> list[Event]:
    """Random events, with equal times and missing values."""
    kinds = draw.choice(["AB", "AAB", "AABBC"])
    return [
        {
            "id": f"e{number:02}", "ts": draw.randrange(-3, 14), "seq": number, "type": draw.choice(kinds),
            "x": draw.choice([0, 1, 1, 2, 3, 5, 8, 9, None]), "y": draw.choice([-1.5, 0.25, 1.0, 2.0, math.nan]),
            "k": draw.choice(["u", "v", "v", None]),
        }
        for number in draw.sample(range(40), draw.randrange(4, 12))
    ]  # fmt: skip


def as_case(query: dict[str, Any]) -> dict[str, Any]:
    """The query with its expressions as text."""

    def score(one: dict[str, Any]) -> dict[str, Any]:
        return {**one, "criteria": [{**c, "expr": text(c["expr"])} for c in one["criteria"]]}

    found = dict(query)
    for key in ("where", "per"):
        if key in found:
            found[key] = [text(one) for one in found[key]]
    if "score" in found:
        found["score"] = score(found["score"])
    if "branch_scores" in found:
        found["branch_scores"] = [score(one) for one in found["branch_scores"]]
    if "distinct_on" in found:
        found["distinct_on"] = {**found["distinct_on"], "key": [text(one) for one in found["distinct_on"]["key"]]}
    return found
