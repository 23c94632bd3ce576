"""The evaluator with one rule changed: what random pairs must be able to tell from the right one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.cep.language_oracle.model import Branch, Group, Item, Query

FOLDER = Path(__file__).parent
PACKAGE = "tests.cep.language_oracle"

#: What is changed -> module, text, text instead, constructs without which it cannot show.
MUTANTS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "NOT and COLLECT begin at the event before them": (
        "matches", 'all(e["ts"] < x["ts"] for e in binding[n])',
        'all(e["ts"] <= x["ts"] for e in binding[n])', ("ties",)),
    "NOT and COLLECT end at the event behind them": (
        "matches", 'all(x["ts"] < e["ts"] for e in binding[m])',
        'all(x["ts"] <= e["ts"] for e in binding[m])', ("ties",)),
    "NOT and COLLECT are not held by the window": (
        "matches", "return self.in_window({**binding, item.name: (x,)})", "return True", ()),
    "an empty COLLECT passes": ("matches", 'item.role == "COLLECT":', "False:", ("collect",)),
    "an empty COLLECT? rejects": ("matches", 'item.role == "COLLECT":', "True:", ("collect?",)),
    "the size of an empty COLLECT? is looked at": (
        "matches", "if members and item.sizes", "if item.sizes", ("collect?", "collect sizes")),
    "the size of a COLLECT is not looked at": (
        "matches", "if members and item.sizes is not None", "if False", ("collect sizes",)),
    "COLLECT, NOT and UNTIL see events that the match binds": (
        "matches", 'all(x["id"] != e["id"] for m in binding.values() for e in m)', "True", ()),
    "a clause with an aggregate chooses members of COLLECT too": (
        "matches", "and item.name not in aggregated(c)]", "]", ("collect",)),
    "aggregates of a COLLECT set are not tested": (
        "matches", "if aggregated(clause) & found.keys() and", "if False and", ("collect",)),
    "NOT takes unknown for true": (
        "matches", "return all(holds(clause, {**binding, item.name: (x,)}, self.world) for clause in own)",
        "return not own or any(holds(clause, {**binding, item.name: (x,)}, self.world) for clause in own)", ("not",)),
    "NOT does not look at conditions": ("matches", "if item.name in names_of(clause)]", "if False]", ("not",)),
    "UNTIL reaches from the first event on": ("matches", 'min(times) < x["ts"]', 'min(times) <= x["ts"]', ("until",)),
    "UNTIL reaches up to the last event": ("matches", 'x["ts"] < max(times)', 'x["ts"] <= max(times)', ("until",)),
    "UNTIL has a place in the order": ("matches", 'if item.role == "UNTIL" else', "if False else", ("until",)),
    "WITHIN is open": (
        "matches", "max(times) - min(times) <= self.query.within", "max(times) - min(times) < self.query.within", ()),
    "PAUSE is open": ("matches", "later - earlier > pause", "later - earlier >= pause", ("pause",)),
    "PAUSE is not looked at": ("matches", "later - earlier > pause", "False", ("pause",)),
    "the stream of STRICT goes by time and id": (
        "matches", 'if ANY in types or e["type"] in types), key=place)',
        'if ANY in types or e["type"] in types), key=listed)', ("strict", "seq", "ties")),
    "the stream of STRICT has the types of the branch only": (
        "matches", "for branch in query.branches for item in ordinary(branch.structure)}",
        "for item in ordinary(structure)}", ("strict",)),
    "the stream of STRICT has the types of the SEQ only": (
        "matches", "for branch in query.branches for item in ordinary(branch.structure)}",
        "for branch in query.branches if structure.items[0] in leaves(branch.structure) for item "
        "in ordinary(branch.structure)}", ("strict", "or at the top")),
    "the stream of STRICT has every event": ("matches", "if ANY in types or", "if True or", ("strict",)),
    "neighbours are not wanted": (
        "matches", "if strict else choices(rules)", "if False else choices(rules)", ("strict",)),
    "OF KEY does not part the stream": ("matches", "if strict and structure.of_key:", "if False:", ("of key",)),
    "OF KEY lets events without a key be together": (
        "matches", "worlds = [[e for e in events if attribute(e, key) == one] for one in sorted(keys)]",
        "worlds = [[e for e in events if attribute(e, key) in (one, None)] for one in sorted(keys)]", ("of key",)),
    "MAXIMAL does not look at names": ("matches", 'if keep == "MAXIMAL":', "if False:", ("maximal",)),
    "MAXIMAL drops nothing": ("matches", "within and any(", "False and any(", ("maximal",)),
    "MAXIMAL takes a missing name for another match": (
        "matches", "names = one.keys() | other.keys()", "names = one.keys() & other.keys()", ("maximal",)),
    "OUTERMOST goes name by name": ("matches", 'if keep == "MAXIMAL":', "if keep:", ("outermost",)),
    "OUTERMOST drops equal sets": (
        "matches", "one.values()) < frozenset()", "one.values()) <= frozenset()", ("outermost",)),
    "MAXIMAL and OUTERMOST compare COLLECT sets": (
        "matches", "for name in bound_names}", "for name in binding}", ("collect", "maximal")),
    "a set has one event": ("matches", "((1, None) if item.many else (1, 1))", "(1, 1)", ("many",)),
    "sizes have no lower limit": ("matches", "return low <= len(members)", "return 0 < len(members)", ("sizes",)),
    "sizes have no upper limit": ("matches", "(high is None or len(members) <= high)", "True", ("sizes",)),
    "any type is a type of its own": (
        "matches", 'item.type in (ANY, e["type"])', 'item.type == e["type"]', ("any type",)),
    "? is not read": ("model", "if structure.optional:", "if False:", ("optional",)),
    "only the first alternative counts": (
        "model", "for alternative in structure.items:", "for alternative in structure.items[:1]:", ("or inside",)),
    "a clause of a name that a branch has not refuses": (
        "matches", "[clause for clause in every if names_of(clause) <= names]",
        'every if all(names_of(clause) <= names for clause in every) else [((("const", False), False),)]',
        ("optional",)),
    "BETWEEN is open": ("model", '("cmp", "<=", value, high)', '("cmp", "<", value, high)', ("between",)),
    "NOT BETWEEN is BETWEEN": ("model", "negate != negated", "negate", ("between",)),
    "PREV skips nulls": (
        "values", "if self.types[name] in",
        'if (e is event or e["attrs"].get("x") is not None) and self.types[name] in', ("prev",)),
    "PREV looks over all types": ("values", 'if self.types[name] in (ANY, e["type"])', "if True", ("prev",)),
    "PREV looks over all keys": (
        "values", "and (self.key is None or attribute(e, self.key) == key)", "", ("prev", "key")),
    "PREV has a key where there is none": (
        "values", "if self.key is not None and key is None:", "if False:", ("prev", "key")),
    "PREV does not look at steps": ("values", '["ts"] > longest for i', '["ts"] > 99 for i', ("prev",)),
    "PREV takes an equal step for too long": (
        "values", '["ts"] > longest for i', '["ts"] >= longest for i', ("prev",)),
    "PREV looks at the whole of its steps": (
        "values", 'any(same[i]["ts"] - same[i - 1]["ts"] > longest for i in range(at - n + 1, at + 1))',
        'same[at]["ts"] - same[at - n]["ts"] > longest', ("prev n",)),
    "PREV does not know PAUSE": (
        "matches", "longest = query.pause if query.pause is not None else query.within",
        "longest = query.within if query.within is not None else query.pause", ("prev", "pause")),
    "PREV does not count": ("values", "name, n or 1,", "name, 1,", ("prev n",)),
    "PREV knows no gap of its own": (
        "values", "world.longest if gap is None else gap", "world.longest", ("prev gap",)),
    "PREV goes by time and id": ("values", "same.sort(key=place)", "same.sort(key=listed)", ("prev", "seq", "ties")),
    "FIRST and LAST skip nulls": (
        "values", "ordered = sorted(members, key=lambda member: place(member[0]))",
        "ordered = sorted((m for m in members if m[1] is not None), key=lambda member: place(member[0]))",
        ("first, last",)),
    "FIRST and LAST go by time and id": (
        "values", "ordered = sorted(members, key=lambda member: place(member[0]))",
        "ordered = sorted(members, key=lambda member: listed(member[0]))", ("first, last", "seq", "ties")),
    "LAST is FIRST": ("values", 'ordered[0 if function == "FIRST" else -1]', "ordered[0]", ("first, last",)),
    "DISTINCT is not read": (
        "values", 'values if function == "COUNT" else set(values)', "values", ("count distinct",)),
    "COUNT counts nulls": (
        "values", "if v is not None]\n", "if v is not None or function[:5] == 'COUNT']\n", ("count",)),
    "the deviation of one value is 0": (
        "values", 'if not values or (function == "STDDEV" and len(values) == 1):\n        return None',
        'if not values or (function == "STDDEV" and len(values) == 1):\n        return 0 if '
        "values else None", ("stddev",)),
    "STDDEV is that of a population": ("values", "statistics.stdev", "statistics.pstdev", ("stddev",)),
    "MEDIAN is the lower one": (
        "values", '"MEDIAN": statistics.median}', '"MEDIAN": statistics.median_low}', ("median",)),
    "PERCENTILE is not interpolated": ("values", "* (at - low)", "* 0", ("percentile",)),
    "LIKE takes a part": ("values", "re.fullmatch(wanted", "re.match(wanted", ("like",)),
    "_ of LIKE is a letter": ("values", '"_": "."', '"_": "_"', ("like",)),
    "MATCHES is LIKE": ("values", "re.search(c[3], value) is not None", "c[3] == value", ("matches",)),
    "CASE takes unknown for true": (
        "values", "if truth(condition, one, binding, world) is True:",
        "if truth(condition, one, binding, world) is not False:", ("case",)),
    "CASE knows no ELSE": (
        "values", "return None if value[2] is None else compute", "return None and compute", ("case",)),
    "SECONDS is 1": (
        "values", '"SECONDS": lambda difference: difference', '"SECONDS": lambda difference: 1', ("seconds",)),
    "a plain name of a set holds for some event": (
        "values", "            return False\n    return True\n",
        "            continue\n        return True\n    return not names\n", ("many",)),
    "unknown is false": (
        "values", "is (not negated) for", "in ((True,) if not negated else (False, None)) for", ("not",)),
    "IS NULL is unknown": (
        "values", "return (value is None) != c[2]", "return None if value is None else c[2]", ("is null",)),
    "sums are not in the order of time": ("values", "total = 0.0", "total = 1.0", ("sum, avg",)),
}  # fmt: skip


def mutant(name: str) -> Callable[..., list[dict[str, Any]]]:
    """``matches`` with a rule changed."""
    module, old, new, _ = MUTANTS[name]
    number = list(MUTANTS).index(name)
    made: dict[str, ModuleType] = {}
    for part in ("model", "values", "matches") if module == "model" else ("values", "matches"):
        source = (FOLDER / f"{part}.py").read_text(encoding="utf-8")
        if part == module:
            if old not in source:
                raise ValueError(f"{name}: its text is not in {part}")
            source = source.replace(old, new)
        for other in made:
            source = source.replace(f"{PACKAGE}.{other} import", f"{PACKAGE}.mutant_{number}_{other} import")
        full = f"{PACKAGE}.mutant_{number}_{part}"
        made[part] = sys.modules[full] = ModuleType(full)
        exec(compile(source, full, "exec"), made[part].__dict__)
        if part == "model":  # queries are of the right module's classes
            made[part].__dict__.update({kind.__name__: kind for kind in (Branch, Group, Item, Query)})
    return made["matches"].matches
