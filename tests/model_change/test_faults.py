"""Latent faults: the sign test by its definition, windows that slide, sketches, and zones of the variance."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.model_change.faults.sign import Scores, bound, directions, r_squared, rolled, sketch, standardised
from chainlake.model_change.faults.variance import Normaliser, inside, tangent
from chainlake.model_change.library import monitor
from chainlake.schemas.models import FAULT_SCORES, METRICS
from tests.model_change.refusals import refused

START = datetime(2025, 3, 1, tzinfo=UTC)


def plain_directions(x: np.ndarray) -> np.ndarray:
    """The mean unit vector from every other machine, pair by pair."""
    found = np.zeros_like(x)
    for t, points in enumerate(x):
        for m in range(len(points)):
            for other in range(len(points)):
                off = points[m] - points[other]
                length = math.sqrt(sum(v * v for v in off))
                if m != other and length > 0:
                    found[t, m] += off / length / (len(points) - 1)
    return found


@pytest.mark.parametrize("place", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("close", [0.0, 1e-9, 1e-4])
def test_directions_are_those_of_all_pairs_however_close_they_are(place: float, close: float) -> None:
    """Machines 0 and 1 coincide, or nearly; machine 4 is far away from all."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5, 6, 3))
    x[:, 1] = x[:, 0] + close * rng.normal(size=(5, 3))
    x[:, 4] += 1e4
    x += place
    np.testing.assert_allclose(directions(x), plain_directions(x), atol=1e-9)


def test_all_machines_alike_point_nowhere() -> None:
    x = np.broadcast_to(np.arange(12.0).reshape(4, 1, 3), (4, 5, 3))
    assert (directions(x) == 0).all() and (standardised(np.full((4, 5, 2), 0.1)) == 0).all()


def test_the_bound_is_that_of_the_paper() -> None:
    """260 machines and 288 rounds: alpha = .01 takes gamma = .2987 or more."""
    assert bound(np.array([0.2986]), 260, 288)[0] > 0.01 > bound(np.array([0.2988]), 260, 288)[0]


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 30), t=st.integers(1, 4))
def test_a_window_slides_by_what_enters_and_what_leaves(seed: int, n: int, t: int) -> None:
    s = np.random.default_rng(seed).normal(size=(n, 2, 2))
    wanted = [s[i : i + t].mean(axis=0) for i in range(n - t + 1)]
    np.testing.assert_allclose(rolled(s, t), wanted, atol=1e-12)


def test_with_the_printed_term_a_window_has_one_round_too_many() -> None:
    """As printed S(t - T - 1) leaves at round t: what it was begun with, less one, plus the last T + 1."""
    s = np.random.default_rng(0).normal(size=(12, 1, 1))
    t = 4
    printed = s[:t].mean(axis=0) + sum(s[i] / t - (s[i - t - 1] / t if i > t else 0) for i in range(t, 12))
    np.testing.assert_allclose(printed, s[12 - t - 1 :].sum(axis=0) / t)
    np.testing.assert_allclose(rolled(s, t)[-1], s[-t:].mean(axis=0))
    assert abs(float(printed[0, 0] - rolled(s, t)[-1, 0, 0])) > 1e-3


def test_a_sketch_is_dimensions_by_counters_and_keeps_distances() -> None:
    """Printed the other way round it could not be applied to counters."""
    r = sketch(200, 60, 7)
    assert r.shape == (60, 200) and set(np.abs(r).ravel()) == {1 / np.sqrt(60)}
    assert (r == sketch(200, 60, 7)).all() and (r != sketch(200, 60, 8)).any()
    assert abs(float(np.sign(r).mean())) < 0.03
    x = np.random.default_rng(0).normal(size=(30, 200))
    with pytest.raises(ValueError, match="mismatch"):
        x @ r
    before, after = (np.linalg.norm(one[:, None] - one[None], axis=2)[np.triu_indices(30, 1)] for one in (x, x @ r.T))
    assert np.abs(after / before - 1).max() < 0.5 and abs(float((after / before).mean()) - 1) < 0.05
    assert r_squared(before, 3 * before + 1) == pytest.approx(1.0) and r_squared(before, np.ones(435)) == 0


@settings(max_examples=60)
@given(
    mu=st.floats(-3, 3), spread=st.floats(0.1, 4), low=st.floats(0.1, 0.95), high=st.floats(1.05, 3),
    seed=st.integers(0, 10**6),
)  # fmt: skip
def test_vectors_in_both_zones_have_a_variance_within_the_limits(mu, spread, low, high, seed) -> None:
    rng = np.random.default_rng(seed)
    plane = tangent(mu, mu**2 + spread, high * spread)
    near = np.linspace(-8, 8, 40_001)
    distance = (near - mu) ** 2 + (near**2 + high * spread - mu**2 - spread) ** 2
    mine = (plane.at - mu) ** 2 + (plane.square - mu**2 - spread) ** 2
    assert mine <= distance.min() + 1e-9, "the point is the nearest one of the parabola"
    a = mu + rng.normal(size=2000)
    b = a**2 + spread * rng.uniform(0, 2 * high, 2000)
    kept = inside(a, b, low * spread, plane)
    mean, square = a[kept], b[kept]
    for some in range(1, len(mean), 7):
        held = float(square[:some].mean() - mean[:some].mean() ** 2)
        assert low * spread - 1e-9 <= held <= high * spread + 1e-9


def plain_zones(x: np.ndarray, window: int, low: float, high: float) -> list[tuple[int, int]]:
    """(round, first machine outside) of one counter (rounds, machines); the half-plane in the counter's own place."""
    found: list[tuple[int, int]] = []
    v0 = means = squares = None
    for t in range(window - 1, len(x)):
        part = x[t - window + 1 : t + 1]
        mean, square = part.mean(axis=0), (part**2).mean(axis=0)
        if v0 is not None:
            variance = v0[1] - v0[0] ** 2
            plane = tangent(v0[0], v0[1], high * variance)
            a, b = v0[0] + mean - means, v0[1] + square - squares
            # Less the reference's mean all of it is moved, which changes the zones' distance and not their meaning.
            off, offs = a - v0[0], b - 2 * v0[0] * a + v0[0] ** 2
            moved = inside(off, offs, low * variance, tangent(0.0, variance, high * variance))
            assert plane.at == pytest.approx(plane.at)
            if moved.all():
                continue
            found.append((t, int(np.argmin(moved))))
        else:
            found.append((t, x.shape[1]))
        v0, means, squares = (float(mean.mean()), float(square.mean())), mean, square
    return found


def test_zones_of_the_variance_are_left_as_a_plain_loop_says_and_hold_it_while_they_are_not() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(90, 4, 2)) * (1 + 0.4 * np.sin(np.arange(90) / 9))[:, None, None] + [3.0, -40.0]
    window = 12
    whole = Normaliser(0.7, 1.4)
    resyncs = whole.advance(x, window)
    for c in range(2):
        told = [(t + window - 1, int(who)) for t, who in enumerate(resyncs[:, c]) if who >= 0]
        assert told == plain_zones(x[:, :, c], window, 0.7, 1.4) and len(told) > 3
        reference = 0.0
        for t in range(window - 1, 90):
            variance = float(x[t - window + 1 : t + 1, :, c].var())
            if resyncs[t - window + 1, c] >= 0:
                reference = variance
            assert 0.7 * reference - 1e-9 <= variance <= 1.4 * reference + 1e-9
    parts, at, kept = Normaliser(0.7, 1.4), 0, np.zeros((0, 4, 2))
    pieces = []
    for stop in (5, 30, 31, 90):
        rows = np.concatenate([kept, x[at:stop]])
        pieces.append(parts.advance(rows[-(stop - at + window - 1) :], window))
        kept, at = rows[-(window - 1) :], stop
    assert (np.concatenate(pieces) == resyncs).all() and (parts.variance == whole.variance).all()


def readings(days: int = 4, seed: int = 0) -> list[dict]:
    """Five machines alike; e is 3 higher in x from the second day on."""
    rng = np.random.default_rng(seed)
    return [
        {"key": key, "ts": START + timedelta(minutes=5 * i), "x": float(rng.normal()) + 3 * (key == "e" and i >= 288),
         "y": 100 + 20 * float(rng.normal()), "z": float(rng.normal())}
        for i in range(days * 288) for key in "abcde"
    ]  # fmt: skip


CONTENT = {
    "kind": "latent_faults", "source": "s", "start": "2025-03-01", "nodes": list("abcde"), "counters": ["x", "y", "z"],
    "alpha": 0.05, "round": {"length": "5 min"},
}  # fmt: skip
FORMS = {
    "day": {},
    "sliding": {"window": {"sliding": 400}},
    "zones": {"window": {"sliding": 400}, "normalise": {"low": 0.8, "high": 1.25}},
    "sketch": {"sketch": {"dimensions": 2, "seed": 3}},
}


def test_a_planted_fault_is_flagged_with_the_counter_that_carries_it() -> None:
    rows = readings()
    result = monitor(CONTENT, rows)
    assert result.found.schema == FAULT_SCORES.arrow() and result.metrics.schema == METRICS.arrow()
    flagged = [(r["day"].day, r["machine"]) for r in result.found.to_pylist() if r["flagged"]]
    assert flagged == [(2, "e"), (3, "e"), (4, "e")]
    x = np.array([(r["x"], r["y"], r["z"]) for r in rows]).reshape(-1, 288, 5, 3)[1]
    flat = x.reshape(-1, 3)
    v = plain_directions((x - flat.mean(axis=0)) / flat.std(axis=0)).mean(axis=0)
    for row in (r for r in result.found.to_pylist() if r["day"].day == 2):
        size = np.sqrt((v**2).sum(axis=1))
        mine = "abcde".index(row["machine"])
        gamma = max(0.0, float(size[mine] - size.mean()))
        assert row["v_norm"] == pytest.approx(float(size[mine]), rel=1e-9)
        assert row["p"] == pytest.approx(6 * math.exp(-288 * 5 * gamma**2 / (2 * (math.sqrt(5) + 2) ** 2)), rel=1e-9)
        order = np.argsort(-np.abs(v[mine]))
        assert [t["feature"] for t in row["top_counters"]] == [["x", "y", "z"][c] for c in order]
        if row["flagged"]:
            assert row["top_counters"][0]["feature"] == "x" and row["top_counters"][0]["value"] > 0.5


def test_a_machine_whose_p_is_alpha_is_not_flagged() -> None:
    rows = readings()
    p = next(r["p"] for r in monitor(CONTENT, rows).found.to_pylist() if r["flagged"])
    for alpha, wanted in ((p, False), (math.nextafter(p, 1), True)):
        result = monitor({**CONTENT, "alpha": alpha}, rows)
        found = result.found.to_pylist()
        assert next(r["flagged"] for r in found if r["p"] == p) is wanted
        assert all((r["first_flagged"] is not None) is r["flagged"] for r in found)
        flagged = [sum(r["flagged"] for r in found if r["day"] == row["day"]) for row in result.metrics.to_pylist()]
        assert result.metrics["changes"].to_pylist() == flagged


def test_a_sliding_window_says_when_it_first_flags() -> None:
    rows = readings()
    result = monitor({**CONTENT, **FORMS["sliding"]}, rows)
    told = result.found.to_pylist()
    assert {r["day"].day for r in told} == {2, 3, 4} and {r["rounds"] for r in told} == {400}
    first = next(r for r in told if r["first_flagged"] is not None)
    assert (first["day"].day, first["machine"]) == (2, "e") and first["flagged"]
    assert first["first_flagged"].date() == first["day"] and first["first_flagged"].hour > 6


def test_zones_keep_the_scale_and_say_who_left() -> None:
    result = monitor({**CONTENT, **FORMS["zones"]}, readings())
    told, metrics = result.found.to_pylist(), result.metrics.to_pylist()
    assert [(r["day"].day, r["machine"]) for r in told if r["flagged"]][-2:] == [(3, "e"), (4, "e")]
    for row in metrics[1:]:
        assert row["reports_up"] == 5 * row["syncs"] == row["polls_down"] and row["bytes"] == 20 * 8 * row["syncs"]
        left = sum(r["resyncs"] for r in told if r["day"] == row["day"])
        assert left in (row["syncs"], row["syncs"] - 3), "the first references are nobody's"
    assert 0 < sum(r["syncs"] or 0 for r in metrics) < 60


def test_a_sketch_is_published_beside_with_how_much_it_explains() -> None:
    rows = readings()
    plain, sketched = monitor(CONTENT, rows), monitor({**CONTENT, **FORMS["sketch"]}, rows)
    assert plain.found.drop("p_sketch").equals(sketched.found.drop("p_sketch"))
    assert all(r["p_sketch"] is not None for r in sketched.found.to_pylist())
    assert all(0 <= r["r2"] <= 1 for r in sketched.metrics.to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_any_cut_of_history_gives_the_same_rows(form: str) -> None:
    rows, content = readings(), {**CONTENT, **FORMS[form]}
    whole, result, pieces = monitor(content, rows), None, []
    for day in (2, 3, 4, 5):
        result = monitor(content, rows, until=date(2025, 3, day), after=result)
        pieces.append(result)
    assert pa.concat_tables(p.found for p in pieces).equals(whole.found)
    assert pa.concat_tables(p.metrics for p in pieces).equals(whole.metrics) and result.state == whole.state


def test_scores_have_no_gamma_below_the_mean() -> None:
    scores = Scores.of(np.array([[0.5, 0.0], [0.1, 0.0], [0.0, 0.0]]), 10)
    assert scores.gamma.tolist() == pytest.approx([0.3, 0.0, 0.0]) and scores.p[1] == 4.0


GOOD = """\
kind: latent_faults
source: s
start: 2025-03-01
nodes: [a, b, c]
counters: [x, y]
alpha: 0.01
window: {sliding: 288}
round: {length: 1 min}
"""


@pytest.mark.parametrize(
    ("old", "new", "key", "line", "hint"),
    [
        ("[a, b, c]", "[a, b]", "nodes", 4, "3 or more"),
        ("counters: [x, y]\n", "counters: x\n", "counters", 5, "non-empty list"),
        ("alpha: 0.01", "alpha: 1", "alpha", 6, "below 1"),
        ("{sliding: 288}", "{sliding: 1}", "window.sliding", 7, "from 2 on"),
        ("{sliding: 288}", "week", "window", 7, "day, or"),
        ("{sliding: 288}", "day\nnormalise: {low: 0.9, high: 1.1}", "normalise", 8, "sliding"),
        ("alpha: 0.01", "normalise: {low: 1.2, high: 1.3}", "normalise", 6, "low below 1"),
        ("alpha: 0.01", "sketch: {dimensions: 2}", "sketch.dimensions", 6, "below 2"),
        ("[a, b, c]", "[a, b, {name: c, keys: [c], from: 2025-04-01}]", "nodes.2", 4, "from and to"),
    ],
)
def test_errors_say_where_and_what_is_allowed(tmp_path, old, new, key, line, hint) -> None:
    error = refused(tmp_path, GOOD, (old, new), key, line)
    assert hint in f"{error.what} {error.hint}"
