"""What functions of pairs may not do: each is told with the pattern, the function and a pair, or is given up."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chainlake.cep.heavy.errors import FunctionFailed
from chainlake.cep.language.declared.function import Code
from chainlake.cep.library import match
from chainlake.cep.pattern import compile_pattern
from chainlake.errors import DefinitionError
from tests.cep.test_heavy import CODES, FRONT, Event, Seen, all_of, near

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


class _Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name == "__name__":
            raise ValueError
        return super().__getattribute__(name)


class _Anonymous(Exception, metaclass=_Nameless):
    pass


class _Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)


def _raises(error: BaseException) -> Callable[..., Any]:
    def raises(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        raise error

    return raises


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
        (lambda a, b: 1.0, "f was called with 2 pairs, such as f(1.0, 4.0), and returned one value"),
        (lambda a, b: a[:1], "returned an array of shape (1,)"),
        (lambda a, b: np.where(b == 0, np.nan, a), "f(1.0, 0.0) returned no value (NaN or null)"),
        (lambda a, b: np.array([1.0, None], object), "f(1.0, 0.0) returned no value (NaN or null)"),
        (_masked, "f(1.0, 0.0) returned no value (NaN or null)"),
        (lambda a, b: a > b, "returned values of type bool, but numbers are expected"),
        (lambda a, b: np.array(["x", "y"]), "returned values of type <U1, but numbers are expected"),
        (lambda a: a, "raised TypeError"),
        (_slow, " s for 2 pairs, such as f(1.0, 4.0); a batch may take 0.05 s"),
        (_endless, "f was not done after "),
        (lambda a, b: np.ma.masked_array([1, 2], mask=b == 0), "f(1.0, 0.0) returned no value (NaN or null)"),
        (lambda a, b: [[1], [1, 2]], "f(1.0, 4.0) raised ValueError"),
        (lambda a, b: np.array([[1.0], {}], object), "returned values of type object"),
        (_interrupted, "f(1.0, 4.0) raised KeyboardInterrupt"),
        (_unsaid, "f(1.0, 4.0) raised _Unsaid: (its text raises RuntimeError)"),
        (_raises(_Exits()), "f(1.0, 4.0) raised _Exits: (its text raises SystemExit)"),
        (_raises(_Anonymous("no")), "f(1.0, 4.0) raised an error without a name: no"),
        (_raises(StopIteration()), "f(1.0, 4.0) raised StopIteration:"),
        (_raises(ValueError("long" * 10_000)), f"raised ValueError: {('long' * 250)[:988]}… (key"),
        (lambda a, b: a * 1j, "f(1.0, 4.0) returned values of type complex128, but numbers are expected"),
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
        ("no", "f(1.0, 4.0) returned values of type str, but numbers are expected"),
        (True, "f(1.0, 4.0) returned values of type bool, but numbers are expected"),
        (None, "f(1.0, 4.0) returned no value (NaN or null)"),
        (math.nan, "f(1.0, 4.0) returned no value (NaN or null)"),
        (np.ma.masked, "f(1.0, 4.0) returned no value (NaN or null)"),
        (np.ma.masked_array(1.0, mask=True), "f(1.0, 4.0) returned no value (NaN or null)"),
        ([1.0], "f(1.0, 4.0) returned values of type list, but numbers are expected"),
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

    def recorded(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        threads.add(threading.current_thread())
        return one

    for _ in range(2):
        assert len(list(match(PAIR, EVENTS, functions={"f": recorded}))) == 2
    (first,) = threads
    with pytest.raises(FunctionFailed, match="not done"):
        list(match(PAIR, EVENTS, functions={"f": _endless}))
    first.join(10)
    assert not first.is_alive(), "a loop that was given up goes on"
    assert len(list(match(PAIR, EVENTS, functions={"f": recorded}))) == 2 and len(threads) == 2


def test_missing_values_never_reach_a_function() -> None:
    seen = Seen()
    found = list(match(PAIR, EVENTS, functions={"f": seen}))
    assert found == [{"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert sorted(seen.pairs) == [(1.0, 0.0), (1.0, 4.0)]


def test_a_pattern_without_its_code_compiles_and_does_not_run() -> None:
    pattern = compile_pattern(PAIR, strict_units=False)
    with pytest.raises(FunctionFailed, match="f is declared, but its code was not found"):
        all_of(pattern, EVENTS)


@pytest.mark.parametrize(
    "front, said, place",
    [
        ("functions: 5", "functions must be a map of names", (2, 1)),
        ("functions: {f: 5}", "f must say what it calls", (2, 13)),
        ("functions: {f: {cost: heavy}}", "f must say what it calls", (2, 13)),
        ("functions:\n  f: {call: 'os.path:join'}", "f calls os.path:join, which does not name a function", (3, 7)),
        ("functions: {f: {call: '../m:f'}}", "does not name a function in a module", (2, 17)),
        ("functions: {f: {call: 'm:_f'}}", "does not name a function in a module", (2, 17)),
        ("functions: {f: {call: 'm:f.g'}}", "does not name a function in a module", (2, 17)),
        ("functions: {f: {call: m.f}}", "does not name a function in a module", (2, 17)),
        ("functions: {f: {call: 'm:f', coast: heavy}}", "unknown key coast in the declaration of f", (2, 30)),
        ("functions: {f: {call: 'm:f', cost: dear}}", "dear is not a valid cost for f", (2, 30)),
        ("functions: {f: {call: 'm:f', cost: -1}}", "-1 is not a valid cost for f", (2, 30)),
        ("functions: {f: {call: 'm:f', pure: false}}", "f must be pure", (2, 30)),
        ("functions: {f: {call: 'm:f', symmetric: maybe}}", "symmetric of f must be true or false, not maybe", (2, 30)),
        ("functions: {f: {call: 'm:f', vectorised: 1}}", "vectorised of f must be true or false, not 1", (2, 30)),
        ("functions: {f: {call: 'm:f', result: text}}", "f cannot return text", (2, 30)),
        ("functions: {f: {call: 'm:f', longest: 5}}", "longest of f must be a duration above 0, not 5", (2, 30)),
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
    with pytest.raises(DefinitionError, match="near is called for pairs of events, but MAX takes all events of a set"):
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


@pytest.mark.parametrize(
    "args", ["a.x, b.k", "a.k, b.x", "a.k, CASE WHEN a.x > 1 THEN 1 ELSE 2 END", "a.x, a.k, b.k, b.x", "a.x, 'w'"]
)
def test_the_halves_of_a_symmetric_function_are_of_the_same_kinds(args: str) -> None:
    text = PAIR.replace("longest: 50 ms", "symmetric: true").replace("a.x, b.x", args)
    with pytest.raises(DefinitionError) as error:
        list(match(text, EVENTS, functions={"f": lambda *columns: np.ones(len(columns[0]))}))
    assert "f does not take a " in str(error.value) and "declared as symmetric" in str(error.value)
    plain = text.replace("symmetric: true", "symmetric: false")
    assert list(match(plain, EVENTS, functions={"f": lambda *columns: np.ones(len(columns[0]))}))


def test_halves_of_unknown_kinds_are_taken() -> None:
    text = PAIR.replace("longest: 50 ms", "symmetric: true").replace("a.x, b.x", "a.x, a.none, b.none, b.x")
    assert not list(match(text, EVENTS, functions={"f": lambda *columns: np.ones(len(columns[0]))}))
