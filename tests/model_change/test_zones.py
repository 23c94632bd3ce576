"""Safe zones: alerts are those of the mean, silence proves it inside, zones never add up to more than the region."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.model_change.days.definitions import load_definition
from chainlake.model_change.errors import UnsafeZones
from chainlake.model_change.library import monitor
from chainlake.model_change.zones import days as zone_days
from chainlake.model_change.zones.config import ZonesConfig
from chainlake.model_change.zones.design import (
    METHODS,
    Histories,
    Smoothed,
    clusters,
    coverage,
    designed,
    hierarchy,
    joint,
    multipliers,
)
from chainlake.model_change.zones.monitor import ZoneMonitor
from chainlake.model_change.zones.region import (
    Region,
    average_of_boxes,
    box_region,
    has_inside,
    polygon_region,
    support_of_box,
    supports_fit,
)
from chainlake.schemas.models import METRICS, ZONE_EVENTS
from tests.model_change.refusals import refused

START = datetime(2025, 3, 1, tzinfo=UTC)


def exact_sum(rows: np.ndarray) -> list[Fraction]:
    return [sum(map(Fraction, column)) for column in rows.T.tolist()]


def crossings(outside: list[bool]) -> list[tuple[int, str]]:
    found, now = [], False
    for t, here in enumerate(outside):
        if here != now:
            found.append((t, "outside" if here else "inside"))
            now = here
    return found


@pytest.mark.few(20)
@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6), k=st.integers(1, 6), far=st.sampled_from([0.0, 1e9, -1e17]),
    cuts=st.lists(st.integers(1, 110), max_size=4),
)  # fmt: skip
def test_alerts_are_those_of_the_mean_whatever_came_before(seed: int, k: int, far: float, cuts: list[int]) -> None:
    """Of boxes the direct test is exact; every round says truly what was collected, and from whom."""
    rng = np.random.default_rng(seed)
    region = box_region([(-1.5, 2.0), (None, 1.5)], ["x", "y"])
    n = 120
    walk = np.stack([2.2 * np.sin(np.arange(n) / 9), 1.7 * np.cos(np.arange(n) / 13)], axis=1)
    vectors = walk[:, None] + np.round(rng.normal(size=(n, k, 2)), 2)
    if far:
        vectors[rng.integers(0, n, 4), rng.integers(0, k, 4)] = far
    facets = region.facets(vectors)
    run, found, at = ZoneMonitor.start(region.limits, k), [], 0
    for stop in [*sorted(cuts), n]:
        found += [(at + one.at, one) for one in run.feed(facets[at:stop])[0]]
        at = max(at, stop)
    direct = [any(s > k * Fraction(h) for s, h in zip(exact_sum(now), region.below, strict=True)) for now in facets]
    assert [(t, h.kind) for t, h in found if h.kind != "balanced"] == crossings(direct)
    levels, rounds, outside = np.tile(region.limits, (k, 1)), dict(found), False
    for t, now in enumerate(facets):
        row = rounds.get(t)
        if row is None:
            assert outside or (now <= levels).all()
            continue
        if row.kind != "inside":
            assert row.violators == tuple(np.flatnonzero((now > levels).any(axis=1)))
            others = [j for j in range(k) if j not in row.violators]
            extra = len(row.collected) - len(row.violators)
            assert row.collected == (*row.violators, *others[:extra])
            for count in range(len(row.violators), len(row.collected)):
                # No more nodes are asked than necessary.
                mine = list(row.collected[:count])
                pairs = zip(exact_sum(now[mine]), exact_sum(levels[mine]), strict=True)
                assert any(have > held for have, held in pairs)
        outside = row.kind == "outside"
        if not outside:
            levels = row.levels
            total = exact_sum(levels)
            assert all(s <= k * Fraction(h) for s, h in zip(total, region.below, strict=True))


TRIANGLE = polygon_region([(0, 0), (250, 0), (250, 1000)])


def test_a_triangle_is_the_region_of_the_ratio() -> None:
    """``y >= 0, x <= 250, y <= 4 x``."""
    assert TRIANGLE is not None
    rng = np.random.default_rng(0)
    points = rng.uniform([-50, -200], [300, 1200], size=(500, 2))
    inside = (points[:, 1] >= 0) & (points[:, 0] <= 250) & (points[:, 1] <= 4 * points[:, 0])
    assert 50 < inside.sum() < 400
    for region in (TRIANGLE, polygon_region([(250, 1000), (250, 0), (0, 0)])):
        assert region is not None and ((region.facets(points) <= region.limits).all(axis=1) == inside).all()


@pytest.mark.parametrize("corners", [[(0, 0), (1, 0)], [(0, 0), (2, 0), (1, 0.5), (2, 2)], [(0, 0), (1, 0), (2, 0)]])
def test_what_is_no_convex_polygon_is_none(corners: list[tuple[float, float]]) -> None:
    assert polygon_region(corners) is None
    star = [(np.cos(4 * np.pi * i / 5), np.sin(4 * np.pi * i / 5)) for i in range(5)]
    assert polygon_region(star) is None


def test_support_functions_say_what_all_averages_of_vertices_say() -> None:
    """Zones as the triangles ``y >= 0, x <= M, y <= 4 (x - beta)``: mean of M at most 250, sum of beta at least 0."""
    assert TRIANGLE is not None
    rng = np.random.default_rng(1)
    normals, seen = np.array(TRIANGLE.normals), set()
    for _ in range(200):
        m, beta = rng.uniform(150, 340, 3), rng.uniform(-60, 60, 3)
        corners = [np.array([(b, 0), (top, 0), (top, 4 * (top - b))]) for top, b in zip(m, beta, strict=True)]
        supports = np.array([(normals @ zone.T).max(axis=1) for zone in corners])
        averages = np.array([np.mean(some, axis=0) for some in itertools.product(*corners)])
        by_vertices = bool((TRIANGLE.facets(averages) <= TRIANGLE.limits + 1e-6).all())
        assert supports_fit(TRIANGLE, supports) == by_vertices == (m.mean() <= 250 and beta.sum() >= 0)
        seen.add(by_vertices)
    assert seen == {True, False}


def test_zones_of_forty_nodes_are_tested_facet_by_facet() -> None:
    """There are 3^40 averages of their vertices, and three facets. Whole numbers make the sums exact."""
    assert TRIANGLE is not None
    rng, normals = np.random.default_rng(6), np.array(TRIANGLE.normals)
    spare, shift = rng.integers(-60, 61, 20), rng.integers(-40, 41, 20)
    tops, betas = 250 + np.concatenate([spare, -spare]), np.concatenate([shift, -shift])

    def supports(tops: np.ndarray, betas: np.ndarray) -> np.ndarray:
        corners = [np.array([(b, 0), (m, 0), (m, 4 * (m - b))]) for m, b in zip(tops, betas, strict=True)]
        return np.array([(normals @ zone.T).max(axis=1) for zone in corners])

    one = np.arange(40) == 7
    assert supports_fit(TRIANGLE, supports(tops, betas))
    assert not supports_fit(TRIANGLE, supports(tops + one, betas))
    assert not supports_fit(TRIANGLE, supports(tops, betas - one))
    assert supports_fit(TRIANGLE, supports(tops - one, betas + one))


def test_an_average_of_clusters_is_weighted_by_their_nodes() -> None:
    """The tree ((a, b), c) in one dimension: the printed average of two zones passes, and the mean is 1.3."""
    region = box_region([(-1.0, 1.0)], ["x"])
    boxes = [[(-1.9, 1.9)], [(-0.1, 0.1)]]
    supports = np.array([[support_of_box(box, np.array(normal)) for normal in region.normals] for box in boxes])
    assert average_of_boxes(boxes).tolist() == [[-1.0, 1.0]] and supports_fit(region, supports)
    assert np.mean([1.9, 1.9, 0.1]) > 1
    assert average_of_boxes(boxes, weights=[2, 1])[0, 1] == pytest.approx(1.3)
    assert not supports_fit(region, supports, weights=[2, 1])
    rng = np.random.default_rng(2)
    rows = np.concatenate([2.0 * rng.normal(size=(200, 2)), 0.05 * rng.normal(size=(200, 1))], axis=1)
    histories = Histories.of(np.stack([-rows, rows], axis=2), region.limits)
    levels = hierarchy(histories)
    assert clusters(histories) == ((0, 1), 2), "whose spreads are alike, whatever the noise of their means"
    assert supports_fit(region, levels) and (levels[0] > 1).all() and (levels[2] < 1).all()
    # One zone for a and b and one for c: the best of all budgets, two parts of which are theirs.
    best = max(
        np.mean(np.abs(rows[:, 0]) <= room) * np.mean(np.abs(rows[:, 1]) <= room) * np.mean(np.abs(rows[:, 2]) <= left)
        for room, left in ((room, 3 - 2 * room) for room in np.linspace(0, 1.5, 301))
    )
    mine = [coverage(histories.samples[i], levels[i]) for i in range(3)]
    assert np.prod(mine) > best - 0.05


def test_a_cluster_has_the_room_that_the_vectors_of_all_its_nodes_ask_for() -> None:
    """Its share is that of the union of their vectors: not of those of one node, nor of averages over nodes."""
    rng, limit = np.random.default_rng(8), 3.0
    rows = rng.normal(size=(400, 3)) * [0.6, 1.0, 4.0]
    rows[:, 1] = -3 * rows[:, 0]
    histories = Histories.of(np.stack([-rows, rows], axis=2), np.array([limit, limit]))
    assert clusters(histories) == ((0, 1), 2)

    def best(of_cluster: np.ndarray) -> float:
        rooms = np.linspace(0.05, 4.45, 881)
        mine = np.array([np.mean(np.abs(of_cluster) <= room) for room in rooms])
        other = np.array([np.mean(np.abs(rows[:, 2]) <= 3 * limit - 2 * room) for room in rooms])
        with np.errstate(divide="ignore"):
            return float(rooms[np.argmax(2 * np.log(mine) + np.log(other))])

    levels = hierarchy(histories)
    union, first, average = best(rows[:, :2].ravel()), best(rows[:, 0]), best(rows[:, :2].mean(axis=1))
    room = float(levels[:2].mean())
    assert abs(room - union) < 0.2 < min(union - first, union - average) / 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 5])
def test_designed_zones_keep_the_mean_in_the_region(method: str, k: int) -> None:
    """To the last bit of the levels, and for points that lie as far out in their zones as they can."""
    assert TRIANGLE is not None
    rng = np.random.default_rng(k)
    vectors = rng.uniform([60, 20], [230, 100], (k, 2)) + rng.normal(size=(80, k, 2)) * rng.uniform(1, 40, (k, 2))
    facets = TRIANGLE.facets(vectors)
    levels = designed(facets, TRIANGLE.limits, method)
    total = exact_sum(levels)
    assert all(s <= k * Fraction(h) for s, h in zip(total, TRIANGLE.below, strict=True))
    same = np.prod([coverage(facets[:, i], TRIANGLE.limits) for i in range(k)])
    mine = np.prod([coverage(facets[:, i], levels[i]) for i in range(k)])
    assert mine >= same - 0.05


@pytest.mark.parametrize("far", [0.5, 30.0, 1e3, 1e6, 1e9, 1e30])
def test_the_slope_of_a_share_is_right_however_far_off_a_row_is(far: float) -> None:
    """Density over distribution of a normal law: by the two numbers, or, far below 0, by terms of its series."""
    found = Smoothed(np.array([[0.0]]), np.array([1.0]))
    if far < 30:
        wanted = math.exp(-(far**2) / 2) / math.sqrt(2 * math.pi) / (0.5 * math.erfc(far / math.sqrt(2)))
    else:
        wanted = far + 1 / far - 2 / far**3 + 10 / far**5
    with np.errstate(over="raise", invalid="raise"):
        _, slope = found.log_share(np.array([-far]))
    assert slope[0] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_zones_of_nodes_far_apart_are_as_good_as_of_nodes_close_by(method: str) -> None:
    """The same vectors, moved by what adds up to 0: each node's levels move with them."""
    region, rng = box_region([(-2.0, 2.0), (-1.0, 1.0)], ["x", "y"]), np.random.default_rng(3)
    vectors = rng.normal(size=(60, 3, 2)) * [[1.0, 0.3], [0.2, 0.5], [0.6, 0.6]]
    shares = []
    for far in (0.0, 1e3, 1e6):
        facets = region.facets(vectors + np.array([[far, 0], [-far, 0], [0, 0]]))
        with np.errstate(over="raise", invalid="raise"):
            levels = designed(facets, region.limits, method)
        shares.append(float(np.prod([coverage(facets[:, i], levels[i]) for i in range(3)])))
    # Zones of clusters of nodes that lie apart have to be large, whatever their nodes do.
    assert method == "hierarchy" or min(shares) > 0.9 * max(shares) > 0.5


def test_two_nodes_share_the_region_as_a_search_over_all_budgets_does() -> None:
    rng = np.random.default_rng(5)
    rows = np.stack([0.2 + 1.5 * rng.normal(size=300), -0.4 + 0.3 * rng.normal(size=300)], axis=1)[:, :, None]
    limits = np.array([1.0])
    from scipy.stats import norm

    centres, spreads = rows.mean(axis=0)[:, 0], rows.std(axis=0)[:, 0]
    tried = np.linspace(-3, 5, 16_001)
    value = norm.logcdf((tried - centres[0]) / spreads[0]) + norm.logcdf((2 - tried - centres[1]) / spreads[1])
    best = tried[int(np.argmax(value))]
    levels = multipliers(Histories.of(rows, limits))
    assert levels[0, 0] == pytest.approx(best, abs=2e-3) and levels.sum() <= 2
    together = joint(Histories.of(rows, limits))
    assert abs(together[0, 0] - best) < 0.4 and together.sum() <= 2


def events(days: int = 6, seed: int = 1) -> list[dict]:
    rng = np.random.default_rng(seed)
    return [
        {"key": key, "ts": START + timedelta(minutes=30 * i),
         "x": float(2 * j + rng.normal() + 3 * np.sin(i / 30)), "y": float(rng.normal())}
        for i in range(days * 48) for j, key in enumerate("abc")
    ]  # fmt: skip


CONTENT = {
    "kind": "safe_zones", "source": "s", "start": "2025-03-01", "nodes": ["a", "b", "c"], "values": ["x", "y"],
    "region": {"box": [[None, 4], [-1, 1]]}, "design": {"rounds": 40, "every": 2}, "round": {"length": "30 min"},
}  # fmt: skip


def test_days_of_a_monitor_tell_every_crossing_and_design_by_schedule() -> None:
    rows = events()
    found = monitor(CONTENT, rows)
    assert found.found.schema == ZONE_EVENTS.arrow() and found.metrics.schema == METRICS.arrow()
    mean = np.array([(r["x"], r["y"]) for r in rows]).reshape(-1, 3, 2).mean(axis=1)
    direct = [bool(x > 4 or not -1 <= y <= 1) for x, y in mean]
    rows_found = found.found.to_pylist()
    alerts = [(int((r["ts"] - START) / timedelta(minutes=30)), r["kind"]) for r in rows_found if r["kind"] in _CROSSED]
    assert alerts == crossings(direct) and len(alerts) > 6
    designs = [r for r in rows_found if r["kind"] == "design"]
    back = {r["ts"] for r in rows_found if r["kind"] == "inside"}
    assert len(designs) > 2 and all([z["node"] for z in r["zones"]] == ["a", "b", "c"] for r in designs)
    # Before the first round of a day, or, if the mean is outside then, when it is back.
    assert all(r["round"] == 0 or r["ts"] in back for r in designs)
    for row in designs:
        levels = np.array([zone["levels"] for zone in row["zones"]])
        assert supports_fit(box_region([(None, 4.0), (-1.0, 1.0)], ["x", "y"]), levels)
        assert all(0 <= zone["coverage"] <= 1 for zone in row["zones"])
    for row in found.metrics.to_pylist():
        mine = [r for r in rows_found if r["event_date"] == row["day"]]
        assert row["syncs"] == sum(bool(r["violators"]) for r in mine)
        assert row["changes"] == sum(r["kind"] in _CROSSED for r in mine)


_CROSSED = ("outside", "inside")


def test_zones_that_could_let_the_mean_out_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_days, "designed", lambda facets, limits, _: np.tile(limits * 1.01, (facets.shape[1], 1)))
    with pytest.raises(UnsafeZones, match="could let the mean leave the region unnoticed"):
        monitor(CONTENT, events())


def test_zones_by_history_are_left_less_often_than_the_region_or_moved_copies_of_it() -> None:
    """Nodes whose vectors differ in place and spread; history and what is replayed are of one kind."""
    rng = np.random.default_rng(4)
    region = box_region([(-3.0, 3.0), (-3.0, 3.0)], ["x", "y"])
    spread = np.array([[2.0, 0.2], [0.2, 2.0], [0.5, 0.5]])
    facets = region.facets(rng.normal(size=(1200, 3, 2)) * spread + [[0.5, 0], [-0.5, 0], [0, 0.3]])
    centres = facets[:200].mean(axis=0)
    zones = {"same": np.tile(region.limits, (3, 1)), "moved": region.limits + centres - centres.mean(axis=0),
             "own": designed(facets[:200], region.limits)}  # fmt: skip
    left = {}
    for name, levels in zones.items():
        run, left[name] = ZoneMonitor.start(region.limits, 3), 0
        for now in facets[200:]:
            run.levels = levels
            left[name] += sum(len(one.violators) for one in run.feed(now[None])[0])
    assert 3 * left["own"] < min(left["same"], left["moved"])


GOOD = """\
kind: safe_zones
source: s
start: 2025-03-01
nodes: [a, b]
values: [x, y]
region: {box: [[0, 1], [null, 2]]}
design: {rounds: 40}
round: {length: 1 min}
"""


@pytest.mark.parametrize(
    ("old", "new", "key", "line", "hint"),
    [
        ("values: [x, y]\n", "", "values", 1, "non-empty list"),
        ("[x, y]", "[x, x]", "values.0", 5, "once"),
        ("[x, y]", "[x, constant]", "values.1", 5, "Drop it"),
        ("{box: [[0, 1], [null, 2]]}", "{box: [[0, 1]]}", "region.box", 6, "null"),
        ("{box: [[0, 1], [null, 2]]}", "{box: [[1, 0], [null, 2]]}", "region.box.0", 6, "not below"),
        ("{box: [[0, 1], [null, 2]]}", "{box: [[null, null], [null, null]]}", "region.box", 6, "bounds nothing"),
        ("{box: [[0, 1], [null, 2]]}", "{polygon: [[0, 0], [1, 0]]}", "region.polygon", 6, "convex polygon"),
        ("{box: [[0, 1], [null, 2]]}", "{half_planes: [{normal: [0, 0], below: 1}]}", "region.half_planes.0.normal", 6,
         "not all 0"),
        ("{box: [[0, 1], [null, 2]]}", "{half_planes: [{normal: [1, 0], below: 0}, {normal: [-1, 0], below: -1}]}",
         "region.half_planes", 6, "no point lies inside"),
        ("{box: [[0, 1], [null, 2]]}", "{half_planes: [{normal: [1, 0], below: 0}, {normal: [-1, 0], below: 0}]}",
         "region.half_planes", 6, "no point lies inside"),
        ("{box: [[0, 1], [null, 2]]}", "{half_planes: [{normal: [1e200, 0], below: 1e300}]}", "region.half_planes", 6,
         "another unit"),
        ("{box: [[0, 1], [null, 2]]}", "{polygon: [[0, 0], [1e200, 0], [0, 1e200]]}", "region.polygon", 6,
         "beyond 1e+70"),
        ("{box: [[0, 1], [null, 2]]}", "{half_planes: [{normal: [1, 4], below: 3}, {normal: [-1, 1e-320], below: 0}]}",
         "region.half_planes", 6, "closer to 0 than 1e-70"),
        ("{box: [[0, 1], [null, 2]]}", "{half_planes: [{normal: [1, -4], below: 0}, {normal: [1, 4], below: 1e-320}]}",
         "region.half_planes", 6, "closer to 0 than 1e-70"),
        ("{box: [[0, 1], [null, 2]]}", "{ball: 3}", "region.ball", 6, "box"),
        ("{rounds: 40}", "{rounds: 4}", "design.rounds", 7, "from 10 on"),
        ("{rounds: 40}", "{rounds: 40, method: best}", "design.method", 7, "hierarchy"),
        ("[a, b]", "[a, {name: b, keys: [b], from: 2025-04-01}]", "nodes.1", 4, "from and to"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_is_allowed(tmp_path, old, new, key, line, hint) -> None:
    error = refused(tmp_path, GOOD, (old, new), key, line)
    assert hint in f"{error.what} {error.hint}"


@pytest.mark.parametrize(
    "region",
    [
        "{box: [[0, 8e9], [0, 1]]}",
        "{box: [[0, 1e-12], [null, 5]]}",
        "{polygon: [[0, 0], [8e9, 0], [8e9, 1], [0, 1]]}",
        "{polygon: [[1e12, 0], [1000000000001, 0], [1e12, 1]]}",
        "{half_planes: [{normal: [1, 0], below: 8e9}, {normal: [0, 1], below: 1}, {normal: [0, -1], below: 0}]}",
        "{half_planes: [{normal: [1e12, 0], below: 3}, {normal: [-1e12, 0], below: -2.9}]}",
        "{half_planes: [{normal: [1, 0], below: 1000000000001}, {normal: [-1, 0], below: -1e12}]}",
        "{half_planes: [{normal: [1, -4], below: 0}, {normal: [-1, 0], below: -250}]}",
    ],
)
def test_a_region_may_be_narrow_in_one_value_and_wide_in_another(tmp_path: Path, region: str) -> None:
    """As bytes and a share are, or a narrow range far from 0."""
    file = tmp_path / "made.yaml"
    file.write_text(GOOD.replace("{box: [[0, 1], [null, 2]]}", region))
    assert isinstance(load_definition(file), ZonesConfig)


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(20))
def test_an_inside_is_found_where_there_is_one_and_only_there(seed: int) -> None:
    """Half-planes around a point that is known, in units that differ; and the same with one that excludes them all."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    normals = rng.normal(size=(int(rng.integers(1, 9)), d)) * 10.0 ** rng.integers(-6, 7, d)
    point = rng.normal(size=d) * 10.0 ** rng.integers(-3, 9)
    at, width = normals @ point, np.abs(normals) @ np.abs(point)
    below = at + width * 10.0 ** rng.integers(-4, 3, len(normals))
    names = tuple(map(str, range(len(normals) + 1)))
    region = Region(names[1:], tuple(map(tuple, normals.tolist())), tuple(below.tolist()))
    assert has_inside(region)
    opposite = (*region.normals, tuple((-normals[0]).tolist()))
    assert not has_inside(Region(names, opposite, (*region.below, -region.below[0])))


@pytest.mark.slow
def test_any_cut_of_history_gives_the_same_rows() -> None:
    rows, rng = events(), np.random.default_rng(0)
    whole = monitor(CONTENT, rows)
    for _ in range(3):
        result, pieces = None, []
        for day in [*sorted(set(rng.integers(2, 7, size=3).tolist())), 7]:
            result = monitor(CONTENT, rows, until=date(2025, 3, day), after=result)
            pieces.append(result)
        assert pa.concat_tables(p.found for p in pieces).equals(whole.found)
        assert pa.concat_tables(p.metrics for p in pieces).equals(whole.metrics) and result.state == whole.state
