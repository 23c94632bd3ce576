"""Ranked patterns evaluated as they are defined: every combination of events, every list, one sort. And random ones.

A query has the form of the worked cases; its expressions are trees, which are written as text for the engine.
"""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

Event = dict[str, Any]
Match = dict[str, Event]

# ---- expressions: ("num", 2), ("ref", "a", "x"), ("+", left, right), ("abs", value), …


def text(node: tuple) -> str:
    """An expression as text."""
    kind, *parts = node
    if kind == "num":
        return repr(parts[0])
    if kind == "ref":
        return f"{parts[0]}.{parts[1]}"
    if kind in ("+", "-", "*", "/", "=", "<", "<=", ">", ">=", "<>"):
        return f"({text(parts[0])} {kind} {text(parts[1])})"
    return f"{kind}({', '.join(map(text, parts))})"


def variables(node: tuple) -> set[str]:
    """The variables of an expression."""
    if node[0] == "ref":
        return {node[1]}
    return set().union(*(variables(part) for part in node[1:] if isinstance(part, tuple)))


def value(node: tuple, match: Match) -> Any:
    """The value of an expression; None for null, and for what depends on null."""
    kind, *parts = node
    if kind == "num":
        return parts[0]
    if kind == "ref":
        found = match[parts[0]].get(parts[1]) if parts[0] in match else None
        return None if isinstance(found, float) and math.isnan(found) else found
    values = [value(part, match) for part in parts]
    if kind == "coalesce":
        return next((one for one in values if one is not None), None)
    if any(one is None for one in values):
        return None
    one, other = values[0], values[-1]
    if kind in ("=", "<>", "<", "<=", ">", ">="):
        return {"=": one == other, "<>": one != other, "<": one < other, "<=": one <= other, ">": one > other,
                ">=": one >= other}[kind]  # fmt: skip
    if kind in ("+", "-", "*", "/"):
        if kind == "/":
            return None if other == 0 else one / other
        return {"+": one + other, "-": one - other, "*": one * other}[kind]
    return {"abs": lambda: abs(one), "sqrt": lambda: math.sqrt(one), "least": lambda: min(values),
            "greatest": lambda: max(values)}[kind]()  # fmt: skip


# ---- matches


class Evaluation:
    """All matches of a query, and their lists."""

    def __init__(self, query: dict[str, Any], events: list[Event]) -> None:
        self.query = query
        self.events = sorted(events, key=lambda event: (event["ts"], event["seq"]))
        self.rank = {event["id"]: number for number, event in enumerate(self.events)}
        self.total = query.get("order") == "total"

    def before(self, one: Event, other: Event) -> bool:
        if self.total:
            return self.rank[one["id"]] < self.rank[other["id"]]
        return one["ts"] < other["ts"]

    def of(self, node: dict[str, Any]) -> list[Match]:
        """All combinations that fit a node, whatever is forbidden."""
        kind = node.get("op")
        if kind is None:
            return [{node["var"]: event} for event in self.events if node["type"] in ("*", event["type"])]
        if kind == "OR":
            return [one for item in node["items"] for one in self.of(item)]
        if kind == "ANY":
            chosen = itertools.combinations(node["items"], node["m"])
            return [one for items in chosen for one in self.of({"op": "ALL", "items": list(items)})]
        items = [item for item in node["items"] if item.get("op") != "NOT"]
        found = []
        for parts in itertools.product(*map(self.of, items)):
            if kind == "SEQ" and not all(
                self.before(one, other)
                for left, right in itertools.pairwise(parts)
                for one in left.values()
                for other in right.values()
            ):
                continue
            match = {name: event for part in parts for name, event in part.items()}
            ids = [event["id"] for event in match.values()]
            if self.query.get("distinct_events", True) and len(set(ids)) < len(ids):
                continue
            span = self.query.get("component_window", "span") == "span" and node.get("within")
            if span and max(e["ts"] for e in match.values()) - min(e["ts"] for e in match.values()) > span:
                continue
            found.append(match)
        return found

    def absent(self, node: dict[str, Any], match: Match) -> bool:
        """Whether none of the forbidden events of a match is there."""
        if "items" not in node:
            return True
        if node["op"] == "OR":
            return all(self.absent(item, match) for item in node["items"] if names_of(item) & match.keys())
        for number, item in enumerate(node["items"]):
            if item.get("op") == "NOT":
                left = [match[name] for name in names_of(node["items"][number - 1])]
                right = [match[name] for name in names_of(node["items"][number + 1])]
                own = {event["id"] for event in match.values()}
                for event in self.events:
                    between = all(self.before(one, event) for one in left) and all(self.before(event, o) for o in right)
                    if event["type"] == item["type"] and event["id"] not in own and between:
                        tests = [one for one in self.query.get("where", []) if item["var"] in variables(one)]
                        if all(value(test, {**match, item["var"]: event}) is True for test in tests):
                            return False
            elif not self.absent(item, match):
                return False
        return True

    def matches(self) -> list[Match]:
        """All matches of the query."""
        query = self.query
        found = []
        for match in self.of(query["pattern"]):
            times = [event["ts"] for event in match.values()]
            if max(times) - min(times) > query.get("within", math.inf):
                continue
            tests = [one for one in query.get("where", []) if variables(one) <= match.keys()]
            if all(value(test, match) is True for test in tests) and self.absent(query["pattern"], match):
                found.append(match)
        return found

    # ---- lists

    def score(self, match: Match) -> tuple[list[Any], list[float] | None]:
        """The raw criteria, and the score or None."""
        query = self.query
        score = query.get("score")
        if score is None:
            branch = next(i for i, item in enumerate(query["pattern"]["items"]) if names_of(item) & match.keys())
            score = query["branch_scores"][branch]
        raw = [value(one["expr"], match) for one in score["criteria"]]
        if any(one is None for one in raw):
            return raw, None
        utilities = []
        for one, x in zip(score["criteria"], raw, strict=True):
            x = float(x)
            if "norm" not in one:
                utilities.append(x if one["dir"] == "max" else -x)
                continue
            low, high = one["norm"]
            share = (x - low) / (high - low) if one["dir"] == "max" else (high - x) / (high - low)
            utilities.append(min(max(share, 0.0), 1.0))
        found = combined(score, utilities)
        return raw, found if all(map(math.isfinite, found)) else None

    def scopes(self, match: Match) -> list[Any]:
        scope = self.query.get("scope", "global")
        times = [event["ts"] for event in match.values()]
        if scope == "global":
            return [None]
        size, offset = scope["size"], scope["offset"]
        if scope["kind"] == "bucket":
            at = max(times) if scope["by"] == "last" else min(times)
            start = offset + math.floor((at - offset) / size) * size
            return [(start, start + size)]
        first = math.floor((min(times) - offset) / scope["step"]) * scope["step"] + offset
        starts = itertools.takewhile(lambda s: s > max(times) - size, itertools.count(first, -scope["step"]))
        return [(start, start + size) for start in starts]

    def fits(self, match: Match, scope: Any) -> bool:
        """Under trailing windows, whether each group with a window lies at the end of the period."""
        if self.query.get("component_window") != "trailing":
            return True
        return all(
            match[name]["ts"] >= scope[1] - node["within"]
            for node in walk(self.query["pattern"])
            if "within" in node
            for name in names_of(node)
            if name in match
        )

    def result(self) -> tuple[list[Any], list[Any]]:
        """Rows and counts in the form of the cases."""
        query = self.query
        lists: dict[Any, list[Any]] = {}
        for match in self.matches():
            per = tuple(value(one, match) for one in query.get("per", []))
            for scope in self.scopes(match):
                if self.fits(match, scope):
                    lists.setdefault((scope, per), []).append((match, *self.score(match)))
        rows, counts = [], []
        for (scope, per), those in lists.items():
            where = {"scope": None if scope is None else list(scope), "per": list(per)}
            scored = [one for one in those if one[2] is not None]
            least = query.get("min_score", -math.inf)
            good = [one for one in scored if "min_score" not in query or one[2][0] >= least]
            counts.append({**where, "candidates": len(those), "excluded_null": len(those) - len(scored),
                           "below_min_score": len(scored) - len(good)})  # fmt: skip
            for rank, (match, raw, score) in enumerate(self.walked(good), 1):
                shown = score if self.lex(match) else score[0]
                rows.append({**where, "rank": rank, "score": shown, "criteria": raw,
                             "match": {name: event["id"] for name, event in match.items()}})  # fmt: skip
        return rows, counts

    def lex(self, match: Match) -> bool:
        score = self.query.get("score") or self.query["branch_scores"][0]
        return score.get("combine") == "lex"

    def walked(self, entries: list[Any]) -> list[Any]:
        """The best of a list."""
        query = self.query
        order = [name for name in declared(query["pattern"])]

        def key(score: list[float]) -> list[float]:
            if "quantum" in query:
                return [-math.floor(score[0] / query["quantum"] + 0.5)]
            return [-one for one in score]

        def place(one: Any) -> Any:
            match, _, score = one
            return key(score), [self.rank[match[name]["id"]] if name in match else math.inf for name in order]

        entries = sorted(entries, key=place)
        kept: list[Any] = []
        seen: dict[Any, int] = {}
        used: set[Any] = set()
        for match, raw, score in entries:
            if len(kept) >= query["k"] and not (
                query.get("ties") == "with_ties" and key(score) == key(kept[query["k"] - 1][2])
            ):
                break
            limit = query.get("distinct_on")
            same = tuple(value(one, match) for one in limit["key"]) if limit else None
            if limit and seen.get(same, 0) >= limit["m"]:
                continue
            mine = {event["id"] for event in match.values()}
            if query.get("non_overlap") and mine & used:
                continue
            seen[same] = seen.get(same, 0) + 1
            used |= mine
            kept.append((match, raw, score))
        return kept


def combined(score: dict[str, Any], u: list[float]) -> list[float]:
    """The score of some utilities."""
    how = score.get("combine")
    if how == "lex" and len(u) > 1:
        return u
    if how == "wsum":
        u = [weight * one for weight, one in zip(score["weights"], u, strict=True)]
    if len(u) == 1:
        return u
    if how in ("min", "max"):
        return [(min if how == "min" else max)(u)]
    found = u[0]
    for one in u[1:]:
        found = found * one if how == "product" else found + one
    return [found / len(u) if how == "avg" else found]


def walk(node: dict[str, Any]) -> list[dict[str, Any]]:
    """A node and all below it."""
    return [node, *(one for item in node.get("items", []) for one in walk(item))]


def declared(node: dict[str, Any]) -> list[str]:
    """The variables of a pattern from left to right, those of NOT left out."""
    return [one["var"] for one in walk(node) if "var" in one and one.get("op") != "NOT"]


def names_of(node: dict[str, Any]) -> set[str]:
    """The variables below a node."""
    return set(declared(node))


# ---- random queries

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
