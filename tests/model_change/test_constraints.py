"""The local tests: inclusion, convexity, and soundness at the boundary (docs/monitors.md#local-tests)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.model_change.detectors.constraints import EVALUATORS, Reference, clear_cut, violates
from chainlake.model_change.statistics.basis import Basis
from chainlake.model_change.statistics.statistics import norm, solve
from tests.model_change import plain_loop

pytestmark = pytest.mark.slow

EPS = 0.7


def problem(seed, *, centred=True):
    """A reference in raw coordinates and the same in internal ones, with k drifts in both."""
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    rows = rng.normal(size=(m + 5, m)) * 10 ** rng.uniform(-1, 1)
    rows[:, 0] = 1.0
    ahat, beta = rows.T @ rows, rng.normal(size=m)
    d_a = np.array([(r + r.T) for r in rng.normal(size=(k, m, m)) * 10 ** rng.uniform(-1.5, 1)])
    d_c = np.array([a @ beta for a in d_a]) + rng.normal(size=(k, m)) * 10 ** rng.uniform(-1.5, 1)
    centre = np.where(np.arange(m) == 0, 0.0, rng.normal(size=m) * 3) if centred else np.zeros(m)
    basis = Basis(centre, float(rng.normal()) if centred else 0.0, None, 0)
    r = np.linalg.inv(basis.feature_map)
    inner = Reference(r @ ahat @ r.T, np.linalg.solve(r.T, beta) - basis.constant, beta, basis, basis)
    in_a = np.array([r @ a @ r.T for a in d_a])
    in_c = np.array([r @ c for c in d_c]) - np.matmul(in_a, basis.constant[:, None])[:, :, 0]
    return ahat, beta, d_a, d_c, inner, in_a, in_c


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(EVALUATORS)))
def test_values_in_internal_coordinates_are_those_of_the_definition(seed, name):
    ahat, beta, d_a, d_c, inner, in_a, in_c = problem(seed)
    value, size = EVALUATORS[name](inner, in_a, in_c, EPS)
    for j in range(len(d_a)):
        wanted = plain_loop.value_of(name, ahat, beta, d_a[j], d_c[j], EPS)
        np.testing.assert_allclose([value[j], size[j]], wanted, rtol=1e-7, atol=1e-9)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_onesided_is_below_residual_is_below_paper(seed):
    _, _, _, _, inner, in_a, in_c = problem(seed)
    values = [EVALUATORS[name](inner, in_a, in_c, EPS)[0] for name in ("onesided", "residual", "paper")]
    assert np.all(values[0] <= values[1] * (1 + 1e-9)) and np.all(values[1] <= values[2] * (1 + 1e-9))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(EVALUATORS)))
def test_silence_of_all_nodes_bounds_the_pooled_error(seed, name):
    """Every node is put on the boundary of its set; the pooled model stays within eps."""
    _, _, _, _, inner, in_a, in_c = problem(seed)
    lo, hi = np.zeros(len(in_a)), np.full(len(in_a), 1e3)
    for _ in range(45):
        mid = (lo + hi) / 2
        loud = violates(*EVALUATORS[name](inner, mid[:, None, None] * in_a, mid[:, None] * in_c, EPS), EPS)
        lo, hi = np.where(loud, lo, mid), np.where(loud, mid, hi)
    scale = lo
    d_a, d_c = scale[:, None, None] * in_a, scale[:, None] * in_c
    assert not violates(*EVALUATORS[name](inner, d_a, d_c, EPS), EPS).any()
    beta = solve((inner.a + d_a.mean(axis=0))[None], (inner.a @ inner.beta + d_c.mean(axis=0))[None])
    error = norm(inner.basis.monitored(beta) - inner.monitored)[0]
    assert error <= EPS * (1 + 1e-6)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6), name=st.sampled_from(["paper", "residual", "onesided", "energy"]), share=st.floats(0, 1)
)  # fmt: skip
def test_values_are_convex(seed, name, share):
    _, _, _, _, inner, in_a, in_c = problem(seed)
    ends = EVALUATORS[name](inner, in_a[[0, -1]], in_c[[0, -1]], EPS)[0]
    middle = [share * v[[0]] + (1 - share) * v[[-1]] for v in (in_a, in_c)]
    room = 1e-9 * (1 + np.abs(ends).max())
    assert EVALUATORS[name](inner, *middle, EPS)[0][0] <= share * ends[0] + (1 - share) * ends[1] + room


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(["paper", "residual", "onesided"]), eps=st.floats(0.01, 30))
def test_cheap_bounds_never_contradict_the_exact_test(seed, name, eps):
    _, _, _, _, inner, in_a, in_c = problem(seed)
    fine, bad = clear_cut(name, inner, in_a, in_c, eps)
    exact = violates(*EVALUATORS[name](inner, in_a, in_c, eps), eps)
    assert not np.any(fine & exact) and not np.any(bad & ~exact)


def test_cheap_bounds_decide_something():
    _, _, _, _, inner, in_a, in_c = problem(1)
    assert clear_cut("residual", inner, in_a * 1e-6, in_c * 1e-6, EPS)[0].all()
    assert clear_cut("residual", inner, in_a * 1e6, in_c * 1e6, EPS)[1].all()


@pytest.mark.parametrize(
    ("value", "size", "wanted"),
    [
        (0.5, 0.2, False),
        (0.5 * (1 + 1e-10), 0.2, False),
        (0.5 * (1 + 1e-8), 0.2, True),
        (0.5, 1.0, True),
        (np.nan, 0, True),
    ],
)
def test_the_violation_rule(value, size, wanted):
    assert violates(np.array([value]), np.array([size]), 0.5)[0] == wanted
