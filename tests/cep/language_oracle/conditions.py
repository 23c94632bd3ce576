"""Random conditions on the names of a branch."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cep.language_oracle.model import Item
from tests.cep.strategies import Random

#: The kinds of conditions; each is drawn as often as every other.
KINDS = (
    "plain", "prev", "prev n", "prev gap", "first, last", "count", "count distinct", "sum, avg", "min, max", "stddev",
    "median", "percentile", "between", "is null", "like", "matches", "case", "seconds", "function", "in", "type, id",
)  # fmt: skip
AGGREGATES = ("first, last", "count", "count distinct", "sum, avg", "min, max", "stddev", "median", "percentile")
_ORDER = ("<=", ">=", "<=", ">=", "<", ">", "!=", "=")
#: No rounding of a standard deviation or a percentile of the values drawn comes near these.
_ODD = (0.63, 1.17)


@dataclass
class Conditions:
    """Conditions on the names of a branch.

    Args:
        pick: choices.
        items: the branch's, by name.
        sets: the names that aggregates may be of.
        lists: the names that are sets in some branch.
    """

    pick: Random
    items: dict[str, Item]
    sets: set[str]
    lists: set[str]

    def conjunct(self, kind: str) -> tuple | None:
        """A condition of a kind, which no more than one name of NOT, COLLECT and UNTIL occurs in; None: impossible."""
        pick = self.pick
        ordinary = [name for name, item in self.items.items() if item.role == "EVENT"]
        special = [name for name, item in self.items.items() if item.role != "EVENT"]
        one = pick.one(special) if special and pick.one((False, True)) else None
        if kind in AGGREGATES and one is None:
            chosen = [name for name in special if name in self.sets]
            one = pick.one(chosen) if chosen and pick.one((False, True)) else None
        pool = ordinary + ([one] if one else [])
        made = self.atom(kind, pool, one or pick.one(ordinary))
        if made is None:
            return None
        what = pick.one(range(12))
        if what <= 2:
            other = self.atom(pick.one(KINDS), pool, pick.one(pool)) or ("const", False)
            made = "or", tuple(pick.shuffled((made, other)))
        elif what == 3:
            other = self.atom("plain", pool, pick.one(pool))
            made = "or", (("and", (made, other)), self.atom("is null", pool, pick.one(pool)))
        elif what == 4:
            made = "not", made
        return made

    def measure(self) -> tuple:
        """A value of a match."""
        pick = self.pick
        single = [name for name, item in self.items.items() if item.role == "EVENT" and name not in self.lists]
        if self.sets and (not single or pick.one((False, True))):
            return self.aggregate(pick.one(sorted(self.sets)))
        if not single:
            return "lit", 1
        name, other = pick.one(single), pick.one(single)
        x = "ref", name, pick.one(("x", "y"))
        took = "op", "-", ("ref", name, "ts"), ("ref", other, "ts")
        return pick.one((
            x, ("ref", name, pick.one(("k", "s", "id", "type", "ts"))), took, ("call", "Coalesce", (x, ("lit", 7))),
            ("op", pick.one("+-*/"), x, ("ref", other, "y")), self._case(name, x), ("prev", name, "x", None, None),
            ("lit", "high")))  # fmt: skip

    def aggregate(self, name: str) -> tuple:
        """Some aggregate of a set."""
        pick = self.pick
        function = pick.one(("COUNT", "COUNT", "COUNT DISTINCT", "FIRST", "LAST", "SUM", "AVG", "MIN", "MAX", "STDDEV",
                             "MEDIAN", "PERCENTILE"))  # fmt: skip
        x = "ref", name, "x"
        of = pick.one(("x", "y", ("op", "+", x, ("ref", name, "y")), ("call", "Coalesce", (x, ("lit", 1)))))
        if function in ("COUNT", "COUNT DISTINCT", "FIRST", "LAST"):
            of = pick.one(("x", "k", "s", of))
        return "agg", function, name, of, pick.one((0.25, 0.5, 0.9)) if function == "PERCENTILE" else None

    def two_sets(self) -> tuple | None:
        """A condition on aggregates of two sets."""
        names = sorted(self.sets)
        if len(names) < 2:
            return None
        one, other = self.pick.shuffled(names)[:2]
        return "cmp", self.pick.one(_ORDER), ("agg", "COUNT", one, None, None), ("agg", "COUNT", other, None, None)

    def atom(self, kind: str, pool: list[str], name: str) -> tuple | None:
        """A comparison or the like of a kind, on ``name`` where that may be, and on others of the pool."""
        if kind in AGGREGATES:
            names = [one for one in pool if one in self.sets]
            if not names:
                return None
            return self._on_set(kind, pool, name if name in self.sets else self.pick.one(names))
        return self._on_events(kind, pool, name)

    def _on_set(self, kind: str, pool: list[str], name: str) -> tuple:
        pick = self.pick

        def of(function: str, attr: str | None, more: float | None = None) -> tuple:
            return "agg", function, name, attr, more

        attr = pick.one(("x", "x", "y"))
        if kind == "count":
            return "cmp", pick.one(_ORDER), of("COUNT", pick.one((None, None, "x"))), ("lit", pick.one((1, 1, 2, 2, 3)))
        if kind == "count distinct":
            return "cmp", pick.one(_ORDER), of("COUNT DISTINCT", pick.one(("x", "k", "s"))), ("lit", pick.one((1, 2)))
        if kind == "stddev":
            return "cmp", pick.one(_ORDER), of("STDDEV", attr), ("lit", pick.one(_ODD))
        if kind == "percentile":
            share = pick.one((0.25, 0.5, 0.75, 0.9))
            return "cmp", pick.one(_ORDER), of("PERCENTILE", attr, share), ("lit", pick.one(_ODD))
        function = {
            "first, last": ("FIRST", "LAST"), "sum, avg": ("SUM", "AVG"), "min, max": ("MIN", "MAX"),
            "median": ("MEDIAN",),
        }[kind]  # fmt: skip
        left = of(pick.one(function), attr)
        if pick.one(range(4)) == 0:
            inner = ("op", pick.one("+-*"), ("ref", name, attr), pick.one((("lit", 1), ("ref", name, "y"))))
            left = "agg", pick.one(function), name, inner, None
        if kind == "first, last" and pick.one((False, False, True)):
            return "cmp", pick.one(("=", "!=")), of(pick.one(function), "k"), ("ref", pick.one(pool), "k")
        right = pick.one(((of(pick.one(function), attr)), ("ref", pick.one(pool), "x"), ("ref", name, attr),
                          ("lit", pick.one((1, 2)))))  # fmt: skip
        return "cmp", pick.one(_ORDER), left, right

    def _on_events(self, kind: str, pool: list[str], name: str) -> tuple:
        pick = self.pick
        x = "ref", name, pick.one(("x", "x", "y"))
        s = "ref", name, "s"
        number = "lit", pick.one((0, 1, 1, 2))
        other = "ref", pick.one(pool), pick.one(("x", "y"))
        if kind.startswith("prev"):
            return self._prev(kind, name, other)
        if kind == "between":
            ends = pick.shuffled((number, other, ("lit", 3)))[:2]
            return "between", x, pick.one((False, False, True)), *ends
        if kind == "is null":
            return "null", pick.one((x, s, ("ref", name, "k"), ("op", "-", x, other))), pick.one((False, True, True))
        if kind == "like":
            return "like", s, pick.one((False, False, True)), pick.one(("u%", "_", "%v", "u_", "%", "u"))
        if kind == "matches":
            return "matches", s, pick.one((False, False, True)), pick.one(("^u.*$", "^.$", "^(u|v)+$"))
        if kind == "case":
            return "cmp", pick.one(_ORDER), self._case(name, x), ("lit", 1)
        if kind == "seconds":
            took = "op", "-", ("ref", name, "ts"), ("ref", pick.one(pool), "ts")
            return "cmp", pick.one(("<=", ">=", "!=")), ("call", "SECONDS", (took,)), ("lit", pick.one((0, 1, 3, 5)))
        if kind == "function":
            return self._function(name, other)
        if kind == "in":
            return "in", pick.one((x, s)), pick.one((False, True)), pick.one(((0, 1), (1, 2, 3), ("u", "uv")))
        if kind == "type, id":
            return "cmp", pick.one(("=", "!=")), ("ref", name, "type"), pick.one((
                ("lit", "A"), ("lit", "B"), ("ref", pick.one(pool), "type")))  # fmt: skip
        if pick.one(range(4)) == 0:
            return "cmp", pick.one(("=", "!=")), ("ref", name, "k"), ("ref", pick.one(pool), "k")
        if pick.one(range(4)) == 0:
            other = "op", pick.one("+-*/"), other, ("ref", pick.one(pool), "y")
        return "cmp", pick.one(_ORDER), x, pick.one((other, number))

    def _prev(self, kind: str, name: str, other: tuple) -> tuple:
        pick = self.pick
        n = {"prev": pick.one((None, 1)), "prev n": pick.one((2, 2, 3)), "prev gap": pick.one((1, 1, 2))}[kind]
        attr = pick.one(("x", "x", "y", "k"))
        before = "prev", name, attr, n, pick.one((1, 2, 3, 4)) if kind == "prev gap" else None
        if pick.one(range(4 if kind == "prev" else 2)) == 0:
            return "null", before, pick.one((False, True))
        if attr == "k":
            return "cmp", pick.one(("=", "!=")), before, ("ref", pick.one((name, other[1])), "k")
        return "cmp", pick.one(_ORDER), pick.one((("ref", name, attr), ("lit", 1), other)), before

    def _case(self, name: str, x: tuple) -> tuple:
        pick = self.pick
        first = pick.one((
            ("cmp", ">", x, ("lit", 1)), ("null", x, False), ("like", ("ref", name, "s"), False, "u%"),
            ("not", ("cmp", "=", ("ref", name, "k"), ("lit", "p")))))  # fmt: skip
        then = pick.one((("lit", 2), ("ref", name, "y"), ("op", "+", x, ("lit", 1))))
        more = pick.one(((), ((("cmp", "=", ("ref", name, "y"), ("lit", 0)), ("lit", 0)),)))
        return "case", ((first, then), *more), pick.one((None, ("lit", 1), ("ref", name, "y")))

    def _function(self, name: str, other: tuple) -> tuple:
        """A function of one event where its value is the same in every reading of SQL."""
        pick = self.pick
        x, y, s = ("ref", name, "x"), ("ref", name, "y"), ("ref", name, "s")
        if pick.one(range(3)) == 0:
            text = pick.one((("call", "Lower", (s,)), ("call", "Upper", (s,))))
            return "cmp", pick.one(("=", "!=")), text, ("lit", pick.one(("u", "U", "uv", "UV")))
        value = pick.one((
            ("call", "Length", (s,)), ("call", "Floor", (x,)), ("call", "Ceil", (x,)), ("call", "Coalesce", (x, y)),
            ("call", "Round", (("op", "/", y, ("lit", 3)),)), ("call", "Power", (y, ("lit", 2))),
            ("call", "Mod", (y, ("lit", 2))), ("call", "Greatest", (("call", "Coalesce", (x, ("lit", 0))), y)),
            ("call", "Least", (y, ("lit", 1))), ("call", "Abs", (("op", "-", x, y),)),
            ("call", "Sqrt", (("op", "*", y, y),)), ("call", "Exp", (("op", "*", y, ("lit", 0)),)),
            ("call", "Coalesce", (x, ("lit", 7)))))  # fmt: skip
        return "cmp", pick.one(_ORDER), value, pick.one((("lit", 1), ("lit", 1), other))
