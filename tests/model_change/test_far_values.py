"""Windows after far values and shifts of level, against least squares in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from jobs.model_change.records import Settings
from tests.model_change.test_kernel import feed

W = 10


def exact_model(x, y, *, phi=0, ridge=None):
    """Coefficients of one window by the definition, X^T S^-1 X + P, S_ab = phi^|a-b|, in fractions."""
    n, k, m = x.shape
    phi = Fraction(phi)
    rows = []
    for j in range(k):
        each = [[Fraction(float(v)) for v in (*x[t, j], y[t, j])] for t in range(n)]
        # S^-1 = B^T B with B the step to the round before, the first row times the root of 1 - phi^2 (all scaled by it).
        rows.append((1 - phi**2, each[0]))
        rows += [(Fraction(1), [b - phi * a for a, b in zip(*pair, strict=True)]) for pair in zip(each, each[1:])]
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
    """13 streams of each kind, some with the shift in the first window, and both windows that hold it and later ones."""
    rng = np.random.default_rng(KINDS.index(happens))
    largest, looked = 0.0, 0
    for _ in range(13):
        k, m = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        intercept = [0, 0, m - 1, 1][int(rng.integers(4))]
        if intercept == m - 1:
            continue
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
    assert looked > 30
    assert largest < 1e-9
