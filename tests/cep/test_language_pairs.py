"""The engine against the definition of the whole language: random queries with histories, and the worked cases."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import lru_cache

import pytest

from tests.cep.interpreted import no_compiler
from tests.cep.language_oracle.against import canonical, difference, in_cuts, pattern_of, search
from tests.cep.language_oracle.constructs import constructs
from tests.cep.language_oracle.generate import CONSTRUCTS, FOCUS, Pair, pair
from tests.cep.language_oracle.histories import history
from tests.cep.language_oracle.matches import matches
from tests.cep.language_oracle.mutants import MUTANTS, mutant
from tests.cep.language_oracle.reading import query_of
from tests.cep.language_oracle.text import text_of
from tests.cep.strategies import Random
from tests.cep.test_language_oracle import CASES
from tests.run_cases import pattern_case

pytestmark = pytest.mark.slow

#: Pairs of this test, in parts that each say where they stopped.
PAIRS, PART = 2000, 250
#: Queries that are compiled once, each for many histories.
COMPILED = (
    "PATTERN SEQ(A a, COLLECT(B b), C c) WHERE b.x >= a.y AND COUNT(b) <= 2 WITHIN 6",
    "PATTERN SEQ(A a, COLLECT?(B b), B? c, NOT(C n)) WHERE n.y > a.y AND COUNT(b.x) < 2 WITHIN 5 PAUSE 3",
    "PATTERN SEQ STRICT (A a, B+ b, C c) WHERE b.x >= PREV(b.x) OR b.y = 1 WITHIN 9 MAXIMAL",
    "PATTERN AND(A a, B{1,2} b, UNTIL(C u)) WHERE u.k = a.k AND LAST(b.x) >= 1 WITHIN 4",
    "PATTERN SEQ(OR(A a, SEQ(B b, * c)), C d) WHERE CASE WHEN d.x > 1 THEN d.y ELSE 1 END > 0 WITHIN 7 OUTERMOST",
)

#: In every history of theirs, so that every column has a type, and nulls: what machine code depends on.
LAST = [
    {"id": "z1", "type": "D", "ts": 90, "seq": 1, "attrs": {"x": 0.5, "y": 1, "k": "p", "s": "u"}},
    {"id": "z2", "type": "D", "ts": 91, "attrs": {}},
]


@lru_cache(maxsize=PAIRS)
def made(seed: int) -> Pair:
    """A pair, once for all tests here."""
    return pair(seed)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_worked_case_in_every_order(case: dict) -> None:
    assert pattern_case(case, all_orders=True, engine="numpy").differences == []
    with no_compiler():
        assert pattern_case(case, engine="compiled").differences == []


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_worked_case_in_stretches_of_history(case: dict) -> None:
    """Cut before and after each event, among others: what lies at the edge of a day belongs to one of the two."""
    one = Pair(0, query_of(case["pattern"]), case["events"], case.get("key"), ("", ""), case["expected"])
    pattern = pattern_of(one)
    draw = Random(case["name"])
    times = [event["ts"] for event in case["events"]]
    first, last = min(times) - 1, max(times) + 12
    every = [[cut] for cut in range(first, max(times) + 2)]
    for cuts in [*every, *(sorted(draw.one(range(first, last)) for _ in range(3)) for _ in range(2))]:
        assert canonical(in_cuts(one, pattern, [-100, *cuts, 200], "numpy")) == canonical(case["expected"]), cuts


@pytest.mark.parametrize("first", range(0, PAIRS, PART))
def test_random_pair_by_its_definition(first: int) -> None:
    for seed in range(first, first + PART):
        told = difference(made(seed), cuts=seed % 4 == 0)
        assert told is None, told
        if seed % 25 == 0:
            with no_compiler():
                told = difference(made(seed), ("compiled",), cuts=False)
            assert told is None, told


@pytest.mark.parametrize("text", COMPILED)
def test_random_histories_of_a_compiled_query(text: str) -> None:
    query = query_of(text)
    pick = Random(text)
    one = Pair(0, query, [], "k", ("", ""), [])
    pattern = pattern_of(one)
    with_matches = 0
    for _ in range(40):
        events = history(pick, query, "k", set()) + LAST
        wanted = matches(query, events, "k")
        found = search(one, pattern, events, backend="compiled")
        assert canonical(found) == canonical(wanted), (text, events)
        with_matches += bool(wanted)
    assert with_matches >= 5


def test_every_construct_and_nearly_every_two_come_with_matches() -> None:
    alone: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    with_matches = 0
    for seed in range(PAIRS):
        one = made(seed)
        if one.wanted:
            found = constructs(one)
            with_matches += 1
            alone.update(found)
            together.update(itertools.combinations(sorted(found), 2))
    assert with_matches > PAIRS * 2 // 3
    assert [name for name in CONSTRUCTS if alone[name] < 50] == []
    assert len([two for two in FOCUS if together[min(two), max(two)] == 0]) < 5


@pytest.mark.parametrize("name", MUTANTS)
def test_pairs_tell_when_a_rule_is_another(name: str) -> None:
    wrong = mutant(name)
    needed = set(MUTANTS[name][3])
    for seed in range(PAIRS):
        one = made(seed)
        if needed <= constructs(one):
            if canonical(wrong(one.query, one.events, one.key)) != canonical(one.wanted):
                return
    raise AssertionError(f"no pair of {PAIRS} tells: {name}")


def test_a_seed_makes_the_same_pair_and_its_text_says_all() -> None:
    for seed in range(0, PAIRS, 40):
        one = pair(seed)
        assert one == made(seed)
        again = query_of(text_of(one.query))
        assert text_of(again) == text_of(one.query)
        assert canonical(matches(again, one.events, one.key)) == canonical(one.wanted)
