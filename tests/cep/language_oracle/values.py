"""Conditions and values by their definition: three truth values, null as None."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from dataclasses import dataclass
from typing import Any

from tests.cep.language_oracle.model import ANY, Clause, Event, plain

Binding = dict[str, tuple[Event, ...]]


def place(event: Event) -> tuple[int, int, str]:
    """Where an event stands in the stream."""
    return event["ts"], event.get("seq") or 0, event["id"]


def listed(event: Event) -> tuple[int, str]:
    """Where an event stands in the lists of a match."""
    return event["ts"], event["id"]


def attribute(event: Event, name: str) -> Any:
    """An attribute of an event, or one of the fields that every event has."""
    return event[name] if name in ("ts", "id", "type") else event["attrs"].get(name)


@dataclass(frozen=True)
class World:
    """What values may look at beside the match.

    Args:
        events: all that exist.
        types: of each name.
        key: the attribute of the source's key, or None.
        longest: how long a step of PREV may be where it does not say.
    """

    events: list[Event]
    types: dict[str, str]
    key: str | None
    longest: int

    def before(self, event: Event, name: str, n: int, longest: int) -> Event | None:
        """The event ``n`` places before, of the name's type and the event's key."""
        key = None if self.key is None else attribute(event, self.key)
        if self.key is not None and key is None:
            return None
        same = [
            e
            for e in self.events
            if self.types[name] in (ANY, e["type"]) and (self.key is None or attribute(e, self.key) == key)
        ]
        same.sort(key=place)
        at = [e["id"] for e in same].index(event["id"])
        if at < n or any(same[i]["ts"] - same[i - 1]["ts"] > longest for i in range(at - n + 1, at + 1)):
            return None
        return same[at - n]


def holds(clause: Clause, binding: Binding, world: World) -> bool:
    """Whether a clause is TRUE for every choice of one event per name that it looks at singly."""
    names = sorted(plain(clause))
    for choice in itertools.product(*(binding[name] for name in names)):
        one = dict(zip(names, choice, strict=True))
        if not any(truth(atom, one, binding, world) is (not negated) for atom, negated in clause):
            return False
    return True


def truth(c: tuple, one: dict[str, Event], binding: Binding, world: World) -> bool | None:
    """A condition on chosen events: True, False or None for unknown."""
    kind = c[0]
    if kind == "const":
        return c[1]
    if kind == "not":
        return _not(truth(c[1], one, binding, world))
    if kind in ("and", "or"):
        parts = [truth(part, one, binding, world) for part in c[1]]
        decisive = kind == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    if kind == "between":
        _, value, negated, low, high = c
        both = truth(("and", (("cmp", ">=", value, low), ("cmp", "<=", value, high))), one, binding, world)
        return _not(both) if negated else both
    value = compute(c[2] if kind == "cmp" else c[1], one, binding, world)
    if kind == "null":
        return (value is None) != c[2]
    if kind == "cmp":
        return compared(c[1], value, compute(c[3], one, binding, world))
    if value is None:
        return None
    if kind == "in":
        return any(compared("=", value, item) for item in c[3]) != c[2]
    if kind == "like":
        wanted = "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in c[3])
        return (re.fullmatch(wanted, value, re.DOTALL) is not None) != c[2]
    return (re.search(c[3], value) is not None) != c[2]


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def compared(op: str, x: Any, y: Any) -> bool | None:
    """A comparison; values of different kinds are not equal."""
    if x is None or y is None:
        return None
    same = isinstance(x, str) == isinstance(y, str) and isinstance(x, bool) == isinstance(y, bool)
    if op in ("=", "!="):
        return (same and x == y) == (op == "=")
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]


def compute(value: tuple, one: dict[str, Event], binding: Binding, world: World) -> Any:
    """A value; None is null."""
    kind = value[0]
    if kind == "lit":
        return value[1]
    if kind == "ref":
        return attribute(one[value[1]], value[2])
    if kind == "prev":
        _, name, attr, n, gap = value
        event = world.before(one[name], name, n or 1, world.longest if gap is None else gap)
        return None if event is None else attribute(event, attr)
    if kind == "agg":
        _, function, name, of, more = value
        if of is None:
            return len(binding[name])
        of = of if isinstance(of, tuple) else ("ref", name, of)
        return aggregate(function, [(e, compute(of, {name: e}, binding, world)) for e in binding[name]], more)
    if kind == "case":
        for condition, then in value[1]:
            if truth(condition, one, binding, world) is True:
                return compute(then, one, binding, world)
        return None if value[2] is None else compute(value[2], one, binding, world)
    if kind == "call":
        return call(value[1], [compute(part, one, binding, world) for part in value[2]])
    args = [compute(part, one, binding, world) for part in value[1:] if isinstance(part, tuple)]
    if None in args:
        return None
    if kind == "neg":
        return -args[0]
    x, y = args
    if value[1] == "/":
        return None if y == 0 else x / y
    return {"+": x + y, "-": x - y, "*": x * y}[value[1]]


def call(function: str, args: list[Any]) -> Any:
    """A function of values."""
    if function == "Coalesce":
        return next((arg for arg in args if arg is not None), None)
    if None in args:
        return None
    simple = {
        "Abs": abs, "Floor": math.floor, "Ceil": math.ceil, "Round": round, "Sqrt": math.sqrt, "Exp": math.exp,
        "Lower": str.lower, "Upper": str.upper, "Length": len, "Power": pow, "Least": min, "Greatest": max,
        "SECONDS": lambda difference: difference,
    }  # fmt: skip
    if function == "Mod":
        return None if args[1] == 0 else math.fmod(*args)
    return simple[function](*args)


def aggregate(function: str, members: list[tuple[Event, Any]], more: float | None) -> Any:
    """An aggregate of values of a set's events."""
    if function in ("FIRST", "LAST"):
        ordered = sorted(members, key=lambda member: place(member[0]))
        return ordered[0 if function == "FIRST" else -1][1] if ordered else None
    values = [v for _, v in sorted(members, key=lambda member: listed(member[0])) if v is not None]
    if function in ("COUNT", "COUNT DISTINCT"):
        return len(values if function == "COUNT" else set(values))
    if not values or (function == "STDDEV" and len(values) == 1):
        return None
    if function in ("AVG", "SUM"):
        total = 0.0
        for v in values:
            total += v
        return total / len(values) if function == "AVG" else total
    if function == "PERCENTILE":
        values.sort()
        at = (len(values) - 1) * more
        low = math.floor(at)
        high = min(low + 1, len(values) - 1)
        return values[low] + (values[high] - values[low]) * (at - low)
    return {"MIN": min, "MAX": max, "STDDEV": statistics.stdev, "MEDIAN": statistics.median}[function](values)
