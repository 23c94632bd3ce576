"""How many sets a size makes, without the numbers that nobody can compute."""

from __future__ import annotations

from itertools import combinations

import pytest

from chainlake.cep.language.ast import Size
from chainlake.cep.library import match
from chainlake.cep.plan.sizes import most_usable, number_of_sets


@pytest.mark.parametrize("least", [1, 2, 5])
@pytest.mark.parametrize("most", [None, 5, 7])
def test_small_numbers_are_counted(least: int, most: int | None) -> None:
    for events in range(9):
        wanted = sum(1 for k in range(least, (most or events) + 1) for _ in combinations(range(events), k))
        assert number_of_sets(Size(least, most), events, 10_000) == wanted
        assert number_of_sets(Size(least, most), events, 3) == min(wanted, 4)


@pytest.mark.parametrize("least", [10**6, 10**20])
@pytest.mark.parametrize("exact", [True, False])
def test_a_size_that_no_window_has_is_planned_at_once(least: int, exact: bool) -> None:
    assert most_usable(Size(least, least if exact else None), 20) >= min(least, 1 << 40)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_size_that_no_window_has_matches_nothing(backend: str) -> None:
    events = [{"id": name, "type": name[0].upper(), "ts": at} for at, name in enumerate(["a", "b1", "b2"])]
    assert list(match("PATTERN SEQ(A a, B{1000000} b) WITHIN 9", events, backend=backend)) == []
