"""Functions of pairs: what they find is what a cheap condition finds, and each pair is asked for once."""

from __future__ import annotations

import json
import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import chainlake as cl
from chainlake.cep import SearchOptions, Statistics, compile_pattern, find, match
from chainlake.cep.heavy.errors import FunctionFailed
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.language.declared.function import Code
from chainlake.cep.library import as_dicts, from_dicts
from chainlake.errors import DefinitionError

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


# ---- what a function may not do

EVENTS: list[Event] = [
    {"id": 1, "type": "A", "ts": 0, "attrs": {"x": 1.0, "k": "u"}},
    {"id": 2, "type": "B", "ts": 1, "attrs": {"x": 4.0, "k": "v"}},
    {"id": 3, "type": "B", "ts": 2, "attrs": {"x": 0.0, "k": "v"}},
    {"id": 4, "type": "B", "ts": 2, "attrs": {"x": None, "k": "v"}},
]
PAIR = "---\nfunctions:\n  f: {call: 'm:f', longest: 50 ms}\n---\nPATTERN SEQ(A a, B b) WHERE f(a.x, b.x) > 0 WITHIN 5"


def _ratio(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.array([x / y for x, y in zip(one.tolist(), other.tolist(), strict=True)])


def _slow(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    import time

    time.sleep(0.06)
    return one


def _endless(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    while True:
        pass


def _interrupted(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    raise KeyboardInterrupt


class _Unsaid(BaseException):
    def __str__(self) -> str:
        raise RuntimeError


def _unsaid(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    raise _Unsaid


def _masked(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.ma.masked_array(one, mask=other == 0)


@pytest.mark.parametrize(
    "function, said",
    [
        (_ratio, "pattern: f(1.0, 0.0) raised ZeroDivisionError: float division by zero"),
        (lambda a, b: 1.0, "f was called with 2 pairs, such as f(1.0, 4.0), and gave one value"),
        (lambda a, b: a[:1], "gave an array of shape (1,)"),
        (lambda a, b: np.where(b == 0, np.nan, a), "f(1.0, 0.0) gave no value (NaN or null)"),
        (lambda a, b: np.array([1.0, None], object), "f(1.0, 0.0) gave no value (NaN or null)"),
        (_masked, "f(1.0, 0.0) gave no value (NaN or null)"),
        (lambda a, b: a > b, "gave values of type bool, and numbers are expected"),
        (lambda a, b: np.array(["x", "y"]), "gave values of type <U1, and numbers are expected"),
        (lambda a: a, "raised TypeError"),
        (_slow, " s for 2 pairs, such as f(1.0, 4.0); a batch may take 0.05 s"),
        (_endless, "f was not done after "),
        (lambda a, b: np.ma.masked_array([1, 2], mask=b == 0), "f(1.0, 0.0) gave no value (NaN or null)"),
        (lambda a, b: [[1], [1, 2]], "f(1.0, 4.0) raised ValueError"),
        (lambda a, b: np.array([[1.0], {}], object), "gave values of type object"),
        (_interrupted, "f(1.0, 4.0) raised KeyboardInterrupt"),
        (_unsaid, "f(1.0, 4.0) raised _Unsaid: (its text raises RuntimeError)"),
    ],
)
def test_what_a_function_gives_is_looked_at(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(FunctionFailed) as error:
        list(match(PAIR, EVENTS, functions={"f": function}))
    assert said in str(error.value)
    assert (error.value.line, error.value.column) == (3, 3)


@pytest.mark.parametrize(
    "gave, said",
    [
        ("no", "f(1.0, 4.0) gave values of type str, and numbers are expected"),
        (True, "f(1.0, 4.0) gave values of type bool, and numbers are expected"),
        (None, "f(1.0, 4.0) gave no value (NaN or null)"),
        (math.nan, "f(1.0, 4.0) gave no value (NaN or null)"),
        ([1.0], "f(1.0, 4.0) gave values of type list, and numbers are expected"),
    ],
)
def test_a_function_of_one_pair_at_a_time(gave: object, said: str) -> None:
    text = PAIR.replace("longest: 50 ms", "vectorised: false")
    pairs = []

    def less(a: float, b: float) -> float:
        pairs.append((a, b))
        return a - b

    assert list(match(text, EVENTS, functions={"f": less})) == [{"a": 1, "b": 3}]
    assert sorted(pairs) == [(1.0, 0.0), (1.0, 4.0)] and all(type(one) is float for one in pairs[0])
    with pytest.raises(FunctionFailed) as error:
        list(match(text, EVENTS, functions={"f": lambda a, b: gave if b else 1.0}))
    assert said in str(error.value)


def test_what_a_function_does_to_its_columns_changes_no_event() -> None:
    def spoils(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        found = one - other + 5
        one[:], other[:] = 0, 0
        return found

    text = PAIR.replace("> 0", "> 0 AND a.x = 1 AND f(b.x, a.x) > 4")
    assert list(match(text, EVENTS, functions={"f": spoils})) == [{"a": 1, "b": 2}]


def test_calls_are_made_in_one_thread_and_go_on_after_one_that_was_given_up() -> None:
    threads = set()

    def noted(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        threads.add(threading.current_thread())
        return one

    for _ in range(2):
        assert len(list(match(PAIR, EVENTS, functions={"f": noted}))) == 2
    (first,) = threads
    with pytest.raises(FunctionFailed, match="not done"):
        list(match(PAIR, EVENTS, functions={"f": _endless}))
    first.join(10)
    assert not first.is_alive(), "a loop that was given up goes on"
    assert len(list(match(PAIR, EVENTS, functions={"f": noted}))) == 2 and len(threads) == 2


def test_missing_values_never_reach_a_function() -> None:
    seen = Seen()
    found = list(match(PAIR, EVENTS, functions={"f": seen}))
    assert found == [{"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert sorted(seen.pairs) == [(1.0, 0.0), (1.0, 4.0)]


def test_a_pattern_without_its_code_compiles_and_does_not_run() -> None:
    pattern = compile_pattern(PAIR, strict_units=False)
    with pytest.raises(FunctionFailed, match="f is declared, but its code is not at hand"):
        all_of(pattern, EVENTS)


@pytest.mark.parametrize(
    "front, said, place",
    [
        ("functions: 5", "functions must be a map of names", (2, 1)),
        ("functions: {f: 5}", "f must say what it calls", (2, 13)),
        ("functions: {f: {cost: heavy}}", "f must say what it calls", (2, 13)),
        ("functions:\n  f: {call: 'os.path:join'}", "f calls os.path:join, which names no function", (3, 7)),
        ("functions: {f: {call: '../m:f'}}", "names no function of a module", (2, 17)),
        ("functions: {f: {call: 'm:_f'}}", "names no function of a module", (2, 17)),
        ("functions: {f: {call: 'm:f.g'}}", "names no function of a module", (2, 17)),
        ("functions: {f: {call: m.f}}", "names no function of a module", (2, 17)),
        ("functions: {f: {call: 'm:f', coast: heavy}}", "the declaration of f has no key coast", (2, 30)),
        ("functions: {f: {call: 'm:f', cost: dear}}", "dear is no cost of f", (2, 30)),
        ("functions: {f: {call: 'm:f', cost: -1}}", "-1 is no cost of f", (2, 30)),
        ("functions: {f: {call: 'm:f', pure: false}}", "f must be pure", (2, 30)),
        ("functions: {f: {call: 'm:f', symmetric: maybe}}", "symmetric of f is true or false, not maybe", (2, 30)),
        ("functions: {f: {call: 'm:f', vectorised: 1}}", "vectorised of f is true or false, not 1", (2, 30)),
        ("functions: {f: {call: 'm:f', result: text}}", "f cannot give text", (2, 30)),
        ("functions: {f: {call: 'm:f', longest: 5}}", "longest of f is a duration above 0, not 5", (2, 30)),
        ("functions: {Lower: {call: 'm:f'}}", "Lower is a function of the language", (2, 13)),
        ("functions: {f: {call: 'm:f'}, F: {call: 'm:f'}}", "F is declared twice", (2, 31)),
    ],
)
def test_a_declaration_that_is_none_is_told_with_its_place(front: str, said: str, place: tuple[int, int]) -> None:
    with pytest.raises(DefinitionError) as error:
        compile_pattern(f"---\n{front}\n---\nPATTERN SEQ(A a, B b) WITHIN 5 s")
    assert said in error.value.what
    assert (error.value.line, error.value.column) == place


def test_an_unknown_function_and_a_wrong_number_of_values_are_told() -> None:
    with pytest.raises(DefinitionError) as error:
        compile_pattern(FRONT + "PATTERN SEQ(A a, B b) WHERE neer(a.x, b.x) > 1 WITHIN 5 s")
    assert "there is no function neer" in error.value.what and "Did you mean near?" in str(error.value)
    params = {name: Code(code, takes=(2, 2)) for name, code in CODES.items()}
    with pytest.raises(DefinitionError, match="near takes 2 values, not 1"):
        compile_pattern(FRONT + "PATTERN SEQ(A a, B b) WHERE near(a.x) > 1 WITHIN 5 s", params=params)
    with pytest.raises(DefinitionError, match="near is called for pairs of events, and MAX has all of a set"):
        compile_pattern(FRONT + "PATTERN SEQ(A a, B* b) WHERE MAX(near(b.x, b.y)) > 1 WITHIN 5 s")


def test_the_code_of_a_function_is_part_of_what_a_pattern_is() -> None:
    def digest(text: str, code: str, front: str = PAIR) -> str:
        return compile_pattern(front + text, params={"f": Code(near, code)}).definition_hash

    assert digest(" s", "1") == digest(" s", "1") != digest(" s", "2")
    assert digest(" s", "1") == digest(" s", "1", PAIR.replace("longest: 50 ms", "longest: 51 ms, cost: 3"))
    assert digest(" s", "1") != digest(" s", "1", PAIR.replace("longest", "symmetric: true, longest"))
    assert digest(" s", "1") == digest(" s", "1", PAIR.replace("longest", "vectorised: true, longest"))
    assert digest(" s", "1") != digest(" s", "1", PAIR.replace("longest", "vectorised: false, longest"))
    unused = PAIR.replace("f(a.x, b.x) > 0", "a.x > b.x")
    assert digest(" s", "1", unused) == digest(" s", "2", unused)
