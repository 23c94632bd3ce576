"""The pages of models beside regression show what their rows say: stretches outside, regret, flagged machines."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import date, timedelta

import pytest

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.definitions.source import load_sources
from chainlake.paths import Home
from chainlake.report import companions
from chainlake.schemas.models import ALERTS, FAULT_SCORES, LEARNERS, METRICS, ZONE_EVENTS
from tests.report.companion_rows import NOON, OCTOBER, add, fault_score, learner_day, zone_event


def loaded(home: Home, name: str) -> LoadedModel:
    (found,), broken = load_models(home, load_sources(home), only=[name])
    assert not broken
    return found


def page(home: Home, name: str) -> str:
    """The text of its sections; what charts are made of is left out."""
    return re.sub(r"<script.*?</script>", "", "".join(companions.found(home, loaded(home, name))), flags=re.DOTALL)


def cells(text: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL)] for row in rows]


@pytest.mark.parametrize("name", ["road_queue", "next_speed", "loop_lengths"])
def test_a_model_that_found_nothing_says_so(name: str, home: Home) -> None:
    assert re.search("None yet|No day is done yet", page(home, name))


def test_a_threshold_monitor_shows_the_mean_at_its_alerts_as_points_about_the_threshold(home: Home) -> None:
    own = replace(home, config=home.root / "own")
    shutil.copytree(home.config / "sources", own.config / "sources")
    (own.config / "models").mkdir()
    (own.config / "models" / "slow.yaml").write_text(
        "kind: threshold\nsource: traffic\nstart: 2025-10-01\nnodes: ['1']\nvalue: speed\nthreshold: 50\n"
        "round: {length: 5 min}\n"
    )
    alerts = [(0, "below", 49.826719), (60, "recovered", 52.373311)]
    add(own, ALERTS, [{"monitor": "slow", "ts": NOON + timedelta(minutes=minute), "kind": kind, "mean": mean,
                       "n_collected": 15} for minute, kind, mean in alerts])  # fmt: skip
    text = page(own, "slow")
    assert [row[1:] for row in cells(text) if row] == [["recovered", "52.37", "15"], ["below", "49.83", "15"]]
    made = "".join(companions.found(own, loaded(own, "slow")))
    layers = json.loads(re.search(r'class="spec">(.*?)</script>', made).group(1))["layer"]
    # Between two alerts nothing is known of the mean, so that no line joins them.
    assert {layer["mark"]["type"] for layer in layers} == {"point", "rule", "text"}
    points = next(layer for layer in layers if layer["mark"]["type"] == "point")
    assert [(row["k"], row["v"]) for row in points["data"]["values"]] == [
        ("it fell below", 49.826719),
        ("it came back", 52.373311),
    ]
    lo, hi = points["encoding"]["x"]["scale"]["domain"]
    assert all(lo < row["t"] < hi for row in points["data"]["values"])
    assert points["encoding"]["y"]["scale"]["zero"] is False


def test_safe_zones_show_true_alerts_apart_from_violations(home: Home) -> None:
    quiet = [zone_event(minute, "balanced", ["b"]) for minute in (0, 5)]
    crossings = [
        zone_event(10, "outside", ["a", "b"]),
        zone_event(30, "inside", ["a"]),
        zone_event(50, "outside", ["b"]),
    ]
    add(home, ZONE_EVENTS, [*quiet, *crossings, {**zone_event(60, "outside", ["z"]), "model": "other"}])
    add(home, METRICS, [{"model": "road_queue", "day": OCTOBER[0], "rounds": 9, "rounds_skipped": 0,
                         "reports_up": 5, "polls_down": 7}])  # fmt: skip
    text = page(home, "road_queue")
    # No column of groups, since there are none.
    rows = [row for row in cells(text) if len(row) == 4]
    # Latest first, in the zone of the source: 12:50 UTC is 05:50 in Los Angeles; it is not back yet.
    assert [row[0][:19] for row in rows] == ["2025-10-01 05:50:00", "2025-10-01 05:10:00"]
    assert rows[0][1] == "still outside" and rows[1][1].startswith("2025-10-01 05:30:00")
    assert rows[1][2:4] == ["speed (mph) 44.44", "speed &gt;= 45"]
    assert [row for row in cells(text) if len(row) == 2][:2] == [["b", "4"], ["a", "2"]]
    assert "Messages of 1 day, up and down: 12." in text


def test_shared_learning_shows_regret_and_what_of_the_gain_is_kept(home: Home) -> None:
    add(home, LEARNERS, [learner_day(on, learner, 7.0) for on in OCTOBER for learner in ("a", "b")])
    text = page(home, "next_speed")
    # Both together: alone 20, shared at every check 12, as they are 14: 6 of 8 are gained.
    assert ["2025-10-02", "14", "20", "12", "75%"] in cells(text)
    assert ["a", "2025-10-02", "7", "10", "1", "constant 0.5"] in cells(text)
    assert "Regret per day" in text


def test_latent_faults_name_the_flagged_machines_and_their_counters(home: Home) -> None:
    add(home, FAULT_SCORES, [fault_score(on, name, p) for on in OCTOBER for name, p in (("a", 0.001), ("b", 0.7))])
    text = page(home, "loop_lengths")
    flagged = [row for row in cells(text) if len(row) == 5]
    assert flagged == [["every day since 2025-10-01", "a", "length −0.8", "0.5", "0.001"]]
    assert "below 0.01" in text and "the 2 with the smallest p" in text


def test_days_of_a_flagged_machine_that_follow_one_another_are_one_row(home: Home) -> None:
    days = [date(2025, 10, day) for day in (1, 2, 3, 5, 6)]  # the model has no rows of the fourth day
    ill = {"a": days[:2], "b": [days[0], *days[2:]], "c": days[3:4]}
    rows = [fault_score(on, name, 0.001 if on in ill[name] else 0.7) for on in days for name in ill]
    add(home, FAULT_SCORES, [{**row, "top_counters": [{"feature": "length", "value": 1.0}]} for row in rows])
    text = page(home, "loop_lengths")
    assert [row[:3] for row in cells(text) if len(row) == 5] == [
        ["every day since 2025-10-03", "b", "length +1"],
        ["2025-10-05", "c", "length +1"],
        ["2025-10-01 to 2025-10-02, every day", "a", "length +1"],
        ["2025-10-01", "b", "length +1"],
    ]
    assert "first flagged" not in text, "a window of a day ends with the last round"
