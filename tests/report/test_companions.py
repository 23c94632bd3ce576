"""The pages of models beside regression show what their rows say: stretches outside, regret, flagged machines."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from chainlake.catalog.models import LoadedModel, load_models
from chainlake.definitions.source import load_sources
from chainlake.lake.delta import tables
from chainlake.paths import Home
from chainlake.report import companions
from chainlake.schemas.models import FAULT_SCORES, LEARNERS, METRICS, ZONE_EVENTS
from chainlake.schemas.table import Table
from tests.lake.appending import append_arrow

NOON = datetime(2025, 10, 1, 12, tzinfo=UTC)
OCTOBER = [date(2025, 10, day) for day in (1, 2)]


def loaded(home: Home, name: str) -> LoadedModel:
    (found,), broken = load_models(home, load_sources(home), only=[name])
    assert not broken
    return found


def add(home: Home, table: Table, rows: list[dict[str, Any]]) -> None:
    tables.ensure_table(home, table)
    found = pa.Table.from_pylist([{"group_id": "", **row} for row in rows], schema=table.arrow())
    append_arrow(home, table, found, app="m", base_version=0, mark="m")


def page(home: Home, name: str) -> str:
    """The text of its sections; what charts are made of is left out."""
    return re.sub(r"<script.*?</script>", "", "".join(companions.found(home, loaded(home, name))), flags=re.DOTALL)


def cells(text: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL)] for row in rows]


@pytest.mark.parametrize("name", ["road_queue", "next_speed", "loop_lengths"])
def test_a_model_that_found_nothing_says_so(name: str, home: Home) -> None:
    assert re.search("None yet|No day is done yet", page(home, name))


def test_safe_zones_show_true_alerts_apart_from_violations(home: Home) -> None:
    def event(minute: int, kind: str, violators: list[str] | None) -> dict[str, Any]:
        ts = NOON + timedelta(minutes=minute)
        mean = None if kind == "balanced" else [{"feature": "speed", "value": 44.4444}]
        return {"model": "road_queue", "ts": ts, "kind": kind, "round": minute, "violators": violators,
                "facets": ["speed >= 45"], "mean": mean, "event_date": ts.date()}  # fmt: skip

    quiet = [event(minute, "balanced", ["b"]) for minute in (0, 5)]
    crossings = [event(10, "outside", ["a", "b"]), event(30, "inside", ["a"]), event(50, "outside", ["b"])]
    add(home, ZONE_EVENTS, [*quiet, *crossings, {**event(60, "outside", ["z"]), "model": "other"}])
    add(home, METRICS, [{"model": "road_queue", "day": OCTOBER[0], "rounds": 9, "rounds_skipped": 0,
                         "reports_up": 5, "polls_down": 7}])  # fmt: skip
    text = page(home, "road_queue")
    rows = [row for row in cells(text) if len(row) == 5]
    # The latest first, in the zone of the source: 12:50 UTC is 05:50 in Los Angeles; it is not back yet.
    assert [row[0][:19] for row in rows] == ["2025-10-01 05:50:00", "2025-10-01 05:10:00"]
    assert rows[0][1] == "still outside" and rows[1][1].startswith("2025-10-01 05:30:00")
    assert rows[1][2:4] == ["speed &gt;= 45", "speed 44.44"]
    assert [row for row in cells(text) if len(row) == 2][:2] == [["b", "4"], ["a", "2"]]
    assert "Messages of 1 day, up and down: 12." in text


def test_shared_learning_shows_regret_and_what_of_the_gain_is_kept(home: Home) -> None:
    def day(on: date, learner: str, loss: float) -> dict[str, Any]:
        ts = datetime(on.year, on.month, on.day, 12, tzinfo=UTC)
        return {"model": "next_speed", "ts": ts, "kind": "day", "learner": learner, "round": 1, "event_date": on,
                "loss": loss, "loss_alone": 10.0, "loss_static": 6.0, "errors": 1,
                "weights": [{"feature": "constant", "value": 0.5}]}  # fmt: skip

    add(home, LEARNERS, [day(on, learner, 7.0) for on in OCTOBER for learner in ("a", "b")])
    text = page(home, "next_speed")
    # Both together: alone 20, shared at every check 12, as they are 14: 6 of 8 are gained.
    assert ["2025-10-02", "14", "20", "12", "75%"] in cells(text)
    assert ["a", "2025-10-02", "7", "10", "1", "constant 0.5"] in cells(text)
    assert "Regret per day" in text


def test_latent_faults_name_the_flagged_machines_and_their_counters(home: Home) -> None:
    def score(on: date, machine: str, p: float) -> dict[str, Any]:
        return {"model": "loop_lengths", "day": on, "machine": machine, "rounds": 9, "v_norm": 0.5, "gamma": 0.1,
                "p": p, "flagged": p < 0.01, "top_counters": [{"feature": "length", "value": -0.8}]}  # fmt: skip

    add(home, FAULT_SCORES, [score(on, machine, p) for on in OCTOBER for machine, p in (("a", 0.001), ("b", 0.7))])
    text = page(home, "loop_lengths")
    flagged = [row for row in cells(text) if len(row) == 7]
    assert [row[:3] for row in flagged] == [[f"2025-10-0{day}", "a", "length -0.8"] for day in (2, 1)]
    assert "below 0.01" in text and "the 2 with the smallest p" in text
