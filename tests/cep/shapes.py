"""Patterns, one per operator, with drawn numbers and streams: kernels leave these out, so few shapes are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from tests.cep.brute_force import brute_force
from tests.cep.strategies import Random, stream, text_of
from tests.cep.test_differential import canonical

Event = dict[str, Any]


def ref(name: str, attr: str = "x") -> tuple:
    return "ref", name, attr


def event(kind: str, name: str, kleene: bool = False) -> tuple:
    return "EVENT", kind, name, kleene


def plus(value: tuple, number: float) -> tuple:
    return "op", "+", value, ("lit", number)


def seq(*items: tuple) -> tuple:
    return "SEQ", list(items)


def both(*items: tuple) -> tuple:
    return "AND", list(items)


def every(*parts: tuple) -> tuple:
    return "and", list(parts)


A, B, C = event("A", "a"), event("B", "b"), event("C", "c")
#: Name to (branches, shared condition) for a number.
PATTERNS: dict[str, Callable[[float], tuple]] = {
    "sequence": lambda n: ([(seq(A, B, C), every(
        ("cmp", "<", ref("a"), plus(ref("b"), n)), ("cmp", "<=", ref("b"), plus(ref("c"), n))))], None),
    "conjunction": lambda n: ([(both(A, event("A", "d"), B), every(
        ("cmp", ">=", plus(ref("a"), n), ref("d")), ("cmp", "!=", ref("d", "k"), ref("b", "k"))))], None),
    "partial order": lambda n: ([(both(seq(A, C), seq(B, event("A", "d"))), every(
        ("cmp", "=", ref("a", "y"), ref("d", "y")),
        ("or", [("cmp", ">", ref("b"), ("lit", n)), ("cmp", "<", ref("b", "ts"), ref("c", "ts"))])))], None),
    "shared bindings": lambda n: ([
        (seq(A, B), ("cmp", "<", ref("a"), plus(ref("b"), n))), (both(B, A), ("cmp", ">", ref("a", "y"), ref("b", "y")))
        ], ("not", ("cmp", "=", ref("a", "k"), ref("b", "k")))),
    "negation in the middle": lambda n: ([(seq(A, ("NOT", "B", "f"), C), every(
        ("cmp", "<=", ref("a"), plus(ref("c"), n)), ("cmp", ">", plus(ref("f"), n), ref("a"))))], None),
    "negation at both ends": lambda n: ([(seq(("NOT", "C", "f"), A, B, ("NOT", "A", "g")), every(
        ("cmp", "<", ref("f"), plus(ref("b"), n)), ("cmp", "=", ref("g", "y"), ref("a", "y"))))], None),
    "sets": lambda n: ([(seq(A, event("B", "b", True), C), every(
        ("cmp", "<", ("agg", "SUM", "b", "x"), plus(ref("c"), 3 * n)), ("cmp", ">=", ref("b", "y"), ref("a", "y")),
        ("cmp", "<", ("agg", "COUNT", "b", None), ("lit", 4))))], None),
    "sets of extremes": lambda n: ([(both(event("A", "a", True), B), every(
        ("cmp", "<=", ("agg", "MAX", "a", "x"), plus(ref("b"), n)),
        ("cmp", "!=", ("agg", "MIN", "a", "y"), ("agg", "AVG", "a", "y"))))], None),
    "two sets and a negation": lambda n: ([(
        seq(event("A", "a", True), event("B", "b", True), ("NOT", "C", "f")), every(
            ("cmp", "<", ("agg", "COUNT", "a", None), ("lit", 3)),
            ("cmp", ">", ref("f"), ("agg", "AVG", "b", "x"))))], None),
    "arithmetic and membership": lambda n: ([(seq(A, B), every(
        ("cmp", "<", ("op", "/", ref("a"), ("op", "-", ref("b"), ref("a", "y"))), ("lit", n)),
        ("in", ("op", "*", ref("a", "y"), ref("b", "y")), False, [0, 1, 4]),
        ("or", [("in", ref("a", "k"), True, ["p"]), ("cmp", ">", ("abs", ("neg", ref("b"))), ref("a"))])))], None),
    "missing values": lambda n: ([(seq(A, ("NOT", "B", "f"), event("A", "b", True), C), every(
        ("null", ("op", "/", ref("a"), ref("c", "y")), False), ("null", ref("c", "k"), True),
        ("or", [("null", ("op", "-", ref("f"), ref("a")), False), ("cmp", ">", ref("f"), ref("a"))]),
        ("or", [("null", ("agg", "MIN", "b", "x"), False), ("cmp", "<", ("agg", "COUNT", "b", "x"), ("lit", 3))]),
        ("or", [("null", ("op", "+", ref("b", "y"), ref("a")), True), ("cmp", ">", ref("c"), ("lit", n))])))], None),
}  # fmt: skip


def drawn(pick: Random, nulls: bool) -> list[Event]:
    """A stream in which every column has a type, and nulls or (but for doubles) none: what a shape depends on."""
    last: list[Event] = [
        {"id": f"z{i}", "type": kind, "ts": 50 + i // 2, "attrs": {"x": 0.5, "y": 1, "k": "p"} if i % 2 else {}}
        for i, kind in enumerate("ABCAABBCC")
    ]
    events = stream(pick, 9) + last
    for one in [] if nulls else events:
        one["attrs"] = {"x": None, "y": 1, "k": "p"} | one["attrs"]
    return events


@dataclass(frozen=True)
class Pair:
    """Random choices, the query as tuple, the pattern of it, events, their ids, and the matches wanted."""

    pick: Random
    query: tuple
    pattern: Pattern
    table: pa.Table
    ids: list[str]
    wanted: list[str]

    @property
    def names(self) -> list[str]:
        """The positive names, as written."""
        return [name.name for name in self.pattern.names]

    def found(self, backend: str, **how: Any) -> tuple[list[str], Statistics]:
        """The matches of one search, as ``wanted``, in blocks of a drawn size; and what it counted."""
        statistics = Statistics()
        options = SearchOptions(block_rows=self.pick.one((1, 3, 1 << 17)))
        batches = find(self.pattern, self.table, backend=backend, statistics=statistics, options=options, **how)
        return canonical([m for batch in batches for m in as_dicts(self.pattern, batch, self.ids)]), statistics


def pair(name: str, seed: int | str, nulls: bool) -> Pair:
    """The pattern ``name`` with numbers and a stream of a seed."""
    pick = Random(seed)
    branches, shared = PATTERNS[name](pick.one((-1, 0, 0.5, 1)))
    query = (branches, shared, pick.one((0, 2, 4, 6, 9)))
    events = drawn(pick, nulls)
    pattern = compile_pattern(text_of(query), strict_units=False)
    return Pair(pick, query, pattern, *from_dicts(events), canonical(brute_force(query, events)))
