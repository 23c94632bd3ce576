"""Functions of pairs: what they find is what a cheap condition finds, and each pair is asked for once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import chainlake as cl
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.language.declared.function import Code
from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics

Event = dict[str, Any]

FRONT = """---
functions:
  near: {call: 'numbers:near', cost: heavy, symmetric: true, pure: true}
  level: {call: 'numbers:level'}
  spread: {call: 'numbers:spread'}
  same: {call: 'texts:same', result: bool, symmetric: true}
---
"""


def near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.abs(one - other)


def level(x: np.ndarray) -> np.ndarray:
    return x * 2


def spread(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.maximum(np.maximum(a, b), c) - np.minimum(np.minimum(a, b), c)


def same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return one == other


CODES: dict[str, Callable[..., Any]] = {"near": near, "level": level, "spread": spread, "same": same}
#: What is called, and the same without a call; NAME stands for names of the pattern.
CALLS = [
    ("near(X.x, Y.x) <= N", "Abs(X.x - Y.x) <= N"),
    ("near(Y.x, X.x + 1) > N", "Abs(Y.x - X.x - 1) > N"),
    ("same(X.k, Y.k) = TRUE", "X.k = Y.k"),
    ("(same(X.k, Y.k) = FALSE OR X.x > Y.x)", "(X.k != Y.k OR X.x > Y.x)"),
    (
        "(X.x < N OR near(X.x, Y.x) <= 1 OR near(Y.x, X.x) > 4)",
        "(X.x < N OR Abs(X.x - Y.x) <= 1 OR Abs(X.x - Y.x) > 4)",
    ),
    ("level(X.x) > N + 1", "X.x * 2 > N + 1"),
    ("NOT near(X.x, Y.x) + level(Y.x) > 2 * N", "NOT Abs(X.x - Y.x) + Y.x * 2 > 2 * N"),
]
#: Structures with two names that conditions may compare, and what may stand behind the window.
SHAPES = [
    ("SEQ(A X, B Y)", ["", "CONTEXT recent", "CONTEXT chronicle", "SELECT last", "PAUSE 2"]),
    ("AND(A X, B Y)", ["", "CONTEXT continuous"]),
    ("SEQ(A X, C m, B Y)", ["", "CONTEXT cumulative", "MEASURES near(X.x, Y.x) AS far"]),
    ("SEQ(A X, NOT(B Y), C m)", [""]),
    ("SEQ(A X, B* Y)", [""]),
    ("SEQ(A X, COLLECT(B Y), C m)", [""]),
    ("AND(SEQ(A X, B Y), UNTIL(C u))", [""]),
    ("SEQ STRICT (A X, B Y)", [""]),
    ("SEQ STRICT (A X, B+ Y)", ["", "MAXIMAL"]),
    ("AND(A X, SEQ(B Y, C m))", ["", "PICK first X, last Y"]),
]


def stream(pick: random.Random, most: int = 12) -> list[Event]:
    ts, found = 0, []
    for number in range(pick.randint(7, most)):
        ts += pick.randint(0, 2)
        attrs = {"x": pick.choice([0, 1, 2, 3.5, 5, None]), "k": pick.choice(["u", "v", None])}
        found.append({"id": number, "type": pick.choice("AABBC"), "ts": ts, "attrs": attrs})
    return found


def drawn(seed: int) -> tuple[str, str, list[Event]]:
    """A pattern with calls, the same without, and events."""
    pick = random.Random(seed)
    shape, tails = SHAPES[seed % len(SHAPES)]
    tail = pick.choice(tails)
    with_calls, without = [], []
    for one, other in pick.sample(CALLS, pick.randint(1, 2)):
        n = str(pick.randint(0, 4))
        with_calls.append(one.replace("N", n) if "NOT" not in one else one.replace("* N", f"* {n}"))
        without.append(other.replace("N", n) if "NOT" not in other else other.replace("* N", f"* {n}"))
    if "C m" in shape and "NOT" not in shape and "COLLECT" not in shape and pick.random() < 0.5:
        with_calls.append("spread(X.x, Y.x, m.x) <= 3")
        without.append("Greatest(X.x, Y.x, m.x) - Least(X.x, Y.x, m.x) <= 3")
    if pick.random() < 0.5:
        with_calls.append("X.x <= 3.5")
        without.append("X.x <= 3.5")
    queries = [
        f"PATTERN {shape} WHERE {' AND '.join(those)} WITHIN 6 {tail}".replace("near(X.x, Y.x) AS", other)
        for those, other in ((with_calls, "near(X.x, Y.x) AS"), (without, "Abs(X.x - Y.x) AS"))
    ]
    return queries[0], queries[1], stream(pick)


def canonical(found: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in found)


def compiled(text: str) -> cl.Pattern:
    return compile_pattern(FRONT + text, params={name: Code(code) for name, code in CODES.items()}, strict_units=False)


def all_of(pattern: cl.Pattern, events: list[Event], **asked: Any) -> list[dict[str, Any]]:
    table, ids = from_dicts(events)
    return [one for batch in find(pattern, table, **asked) for one in as_dicts(pattern, batch, ids)]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 320, 80))
def test_a_call_finds_what_a_cheap_condition_finds(first: int) -> None:
    with_matches = 0
    for seed in range(first, first + 80):
        text, plain, events = drawn(seed)
        pick = random.Random(seed)
        wanted = canonical(list(match(plain, events, backend="numpy")))
        with_matches += bool(wanted)
        pattern = compiled(text)
        names = [one.name for one in pattern.names]
        order = pick.choice([None, pick.sample(names, len(names))])
        options = SearchOptions(block_rows=pick.choice((1, 3, 1 << 17)))
        backend = ("numpy", "compiled")[seed // len(SHAPES) % 2]
        found = all_of(pattern, events, order=order, backend=backend, options=options)
        assert canonical(found) == wanted, (seed, text, order, backend)
        if pattern.extras.policy is None and seed % 2:
            union = []
            for own in pairwise([-100, *sorted(pick.sample(range(16), 3)), 200]):
                lo, hi = pattern.read_range(*own)
                union += all_of(pattern, [e for e in events if lo <= e["ts"] < hi], own=own)
            assert canonical(union) == wanted, (seed, text)
    assert with_matches > 20


class Seen:
    """A function that notes which pairs it was called with."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[Any, ...]] = Counter()
        self.sizes: list[int] = []

    def __call__(self, *columns: np.ndarray) -> np.ndarray:
        self.sizes.append(len(columns[0]))
        self.pairs.update(zip(*(column.tolist() for column in columns), strict=True))
        return np.abs(columns[0] - columns[1]) * 1.0


THREE = """---
functions: {near: {call: 'numbers:near', symmetric: true}}
---
PATTERN AND(A a, A b, A c)
WHERE near(a.x, b.x) <= 3 AND near(a.x, c.x) <= 3 AND near(b.x, c.x) <= 3 AND a.k != b.k AND a.k != c.k AND b.k != c.k
WITHIN 12
"""


def many(n: int) -> list[Event]:
    pick = random.Random(n)
    return [
        {"id": i, "type": "A", "ts": i, "attrs": {"x": i * 0.1 + pick.random(), "k": pick.choice("uvw")}}
        for i in range(n)
    ]


@pytest.mark.parametrize("block_rows", [1 << 17, 512])
def test_each_pair_is_asked_for_once_and_only_where_cheap_conditions_hold(block_rows: int) -> None:
    seen, events, counted = Seen(), many(120), Statistics()
    pattern = compile_pattern(THREE, params={"near": Code(seen)}, strict_units=False)
    found = all_of(pattern, events, statistics=counted, options=SearchOptions(block_rows=block_rows))
    kinds = {e["attrs"]["x"]: (e["attrs"]["k"], e["ts"]) for e in events}
    either = Counter(tuple(sorted(pair)) for pair in seen.pairs.elements())
    assert found and max(either.values()) == 1
    assert all(kinds[x][0] != kinds[y][0] and abs(kinds[x][1] - kinds[y][1]) <= 12 for x, y in either)
    assert counted.pair_evals == len(either) and counted.pair_memo_hits > counted.pair_evals


def test_the_pieces_of_a_slice_share_what_is_known_of_pairs() -> None:
    from chainlake.cep.heavy.calls import numbered

    seen, counted, memo = Seen(), Statistics(), Memo()
    pattern = compile_pattern(THREE, params={"near": Code(seen)}, strict_units=False)
    table, ids = from_dicts(many(90))
    table = numbered(table, 7)
    found = []
    for lo, hi in pairwise([0, 30, 31, 60, 200]):
        options = SearchOptions(memo=memo)
        some = table.filter((table["ts"].to_numpy() >= lo - 12) & (table["ts"].to_numpy() < hi))
        own = [ids[row] for row in range(len(ids)) if lo - 12 <= row < hi]
        for batch in find(pattern, some, own=(lo, hi), statistics=counted, options=options):
            found += as_dicts(pattern, batch, own)
    assert canonical(found) == canonical(all_of(pattern, many(90)))
    half = Counter(tuple(sorted(pair)) for pair in seen.pairs)
    assert max(half.values()) == 1 and counted.pair_evals == len(half)


def test_batches_are_of_256_to_4096_pairs() -> None:
    seen = Seen()
    text = (
        FRONT.replace("heavy, symmetric: true", "cheap") + "PATTERN SEQ(A a, A b) WHERE near(a.x, b.x) > 9 WITHIN 200"
    )
    codes = {**{name: Code(code) for name, code in CODES.items()}, "near": Code(seen)}
    all_of(compile_pattern(text, params=codes, strict_units=False), many(200))
    assert sum(seen.sizes) == 199 * 200 // 2
    assert seen.sizes[0] == 256 and max(seen.sizes) == 4096


def test_a_symmetric_function_is_called_in_one_way_whatever_the_order_of_binding() -> None:
    calls = {}
    for order in (["a", "b"], ["b", "a"]):
        seen = Seen()
        pattern = compile_pattern(
            "---\nfunctions: {near: {call: 'numbers:near', symmetric: true}}\n---\n"
            "PATTERN AND(A a, A b) WHERE near(a.x, b.x) < 1 WITHIN 3",
            params={"near": Code(seen)}, strict_units=False,
        )  # fmt: skip
        all_of(pattern, many(30), order=order)
        calls[order[0]] = seen.pairs
    assert calls["a"] == calls["b"] and max(calls["a"].values()) == 1


def test_full_memory_begins_anew_and_finds_the_same() -> None:
    pattern = compile_pattern(THREE, params={"near": Code(near)}, strict_units=False)
    from chainlake.cep.heavy.calls import numbered

    table, _ = from_dicts(many(40))
    sizes = []
    for most in (1 << 20, 5):
        counted = Statistics()
        options = SearchOptions(memo=Memo(most), block_rows=128)
        batches = find(pattern, numbered(table, 0), statistics=counted, options=options)
        sizes.append((sum(batch.n for batch in batches), counted.pair_evals))
    assert sizes[0][0] == sizes[1][0] and sizes[0][1] < sizes[1][1]
