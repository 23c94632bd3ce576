"""Rules of docs/semantics.md that no case of tests/cases shows by itself, on both backends and in event order."""

from __future__ import annotations

import itertools
import json

import pytest

from chainlake.cep.automata.simulate import NEGATIONS, simulate
from chainlake.cep.library import from_dicts, match
from chainlake.cep.pattern import compile_pattern
from tests.cep.interpreted import no_compiler


def events(*parts: tuple[str, str, int] | tuple[str, str, int, float]) -> list[dict]:
    """``("b1", "B", 3, 0.5)`` as event b1 of type B at 3 with x = 0.5."""
    return [{"id": e[0], "type": e[1], "ts": e[2], "attrs": {"x": e[3] if len(e) > 3 else None}} for e in parts]


RULES = [
    # no event is in two sets
    ("AND(E* a, E* k) WITHIN 5", events(("e1", "E", 0), ("e2", "E", 1)), [(["e1"], ["e2"]), (["e2"], ["e1"])]),
    # the window spans the last member of a set for a set that is bound after it
    ("AND(A* a, B* k) WITHIN 5", events(("a1", "A", 0), ("a2", "A", 4), ("b1", "B", 5), ("b2", "B", 9)), [
        (["a1"], ["b1"]), (["a1", "a2"], ["b1"]), (["a2"], ["b1"]), (["a2"], ["b2"]), (["a2"], ["b1", "b2"])
    ]),
    # an event that is bound later does not count as the forbidden one, even if nothing else is left to be bound for it
    ("AND(SEQ(A a, NOT(E n), B k), E z) WITHIN 9", events(("a1", "A", 0), ("e1", "E", 1), ("b1", "B", 2)), [
        ("a1", "b1", "e1")
    ]),
    # a branch of OR has its own conditions, also where names and types are another branch's
    (
        "OR(SEQ(A a, B k) WHERE a.x = 1 AND k.x = 1, SEQ(A a, B k) WHERE a.x = 2 AND k.x = 2) WITHIN 9",
        events(("a1", "A", 0, 1), ("a2", "A", 0, 2), ("b1", "B", 1, 1), ("b2", "B", 1, 2)),
        [("a1", "b1"), ("a2", "b2")],
    ),
    # what is divided by zero is unknown, and so is its opposite
    (
        "SEQ(A a, B k) WHERE k.x / a.x > 1 OR NOT k.x / a.x > 0 WITHIN 9",
        events(("a0", "A", 0, 0), ("a1", "A", 0, 1), ("b5", "B", 1, 5), ("b0", "B", 1, 0)),
        [("a1", "b0"), ("a1", "b5")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("query", "given", "wanted"), RULES)
def test_rule(query: str, given: list[dict], wanted: list[tuple]) -> None:
    pattern = compile_pattern(f"PATTERN {query}", strict_units=False)
    names = sorted(name.name for name in pattern.names)
    expected = sorted(json.dumps(dict(zip(names, found, strict=True)), sort_keys=True) for found in wanted)
    table, ids = from_dicts(given)
    for order in itertools.permutations(names):
        for backend in ("numpy", "compiled"):
            with no_compiler():
                found = list(match(pattern.text.text, given, order=order, backend=backend))
            assert sorted(json.dumps(m, sort_keys=True) for m in found) == expected, (order, backend)
        for negation in NEGATIONS:
            run = simulate(pattern, table, order=order, negation=negation).matches(pattern, ids)
            assert sorted(json.dumps(m, sort_keys=True) for m in run) == expected, (order, negation)
