"""Windows after far values and shifts of level, against least squares in exact fractions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from chainlake.model_change.library import monitor
from chainlake.model_change.statistics.records import Settings
from tests.model_change.test_kernel import feed

pytestmark = pytest.mark.slow

W = 10


def exact_model(x, y, *, phi=0, ridge=None):
    """Coefficients of one window by the definition, X^T S^-1 X + P, S_ab = phi^|a-b|, in fractions."""
    n, k, m = x.shape
    phi = Fraction(phi)
    rows = []
    for j in range(k):
        each = [[Fraction(float(v)) for v in (*x[t, j], y[t, j])] for t in range(n)]
        # S^-1 = B^T B, B the step from the round before; the first row counts by 1 - phi^2, if all are scaled by it.
        rows.append((1 - phi**2, each[0]))
        rows += [(Fraction(1), [b - phi * a for a, b in zip(*pair, strict=True)]) for pair in pairwise(each)]
    a = [[sum(w * r[i] * r[j] for w, r in rows) for j in range(m + 1)] for i in range(m)]
    for i in range(m):
        for j in range(m):
            a[i][j] += Fraction(0 if ridge is None else float(ridge[i][j]))
    for i in range(m):
        pivot = next(row for row in range(i, m) if a[row][i])
        a[i], a[pivot] = a[pivot], a[i]
        for row in range(m):
            if row != i and a[row][i]:
                share = a[row][i] / a[i][i]
                a[row] = [v - share * u for v, u in zip(a[row], a[i], strict=True)]
    return np.array([float(a[i][m] / a[i][i]) for i in range(m)])


def stream(rng, *, k, m, intercept, slopes, noise=0.01, rounds=60):
    x = rng.uniform(0, 10, size=(rounds, k, m)).round(3)
    if intercept is not None:
        x[:, :, intercept] = 1.0
    return x, (x @ slopes + noise * rng.normal(size=(rounds, k))).round(4)


def configured(k, m, intercept, **more):
    return Settings(
        **{"k": k, "m": m, "window": W, "infinite": False, "eps": 0.5, "constraint": "residual", "local": False,
           "exact": True, "intercept": intercept, **more}
    )  # fmt: skip


def worst(config, x, y, found, rounds, *, ridge=None):
    """Largest relative difference of the slopes from the exact ones; every other window is looked at."""
    free = [i for i in range(config.m) if i != config.intercept]
    errors = []
    for t in rounds:
        rows = slice(t - config.window + 1, t + 1)
        wanted = exact_model(x[rows], y[rows], phi=config.phi or 0, ridge=ridge)
        errors.append(np.abs(found["beta"][t][free] - wanted[free]) / np.abs(wanted[free]))
    return float(np.max(errors))


#: What happens to a stream x (n, k, m), y (n, k) at round ``at``, with the size of the shift.
def of_all(x, y, at, size):
    x[at:, :, -1] += size


def of_one_node(x, y, at, size):
    x[at:, 0, -1] += size


def of_the_response(x, y, at, size):
    y[at:] += size


def once(x, y, at, size):
    x[at, 0, -1] = size


def once_in_the_response(x, y, at, size):
    y[at, 0] = size


def there_and_back(x, y, at, size):
    x[at : at + 13, :, -1] += size


def slowly(x, y, at, size):
    x[at:, :, -1] += size * np.linspace(0, 1, len(x) - at)[:, None]


def of_everything(x, y, at, size):
    x[at:, :, -2:] += size
    y[at:] -= size


KINDS = (of_all, of_one_node, of_the_response, once, once_in_the_response, there_and_back, slowly, of_everything)


@pytest.mark.parametrize("happens", KINDS, ids=lambda kind: kind.__name__)
def test_slopes_of_random_windows_are_exact_after_shifts(happens):
    """13 streams of each kind, with windows that hold the shift and later ones; some begin with it."""
    rng = np.random.default_rng(KINDS.index(happens))
    largest, looked = 0.0, 0
    for _ in range(13):
        k, m = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        intercept = int(rng.integers(min(m - 1, 2)))
        slopes = rng.choice([-5.0, 2.0, 3.0, 0.5], size=m)
        x, y = stream(rng, k=k, m=m, intercept=intercept, slopes=slopes)
        at, size = int(rng.integers(2, 30)), float(rng.choice([1e3, 1e5, 2e6, 1e9]) * rng.choice([-1, 1]))
        happens(x, y, at, size)
        x[:, :, intercept] = 1.0
        config = configured(k, m, intercept, local=bool(rng.integers(2)), phi=[None, 0.5][int(rng.integers(2))])
        _, found = feed(config, x, y, [25, 60], starts=[int(rng.integers(10, 60))])
        # Windows in which a far value of the response stands are dominated by it, and their slopes by nothing else.
        quiet = [t for t in range(W - 1, 60) if np.ptp(y[t - W + 1 : t + 1]) < 1e3 and found["counted"][t]]
        rounds = sorted({*rng.choice(quiet, size=min(4, len(quiet)), replace=False).tolist(), quiet[-1]})
        largest = max(largest, worst(config, x, y, found, rounds))
        looked += len(rounds)
    assert looked > 40
    assert largest < 1e-9


def followed(rng, happens, *, m, size, rounds=60):
    """A stream whose response follows the features through what happens to them at round 25."""
    k, intercept = int(rng.integers(1, 4)), int(rng.integers(min(m - 1, 2)))
    x = rng.uniform(0, 10, size=(rounds, k, m)).round(3)
    happens(x, np.zeros((rounds, k)), 25, size)
    x[:, :, intercept] = 1.0
    y = x @ rng.choice([-5.0, 2.0, 3.0, 0.5], size=m) + rng.choice([0, 0.01]) * rng.normal(size=(rounds, k))
    if happens is of_everything:
        y[25:] += 3 * size
    return x, y.round(4), intercept


@pytest.mark.parametrize(
    "happens", (of_all, of_one_node, once, there_and_back, of_everything), ids=lambda f: f.__name__
)
def test_slopes_are_exact_while_a_jump_is_in_the_window(happens):
    """The jump explains nearly all of the response, and what the other features explain must not drown in it."""
    rng = np.random.default_rng(20 + KINDS.index(happens))
    largest, looked = 0.0, 0
    for number in range(9):
        # Of far more than this, columns that jump together are nearly one.
        size = [1e3, 1e5, 2e6 if happens is of_everything else 1e9][number % 3] * rng.choice([-1, 1])
        x, y, intercept = followed(rng, happens, m=3 + number % 2, size=size)
        config = configured(x.shape[1], x.shape[2], intercept, local=bool(number % 2), phi=[None, 0.5][number % 2])
        _, found = feed(config, x, y, [25, 60], starts=[int(rng.integers(10, 60))])
        inside = [t for t in range(24, 36) if found["counted"][t] and np.isfinite(found["beta"][t]).all()]
        rounds = rng.choice(inside, size=min(7, len(inside)), replace=False).tolist()
        largest = max(largest, worst(config, x, y, found, rounds))
        looked += len(rounds)
    assert looked > 50
    assert largest < 1e-9


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("weight", [0.5, 1e4])
@pytest.mark.parametrize("penalised", [False, True])
def test_ridge_after_a_shift_is_exact(size, weight, penalised):
    rng = np.random.default_rng(3)
    x, y = stream(rng, k=2, m=3, intercept=0, slopes=np.array([1.0, 2.0, -3.0]))
    if penalised:
        # Beside a penalised constant level counts as size: far out two columns are too nearly one for any model.
        size = min(size, 1e6)
    of_everything(x, y, 30, size)
    ridge = np.diag([weight if penalised else 0.0, weight, 2 * weight])
    config = configured(2, 3, 0, ridge=tuple(map(tuple, ridge)))
    _, found = feed(config, x, y, [20, 40], starts=[25])
    assert worst(config, x, y, found, range(39, 60, 5), ridge=ridge) < 1e-9


@pytest.mark.parametrize("size", [1e3, 1e5])
def test_columns_that_become_nearly_one_without_a_constant_are_told_apart(size):
    rng = np.random.default_rng(4)
    x, y = stream(rng, k=2, m=2, intercept=None, slopes=np.array([2.0, -3.0]))
    of_everything(x, y, 30, size)
    config = configured(2, 2, None)
    _, found = feed(config, x, y, [20, 40], starts=[25])
    assert worst(config, x, y, found, range(39, 60, 3)) < 1e-9


@pytest.mark.parametrize("size", [1e2, 1e3])
@pytest.mark.parametrize("local", [False, True])
def test_powers_of_a_shifted_value_keep_their_coefficients(size, local):
    """1, s and s^2 far from 0 are nearly multiples of each other; the features' doubles determine them all the same."""
    rng = np.random.default_rng(5)
    s = rng.uniform(-1, 1, size=(60, 3))
    s[30:] += size
    x = np.stack([np.ones_like(s), s, s * s], axis=2)
    y = x @ np.array([1.0, 2.0, 0.5])
    config = configured(3, 3, 0, local=local)
    _, found = feed(config, x, y, [20, 40], starts=[25])
    assert worst(config, x, y, found, range(39, 60, 3)) < 1e-9


@pytest.mark.parametrize("constraint", ["paper", "residual", "onesided", "energy", "matfrac"])
@pytest.mark.parametrize("prediction", [False, True])
def test_shifts_in_any_chunks_give_the_same_bits(constraint, prediction):
    rng = np.random.default_rng(6)
    x, y = stream(rng, k=2, m=3, intercept=1, slopes=np.array([1.0, 2.0, -3.0]), rounds=160)
    x[5, 0, 0], y[70, 1] = 1e9, -1e7
    of_all(x, y, 40, 2e6)
    of_one_node(x, y, 100, -1e5)
    # The response follows a jump here, so that most of it is taken from what is summed.
    of_all(x[130:], y[130:], 0, 1e9)
    y[130:] += 1e9 * 3
    config = configured(2, 3, 1, local=True, constraint=constraint, prediction=prediction, phi=0.4)
    events, whole = feed(config, x, y, starts=[50, 120])
    for sizes in ([1] * 160, [16, 1, 30, 200], [49, 1, 1, 200], [81, 200]):
        again, pieces = feed(config, x, y, sizes, starts=[50, 120], through_json=True)
        for name, values in whole.items():
            np.testing.assert_array_equal(values, pieces[name], err_msg=name)
        assert [(e.at, e.kind, e.violators, e.max_value) for e in again] == [
            (e.at, e.kind, e.violators, e.max_value) for e in events
        ]


def test_the_share_explained_knows_no_anchors():
    """The level shifts in the middle of a day, so that sums begin anew about another centre."""
    rng = np.random.default_rng(10)
    x = rng.uniform(0, 10, size=200).round(3)
    y = (1 + 2 * x + rng.normal(size=200) + 1e4 * (np.arange(200) >= 130)).round(4)
    rows = [
        {"ts": START + timedelta(minutes=i + 61), "key": "k", "x": float(a), "y": float(b)}
        for i, (a, b) in enumerate(zip(x, y, strict=True))
    ]
    (row,) = monitor(model(), rows).metrics.to_pylist()
    counted = range(W, 200)  # the first window gives the model that the rounds are measured by
    fits = [exact_model(*windows(x, y, t)) for t in counted]
    errors = [y[t] - a - b * x[t] for t, (a, b) in zip(counted, fits, strict=True)]
    wanted = 1 - np.sum(np.square(errors)) / np.sum(np.square(y[W:] - y[W:].mean()))
    assert abs(row["r2"] - wanted) < 1e-9


def windows(x, y, t):
    """The rows of the window that ends with round ``t``, of one node with a constant."""
    at = slice(t - W + 1, t + 1)
    return np.stack([np.ones(W), x[at]], axis=1)[:, None], y[at][:, None]


START = datetime(2025, 1, 6, 23, tzinfo=UTC)


def place(row):
    """Which of the rounds it is, minutes after the first."""
    return (row["ts"] - START) // timedelta(minutes=1)


def published(x, y, **more):
    """Rows of a model of one node whose rounds are minutes."""
    rows = [
        {"ts": START + timedelta(minutes=i), "key": "k", "x": float(a), "y": float(b)}
        for i, (a, b) in enumerate(zip(x, y, strict=True))
    ]
    return monitor(model(**more), rows).changes.to_pylist()


def model(**more):
    """The definition of a model of one node."""
    return {"source": "s", "start": "2025-01-06", "nodes": ["k"], "response": "y", "features": ["x"], "eps": 0.5,
            "round": {"length": "1 min"}, "window": {"sliding": W}, "detector": "exact", **more}  # fmt: skip


def test_a_far_value_in_the_first_window_does_not_hide_a_change():
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 10, size=120).round(3)
    y = (1 + np.where(np.arange(120) < 60, 2, 5) * x + rng.uniform(-0.01, 0.01, size=120)).round(4)
    x[5], y[5] = 1e9, 7.0
    rows = published(x, y)
    assert {row["kind"] for row in rows} == {"init", "change"}
    for row in rows:
        at = slice(place(row) - W + 1, place(row) + 1)
        wanted = exact_model(np.stack([np.ones(W), x[at]], axis=1)[:, None], y[at][:, None])
        np.testing.assert_allclose([b["value"] for b in row["beta_after"]], wanted, rtol=1e-9)
    assert abs(rows[-1]["beta_after"][1]["value"] - 5) < 0.5 and place(rows[-1]) > 60


def test_a_level_shift_hides_no_change():
    rng = np.random.default_rng(8)
    spread = rng.uniform(0, 10, size=120).round(3)
    y = (1 + np.where(np.arange(120) < 80, 2, 5) * spread + rng.uniform(-0.01, 0.01, size=120)).round(4)
    rows = published(spread + 2e6 * (np.arange(120) >= 30), y)
    assert {row["kind"] for row in rows} == {"init", "change"}
    assert abs(rows[-1]["beta_after"][1]["value"] - 5) < 0.01


def test_a_stuck_value_is_unidentifiable_and_comes_back():
    rng = np.random.default_rng(9)
    x = rng.uniform(0, 10, size=90) + 0.1
    x[30:60] = 0.1 + 0.2
    x[40] = 0.3  # the same number but for its last bit
    kinds = [(row["kind"], place(row)) for row in published(x, 2 * x, eps=1e-3)]
    assert kinds == [("init", 9), ("unidentifiable", 39), ("recovered", 60)]
