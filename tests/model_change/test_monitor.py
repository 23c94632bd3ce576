"""From events to published rows: rounds, gaps, carried values, other keys, days with carried state."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.errors import InputError
from chainlake.model_change.days.daily import GroupMonitor
from chainlake.model_change.days.definitions import parse_definition
from chainlake.model_change.days.replay import by_day
from chainlake.model_change.library import monitor
from chainlake.model_change.rounds.reduce import reduce_rows
from chainlake.model_change.rounds.rounds import Rounds
from chainlake.model_change.statistics import state as states
from chainlake.schemas.models import CHANGES, METRICS

START = datetime(2025, 3, 1, tzinfo=UTC)


def model(**more):
    base = {
        "source": "s", "start": "2025-03-01", "nodes": ["a", "b"], "response": "y", "features": ["x"],
        "round": {"length": "10 min", "aggregate": "last"}, "window": {"sliding": 20}, "eps": 0.4,
    }  # fmt: skip
    return {**base, **more}


def events(days=3, seed=0, keys=("a", "b"), missing=0.05):
    """One event per key and ten minutes, some missing, the slope changing at noon of the second day."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(days * 144):
        slope = 1.0 if i < 216 else 2.5
        for key in keys:
            if rng.random() >= missing:
                x = float(rng.normal())
                at = START + timedelta(minutes=10 * i, seconds=float(rng.integers(0, 500)))
                y = slope * x + 0.1 * float(rng.normal())
                rows.append({"event_id": f"{key}{i}", "key": key, "ts": at, "x": x, "y": y})
    return rows


def same(one, two):
    assert one.changes.equals(two.changes) and one.metrics.equals(two.metrics) and one.state == two.state


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"metric": "prediction", "detector": "exact"},
        {"window": {"infinite": 20}, "constraint": "energy"},
        {"gls": {"phi": "fit"}, "per_baseline": True, "eps": {"share": 0.3}},
        {"features": [{"of": "x", "transform": "lag 2"}, {"of": "x", "key": "b", "transform": ["diff"]}]},
        {"session_gap": "1 h", "on_gap": "reset", "max_carry": 1},
        {"groups": {"one": ["a"], "two": ["b"]}, "nodes": None},
    ],
    ids=lambda more: ",".join(more) or "plain",
)
def test_days_with_carried_state_equal_one_pass(more):
    config = parse_definition({key: value for key, value in model(**more).items() if value is not None})
    rows = [row for row in events() if not 3 <= row["ts"].hour < 6]
    whole = monitor(config, rows)
    assert len(whole.changes) and len(whole.metrics) == 3 * len(config.groups)
    result, pieces = None, []
    for end in (date(2025, 3, 2), date(2025, 3, 3), date(2025, 3, 4)):
        result = monitor(config, rows, until=end, after=result)
        pieces.append(result)
    assert (
        pa.concat_tables(p.changes for p in pieces)
        .sort_by([("group_id", "ascending"), ("ts", "ascending")])
        .equals(whole.changes.sort_by([("group_id", "ascending"), ("ts", "ascending")]))
    )
    assert result.state == whole.state
    metrics = pa.concat_tables(p.metrics for p in pieces).sort_by([("group_id", "ascending"), ("day", "ascending")])
    assert metrics.equals(whole.metrics)


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=st.integers(0, 1000), order=st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(seed, order):
    rows = events(days=2, seed=seed)
    shuffled = list(rows)
    order.shuffle(shuffled)
    same(monitor(model(), rows), monitor(model(), shuffled))


def test_changes_and_metrics_have_the_published_form():
    found = monitor(model(per_baseline=True), events())
    assert found.changes.schema == CHANGES.arrow() and found.metrics.schema == METRICS.arrow()
    changes = found.changes.to_pylist()
    assert changes[0]["kind"] == "init" and changes[0]["beta_before"] is None
    exact = [row for row in changes if row["kind"] == "change"]
    assert date(2025, 3, 2) in {row["event_date"] for row in exact}
    assert all(row["exceeded"] and row["error_before"] > 0.4 for row in exact)
    assert [c["feature"] for c in exact[0]["beta_after"]] == ["constant", "x"]
    slope = {c["feature"]: c["value"] for c in exact[-1]["beta_after"]}["x"]
    assert abs(slope - 2.5) < 0.5
    metrics = found.metrics.to_pylist()
    for row in metrics:
        syncs = [c for c in changes if c["kind"] == "sync" and c["event_date"] == row["day"]]
        assert row["syncs"] == len(syncs) and row["polls_down"] == 2 * len(syncs)
        assert row["reports_up"] == sum(len(c["violators"]) for c in syncs)
        assert row["changes"] == sum(c["event_date"] == row["day"] for c in exact)
        assert row["max_error"] <= 0.4 * (1 + 1e-9) and row["rounds"] + row["rounds_skipped"] == 144
        assert 0 < row["carried_share"] < 0.2 and row["r2"] > 0.5
    counted = metrics[1]["rounds"] * 2
    assert metrics[1]["normalized_up"] == (metrics[1]["reports_up"] + metrics[1]["polls_down"]) / counted
    assert metrics[1]["per_T_mono"] <= metrics[1]["per_T"]


def reduced(config, rows):
    return reduce_rows(config, pa.Table.from_pylist(rows), "key")


def at(minutes, key, **values):
    return {"key": key, "ts": START + timedelta(minutes=minutes), "x": None, "y": None, **values}


def test_rounds_exist_where_enough_nodes_report_and_missing_ones_are_carried():
    config = parse_definition(model(round={"length": "10 min", "min_nodes": 2}, max_carry=1))
    rows = [
        at(0, "a", x=1, y=1),
        at(0, "b", x=2, y=2),
        at(10, "a", x=3, y=3),
        at(20, "a", x=4, y=4),
        at(20, "b", x=5),
        at(30, "a", x=6, y=6),
        at(30, "b", x=7),
        at(40, "a", x=8, y=8),
        at(40, "b", x=9, y=9),
    ]
    (chunk,) = Rounds(config, "").chunks(reduced(config, rows))
    # Minute 10 has one node only; b's y of minute 0 is carried to 20 and would be too old at 30.
    assert [(t - chunk.ts[0]) // 60_000_000 for t in chunk.ts] == [0, 20, 40]
    assert chunk.number.tolist() == [0, 1, 3] and chunk.gap.tolist() == [1, 2, 2]
    np.testing.assert_array_equal(chunk.y, [[1, 2], [4, 2], [8, 9]])
    np.testing.assert_array_equal(chunk.carried, [0, 1, 0])


@pytest.mark.parametrize(
    ("how", "wanted"), [("last", 3.0), ("first", 5.0), ("mean", 3.0), ("sum", 9.0), ("min", 1.0), ("max", 5.0)]
)
def test_several_events_in_a_round(how, wanted):
    config = parse_definition(model(round={"length": "10 min", "aggregate": how}))
    rows = [at(9, "a", x=3), at(1, "a", x=5), at(4, "a", x=1), at(8, "a", x=None), at(11, "a", x=50), at(2, "c", x=9)]
    table = reduced(config, rows)
    assert table["x"].to_pylist()[0] == wanted and table["key"].to_pylist() == ["a", "a"]


def test_transforms_other_keys_and_polynomials():
    config = parse_definition(model(nodes=["a"], window={"sliding": 6}, features=[
        {"of": "x", "transform": ["log", "diff"]}, {"of": "x", "key": "b"}, {"of": "y", "transform": "lag 2"},
        {"polynomial": {"of": "x", "degree": 2, "scale": [-1, 1], "range": [0, 4]}}]))  # fmt: skip
    rows = [at(10 * i, key, x=float(i + 1), y=10.0 * i) for i in range(4) for key in ("a", "b")]
    (chunk,) = Rounds(config, "").chunks(reduced(config, rows))
    scaled = np.array([3, 4]) / 2 - 1
    wanted = np.stack([np.ones(2), np.log([3 / 2, 4 / 3]), [3, 4], [0, 10], scaled, scaled**2], axis=1)
    np.testing.assert_allclose(chunk.x[:, 0], wanted, rtol=1e-12)
    assert chunk.number.tolist() == [2, 3]


def test_a_range_left_out_is_frozen_from_the_first_round():
    config = parse_definition(model(window={"sliding": 5}, features=[{"polynomial": {"of": "x", "degree": 1}}]))
    first = [at(0, "a", x=10, y=0), at(0, "b", x=20, y=0)]
    rounds = Rounds(config, "")
    (chunk,) = rounds.chunks(reduced(config, first))
    np.testing.assert_allclose(chunk.x[0, :, 1], [-1, 1])
    (chunk,) = rounds.chunks(reduced(config, [at(10, "a", x=15, y=0), at(10, "b", x=30, y=0)]))
    np.testing.assert_allclose(chunk.x[0, :, 1], [0, 3])


@pytest.mark.parametrize(("on_gap", "inits"), [("reset", 2), ("continue", 1)])
def test_session_gaps(on_gap, inits):
    rows = [row for row in events(missing=0) if row["ts"] < START + timedelta(hours=8)]
    rows += [row for row in events(missing=0) if row["ts"] > START + timedelta(hours=15)]
    found = monitor(model(session_gap="2 h", on_gap=on_gap), rows).changes.to_pylist()
    begun = [row["ts"] for row in found if row["kind"] == "init"]
    assert len(begun) == inits
    assert begun[-1] == (START + timedelta(hours=15, minutes=190) if inits == 2 else START + timedelta(minutes=190))


def test_a_gap_before_1970_resets_like_one_after():
    def told(year):
        begin = datetime(year, 6, 1, tzinfo=UTC)
        kept = [row for row in events(days=2, missing=0) if not 8 <= row["ts"].hour < 13]
        rows = [{**row, "ts": row["ts"] - START + begin} for row in kept]
        found = monitor(model(start=begin.date(), session_gap="2 h", on_gap="reset"), rows).changes.to_pylist()
        return [{**row, "ts": row["ts"] - begin, "event_date": None} for row in found]

    before = told(1969)
    assert before == told(1971)
    assert [row["ts"] for row in before if row["kind"] == "init"] == [
        timedelta(minutes=190), timedelta(hours=13, minutes=190), timedelta(days=1, hours=13, minutes=190)
    ]  # fmt: skip


def test_days_without_rounds_have_no_row_and_snapshots_are_exact():
    config = parse_definition(model())
    run = GroupMonitor(config, "")
    changes, metrics = run.day(date(2025, 3, 1), reduced(config, [at(0, "zz", x=1)]))
    assert changes == [] and metrics is None
    table = reduce_rows(config, pa.Table.from_pylist(events(days=1)), "key")
    run.day(date(2025, 3, 2), table)
    text = run.snapshot()
    assert GroupMonitor(config, "", text).snapshot() == text
    other = json.dumps({**json.loads(text), "version": 0})
    with pytest.raises(ValueError, match="another version"):
        GroupMonitor(config, "", other)


@pytest.mark.parametrize("key", ["a", "not of the model"])
def test_events_without_a_time_are_refused(key):
    rows = [at(10 * i, "a", x=1, y=1) for i in range(4)]
    rows[2] = {**rows[2], "ts": None, "key": key}
    table = pa.Table.from_pylist(rows)
    for form in (rows, table, pa.concat_tables([table.slice(0, 1), table.slice(1)])):
        with pytest.raises(InputError, match="row 3 of the events has no 'ts'") as caught:
            monitor(model(), form)
        assert caught.value.key == "ts" and "1 of 4" in (caught.value.hint or "")
    with pytest.raises(InputError, match="row 1 of the events"):
        monitor(model(), [{**row, "ts": None} for row in rows])


def test_missing_columns_and_texts_are_refused():
    with pytest.raises(InputError, match="no column 'y'"):
        monitor(model(), [{"ts": START, "key": "a", "x": 1}])
    with pytest.raises(InputError, match="not a number"):
        monitor(model(), [{"ts": START, "key": "a", "x": "abc", "y": 1.0}])


@pytest.mark.parametrize(
    "more",
    [
        {"features": ["y"], "response": "x"},
        {"features": ["x", "y2"]},
        {"window": {"sliding": 30}},
        {"eps": 0.5},
        {"nodes": ["a", "c"]},
        {"nodes": None, "groups": {"g": ["a", "b"]}},
        {"kind": "threshold"},
    ],
    ids=lambda more: ",".join(more),
)
def test_the_state_of_another_model_is_refused(more):
    rows = events(days=2)
    begun = monitor(model(), rows, until=date(2025, 3, 2))
    other = {key: value for key, value in model(**more).items() if value is not None}
    if "kind" in more:
        other = {key: other[key] for key in ("kind", "source", "start", "nodes", "round")}
        other |= {"value": "y", "threshold": 1.0}
    with pytest.raises(InputError, match="does not belong to this definition") as caught:
        monitor(other, rows, after=begun)
    assert caught.value.key == "after" and "same model" in (caught.value.hint or "")
    with pytest.raises(InputError, match="does not belong to this definition"):
        monitor(model(), rows, after=monitor(other, [], until=date(2025, 3, 2)))
    assert monitor(model(description="other words"), rows, after=begun).next_day == date(2025, 3, 3)


def test_counting_begins_at_a_round_and_periods_end_at_a_longest_one():
    whole = monitor(model(per_baseline=True), events()).metrics.to_pylist()
    later = monitor(model(per_baseline=True, count_from=200, per_Tmax=3), events())
    changes = later.changes.to_pylist()
    for row, all_of_it in zip(later.metrics.to_pylist(), whole, strict=True):
        # Every day has 144 rounds.
        before = 144 * (row["day"] - date(2025, 3, 1)).days
        mine = [c for c in changes if c["event_date"] == row["day"] and before + c["round"] >= 200]
        assert row["syncs"] == sum(c["kind"] == "sync" for c in mine)
        assert row["changes"] == sum(c["kind"] == "change" for c in mine)
        assert row["rounds"] == all_of_it["rounds"] and (row["per_T"] or 0) <= 3
    first, second, third = later.metrics.to_pylist()
    assert first["normalized_up"] is None and first["max_error"] is None and first["reports_up"] == 0
    counted = 288 - 200  # rounds 144 to 287 are those of the second day, none is skipped
    assert second["rounds"] == 144 and second["rounds_skipped"] == 0
    assert second["normalized_up"] == (second["reports_up"] + second["polls_down"]) / (2 * counted)
    assert third == {**whole[2], "per_T": third["per_T"], "per_T_mono": third["per_T_mono"]}


def test_what_is_seldom_meant_is_said():
    assert monitor(model(window={"sliding": 150}, max_carry=20), events()).warnings == ()
    (short,) = monitor(model(), events()).warnings
    assert "20 rounds is shorter than 72 rounds per coefficient (144)" in short
    (doubling,) = monitor(model(window={"infinite": 30}, constraint="paper"), events()).warnings
    assert doubling.startswith("paper with an infinite window")
    rows = [{**row, "x": row["x"] + 100} for row in events()]
    (ill,) = monitor(model(detector="exact"), rows).warnings
    assert "condition number" in ill and "metric: prediction" in ill
    assert monitor(model(detector="exact", metric="prediction"), rows).warnings == ()


def plain_rounds(values, transforms):
    """Values by round of one session after transforms, None where there is none; a plain loop from the definition."""
    for transform in transforms:
        name, n = (transform.split() + ["0"])[:2] if transform.startswith("lag") else (transform, 0)
        found = []
        for t, value in enumerate(values):
            before = values[t - 1] if t else None
            if name == "log":
                found.append(math.log(value) if value is not None and value > 0 else None)
            elif name == "diff":
                found.append(None if value is None or before is None else value - before)
            else:
                found.append(values[t - int(n)] if t >= int(n) else None)
        values = found
    return values


@pytest.mark.parametrize("transforms", [["lag 1"], ["lag 7"], ["lag 30"], ["diff"], ["diff", "diff", "lag 3"],
                                        ["log", "diff"], ["lag 5", "log"]])  # fmt: skip
@pytest.mark.parametrize("sessions", [(3,), (4, 40), (40, 5, 40), (40, 6, 1, 8, 60), (29, 31, 300)])
def test_transforms_at_the_borders_of_sessions_equal_a_plain_loop(transforms, sessions):
    """Sessions shorter and longer than what a transform reaches back to, over days, with values of 0 and below."""
    rng = np.random.default_rng(len(sessions))
    config = parse_definition(
        model(nodes=["a"], features=[{"of": "x", "transform": transforms}], session_gap="2 h", on_gap="reset")
    )
    rows, wanted, at = [], [], START + timedelta(hours=21)
    for session in sessions:
        x = [float(v) for v in rng.integers(-1, 9, size=session)]
        y = plain_rounds(x, transforms)
        for value, given_y in zip(x, y, strict=True):
            rows.append({"key": "a", "ts": at, "x": value, "y": 1.0})
            if given_y is not None:
                wanted.append((int(at.timestamp()) * 1_000_000, given_y))
            at += timedelta(minutes=10)
        at += timedelta(hours=5)
    rounds, found = Rounds(config, ""), []
    reduced = reduce_rows(config, rows, "key")
    for _, part in by_day(reduced, START.date(), at.date() + timedelta(days=1)):
        rounds = Rounds(config, "", states.loads(states.dumps({"rounds": rounds.carried}))["rounds"])
        for chunk in rounds.chunks(part):
            found += zip(chunk.ts.tolist(), chunk.x[:, 0, 1].tolist(), strict=True)
    assert [t for t, _ in found] == [t for t, _ in wanted]
    np.testing.assert_allclose([v for _, v in found], [v for _, v in wanted], rtol=1e-15)


@pytest.mark.slow
def test_keys_that_no_event_has_are_said():
    """A misspelt node, one that YAML reads as another, a misspelt key of a feature; not a node that begins later."""
    grouped = {name: value for name, value in model().items() if name != "nodes"} | {"groups": {"g": ["7"], "h": ["a"]}}
    later = [{"name": "c", "keys": ["c"], "from": "2026-01-01"}, "a"]
    threshold = {"kind": "threshold", "source": "s", "start": "2025-03-01", "nodes": ["a", "no"], "value": "y",
                 "threshold": 0.1, "round": {"length": "10 min"}}  # fmt: skip
    for content, wanted in (
        (model(nodes=["a", "B"]), ["the key 'B':"]),
        (model(nodes=["A"]), ["the key 'A':"]),
        (model(nodes=[7, 8]), ["the keys '7', '8':"]),
        (grouped, ["the key '7' of group g:"]),
        (model(features=[{"of": "x", "key": "zz"}]), ["the key 'zz':"]),
        (model(nodes=[*"acdefgh"]), ["the keys 'c', 'd', 'e', 'f', 'g' and 1 more:"]),
        (model(nodes=later), []),
        (threshold, ["the key 'no':"]),
        (model(), []),
    ):
        rows = events()
        whole = monitor(content, rows)
        half = monitor(content, rows, until=date(2025, 3, 2))
        for found in (whole, monitor(content, rows, after=half)):
            said = [text for text in found.warnings if "no event up to 2025-03-03" in text]
            assert len(said) == len(wanted) and all(part in text for part, text in zip(wanted, said, strict=True))
