"""The map of a road stays in sight, however many matches are drawn on it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from chainlake.definitions.source import load_sources
from chainlake.paths import Home
from chainlake.report.drawing.charts import Span
from chainlake.report.drawing.road import road_map
from chainlake.report.reading import Event, Match
from chainlake.report.showing import Clock
from tests.report.companion_rows import NOON

MINUTE = 60_000_000
BEGIN = int(NOON.timestamp() * 1e6)


def drawn(home: Home, many: int) -> list[dict[str, Any]]:
    """The layers with matches of a map with two detectors and some matches, a minute apart, of both."""
    events = pa.table({
        "ts": pa.array([BEGIN, BEGIN], pa.timestamp("us", tz="UTC")),
        "detector": ["1", "2"], "position": [10.0, 11.0], "speed": [60.0, 50.0],
    })  # fmt: skip
    matches = []
    for at in range(many):
        us = BEGIN + at * MINUTE
        bound = tuple(Event("a", us, key, {"position": place}) for key, place in (("1", 10.0), ("2", 11.0)))
        matches.append(Match(str(at), us, us, us, events=bound))
    span = Span(BEGIN, BEGIN + 600 * MINUTE, Clock("UTC"))
    layers = road_map(load_sources(home)["traffic"], span, events, "speed", matches=matches)["layer"]
    return [layer for layer in layers if layer["mark"]["type"] in ("line", "point")]


def test_hundreds_of_matches_do_not_hide_the_map(home: Home) -> None:
    few, many = drawn(home, 3), drawn(home, 300)
    assert (
        [layer["mark"]["type"] for layer in few]
        == ["line", "line", "point"]
        == [layer["mark"]["type"] for layer in many]
    )
    # Ten hours are about 730 pixels: lines two minutes apart have 2.4 pixels each, and are to leave the most of them.
    assert all(layer["mark"]["strokeWidth"] < 2 for layer in many)
    assert many[0]["mark"]["opacity"] <= 0.5 < few[0]["mark"]["opacity"]
    assert many[2]["mark"]["size"] < few[2]["mark"]["size"]
