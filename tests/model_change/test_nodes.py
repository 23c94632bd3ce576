"""Nodes of several keys, and nodes that join and leave, against a plain loop over rounds and nodes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.errors import DefinitionError
from chainlake.model_change.days.definitions import parse_definition
from chainlake.model_change.library import monitor
from tests.model_change.plain_loop import identifiable, value_of

pytestmark = pytest.mark.slow

FIRST = date(2025, 3, 1)
START = datetime(2025, 3, 1, tzinfo=UTC)
PER_DAY = 24


def day(i: int) -> date:
    return FIRST + timedelta(days=i)


def model(nodes, **more):
    base = {
        "source": "s", "start": "2025-03-01", "nodes": nodes, "response": "y", "features": ["x"],
        "round": {"length": "1 h"}, "window": {"sliding": 6}, "eps": 0.6, "max_carry": 0,
    }  # fmt: skip
    return {**base, **more}


def spans(nodes):
    """Node -> first hour and hour after the last of each of its stretches."""
    return {
        node["keys"][0]: [
            (
                0 if stretch.get("from") is None else (stretch["from"] - FIRST).days * PER_DAY,
                10**9 if stretch.get("to") is None else (stretch["to"] - FIRST).days * PER_DAY,
            )
            for stretch in node.get("dates", [node])
        ]
        for node in nodes
    }


def plain(values, nodes, window, eps, infinite, constraint):
    """(round, kind, violators, beta, error_before) of the local detector, from the definition.

    Args:
        values: (hour, node) -> (x, y); absent where nothing was reported.
    """
    found, active, used, since = [], set(), [], {}
    reference = None
    for hour in range(max(h for h, _ in values) + 1):
        begun = {name: lo for name, its in spans(nodes).items() for lo, hi in its if lo <= hour < hi}
        here = set(begun)
        if not any((hour, name) in values for name in here):
            continue  # no round
        if not active & here:
            active, used, since, reference = here, [], {name: 0 for name in here}, None
        active = active & here
        if any((hour, name) not in values for name in active):
            continue  # a node is missing
        used.append(hour)
        for name in here - active:
            if len(used) >= window and all(h >= begun[name] and (h, name) in values for h in used[-window:]):
                # its own window is full: it joins in this round
                active, since = active | {name}, {**since, name: len(used) - window}
        names = [node["keys"][0] for node in nodes if node["keys"][0] in active]
        if len(used) < window:
            continue
        sums = {}
        for name in names:
            hours = used[max(since[name], 0 if infinite else len(used) - window) :]
            x = np.array([[1.0, values[h, name][0]] for h in hours])
            y = np.array([values[h, name][1] for h in hours])
            sums[name] = (x.T @ x, x.T @ y)
        a, c = (np.sum([sums[name][i] for name in names], axis=0) for i in (0, 1))
        if not identifiable(a):
            raise AssertionError("the examples are identifiable")
        beta = np.linalg.solve(a, c)
        if reference is None:
            found.append((hour, "init", [], beta, None))
        elif set(names) != set(reference[0]):
            found.append((hour, "node_change", [], beta, np.linalg.norm(beta - reference[1])))
        else:
            old, beta0, ahat = reference
            violators = []
            for name in names:
                d_a, d_c = (sums[name][i] - old[name][i] for i in (0, 1))
                value, size = value_of(constraint, ahat, beta0, d_a, d_c, eps)
                if not (value <= eps * (1 + 1e-9) and size < 1 - 1e-9):
                    violators.append(name)
            if not violators:
                continue
            found.append((hour, "sync", violators, beta, np.linalg.norm(beta - beta0)))
        reference = (sums, beta, a / len(names))
    return found


def readings(seed, names, hours, missing):
    rng = np.random.default_rng(seed)
    values = {}
    for hour in range(hours):
        for i, name in enumerate(names):
            x, slope = float(rng.normal()), 1.0 + 0.5 * i + hour / hours
            if rng.random() >= missing:
                values[hour, name] = (x, slope * x + 0.2 * float(rng.normal()))
    return values


def rows_of(values):
    return [
        {"key": name, "ts": START + timedelta(hours=h, minutes=1), "x": x, "y": y}
        for (h, name), (x, y) in values.items()
    ]


def dated(name, first, last):
    node = {"name": name, "keys": [name]}
    return node | ({"from": day(first)} if first else {}) | ({"to": day(last)} if last else {})


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), missing=st.sampled_from([0.0, 0.1]), infinite=st.booleans(),
    dates=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, 2, 3, 4, 6])), min_size=2, max_size=4),
    again=st.sampled_from([None, (1, 2), (2, 3), (3, 4), (2, 9)]),
    constraint=st.sampled_from(["residual", "onesided"]), detector=st.sampled_from(["both", "local"]),
)  # fmt: skip
def test_nodes_that_join_and_leave_equal_the_plain_loop(seed, missing, infinite, dates, again, constraint, detector):
    nodes = [dated(chr(97 + i), first, last) for i, (first, last) in enumerate(dates) if not last or first < last]
    if not nodes:
        return
    if again:  # one node leaves and comes back
        away, back = (day(i) for i in again)
        nodes.append({"name": "z", "keys": ["z"], "dates": [{"to": away}, {"from": back, "to": day(12)}]})
    values = readings(seed, [node["name"] for node in nodes], 5 * PER_DAY, missing)
    window = {"infinite" if infinite else "sliding": 6}
    content = model(nodes, window=window, constraint=constraint, detector=detector)
    whole = monitor(content, rows_of(values))
    wanted = plain(values, nodes, 6, 0.6, infinite, constraint)
    found = [row for row in whole.changes.to_pylist() if row["kind"] != "change"]
    hour = [int((row["ts"] - START) / timedelta(hours=1)) for row in found]
    assert list(zip(hour, [row["kind"] for row in found], strict=True)) == [w[:2] for w in wanted]
    for row, (_, _, violators, beta, error) in zip(found, wanted, strict=True):
        assert (row["violators"] or []) == violators
        np.testing.assert_allclose([b["value"] for b in row["beta_after"]], beta, rtol=1e-7, atol=1e-9)
        if error is not None:
            np.testing.assert_allclose(row["error_before"], error, rtol=1e-6, atol=1e-9)
    result, pieces = None, []
    for i in range(1, 6):
        result = monitor(content, rows_of(values), until=day(i), after=result)
        pieces.append(result.changes)
    assert pa.concat_tables(pieces).equals(whole.changes) and result.state == whole.state


def test_a_node_change_counts_as_a_synchronisation_of_the_nodes_that_are_left():
    nodes = ["a", dated("b", 0, 2), dated("c", 1, None)]
    # The same x in every window: no node's share of the design moves, and 50 is far above any change of y.
    values = {(h, name): ((-1.0) ** h, y) for (h, name), (_, y) in readings(3, "abc", 3 * PER_DAY, 0.0).items()}
    found = monitor(model(nodes, eps=50.0), rows_of(values))
    kinds = [(row["kind"], row["ts"]) for row in found.changes.to_pylist()]
    joined, left = START + timedelta(days=1, hours=5), START + timedelta(days=2)
    assert kinds == [("init", START + timedelta(hours=5)), ("node_change", joined), ("node_change", left)]
    counts = [(m["syncs"], m["reports_up"], m["polls_down"]) for m in found.metrics.to_pylist()]
    assert counts == [(0, 0, 0), (1, 0, 3), (1, 0, 2)]
    # 5 rounds of two nodes and 19 of three
    assert found.metrics["normalized_up"].to_pylist()[1] == 3 / (5 * 2 + 19 * 3)


@pytest.mark.parametrize("infinite", [False, True])
def test_the_exact_detector_and_gls_follow_a_change_of_nodes(infinite):
    nodes, phi = ["a", dated("b", 1, None), dated("c", 0, 2)], 0.6
    values = readings(5, "abc", 4 * PER_DAY, 0.0)
    window = {"infinite" if infinite else "sliding": 8}
    content = model(nodes, window=window, detector="exact", gls={"phi": phi}, eps=1e-6)
    found = [row for row in monitor(content, rows_of(values)).changes.to_pylist() if row["kind"] == "change"]
    assert len(found) > 60
    for row in found:
        hour = int((row["ts"] - START) / timedelta(hours=1))
        a, c = np.zeros((2, 2)), np.zeros(2)
        for name, lo in (("a", 0), ("b", PER_DAY), ("c", 0)):
            if (name == "b" and hour < PER_DAY + 7) or (name == "c" and hour >= 2 * PER_DAY):
                continue
            hours = np.arange(lo if infinite else max(lo, hour - 7), hour + 1)
            x = np.array([[1.0, values[h, name][0]] for h in hours])
            y = np.array([values[h, name][1] for h in hours])
            s = np.linalg.inv(phi ** np.abs(hours[:, None] - hours[None, :]))
            a, c = a + x.T @ s @ x, c + x.T @ s @ y
        np.testing.assert_allclose([b["value"] for b in row["beta_after"]], np.linalg.solve(a, c), rtol=1e-7, atol=1e-9)


def test_nodes_of_several_keys_by_member_and_together():
    nodes = [{"name": "left", "keys": ["a", "b"]}, {"name": "right", "keys": ["c", "d"]}]
    rng = np.random.default_rng(1)
    rows = [
        {"key": key, "ts": START + timedelta(hours=h), "x": float(rng.normal()), "y": float(rng.normal())}
        for h in range(12)
        for key in "abcd"
    ]
    value = {(row["ts"], row["key"], name): row[name] for row in rows for name in ("x", "y")}
    content = model(nodes, response={"of": "y", "member": 2}, features=[{"of": "x", "member": 1}, "x"],
                    window={"sliding": 12}, eps=0.5)  # fmt: skip
    config = parse_definition(content)
    assert config.feature_names == ("constant", "x[1]", "x")
    (init,) = monitor(config, rows).changes.to_pylist()
    x, y = [], []
    for h in range(12):
        ts = START + timedelta(hours=h)
        for one, two in ("ab", "cd"):
            x.append([1.0, value[ts, one, "x"], (value[ts, one, "x"] + value[ts, two, "x"]) / 2])
            y.append(value[ts, two, "y"])
    wanted = np.linalg.lstsq(np.array(x), np.array(y), rcond=None)[0]
    np.testing.assert_allclose([b["value"] for b in init["beta_after"]], wanted, rtol=1e-9)


GOOD = """\
source: s
start: 2025-03-01
nodes:
  - a
  - {name: b, keys: [b1, b2], from: 2025-03-02, to: 2025-04-01}
response: y
features: [x]
round: {length: 1 h}
window: {sliding: 8}
eps: 1
"""


DATED = "from: 2025-03-02, to: 2025-04-01"


@pytest.mark.parametrize(
    ("old", "new", "key", "line", "hint"),
    [
        ("to: 2025-04-01", "to: 2025-03-02", "nodes.1.to", 5, "after the last"),
        ("name: b, ", "", "nodes.1.name", 5, "Give name"),
        ("name: b", "name: a", "nodes", 3, "once"),
        ("keys: [b1, b2]", "keys: []", "nodes.1.keys", 5, "non-empty list"),
        ("from: 2025-03-02", "since: 2025-03-02", "nodes.1.since", 5, "name, keys, from, to, dates"),
        ("  - a\n", "  - [a]\n", "nodes.0", 4, "keys: [key, ...]"),
        ("[x]", "[{of: x, member: 2}]", "features", 7, "members 1 to 1"),
        ("[x]", "[{of: x, member: 0}]", "features.0.member", 7, "from 1"),
        ("[x]", "[{of: x, member: 1, key: a}]", "features.0.member", 7, "Drop one"),
        ("length: 1 h", "length: 1 h, min_nodes: 2", "round.min_nodes", 8, "1 to 1"),
        ("to: 2025-04-01", "dates: [{to: 2025-04-01}]", "nodes.1.dates", 5, "all periods into dates"),
        (DATED, "dates: 2025-03-02", "nodes.1.dates", 5, "[{from: DAY, to: DAY}, ...]"),
        (DATED, "dates: [{to: 2025-03-02}, {from: 2025-03-02}]", "nodes.1.dates.1.from", 5, "at least a day between"),
        (DATED, "dates: [{from: 2025-03-04, to: 2025-03-02}]", "nodes.1.dates.0.to", 5, "after the last"),
        ("eps: 1", "eps: 1\nper_Tmax: 5", "per_Tmax", 11, "per_baseline"),
    ],
)
def test_errors_about_nodes_say_where_and_what_is_allowed(tmp_path, old, new, key, line, hint):
    assert old in GOOD
    path = tmp_path / "wrong.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(DefinitionError) as caught:
        monitor(path, [])
    error = caught.value
    assert (error.file, error.line, error.key) == (str(path), line, key)
    assert hint in (error.hint or "")
