"""Where times lie among others: the pass over both gives what counting gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainlake.cep.search.compiled.lists.merge import FEW, first_positions

TIMES = st.lists(st.integers(-20, 20), max_size=40).map(sorted)


def counted(wanted: list[int], shift: int, ts: list[int]) -> list[int]:
    """By the definition."""
    return [sum(t < x + shift for t in ts) for x in wanted]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The passes are compiled before any example, whose time is watched."""
    first_positions([(np.arange(1000), 0, np.arange(1000))])


@pytest.mark.slow
@given(TIMES, st.integers(-25, 25), TIMES)
def test_few_times_with_ties(wanted: list[int], shift: int, ts: list[int]) -> None:
    (found,) = first_positions([(np.array(wanted, np.int64), shift, np.array(ts, np.int64))])
    assert found.dtype == np.int32
    assert found.tolist() == counted(wanted, shift, ts)


@pytest.mark.parametrize(
    "sizes",
    [(3000, 2000), (3000, 40), (700, 3000), (40, 3000), (40, 40 * FEW + 1), (5, 1), (1, 5), (0, 9), (9, 0)],
)
def test_many_against_few_in_crowds_and_gaps(sizes: tuple[int, int]) -> None:
    draw = np.random.default_rng(sum(sizes))
    for spread in (30, 10**15):
        # Half of the times within a tenth of the stretch: one lane passes over far more than its neighbours.
        wanted, ts = (
            np.sort(np.where(draw.random(n) < 0.5, draw.integers(0, spread, n), draw.integers(0, spread // 10, n)))
            for n in sizes
        )
        searches = [(wanted, shift, ts) for shift in (-spread // 3, 0, 1, spread // 3)]
        searches += [(ts, shift, wanted) for _, shift, _ in searches]
        for (one, shift, others), found in zip(searches, first_positions(searches), strict=True):
            assert found.tolist() == np.searchsorted(others, one + shift, "left").tolist()
