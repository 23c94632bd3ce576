"""States are canonical: what a late file changed is in them as long as it has an effect, and no longer."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from chainlake.model_change.library import monitor
from chainlake.model_change.statistics import state as states
from chainlake.model_change.statistics.records import State

START = datetime(2025, 3, 1, tzinfo=UTC)
DAYS = 6


def model(**more):
    base = {
        "source": "s", "start": "2025-03-01", "nodes": ["a", "b"], "response": "y", "features": ["x"],
        "round": {"length": "30 min"}, "window": {"sliding": 12}, "eps": 0.5,
    }  # fmt: skip
    return {key: value for key, value in {**base, **more}.items() if value is not None}


def events(late: bool, *, last: dict[str, int] | None = None):
    """Rounds of half an hour, none at night; the slope doubles at noon of every other day.

    Args:
        late: three rounds of the second night are there too, and a reading of the day after is another one.
        last: the day on which a key stops, from 0.
    """
    rng = np.random.default_rng(3)
    rows = []
    for i in range(DAYS * 48):
        at = START + timedelta(minutes=30 * i)
        slope = 1.0 + ((i - 24) // 96 % 2)
        for key in ("a", "b", "c"):
            x, noise = float(rng.normal()), 0.02 * float(rng.normal())
            if last and i // 48 > last.get(key, DAYS):
                continue
            if at.hour < 5 and not (late and 50 <= i <= 52):
                continue
            if late and key == "b" and i == 75:
                x += 0.3
            rows.append({"event_id": f"{key}{i}", "key": key, "ts": at, "x": x, "y": slope * x + noise})
    return rows


def days_of(rows, config):
    """State at the end of each day, and the rows of each day."""
    result, found = None, []
    for n in range(DAYS):
        result = monitor(config, rows, until=date(2025, 3, 2) + timedelta(days=n), after=result)
        found.append((result.state, result.found.to_pylist()))
    return found


FORMS = {
    "both": model(detector="both"),
    "local": model(detector="local"),
    "exact": model(detector="exact"),
    "counted": model(count_from=60),
    "frozen": model(eps={"share": 0.3}, gls={"phi": "fit"}, metric="prediction", detector="exact"),
    "lag": model(features=["x", {"of": "x", "transform": "lag 2"}], detector="exact"),
    "sessions": model(session_gap="2 h", on_gap="reset", detector="exact"),
    "key": model(nodes=["a"], features=["x", {"of": "x", "key": "c"}], detector="exact"),
    "zones": model(
        kind="safe_zones", nodes=["a", "b", "c"], values=["x", "y"], region={"box": [[-1, 1], [None, 2]]},
        design={"rounds": 30, "every": 1, "method": "multipliers"}, response=None, features=None, window=None, eps=None,
    ),
    "learners": model(
        kind="shared_learning", learning_rate=0.4, penalty=0.05, sync={"dynamic": 0.2, "every": 2}, window=None,
        eps=None,
    ),
    "faults": model(
        kind="latent_faults", nodes=["a", "b", "c"], counters=["x", "y"], window={"sliding": 30}, response=None,
        features=None, eps=None,
    ),
    "two": model(nodes=None, groups={"one": ["a"], "two": ["b", "c"]}, detector="exact"),
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("form", FORMS)
def test_the_state_forgets_what_has_no_effect_any_more(form):
    plain, late = days_of(events(False), FORMS[form]), days_of(events(True), FORMS[form])
    alike = [one[0] == other[0] for one, other in zip(plain, late, strict=True)]
    assert alike[0] and not alike[1], "the late rounds are in their day"
    assert alike[-2:] == [True, True], "and have an effect for some days"
    # Equal states go on alike.
    for before, one, other in zip(alike, plain[1:], late[1:], strict=False):
        assert not before or one[0] != other[0] or one == other


@pytest.mark.few(1)
@pytest.mark.parametrize("key", ["c", "d"])
def test_how_long_a_key_is_silent_is_forgotten_when_it_is_too_long(key):
    """Key c stops on the first day, d never begins; what is late is how many rounds there were since."""
    config = model(features=["x", {"of": "x", "key": key, "transform": "lag 1"}])
    one, other = (days_of(events(late, last={"c": 0}), config)[-1][0] for late in (False, True))
    kept = [states.loads(of[""])["rounds"] for of in (one, other)]
    assert kept[0]["seen"] == kept[1]["seen"]
    for name in ("last", "age", "history"):
        # The others, a and b, go on.
        np.testing.assert_array_equal(kept[0][name][..., 2:, :], kept[1][name][..., 2:, :])


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["both", "local", "exact"])
def test_the_first_window_leaves_nothing_behind_where_nothing_is_frozen_in_it(form):
    rows = events(False)
    changed = [{**row, "x": row["x"] + 0.3 * (row["event_id"] == "b12")} for row in rows]
    plain, late = days_of(rows, FORMS[form]), days_of(changed, FORMS[form])
    assert plain[0][0] != late[0][0] and plain[-1][0] == late[-1][0]


@pytest.mark.few(1)
@pytest.mark.parametrize("differs", ["its last reading", "whether that is there"])
@pytest.mark.parametrize("stops", ["left", "silent", "transformed"])
def test_a_key_that_stops_leaves_nothing_behind(stops, differs):
    """Two histories that differ in the last reading of the key, and in nothing else."""
    more = {"features": ["x", {"of": "x", "transform": "diff"}]} if stops == "transformed" else {}
    nodes = ["a", "b", "c"] if stops == "silent" else ["a", "b", {"keys": ["c"], "to": "2025-03-03"}]
    config = model(nodes=nodes, max_carry=2, detector="exact", **more)
    rows = events(False, last={"c": 1})
    changed = [dict(row) for row in rows]
    last = max((row for row in changed if row["key"] == "c"), key=lambda row: row["ts"])
    if differs == "its last reading":
        last["x"] += 0.2
    else:
        changed.remove(last)
    one, other = (days_of(of, config)[-1][0] for of in (rows, changed))
    if stops == "silent":
        # The rows of the window keep its last reading for as long as there is no other round.
        one, other = ({g: states.loads(text)["rounds"] for g, text in of.items()} for of in (one, other))
        for name in ("last", "age", "seen"):
            np.testing.assert_array_equal(one[""][name], other[""][name])
    else:
        assert one == other


def test_a_threshold_monitor_below_knows_no_thresholds():
    config = {"kind": "threshold", "source": "s", "start": "2025-03-01", "nodes": ["a", "b"], "value": "y",
              "threshold": 50, "round": {"length": "30 min"}}  # fmt: skip
    found = []
    for first in (53.0, 57.0):
        values = [(60, 60), (first, 49), (10, 10), (11, 12)]
        rows = [
            {"event_id": f"{key}{i}", "key": key, "ts": START + timedelta(minutes=30 * i), "y": float(y)}
            for i, pair in enumerate(values)
            for key, y in zip(("a", "b"), pair, strict=True)
        ]
        found.append(monitor(config, rows).state[""])
    assert found[0] == found[1] and states.loads(found[0])["below"]


def test_rounds_are_counted_within_their_day():
    changes = monitor(model(detector="exact"), events(False)).changes.to_pylist()
    # There are no rounds before five o'clock.
    assert {row["event_date"].day for row in changes} >= {1, 3, 5}
    for row in changes:
        assert row["round"] == (row["ts"].hour - 5) * 2 + row["ts"].minute // 30


def test_equal_states_are_equal_texts():
    numbers = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8000000000ABC], dtype=np.uint64).view(float)
    texts = {states.dumps({"kernel": State(peak=np.array([1.0, one]))}) for one in numbers}
    assert len(texts) == 1
    text = monitor(model(), events(False)).state[""]
    assert states.dumps(states.loads(text)) == text
