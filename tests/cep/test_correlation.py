"""``Corr`` of lists of any size and level, against the definition in fractions."""

from __future__ import annotations

import numpy as np
import pytest

from chainlake.cep.values.values import Lists, Value, correlation
from tests.cep.brute_force import pearson


def corr(x, y):
    """``Corr`` of the rows of two matrices."""
    rows = np.arange(len(x))
    return correlation(*(Value(Lists(v, np.full(len(v), v.shape[1]), rows), None, "list") for v in (x, y))).values


@pytest.mark.parametrize("scale", [1.0, 1e160, 1e-160, 1.2e308, 1e-300, 5e-310])
@pytest.mark.parametrize("level", [0.0, 1.0, 1e3, -1e9])
def test_correlations_are_those_of_the_definition(scale, level):
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-0.4, 0.4, size=(2, 40, 5))
    y[::3] = 0.5 * x[::3] + 1e-6 * y[::3]
    x = (x + level) * min(scale, scale / max(abs(level), 1.0))
    found = corr(x, y)
    wanted = [pearson(*row) for row in zip(x.tolist(), y.tolist(), strict=True)]
    # Where the level leaves nothing of a row's spread there is no correlation.
    assert np.isnan(found).tolist() == [value is None for value in wanted]
    np.testing.assert_allclose(found, np.array(wanted, dtype=float), rtol=1e-11, atol=1e-14)


def test_no_correlation_is_beyond_one():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(20_000, 3)) + 1e4
    for share in (3.7, -0.1):
        found = corr(x, share * x)
        assert np.abs(found).max() <= 1.0 and np.abs(found).min() > 1 - 1e-12


def test_both_ends_of_the_range_in_one_row():
    found = corr(np.array([[1.7e308, -1.7e308, 1.7e308]]), np.array([[5e-324, 0.0, 5e-324]]))
    assert found.tolist() == [1.0]


def test_a_row_is_the_same_alone_and_among_others():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 300, 17)) * 10.0 ** rng.integers(-150, 150, size=(2, 300, 1))
    alone = [corr(x[i : i + 1], y[i : i + 1])[0] for i in range(len(x))]
    assert np.array_equal(corr(x, y), alone)
