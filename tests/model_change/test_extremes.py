"""Events that are no events: times that are none, values beyond all sums."""

from __future__ import annotations

import warnings
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from chainlake.errors import InputError
from chainlake.model_change.library import monitor
from tests.model_change.test_monitor import START, events, model

THRESHOLD = {
    "kind": "threshold", "source": "s", "start": "2025-03-01", "nodes": ["a", "b"], "value": "y", "threshold": 0.1,
    "round": {"length": "10 min"}, "max_carry": 0,
}  # fmt: skip
US = int(START.timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("ts", "words"),
    [
        (["2025-03-01T00:00:00Z", "2025-03-01T00:10:00Z"], "'ts' is of type string"),
        ([float(US), float("nan")], "the 'ts' of row 2, nan, is not a whole number of microseconds"),
        ([US + 0.5, float(US)], "the 'ts' of row 1"),
        ([1e300, float(US)], "the 'ts' of row 1"),
        ([True, False], "'ts' is of type bool"),
        ([date(2025, 3, 1), date(2025, 3, 2)], "'ts' is of type date32"),
        ([US, None], "row 2 of the events has no 'ts'"),
        ([None, None], "row 1 of the events has no 'ts'"),
        ([START, "soon"], "do not make a table"),
        (pa.array([2**62, 0], pa.timestamp("s")), "cannot be counted in microseconds"),
    ],
)
def test_a_time_that_is_none_is_an_error_that_says_so(ts, words):
    rest = {"key": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, 2.0]}
    if isinstance(ts, list):
        rows = [{"ts": at, **{name: column[i] for name, column in rest.items()}} for i, at in enumerate(ts)]
    else:
        rows = pa.table({"ts": ts, **rest})
    with pytest.raises(InputError) as caught:
        monitor(model(), rows)
    assert words in caught.value.what and caught.value.hint


def test_times_of_every_unit_are_the_same_times():
    rows = pa.Table.from_pylist(events(days=1))
    wanted = monitor(model(), rows)
    whole = rows["ts"].cast(pa.int64())
    finer = pa.chunked_array([pa.array(whole.to_numpy() * 1000 + 999).cast(pa.timestamp("ns", "UTC"))])
    for ts in (whole, whole.cast(pa.float64()), finer):
        found = monitor(model(), rows.set_column(rows.schema.get_field_index("ts"), "ts", ts))
        assert found.changes.equals(wanted.changes) and found.metrics.equals(wanted.metrics)
    # Before 1970 too a part of a microsecond is rounded down, into the day and round before.
    early = pa.table({"key": ["a"], "ts": pa.array([-1], pa.timestamp("ns")), "x": [1.0], "y": [1.0]})
    found = monitor(model(start="1969-01-01", nodes=["a"]), early, until=date(1970, 1, 2)).metrics
    assert (found["day"].to_pylist(), found["rounds"].to_pylist()) == ([date(1969, 12, 31)], [1])


@pytest.mark.few(4)
@pytest.mark.parametrize("content", [model(), model(window={"infinite": 20}), model(gls={"phi": 0.5}), THRESHOLD])
@pytest.mark.parametrize("value", [1e71, -1e200, 1e308, float("inf")])
def test_a_value_beyond_all_sums_counts_as_not_reported(content, value):
    rows = events(days=2, missing=0)
    hit = range(100, 180, 20)
    spoilt = [{**row, "y": value} if i in hit else row for i, row in enumerate(rows)]
    without = [{**row, "y": None} if i in hit else row for i, row in enumerate(rows)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = monitor(content, spoilt)
    wanted = monitor(content, without)
    assert found.changes.equals(wanted.changes) and found.metrics.equals(wanted.metrics) and found.state == wanted.state
    assert found.alerts.equals(wanted.alerts) and len(found.changes) + len(found.alerts) > 1
    assert "4 values beyond 1e+70 in size were taken as not reported" in found.warnings
    assert not any("beyond" in text for text in wanted.warnings)


@pytest.mark.parametrize("content", [model(round={"length": "10 min", "min_nodes": 2}), {**THRESHOLD, "max_carry": 9}])
@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_events_without_a_value_make_no_round(content, value):
    """As if they were not there: a network that only sends gaps has no rounds in which old values go on."""
    rows = events(days=1, missing=0)
    silent = {row["ts"] for row in rows if row["ts"].hour in (5, 17)}
    found = monitor(content, [{**row, "x": value, "y": value} if row["ts"] in silent else row for row in rows])
    wanted = monitor(content, [row for row in rows if row["ts"] not in silent])
    assert found.metrics.equals(wanted.metrics) and found.metrics["rounds_skipped"].to_pylist() == [12]
    assert found.changes.equals(wanted.changes) and found.alerts.equals(wanted.alerts) and found.state == wanted.state


@pytest.mark.parametrize("content", [model(), THRESHOLD])
@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_model_whose_values_are_all_missing_says_so(content, value):
    rows = events(days=1, missing=0)
    found = monitor(content, [{**row, "x": value, "y": value} for row in rows])
    (said,) = (line for line in found.warnings if line.startswith("no event"))
    assert said.startswith("no event has any value of '") and "'y', so there is no round in the 144 that have" in said
    assert not any("no round in the" in line for line in monitor(content, rows[:1]).warnings)


@pytest.mark.slow
def test_a_power_beyond_all_sums_makes_its_round_unusable():
    content = model(features=[{"polynomial": {"of": "x", "degree": 8, "range": [-1, 1]}}], window={"sliding": 40})
    rows = events(days=2, missing=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = monitor(content, [{**row, "x": 1e60} if i == 100 else row for i, row in enumerate(rows)])
        fine = monitor(content, rows)
    assert fine.metrics["rounds"].to_pylist() == [144, 144] and found.metrics["rounds"].to_pylist() == [143, 144]
    assert "in 1 rounds of nodes a transform, a power" in str(found.warnings) and "beyond" not in str(fine.warnings)


@pytest.mark.parametrize("aggregate", ["sum", "mean"])
@pytest.mark.parametrize(
    "values", [[1e308, 1e308], [1e308, 1e308, -1e308, -1e308], [float("inf"), float("-inf")], [1e308, -1e308, 1e200]]
)
def test_a_sum_that_overflows_counts_as_not_reported_and_is_said(aggregate, values):
    content = model(round={"length": "10 min", "aggregate": aggregate})
    rows = events(days=1, missing=0)
    hit = rows[100]
    more = [{**hit, "event_id": f"more{i}", "x": None, "y": value} for i, value in enumerate(values)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = monitor(content, [*rows, *more])
    wanted = monitor(content, [{**row, "y": None} if row is hit else row for row in rows])
    assert found.changes.equals(wanted.changes) and found.metrics.equals(wanted.metrics)
    assert "1 values beyond 1e+70 in size were taken as not reported" in found.warnings


def test_a_difference_beyond_all_sums_is_said():
    content = model(features=[{"of": "x", "transform": "diff"}])
    rows = events(days=1, missing=0)
    sizes = {100: 0.9e70, 102: -0.9e70}
    found = monitor(content, [{**row, "x": sizes.get(i, row["x"])} for i, row in enumerate(rows)])
    assert "in 1 rounds of nodes a transform" in str(found.warnings)


@pytest.mark.parametrize("scale", [1e-60, 1e60, 1e69])
@pytest.mark.parametrize("metric", ["coefficient", "prediction"])
def test_large_and_small_units_change_nothing_but_the_units(scale, metric):
    rows = events(days=2, missing=0)
    scaled = [{**row, "x": row["x"] * scale, "y": row["y"] * scale} for row in rows]
    eps = 0.4 * (scale if metric == "prediction" else 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = monitor(model(metric=metric, intercept=False, eps=eps), scaled)
    wanted = monitor(model(metric=metric, intercept=False), rows)
    for name in ("kind", "ts", "violators"):
        assert found.changes[name].to_pylist() == wanted.changes[name].to_pylist()
    for one, two in zip(found.changes["beta_after"].to_pylist(), wanted.changes["beta_after"].to_pylist(), strict=True):
        np.testing.assert_allclose([b["value"] for b in one], [b["value"] for b in two], rtol=1e-9)
