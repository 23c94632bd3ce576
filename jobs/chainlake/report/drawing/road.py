"""The map of a road: place over time, coloured by an attribute, with matches and model changes on it.

A source whose events have the attribute ``position`` is a road: its keys are at places along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.report.drawing.charts import Span, Spec, base, height_axis
from chainlake.report.reading import Match
from chainlake.report.showing import plain, with_unit

#: The attribute that makes a source a road.
PLACE = "position"
#: About how many cells the maps of a page may have together; if there would be more, readings are averaged.
CELLS = 30_000
#: Height of a map, in pixels.
_HEIGHT = 340
#: The largest number of matches drawn on a map.
MATCHES = 300
#: From this many matches on, lines and dots are thin, since thick ones would hide the map.
_DENSE = 40
#: Widths of the outline and of the line of a match, size and edge of its dots, and the lines' opacity.
_THICK, _THIN = (4.5, 2.2, 46, 1.4, 0.9), (1.8, 0.7, 12, 0.7, 0.5)


@dataclass(frozen=True)
class Change:
    """A change of a model for a map: its time in microseconds, and its text."""

    us: int
    said: str


def is_road(source: Source) -> bool:
    """Whether the events of a source have a place along a road."""
    return any(one.name == PLACE and one.type in ("double", "long") for one in source.attributes)


def road_map(
    source: Source,
    span: Span,
    events: pa.Table,
    of: str,
    *,
    matches: Sequence[Match] = (),
    changes: Sequence[Change] = (),
    most: int = CELLS,
) -> Spec:
    """The map of a time range.

    Args:
        source: the road.
        span: the time range shown.
        events: its events, with the place and the attribute.
        of: the attribute that decides the colour.
        matches: matches, drawn as lines from event to event.
        changes: changes, drawn as vertical lines.
        most: about how many cells it may have.
    """
    x = span.axis()
    cells, lo, hi = _cells(events, source.key, of, span, most)
    y = height_axis("p", with_unit(source, PLACE))
    y["scale"] = {"zero": False, "nice": False, "domain": [lo, hi]}
    tone: Spec = {
        "field": "v", "type": "quantitative", "title": with_unit(source, of), "scale": {"scheme": "viridis"},
        "legend": {"orient": "right", "type": "gradient", "gradientLength": _HEIGHT - 60},
    }  # fmt: skip
    layers: list[Spec] = [{
        "data": {"values": cells},
        "mark": {"type": "rect", "clip": True},
        "encoding": {
            "x": x, "x2": {"field": "t2"}, "y": y, "y2": {"field": "p2"},
            "color": tone,
            "tooltip": [
                {"field": "k", "title": source.key}, {"field": "v", "title": with_unit(source, of), "format": ".4~g"},
                {"field": "at", "title": with_unit(source, PLACE)},
            ],
        },
    }]  # fmt: skip
    if changes:
        values = [{"t": one.us // 1000, "said": one.said} for one in changes]
        rule = {"type": "rule", "color": "#ffffff", "strokeWidth": 1.5, "strokeDash": [5, 4], "opacity": 0.9}
        layers.append({"data": {"values": values}, "mark": rule,
                       "encoding": {"x": x, "tooltip": [{"field": "said", "title": "model change"}]}})  # fmt: skip
    ways = [row for number, match in enumerate(matches) for row in _way(match, number, span)]
    if ways:
        where = {
            "x": x,
            "y": {**y},
            "detail": {"field": "m", "type": "nominal"},
            "order": {"field": "o", "type": "quantitative"},
        }
        tips = [
            {"field": "n", "title": "bound to"},
            {"field": "k", "title": source.key},
            {"field": "why", "title": "match"},
        ]
        outline, line, dot, edge, opacity = _THIN if len(matches) >= _DENSE else _THICK
        for width, tone_of_line in ((outline, "#000000"), (line, "#ffffff")):
            mark = {"type": "line", "color": tone_of_line, "strokeWidth": width, "opacity": opacity}
            layers.append({"data": {"values": ways}, "mark": mark, "encoding": where})
        point = {
            "type": "point",
            "filled": True,
            "size": dot,
            "color": "#ffffff",
            "stroke": "#000000",
            "strokeWidth": edge,
            "opacity": 1,
        }
        layers.append({"data": {"values": ways}, "mark": point, "encoding": {"x": x, "y": y, "tooltip": tips}})
    return base(layers, _HEIGHT, renderer="canvas")


def _way(match: Match, number: int, span: Span) -> list[Spec]:
    rows = []
    for order, one in enumerate(match.events):
        place = plain(one.row.get(PLACE))
        if place is not None and span.lo_us <= one.us < span.hi_us:
            rows.append(
                {
                    "t": one.us // 1000,
                    "p": place,
                    "m": number,
                    "o": order,
                    "n": one.name,
                    "k": one.key,
                    "why": match.id[:8],
                }
            )
    return rows


def _cells(events: pa.Table, key: str, of: str, span: Span, most: int) -> tuple[list[Spec], float, float]:
    """Readings as rectangles, which reach half way to the neighbouring places and as far as the usual time between
    readings; with the lowest and the highest place."""
    ts = events["ts"].cast(pa.int64()).to_numpy()
    place = events[PLACE].cast(pa.float64()).to_numpy(zero_copy_only=False)
    value = events[of].cast(pa.float64()).to_numpy(zero_copy_only=False)
    good = np.isfinite(place) & np.isfinite(value)
    ts, place, value = ts[good], place[good], value[good]
    keys = [one for one, fits in zip(events[key].to_pylist(), good.tolist(), strict=True) if fits]
    if not len(ts):
        return [], 0.0, 1.0
    where = np.unique(place)
    middle = (where[1:] + where[:-1]) / 2
    first = where[0] - (middle[0] - where[0] if len(middle) else 0.5)
    last = where[-1] + (where[-1] - middle[-1] if len(middle) else 0.5)
    edges = np.concatenate([[first], middle, [last]])
    steps = np.diff(np.unique(ts))
    usual = int(np.median(steps)) if len(steps) else 300_000_000
    width = max(usual, -(-(span.hi_us - span.lo_us) * len(where) // most))
    column = (ts - span.lo_us) // width
    row = np.searchsorted(where, place)
    total: dict[tuple[int, int], list[Any]] = {}
    for c, r, v, k in zip(column.tolist(), row.tolist(), value.tolist(), keys, strict=True):
        cell = total.setdefault((c, r), [0.0, 0, k])
        cell[0] += v
        cell[1] += 1
    cells = [_cell(c, r, found, (span.lo_us, width), (edges, where)) for (c, r), found in total.items()]
    return cells, float(first), float(last)


def _cell(
    column: int, row: int, found: Sequence[Any], times: tuple[int, int], places: tuple[np.ndarray, np.ndarray]
) -> Spec:
    (start, width), (edges, where) = times, places
    lo = start + column * width
    # Cells overlap a little; otherwise the background would show between them.
    return {
        "t": lo // 1000, "t2": (lo + width + width // 8) // 1000,
        "p": round(float(edges[row]), 4), "p2": round(float(edges[row + 1]), 4),
        "v": round(found[0] / found[1], 3), "k": found[2], "at": round(float(where[row]), 3),
    }  # fmt: skip
