"""Models of blocks of rounds and their sums, against LAPACK one by one and against plain sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chainlake.model_change.statistics.basis import Basis, Measure
from chainlake.model_change.statistics.statistics import Moments, identifiable, pooled, solve


def matrices(seed, n, m, *, alike):
    """Sums of products of rows whose columns have very different sizes, and whose last two columns are nearly one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, m + 3, m)) * 10 ** rng.uniform(-4, 4, size=m)
    if m > 1:
        x[:, :, -1] = x[:, :, 0] + alike * x[:, :, -1] / np.abs(x[:, :, -1]).max() * np.abs(x[:, :, 0]).max()
    return np.einsum("nri,nrj->nij", x, x), np.einsum("nri,nr->ni", x, rng.normal(size=(n, m + 3)))


@pytest.mark.parametrize("m", range(1, 7))
@pytest.mark.parametrize("alike", [1.0, 1e-3, 1e-8])
def test_models_are_those_of_lapack_and_know_no_block(m, alike):
    a, c = matrices(m, 40, m, alike=alike)
    found = solve(a, c)
    scale = np.sqrt(np.einsum("nii->ni", a))
    unit = a / (scale[:, :, None] * scale[:, None, :])
    values = np.linalg.eigvalsh(unit)
    good = values[:, 0] >= 1e-12 * values[:, -1]
    assert np.array_equal(identifiable(a), good) and np.array_equal(np.isfinite(found[:, 0]), good)
    assert good.all() or alike < 1e-3
    for i in np.flatnonzero(good):
        true = np.linalg.solve(unit[i], c[i] / scale[i])
        allowed = 1e-13 * values[i, -1] / values[i, 0] * np.abs(true).max()
        np.testing.assert_allclose(found[i] * scale[i], true, rtol=0, atol=allowed)
    for size in (1, 7):
        pieces = [solve(a[i : i + size], c[i : i + size]) for i in range(0, 40, size)]
        assert np.array_equal(np.concatenate(pieces), found, equal_nan=True)


def test_what_determines_no_model_is_not_a_number_and_spoils_no_other():
    a, c = matrices(0, 6, 3, alike=1.0)
    alone = solve(a[5:], c[5:])
    a[0], a[1, 0, 0], a[2], a[3, 1, 1], c[4, 0] = 0.0, np.nan, -a[2], np.inf, np.nan
    with np.errstate(all="raise"):
        found = solve(a[[0, 1, 2, 3, 5]], c[[0, 1, 2, 3, 5]])
    assert np.isnan(found[:4]).all() and np.array_equal(found[4], alone[0])
    assert np.isnan(solve(a[4:5], c[4:5])).any()


def test_an_indefinite_matrix_with_equal_signs_on_its_diagonal_is_not_identifiable():
    a = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    assert not identifiable(a)[0] and np.isnan(solve(a, np.ones((1, 2)))).all()


@pytest.mark.parametrize("phi", [None, 0.6])
@pytest.mark.parametrize("window", [5, None])
@pytest.mark.parametrize("k", [1, 4])
def test_total_changes_are_the_sums_of_the_nodes(phi, window, k):
    rng = np.random.default_rng(3)
    x, y, gap = rng.normal(size=(16, k, 3)), rng.normal(size=(16, k)), rng.integers(1, 3, size=16)
    moments = Moments(phi)
    a, c = moments.changes(x, y, gap, window, 10)
    total_a, total_c = moments.total_changes(x, y, gap, window, 10)
    assert total_a.shape == (10, 1, 3, 3) and total_c.shape == (10, 1, 3)
    np.testing.assert_allclose(total_a[:, 0], pooled(a), atol=1e-13)
    np.testing.assert_allclose(total_c[:, 0], pooled(c), atol=1e-13)
    again = moments.total_changes(x[4:], y[4:], gap[4:], window, 6)
    assert np.array_equal(again[0], total_a[4:]) and np.array_equal(again[1], total_c[4:])


@pytest.mark.parametrize("intercept", [None, 0, 2])
@pytest.mark.parametrize("prediction", [False, True])
@pytest.mark.parametrize("alike", [1.0, 1e-4])
@pytest.mark.parametrize("reduced", [False, True])
def test_maps_between_coordinates_agree_with_each_other(intercept, prediction, alike, reduced):
    """A model predicts the same in all of them, and the matrices of a basis say what its functions do."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(30, 2, 3)) + 5
    x[:, :, 1] = x[:, :, 1 if intercept == 0 else 0] + alike * x[:, :, 1]
    if intercept is not None:
        x[:, :, intercept] = 1.0
    y, gap, moments = rng.normal(size=(30, 2)) + 7, np.ones(30, np.int64), Moments(None)
    first, now = (
        Basis.from_window((part, y[: len(part)], gap[: len(part)]), moments=moments, intercept=intercept, ridge=None)[0]
        for part in (x[:20], 3 * x if intercept is None else x)
    )
    a = pooled(moments.dense(first.rows(x[:20]), first.response(x[:20], y[:20]), gap[:20])[0][None])[0]
    measure = Measure.from_window(first, a, 40) if prediction else None
    slopes = np.array([0.0 if intercept is not None else 3.0, -2.0, 5.0]) if reduced else None
    now = replace(now, measure=measure, slopes=slopes)
    beta = rng.normal(size=(7, 3))
    kept = beta.copy()
    z, monitored, original = now.rows(x), now.monitored(beta), now.original(beta)
    # What the model predicts of what is left of the response, and what was taken from it.
    predicted = z @ beta.T + (y - now.response(x, y))[..., None]
    np.testing.assert_allclose(x @ original.T, predicted, rtol=1e-9, atol=1e-9)
    rows = x.reshape(-1, 3) if measure is None else z.reshape(-1, 3) @ now.row_map.T
    np.testing.assert_allclose(rows @ monitored.T, predicted.reshape(-1, 7), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(z @ now.feature_map.T, x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(monitored, (beta + now.constant) @ now.beta_map.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(z @ first.seen_from(now).T, first.rows(x), rtol=1e-8, atol=1e-8)
    p = np.diag([1.0, 2.0, 3.0])
    inside, change = now.ridge(p), original - now.original(np.zeros((1, 3)))
    np.testing.assert_allclose(
        np.einsum("ni,ij,nj->n", beta, inside, beta), np.einsum("ni,ij,nj->n", change, p, change), rtol=1e-8
    )
    if measure is not None:
        np.testing.assert_allclose(measure.original(monitored, intercept), original, rtol=1e-8, atol=1e-8)
        rms = np.sqrt(np.mean((x[:20].reshape(-1, 3) @ (original[1:] - original[:-1]).T) ** 2, axis=0))
        np.testing.assert_allclose(np.linalg.norm(monitored[1:] - monitored[:-1], axis=1), rms, rtol=1e-8)
    assert np.array_equal(beta, kept)


@pytest.mark.parametrize("power", [-140, -150, -156, -160, -200, -320])
def test_squares_at_the_end_of_the_range_give_a_right_model_or_none(power):
    x = np.array([1.0, 3.0, 4.0, 6.0]) * 10.0**power
    (slope,) = solve(np.array([[[x @ x]]]), np.array([[x @ (7.0 * x)]]))[0]
    assert np.isnan(slope) or abs(slope - 7.0) < 1e-9
    assert np.isfinite(slope) == (power >= -150)
