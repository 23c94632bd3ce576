"""Where a search for one event goes on from a candidate that fails, and what is found by it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from chainlake.cep.library import from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.compiled.lists import nearest
from chainlake.cep.search.compiled.lists.jumps import next_easier
from chainlake.cep.search.find import candidates_of, dataset
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from tests.cep.interpreted import no_compiler
from tests.cep.policy_pairs import Events, rows


def by_definition(values: list[float], smaller: bool, backward: bool) -> list[int]:
    """For each value the next one that is smaller (or larger); of one that is missing, its neighbour."""
    found = []
    for i, x in enumerate(values):
        others = range(i - 1, -1, -1) if backward else range(i + 1, len(values))
        none = -1 if backward else len(values)
        easier = (j for j in others if x != x or (values[j] < x if smaller else values[j] > x))
        found.append(next(easier, none))
    return found


@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_a_search_goes_on_at_the_next_value_that_passes_more_easily(kind: type) -> None:
    rng = random.Random(5)
    extremes = [float("nan"), float("inf"), -float("inf"), -0.0] if kind is np.float64 else [-(2**63), 2**63 - 1]
    with no_compiler():
        for size in [0, 1, 2, *(rng.randrange(3, 40) for _ in range(40))]:
            values = np.array([rng.choice([*extremes, *range(6)]) for _ in range(size)], kind)
            for smaller in (True, False):
                for backward in (True, False):
                    expected = by_definition(values.tolist(), smaller, backward)
                    assert next_easier(values, smaller, backward=backward).tolist() == expected


def stream(rng: random.Random) -> list[dict[str, Any]]:
    """Events with values of which some are missing or no number."""
    values = [0.0, 1.0, 2.0, 3.0, -0.0, float("nan"), None]
    return [
        {"id": f"e{i:02}", "type": rng.choice("ABC"), "ts": rng.randrange(40), "attrs": {"x": rng.choice(values)}}
        for i in range(rng.randrange(6, 40))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("tail", ["SELECT first", "SELECT last", "CONTEXT chronicle", "SELECT last CONSUME b"])
def test_one_event_that_passes_is_found_among_values_that_are_missing(
    tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TEST", 1e9), ("NEAREST", float("inf"))):
        monkeypatch.setattr(f"chainlake.cep.search.compiled.lists.skip.{name}", value)
    jumped = list[bool]()
    write = nearest.Nearest.write
    monkeypatch.setattr(
        nearest.Nearest, "write", lambda self, apart: (jumped.append(self.jump is not None), write(self, apart))[1]
    )
    rng, some = random.Random(3), 0
    with no_compiler():
        for text in ("SEQ(A a, B b) WHERE a.x {} b.x", "SEQ(A a, B b, C c) WHERE a.x {} b.x AND b.x {} c.x"):
            for op in ("<", "<=", ">", ">="):
                pattern = compile_pattern(f"PATTERN {text.format(op, op)} WITHIN 9 {tail}", strict_units=False)
                for _ in range(4):
                    events = Events(stream(rng))
                    modes = (SearchOptions(mode=mode) for mode in ("S", "P"))
                    one, other = (rows(pattern, events, mode, Statistics(), backend="compiled") for mode in modes)
                    assert one == other, (text, op, events.listed)
                    some += len(one)
    assert some > 40 and any(jumped)


def test_events_of_other_types_stay_where_they_are_few_and_have_numbers() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9 SELECT last", strict_units=False)

    def searched(kinds: str, times: list[int], **attrs: Any) -> tuple[int, list[int]]:
        events = [
            {"id": str(i), "type": kind, "ts": ts, "attrs": {"x": attrs.get(kind, i)}}
            for i, (kind, ts) in enumerate(zip(kinds, times, strict=True))
        ]
        data = dataset(pattern, from_dicts(events)[0], others=True)
        return len(data.ts), [len(of) for of in candidates_of(pattern, pattern.branches[0], data).values()]

    assert searched("AABBC", [1, 2, 3, 4, 5]) == (5, [2, 2])
    assert searched("AACCC", [1, 2, 3, 4, 5]) == (2, [2, 0])
    assert searched("AABBC", [1, 2, 3, 5, 4]) == (4, [2, 2])
    assert searched("AABBC", [1, 2, 3, 4, 5], C=None) == (4, [2, 2])
    assert searched("AABBC", [1, 2, 3, 4, 2**62]) == (4, [2, 2])
    assert searched("AABB", [1, 2, 3, 4]) == (4, [2, 2])
