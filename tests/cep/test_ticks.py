"""The tick pattern, whose longest runs are found in time that grows with the events, whole and in slices."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find

TICK = """PATTERN SEQ STRICT (Tick a, Tick+ b, Tick c, Tick+ d)
WHERE b.x < PREV(b.x) AND c.x > PREV(c.x) AND c.x < a.x AND d.x > PREV(d.x) AND d.x > a.x
WITHIN {window} {keep}"""


def ticks(prices: list[int]) -> list[dict[str, Any]]:
    return [{"id": n, "type": "Tick", "ts": n, "attrs": {"x": price}} for n, price in enumerate(prices)]


def legs(found: Any) -> list[tuple[int, int, int]]:
    return sorted((one["a"], one["c"], one["d"][-1]) for one in found)


def test_ticks_at_every_length_and_at_the_longest() -> None:
    fall = ticks([10, 8, 6, 7, 11, 12, 9])
    assert legs(match(TICK.format(window=50, keep=""), fall)) == [(0, 3, 4), (0, 3, 5), (1, 3, 4), (1, 3, 5)]
    assert legs(match(TICK.format(window=50, keep="MAXIMAL"), fall)) == [(0, 3, 5), (1, 3, 5)]
    late = ticks([10, 8, 6, 7, 9, 11])
    assert legs(match(TICK.format(window=50, keep=""), late)) == [(1, 3, 4), (1, 3, 5)]


def walk() -> list[dict[str, Any]]:
    draw, price, prices = random.Random(7), 100, [100]
    for _ in range(9_999):
        price += draw.choice([-3, -2, -1, 1, 2, 3])
        prices.append(price)
    return ticks(prices)


def test_ticks_on_a_walk() -> None:
    events = walk()
    every = legs(match(TICK.format(window=50, keep=""), events))
    assert len(every) == 801
    assert max(end - begin for begin, _, end in every) == 11
    assert len(legs(match(TICK.format(window=50, keep="MAXIMAL"), events))) == 402


@pytest.mark.few(1)
@pytest.mark.parametrize("pieces", [1, 2, 4, 8])
def test_ticks_in_slices(pieces: int) -> None:
    pattern = compile_pattern(TICK.format(window=50, keep="MAXIMAL"), strict_units=False)
    events = walk()
    edges = np.linspace(0, 10_060, pieces + 1).astype(int).tolist()
    union = []
    for own in itertools.pairwise(edges):
        low, high = pattern.source_range(*own)
        table, ids = from_dicts([event for event in events if low <= event["ts"] < high])
        union += [one for batch in find(pattern, table, own=own) for one in as_dicts(pattern, batch, ids)]
    assert legs(union) == legs(match(TICK.format(window=50, keep="MAXIMAL"), events))
