"""The average-threshold monitor: its alerts are those of a direct test of the mean."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.model_change.detectors.threshold import ThresholdMonitor
from chainlake.model_change.library import monitor
from chainlake.schemas.models import ALERTS, METRICS
from tests.ingest.test_parse import Parsed
from tests.model_change.refusals import refused

START = datetime(2025, 3, 1, tzinfo=UTC)


def crossings(below):
    """(round, kind) of the first round below, the first not below after it, and so on."""
    found, now = [], False
    for t, here in enumerate(below):
        if here != now:
            found.append((t, "below" if here else "recovered"))
            now = here
    return found


@pytest.mark.slow
@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6), k=st.integers(1, 6), spread=st.sampled_from([0.5, 3.0, 10.0]),
    cuts=st.lists(st.integers(1, 90), max_size=5),
)  # fmt: skip
def test_alerts_are_those_of_the_mean_and_every_message_is_paid_for(seed, k, spread, cuts):
    rng = np.random.default_rng(seed)
    level = 53.0
    values = level + 4 * np.sin(np.arange(200) / 15)[:, None] + spread * rng.normal(size=(200, k))
    run, found, up, down, at = ThresholdMonitor.start(level, k), [], [], [], 0
    for stop in [*sorted(cuts), 200]:
        part, *sent = run.feed(values[at:stop])
        found += [(c, at + c.at) for c in part]
        up, down, at = [*up, *sent[0]], [*down, *sent[1]], max(at, stop)
    mean = values.mean(axis=1)
    assert [(t, c.signal) for c, t in found if c.signal] == crossings(mean < level)
    thresholds, asked = np.full(k, level), {t: c for c, t in found}
    below = False
    for t in range(200):
        c = asked.get(t)
        if below:
            assert up[t] == k and down[t] == k + (k if c else 0)
        elif c is None:
            assert (values[t] >= thresholds).all() and mean[t] >= level - 1e-9 and up[t] == down[t] == 0
        else:
            # The violators speak, the others are asked in ascending order, and nobody more than needed.
            assert c.violators == tuple(np.flatnonzero(values[t] < thresholds))
            others = [j for j in range(k) if j not in c.violators]
            extra = len(c.collected) - len(c.violators)
            assert c.collected == (*c.violators, *others[:extra])
            spare = [
                values[t, list(c.collected[: len(c.violators) + i])].sum()
                - thresholds[list(c.collected[: len(c.violators) + i])].sum()
                for i in range(extra + 1)
            ]
            assert all(s < 1e-9 for s in spare[:-1]) and (spare[-1] > -1e-9) == c.balanced
            assert up[t] == len(c.collected) and down[t] == extra + (len(c.collected) if c.balanced else 0)
            if c.balanced:
                lifted = values[t, list(c.collected)] - c.thresholds[list(c.collected)]
                np.testing.assert_allclose(lifted, spare[-1] / len(c.collected), atol=1e-9)
        if c is not None:
            thresholds, below = c.thresholds, (c.signal == "below") or (below and c.signal is None)
            np.testing.assert_allclose(thresholds.sum(), k * level, rtol=1e-12)


def readings(seed=0, hours=72):
    rng = np.random.default_rng(seed)
    rows = []
    for h in range(hours):
        for i, key in enumerate("abc"):
            count = int(rng.integers(0, 4))
            speed = 53 + 6 * np.sin(h / 9) + 3 * float(rng.normal()) + i
            if rng.random() < 0.95:
                rows.append({"key": key, "ts": START + timedelta(hours=h), "velocity": speed, "vehicles": count})
    return rows


CONTENT = {
    "kind": "threshold", "source": "s", "start": "2025-03-01", "nodes": ["a", "b", "c"], "value": "velocity",
    "threshold": 54, "missing_if_zero": "vehicles", "round": {"length": "1 h"},
}  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
def test_days_of_a_monitor_equal_the_direct_mean(weighted):
    content = {**CONTENT, "weight": "vehicles"} if weighted else CONTENT
    rows = readings()
    found = monitor(content, rows)
    last, means = {}, []
    for h in range(72):
        last |= {r["key"]: r for r in rows if r["ts"] == START + timedelta(hours=h) and r["vehicles"]}
        if len(last) < 3 or not any(r["ts"] == START + timedelta(hours=h) and r["vehicles"] for r in rows):
            continue
        now = [last[key] for key in "abc"]
        weights = [r["vehicles"] if weighted else 1 for r in now]
        means.append((h, sum(w * r["velocity"] for w, r in zip(weights, now, strict=True)) / sum(weights)))
    wanted = [(means[t][0], kind, means[t][1]) for t, kind in crossings([mean < 54 for _, mean in means])]
    assert len(wanted) >= 3
    alerts = found.alerts.to_pylist()
    assert [(int((r["ts"] - START) / timedelta(hours=1)), r["kind"]) for r in alerts] == [w[:2] for w in wanted]
    np.testing.assert_allclose([r["mean"] for r in alerts], [w[2] for w in wanted], rtol=1e-12)
    assert all(r["n_collected"] == 3 and r["monitor"] == "model" for r in alerts)
    assert found.alerts.schema == ALERTS.arrow() and found.metrics.schema == METRICS.arrow() and not len(found.changes)
    for row in found.metrics.to_pylist():
        assert row["group_id"] == "" and row["rounds"] + row["rounds_skipped"] == 24
        assert row["normalized_up"] == row["reports_up"] / (3 * row["rounds"])
    result, pieces = None, []
    for day in (2, 3, 4):
        result = monitor(content, rows, until=date(2025, 3, day), after=result)
        pieces.append(result)
    assert pa.concat_tables(p.alerts for p in pieces).equals(found.alerts) and result.state == found.state
    assert pa.concat_tables(p.metrics for p in pieces).equals(found.metrics)


GOOD = """\
kind: threshold
source: s
start: 2025-03-01
nodes: [a, b]
value: velocity
threshold: 50
round: {length: 1 min}
"""


@pytest.mark.parametrize(
    ("old", "new", "key", "line", "hint"),
    [
        ("kind: threshold", "kind: average", "kind", 1, "model, threshold"),
        ("threshold: 50", "threshold: low", "threshold", 6, "finite number"),
        ("threshold: 50\n", "", "threshold", 1, "a number"),
        ("nodes: [a, b]\n", "groups: {x: [a]}\n", "groups", 4, "nodes"),
        ("[a, b]", "[a, {name: b, keys: [b], from: 2025-04-01}]", "nodes.1", 4, "from and to"),
        ("value: velocity\n", "", "value", 1, "column name"),
        ("threshold: 50", "threshold: 50\neps: 1", "eps", 7, "threshold"),
        ("threshold: 50", "threshold: 50\nmissing_if_zero: 3", "missing_if_zero", 7, "string"),
    ],
)
def test_errors_say_where_and_what_is_allowed(tmp_path, old, new, key, line, hint):
    error = refused(tmp_path, GOOD, (old, new), key, line)
    assert hint in f"{error.what} {error.hint}"


ROAD = """\
key: sensor
type: Reading
zone: UTC
attributes:
  velocity: {type: double, unit: km/h, min: 0}
  vehicles: {type: long, min: 0}
identity: unique
on_conflict: first
formats:
  - {name: readings, columns: [time, sensor, velocity, vehicles], time: {column: time, format: iso}}
"""
READINGS = """\
2025-03-01T01:00:10+01:00,a,60,5
2025-03-01T00:00:20Z,b,58,3
2025-03-01T00:01:10Z,a,30,4
2025-03-01T00:01:30Z,b,-4,2
yesterday,b,50,2
2025-03-01T00:02:00Z,a,20,0
2025-03-01T00:02:00Z,b,80,2
2025-03-01T00:03:00Z,a,,3
2025-03-01T00:03:00Z,b,50,3
"""


def test_a_csv_file_without_header_as_the_component_takes_it(tmp_path):
    """Spec 7: time with an offset, sensor, velocity, vehicles; no vehicles, or no velocity, is missing."""
    found = Parsed(tmp_path, ROAD, **{"readings.csv": READINGS})
    assert [(line, reason, field) for line, reason, field, *_ in found.bad] == [
        (4, "out_of_range", "velocity"), (5, "bad_time", "ts"),
    ]  # fmt: skip
    content = {**CONTENT, "nodes": ["a", "b"], "threshold": 50, "round": {"length": "1 min"}}
    alerts = monitor(content, found.rows, key="sensor").alerts.to_pylist()
    # Minute 1: a 30, b 58 carried: mean 44. Minute 2: a still 30, for no vehicle passed, b 80: 55. Minute 3: 30 and 50.
    assert [(r["ts"].minute, r["kind"], r["mean"]) for r in alerts] == [
        (1, "below", 44.0), (2, "recovered", 55.0), (3, "below", 40.0),
    ]  # fmt: skip


@pytest.mark.parametrize("far", [1e9, 1e17, -1e17, 1e70])
def test_a_far_reading_hides_no_later_alert(far):
    """Every signal where the mean, in fractions, passes the threshold, whatever single readings came before."""
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        v = rng.integers(200, 640, size=(400, k)) / 10
        v[rng.integers(0, 400, size=12), rng.integers(0, k, size=12)] = far
        below, wanted = False, []
        for t in range(400):
            now = sum(map(Fraction, v[t].tolist())) < k * Fraction(40.0)
            if now != below:
                wanted.append((t, "below" if now else "recovered"))
            below = now
        found, *_ = ThresholdMonitor.start(40.0, k).feed(v)
        assert [(c.at, c.signal) for c in found if c.signal] == wanted and len(wanted) > 50


def test_a_mean_that_equals_the_threshold_is_not_below_it():
    v = np.array([[0.7, 0.7, 0.7], [0.7, 0.7, 0.6999999999999998], [0.1, 0.2, 1.8]])
    found, *_ = ThresholdMonitor.start(0.7, 3).feed(v)
    # 0.1 + 0.2 + 1.8 in doubles is not exactly three times the double 0.7; fractions say on which side it lies.
    wanted = sum(map(Fraction, [0.1, 0.2, 1.8])) < 3 * Fraction(0.7)
    assert [c.signal for c in found if c.at == 1] == ["below"]
    assert [c.signal for c in found if c.at == 2 and c.signal] == ([] if wanted else ["recovered"])
