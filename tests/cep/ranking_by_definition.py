"""Ranked patterns evaluated as they are defined: every combination of events, every list, one sort.

A query has the form of the worked cases; its expressions are trees, which are written as text for the engine.
"""

from __future__ import annotations

import itertools
import math
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
