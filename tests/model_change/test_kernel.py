"""The blocked kernel against a plain loop, and against itself in other chunks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.model_change.kernel import Kernel
from chainlake.model_change.statistics import state as states
from chainlake.model_change.statistics.records import Settings
from chainlake.model_change.statistics.statistics import Moments, identifiable
from tests.model_change import plain_loop

pytestmark = pytest.mark.slow

BOUNDS = ("paper", "residual", "onesided")
ALL = (*BOUNDS, "energy", "matfrac")


def stream(seed, rounds, k, m, *, drift=1.0, noise=0.3):
    """Rounds with an intercept and a model that changes half way."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, k, m))
    x[:, :, 0] = 1.0
    beta = rng.normal(size=(1, 1, m)) + drift * (np.arange(rounds) > rounds * 0.6)[:, None, None]
    return x, (x * beta).sum(axis=2) + noise * rng.normal(size=(rounds, k))


def setup(k, m, window, eps, constraint, **more):
    return Settings(k=k, m=m, window=window, infinite=more.pop("infinite", False), eps=eps, constraint=constraint,
                    local=more.pop("local", True), exact=more.pop("exact", True),
                    **{"intercept": 0, **more})  # fmt: skip


def feed(config, x, y, sizes=None, *, starts=(), through_json=False):
    """Events with absolute rounds, and the concatenated per-round arrays, over chunks of the given sizes."""
    kernel, events, traces, at = Kernel(config), [], [], 0
    for size in sizes or [len(x)]:
        rows = slice(at, at + size)
        anchor = np.isin(np.arange(at, at + len(x[rows])), starts)
        trace = kernel.feed(x[rows], y[rows], np.ones(len(x[rows]), np.int64), anchor)
        events += [dataclasses.replace(event, at=event.at + at) for event in trace.events]
        traces.append(trace)
        at += size
        if through_json:
            kernel = Kernel(config, states.loads(states.dumps({"kernel": kernel.state}))["kernel"])
    names = ("counted", "beta", "error_local", "error_exact", "sse")
    return events, {name: np.concatenate([getattr(t, name) for t in traces]) for name in names}


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), k=st.integers(1, 4), m=st.integers(1, 4), window=st.integers(8, 20),
    eps=st.floats(0.1, 2), constraint=st.sampled_from(ALL), infinite=st.booleans(), data=st.data(),
)  # fmt: skip
def test_equals_the_plain_loop_in_any_chunks(seed, k, m, window, eps, constraint, infinite, data):
    x, y = stream(seed, 120, k, m)
    sizes = data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=12).map(lambda s: [*s, 120]))
    starts = sorted(data.draw(st.sets(st.integers(0, 119), max_size=3)))
    events, found = feed(setup(k, m, window, eps, constraint, infinite=infinite), x, y, sizes, starts=starts)
    syncs, changes, errors = plain_loop.run(x, y, window, infinite, eps, constraint)
    mine = [e for e in events if e.kind in ("sync", "recovered", "unidentifiable")]
    assert [(e.at, e.violators) for e in mine] == [(t, v) for t, v, _ in syncs]
    for event, (_, _, beta) in zip(mine, syncs, strict=True):
        if beta is not None:
            np.testing.assert_allclose(event.beta_after, beta, rtol=1e-7, atol=1e-8)
    exact = [e for e in events if e.kind == "change"]
    assert [e.at for e in exact] == [t for t, _ in changes]
    for event, (_, beta) in zip(exact, changes, strict=True):
        np.testing.assert_allclose(event.beta_after, beta, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found["error_local"][-len(errors) :], errors, rtol=1e-6, atol=1e-8)


def test_events_come_by_round_however_the_rounds_are_cut():
    """Cuts at, before and after every event and every day's start, and some between: where the order could break."""
    x, y = stream(0, 260, 1, 2)
    config, starts = setup(1, 2, 15, 0.4, "paper"), (0, 60, 130, 210)
    whole, _ = feed(config, x, y, starts=starts)
    assert {e.kind for e in whole} >= {"sync", "change"}
    at = {e.at for e in whole if e.at > 40} | set(starts)
    cuts = {t + step for t in at for step in (0, 1)} | set(range(5, 260, 37))
    for cut in sorted(cuts - {0})[:50]:
        pieces, _ = feed(config, x, y, [cut, 260], starts=starts)
        assert [(e.at, e.kind) for e in pieces] == [(e.at, e.kind) for e in whole]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), constraint=st.sampled_from(BOUNDS), infinite=st.booleans(),
    phi=st.sampled_from([None, 0.6]), prediction=st.booleans(), local=st.booleans(), data=st.data(),
)  # fmt: skip
def test_every_chunking_gives_the_same_bits(seed, constraint, infinite, phi, prediction, local, data):
    k, m = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    x, y = stream(seed, 300, k, m)
    config = setup(k, m, 15, 0.4, constraint, infinite=infinite, phi=phi, prediction=prediction, local=local)
    starts = (0, 100, 133, 240)
    sizes = data.draw(st.lists(st.integers(1, 200), min_size=1, max_size=12).map(lambda s: [*s, 300]))
    events, found = feed(config, x, y, starts=starts)
    again, pieces = feed(config, x, y, sizes, starts=starts, through_json=True)
    for name, values in found.items():
        np.testing.assert_array_equal(values, pieces[name], err_msg=name)
    assert len(events) == len(again)
    for one, two in zip(events, again, strict=True):
        for name, value in vars(one).items():
            np.testing.assert_array_equal(value, getattr(two, name), err_msg=name)


def test_exact_coefficients_equal_least_squares_in_every_window():
    x, y = stream(3, 400, 3, 4)
    _, found = feed(setup(3, 4, 25, 0.5, "residual", local=False), x, y, [100] * 4, starts=(150, 300))
    for t in range(25, 400):
        rows = slice(t - 24, t + 1)
        wanted = np.linalg.lstsq(x[rows].reshape(-1, 4), y[rows].reshape(-1), rcond=None)[0]
        np.testing.assert_allclose(found["beta"][t], wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("intercept", [0, 2])
def test_large_means_cost_no_digits(intercept):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(20_000, 2, 3)) + 1e6
    x[:, :, intercept] = 1.0
    slopes = np.array([1.5, -0.7, 2.0])
    y = (x * slopes).sum(axis=2) + 1e6
    config = setup(2, 3, 300, 0.5, "residual", intercept=intercept, local=False)
    events, found = feed(config, x, y, [4_000] * 5, starts=range(0, 20_000, 1440))
    free = [i for i in range(3) if i != intercept]
    np.testing.assert_allclose(found["beta"][300:, free], np.broadcast_to(slopes[free], (19_700, 2)), rtol=1e-8)
    assert events[0].at == 299 and np.nanmax(np.abs(found["sse"])) < 1e-6


def test_prediction_metric_is_the_rms_distance_of_predictions():
    x, y = stream(8, 200, 3, 3, drift=2.0)
    events, found = feed(setup(3, 3, 30, 0.5, "residual", prediction=True), x, y)
    reference = x[:30].reshape(-1, 3)
    changes = [e for e in events if e.kind == "change"]
    assert changes
    for event in changes:
        rms = np.sqrt(np.mean((reference @ (event.beta_after - event.beta_before)) ** 2))
        np.testing.assert_allclose(event.error_before, rms, rtol=1e-8)


def test_ridge_with_and_without_a_penalised_intercept():
    x, y = stream(9, 60, 2, 3)
    y += 50
    for free in (True, False):
        p = np.diag([0.0 if free else 2.0, 2.0, 2.0])
        _, found = feed(setup(2, 3, 20, 0.5, "residual", ridge=tuple(map(tuple, p))), x, y)
        rows = slice(40, 60)
        a = x[rows].reshape(-1, 3).T @ x[rows].reshape(-1, 3) + p
        wanted = np.linalg.solve(a, x[rows].reshape(-1, 3).T @ y[rows].reshape(-1))
        np.testing.assert_allclose(found["beta"][-1], wanted, rtol=1e-9)


def test_error_after_resolution_never_exceeds_eps_in_200_random_configurations():
    rng = np.random.default_rng(17)
    silent = 0
    for seed in range(200):
        k, m, window = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.integers(5, 30))
        eps = float(10 ** rng.uniform(-1, 0.7))
        x, y = stream(seed, 110, k, m, drift=float(rng.choice([0.0, 1.0, 5.0])), noise=float(rng.choice([0.05, 1.0])))
        x[:, :, 1:] *= 10 ** rng.uniform(-1, 1, size=m - 1)
        more = {"infinite": bool(rng.random() < 0.4), "phi": [None, 0.5][int(rng.integers(2))],
                "prediction": bool(rng.random() < 0.3), "exact": bool(rng.random() < 0.5),
                "ridge": tuple(map(tuple, np.eye(m))) if rng.random() < 0.2 else None}  # fmt: skip
        config = setup(k, m, max(window, m), eps, ALL[seed % 5], **more)
        events, found = feed(config, x, y, [50, 60], starts=(50,))
        for name in ("error_local", "error_exact") if config.exact else ("error_local",):
            error = found[name][found["counted"]]
            assert len(error) and np.nanmax(error) <= eps * (1 + 1e-9), (seed, config)
        silent += found["counted"].sum() - sum(e.kind != "change" for e in events)
    assert silent > 5_000  # the bound was tested where nobody spoke, not by everybody speaking always


def test_eps_as_a_share_is_frozen_from_the_first_window():
    x, y = stream(1, 100, 2, 2)
    kernel = Kernel(setup(2, 2, 20, 0.1, "residual", eps_is_share=True))
    first = kernel.feed(x[:50], y[:50], np.ones(50, np.int64), np.zeros(50, bool)).events[0]
    eps = kernel.state.eps
    np.testing.assert_allclose(eps, 0.1 * np.linalg.norm(first.beta_after), rtol=1e-12)
    kernel.reset()
    kernel.feed(x[50:], 3 * y[50:], np.ones(50, np.int64), np.zeros(50, bool))
    assert kernel.state.eps == eps


def test_gls_bridges_gaps():
    """phi^g across a gap of g rounds, against the dense inverse of the covariance of the rounds that exist."""
    rng = np.random.default_rng(2)
    x, y, phi = rng.normal(size=(9, 1, 2)), rng.normal(size=(9, 1)), 0.7
    gap = np.array([1, 1, 3, 1, 2, 1, 1, 4, 1])
    at = np.cumsum(gap)
    moments = Moments(phi)
    a, c = moments.dense(x[:6], y[:6], gap[:6])
    steps = moments.changes(x, y, gap, 6, 3)
    for i in range(4):
        rows = slice(i, i + 6)
        s = np.linalg.inv(phi ** np.abs(at[rows, None] - at[None, rows]))
        np.testing.assert_allclose(a[0], (1 - phi**2) * x[rows, 0].T @ s @ x[rows, 0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(c[0], (1 - phi**2) * x[rows, 0].T @ s @ y[rows, 0], rtol=1e-10, atol=1e-12)
        if i < 3:
            a, c = a + steps[0][i], c + steps[1][i]


def test_fitted_phi_is_near_the_true_one():
    rng = np.random.default_rng(4)
    x = np.ones((2000, 2, 2))
    x[:, :, 1] = rng.normal(size=(2000, 2))
    e = np.zeros((2000, 2))
    for t in range(1, 2000):
        e[t] = 0.8 * e[t - 1] + rng.normal(size=2)
    kernel = Kernel(setup(2, 2, 1500, 0.5, "residual", phi="fit"))
    kernel.feed(x, x.sum(axis=2) + e, np.ones(2000, np.int64), np.zeros(2000, bool))
    assert 0.75 < kernel.state.phi < 0.85


def test_identifiable_agrees_with_the_eigenvalues():
    rng = np.random.default_rng(6)
    for _ in range(300):
        m = int(rng.integers(1, 7))
        rows = rng.normal(size=(m + 1, m)) * 10 ** rng.uniform(-4, 4, size=m)
        if m > 1:
            rows[:, 1] = rows[:, 0] * 3 + rows[:, 1] * 10 ** rng.uniform(-9, 0)
        a = rows.T @ rows
        q = np.sqrt(np.diag(a))
        values = np.linalg.eigvalsh(a / np.outer(q, q))
        if not 1e-13 < abs(values[0]) / values[-1] < 1e-11:
            assert identifiable(a[None])[0] == (values[0] / values[-1] >= 1e-12)
    assert not identifiable(np.array([[[1.0, 0.0], [0.0, 0.0]], [[np.nan, 0], [0, 1]]])).any()


def test_an_unidentifiable_start_waits_and_a_constant_feature_never_begins():
    x, y = stream(2, 60, 1, 2)
    x[:25, 0, 1] = 3.0
    events, _ = feed(setup(1, 2, 10, 0.5, "residual"), x, y)
    assert events[0].kind == "init" and events[0].at == 25
    assert events == [] or all(e.at >= 25 for e in events)
    x[:, 0, 1] = 3.0
    assert feed(setup(1, 2, 10, 0.5, "residual"), x, y)[0] == []


def test_exact_alone_reports_unidentifiable_stretches_once():
    x, y = stream(2, 90, 1, 2, noise=0.01, drift=0.0)
    x[40:60, 0, 1] = x[39, 0, 1]
    events, _ = feed(setup(1, 2, 10, 0.5, "residual", local=False), x, y, [45, 5, 40])
    found = [(e.kind, e.at) for e in events if e.kind != "change"]
    assert found == [("init", 9), ("unidentifiable", 48), ("recovered", 60)]


@pytest.mark.parametrize("phi", [None, 0.6])
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("wild", [3e3, 1e9, 1e60])
def test_a_wild_value_leaves_nothing_behind_when_it_leaves(wild, local, phi):
    x, y = stream(7, 200, 2, 2)
    x[40, 0, 1], x[47, 1, 1], y[90, 1], y[130, 0] = wild, -wild, wild, -wild / 7
    config = setup(2, 2, 20, 0.5, "residual", local=local, phi=phi)
    events, found = feed(config, x, y)
    quiet = [t for t in range(20, 200) if not any(t - 20 < at <= t for at in (40, 47, 90, 130))]
    assert len(quiet) > 90
    inverse = np.linalg.inv((phi or 0.0) ** np.abs(np.subtract.outer(np.arange(20), np.arange(20))))
    for t in quiet:
        rows = slice(t - 19, t + 1)
        a, c = (sum(x[rows, j].T @ inverse @ v[rows, j] for j in range(2)) for v in (x, y))
        np.testing.assert_allclose(found["beta"][t], np.linalg.solve(a, c), rtol=1e-8, atol=1e-9)
    # Cut anywhere, the same bits.
    for cut in (41, 60, 61, 67, 68, 111, 150):
        again, pieces = feed(config, x, y, [cut, 200], through_json=True)
        np.testing.assert_array_equal(found["beta"], pieces["beta"])
        assert [(e.at, e.kind, e.violators) for e in again] == [(e.at, e.kind, e.violators) for e in events]


def test_a_value_that_equals_eps_is_marked_as_a_near_tie():
    """The case ``equality`` of tests/cases: 0.5 against eps 0.5 at round 4, 0.625 at round 5, then far below."""
    y = np.array([0, 0, 0, 0, 2, 0.5, 0])[:, None]
    kernel = Kernel(setup(1, 1, 4, 0.5, "paper", intercept=None))
    trace = kernel.feed(np.ones((7, 1, 1)), y, np.ones(7, np.int64), np.zeros(7, bool))
    assert trace.near_tie.tolist() == [False] * 4 + [True, False, False] and trace.synced.tolist()[4:6] == [False, True]
