"""Sorted blocks against a plain sort, where values leave no room for places and where they are no numbers."""

from __future__ import annotations

import numpy as np
import pytest

from chainlake.cep.search.compiled.lists.sorted_blocks import sorted_blocks

ULP = np.nextafter(1.0, 2.0)
CASES = {
    "special": np.array([1.0, np.nan, -np.inf, 0.0, -0.0, np.inf, -np.nan, -1.0, 5e-324, -5e-324, 1e308, np.nan]),
    "equal but for the lowest bits": np.array([ULP, 1.0, -ULP, -1.0, np.nextafter(ULP, 2.0), ULP, 1.0, 0.5, ULP]),
    "equal": np.full(9, 7.25),
    "decimals": np.round(np.random.default_rng(1).normal(size=300), 2),
    "whole": np.random.default_rng(2).integers(-50, 50, 300),
    "whole, far apart": np.array([2**63 - 1, -(2**63), 0, -1, 2**62, -(2**62), 5, 5, 4]),
    "whole, beyond doubles": np.array([2**53 + 1, 2**53, 2**53 + 2, 2**53 + 1, -(2**53) - 1, 0, 1, 2]),
    "short": np.array([2, 1], np.int32),
    "none": np.zeros(0),
}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shift", [1, 3, 5])
@pytest.mark.parametrize("name", CASES)
def test_blocks_are_those_of_a_plain_sort(name: str, shift: int, descending: bool) -> None:
    values = CASES[name]
    found, places = sorted_blocks(values, shift, descending)
    assert sorted(places.tolist()) == list(range(len(values)))
    np.testing.assert_array_equal(found, values[places])
    for start in range(0, len(values), 1 << shift):
        part = slice(start, start + (1 << shift))
        assert set(places[part].tolist()) == set(range(start, min(start + (1 << shift), len(values))))
        wanted = sorted(values[part].tolist(), key=lambda x: (x != x, (-x if descending else x) if x == x else 0))
        np.testing.assert_array_equal(found[part], wanted)
