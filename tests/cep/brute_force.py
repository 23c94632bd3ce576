"""Matches by trying everything, written from the definition of a match (docs/semantics.md#what-a-match-is) alone.

Slow on purpose: it shares no code and no idea with the engine. Patterns come as plain tuples, not as text:

* structure: ``("EVENT", type, name, kleene)``, ``("NOT", type, name)``, ``("SEQ", [items])``, ``("AND", [items])``
* condition: ``("cmp", op, value, value)``, ``("in", value, negated, [literals])``, ``("null", value, negated)``,
  ``("const", bool)``, ``("not", c)``, ``("and", [c])``, ``("or", [c])``
* value: ``("lit", v)``, ``("ref", name, attr)``, ``("agg", function, name, attr or None)`` (``DISTINCT`` is a
  function, ``PERCENTILE 0.9`` another),
  ``("op", op, value, value)``, ``("neg", value)``, ``("abs", value)``, ``("corr", value, value)``
* branch: ``(structure, condition or None)``; query: ``([branches], shared condition or None, window)``

Events are dicts ``{id, type, ts, attrs}`` with whole-number ts, and sometimes ``seq``. Truth is True, False or None
(unknown).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

Event = dict[str, Any]
Binding = dict[str, tuple[Event, ...]]


def brute_force(query: tuple, events: list[Event]) -> list[dict[str, Any]]:
    """The matches as mappings from names to ids, in canonical order."""
    branches, shared, window = query
    repeated = {e[2] for structure, _ in branches for e in leaves(structure) if e[0] == "EVENT" and e[3]}
    found = {}
    for structure, where in branches:
        for binding in branch_matches(structure, where, shared, window, events):
            shown = {
                name: [e["id"] for e in members] if name in repeated else members[0]["id"]
                for name, members in binding.items()
            }
            found[repr(sorted(shown.items()))] = shown
    return [found[key] for key in sorted(found)]


def leaves(structure: tuple) -> list[tuple]:
    """The events of a structure, from left to right."""
    if structure[0] in ("EVENT", "NOT"):
        return [structure]
    return [leaf for item in structure[1] for leaf in leaves(item)]


def precedences(structure: tuple) -> set[tuple[str, str]]:
    """All pairs (n, m) with n before m."""
    if structure[0] in ("EVENT", "NOT"):
        return set()
    pairs = set().union(*(precedences(item) for item in structure[1]))
    if structure[0] == "SEQ":
        for left, right in itertools.combinations(structure[1], 2):
            pairs |= {(n[2], m[2]) for n in leaves(left) for m in leaves(right)}
    return pairs


def branch_matches(
    structure: tuple, where: tuple | None, shared: tuple | None, window: int, events: list[Event]
) -> list[Binding]:
    """All bindings of a branch that rules 1 to 6 accept."""
    positive = [leaf for leaf in leaves(structure) if leaf[0] == "EVENT"]
    negated = [leaf for leaf in leaves(structure) if leaf[0] == "NOT"]
    before = precedences(structure)
    names = {leaf[2] for leaf in positive + negated}
    clauses = cnf(where) + [c for c in cnf(shared) if mentioned(c) <= names]
    plus = [c for c in clauses if not mentioned(c) & {f[2] for f in negated}]
    choices = []
    for _, kind, _, kleene in positive:
        fitting = sorted((e for e in events if e["type"] == kind), key=lambda e: (e["ts"], e["id"]))  # rule 1
        sizes = range(1, len(fitting) + 1) if kleene else (1,)
        choices.append([s for size in sizes for s in itertools.combinations(fitting, size)])
    found = []
    for choice in itertools.product(*choices):
        binding = dict(zip((leaf[2] for leaf in positive), choice, strict=True))
        if not consistent(binding, before, window):
            continue
        if not all(holds(clause, binding) for clause in plus):  # rule 5
            continue
        if any(completed(f, binding, before, window, clauses, events) for f in negated):  # rule 6
            continue
        found.append(binding)
    return found


def consistent(binding: Binding, before: set[tuple[str, str]], window: int) -> bool:
    """Rules 2, 3 and 4."""
    bound = [e["id"] for members in binding.values() for e in members]
    if len(set(bound)) < len(bound):
        return False
    for n, m in before:
        if n in binding and m in binding:
            if not all(x["ts"] < y["ts"] for x in binding[n] for y in binding[m]):
                return False
    ts = [e["ts"] for members in binding.values() for e in members]
    return max(ts) - min(ts) <= window


def completed(
    forbidden: tuple,
    binding: Binding,
    before: set[tuple[str, str]],
    window: int,
    clauses: list[list[tuple]],
    events: list[Event],
) -> bool:
    """Whether some event completes the binding as the negated name."""
    _, kind, name = forbidden
    own = [c for c in clauses if name in mentioned(c)]
    bound = {e["id"] for members in binding.values() for e in members}
    for x in events:
        if x["type"] != kind or x["id"] in bound:
            continue
        extended = {**binding, name: (x,)}
        if consistent(extended, before, window) and all(holds(c, extended) for c in own):
            return True
    return False


# ---- conditions


def cnf(condition: tuple | None, negate: bool = False) -> list[list[tuple]]:
    """Clauses; each is a list of literals ``(atom, negated)``."""
    if condition is None:
        return []
    kind = condition[0]
    if kind == "not":
        return cnf(condition[1], not negate)
    if kind in ("and", "or"):
        parts = [cnf(part, negate) for part in condition[1]]
        if (kind == "and") != negate:
            return [clause for part in parts for clause in part]
        return [[literal for clause in choice for literal in clause] for choice in itertools.product(*parts)]
    return [[(condition, negate)]]


def mentioned(clause: list[tuple]) -> set[str]:
    """Names in a clause."""
    return {name for atom, _ in clause for name, _ in references(atom)}


def references(node: Any) -> set[tuple[str, bool]]:
    """``(name, inside an aggregate)`` of everything mentioned."""
    if isinstance(node, list):
        return set().union(*(references(part) for part in node))
    if not isinstance(node, tuple):
        return set()
    if node[0] == "ref":
        return {(node[1], False)}
    if node[0] == "agg":
        return {(node[2], True)}
    if node[0] == "lit":
        return set()
    return set().union(*(references(part) for part in node[1:]))


def holds(clause: list[tuple], binding: Binding) -> bool:
    """Whether the clause is TRUE for every choice of one member per name that it references plainly."""
    plain = sorted({name for atom, _ in clause for name, aggregated in references(atom) if not aggregated})
    for choice in itertools.product(*(binding[name] for name in plain)):
        one = dict(zip(plain, choice, strict=True))
        if not any(truth(atom, one, binding) is (not negated) for atom, negated in clause):
            return False
    return True


def truth(atom: tuple, one: dict[str, Event], binding: Binding) -> bool | None:
    """Three-valued truth of one comparison or membership."""
    if atom[0] == "const":
        return atom[1]
    if atom[0] == "null":
        return (compute(atom[1], one, binding) is None) != atom[2]
    if atom[0] == "in":
        value = compute(atom[1], one, binding)
        if value is None:
            return None
        return any(same_kind(value, item) and value == item for item in atom[3]) != atom[2]
    _, op, left, right = atom
    x, y = compute(left, one, binding), compute(right, one, binding)
    if x is None or y is None:
        return None
    if op in ("=", "!="):
        return (same_kind(x, y) and x == y) == (op == "=")
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]


def same_kind(x: Any, y: Any) -> bool:
    return isinstance(x, str) == isinstance(y, str) and isinstance(x, bool) == isinstance(y, bool)


def compute(value: tuple, one: dict[str, Event], binding: Binding) -> Any:
    """A value; None is null."""
    kind = value[0]
    if kind == "lit":
        return value[1]
    if kind == "ref":
        return attribute(one[value[1]], value[2])
    if kind == "agg":
        return aggregate(value[1], binding[value[2]], value[3])
    args = [compute(v, one, binding) for v in value[1:] if isinstance(v, tuple)]
    if any(arg is None for arg in args):
        return None
    if kind == "neg":
        return -args[0]
    if kind == "abs":
        return abs(args[0])
    if kind == "corr":
        return pearson(*args)
    x, y = args
    if value[1] == "/":
        return None if y == 0 else x / y
    return {"+": x + y, "-": x - y, "*": x * y}[value[1]]


def attribute(event: Event, name: str) -> Any:
    if name in ("ts", "id", "type"):
        return event[name]
    value = event["attrs"].get(name)
    return None if isinstance(value, float) and math.isnan(value) else value


def aggregate(function: str, members: tuple[Event, ...], attr: str | None) -> Any:
    if attr is None:
        return len(members)
    if function in ("FIRST", "LAST"):
        stream = sorted(members, key=lambda e: (e["ts"], e.get("seq") or 0, e["id"]))
        return attribute(stream[0 if function == "FIRST" else -1], attr) if stream else None
    values = [v for v in (attribute(e, attr) for e in members) if v is not None]
    if function == "COUNT":
        return len(values)
    if function == "DISTINCT":
        return len(set(values))
    if not values:
        return None
    if function == "MIN":
        return min(values)
    if function == "MAX":
        return max(values)
    exact = sorted(Fraction(v) for v in values)
    if function == "STDDEV":
        mean = sum(exact) / len(exact)
        return math.sqrt(sum((v - mean) ** 2 for v in exact) / (len(exact) - 1)) if len(exact) > 1 else None
    if function == "MEDIAN" or function.startswith("PERCENTILE"):
        at = Fraction(function.split()[1] if " " in function else "0.5") * (len(exact) - 1)
        below = math.floor(at)
        return float(exact[below] + (exact[min(below + 1, len(exact) - 1)] - exact[below]) * (at - below))
    total = 0.0
    for v in values:  # members come by (ts, id)
        total += v
    return total / len(values) if function == "AVG" else total


def pearson(x: list[float], y: list[float]) -> float | None:
    """By the definition, in fractions, which know no rounding and no range."""
    if len(x) != len(y) or len(x) < 2 or len(set(x)) == 1 or len(set(y)) == 1:
        return None
    x, y = ([Fraction(v) for v in side] for side in (x, y))
    x, y = ([v - sum(side) / len(side) for v in side] for side in (x, y))
    top, below = sum(a * b for a, b in zip(x, y, strict=True)), sum(a * a for a in x) * sum(b * b for b in y)
    return math.copysign(math.sqrt(top * top / below), top)
