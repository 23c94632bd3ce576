"""Charts as Vega-Lite specifications. Colours and fonts come from the page, so that they suit light and dark mode."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from chainlake.days import day_number, instant
from chainlake.report.drawing.labels import Mark, sides
from chainlake.report.showing import Clock

Spec = dict[str, Any]
#: The largest number of points in a line; longer lines are thinned.
POINTS = 1500
#: Points of a line up to which each is a dot.
_DOTTED = 80
#: Pixels of a letter of a legend, and of its sign with the space around it.
_LETTER, _SIGN = 7, 28
#: Pixels kept for the labels of a vertical axis, so that panels below one another are aligned.
_ROOM = 58
_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
#: Possible steps, in microseconds, between ticks of a time axis.
_STEPS = (
    *(_SECOND * n for n in (1, 2, 5, 10, 15, 30)), *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)), *(_DAY * n for n in (1, 2, 7, 14)),
)  # fmt: skip


@dataclass(frozen=True)
class Span:
    """The time range that a chart shows.

    Args:
        lo_us, hi_us: its ends, microseconds.
        clock: the source's clock.
    """

    lo_us: int
    hi_us: int
    clock: Clock

    def axis(self, *, title: bool = True, ticks: int = 8) -> Spec:
        """A horizontal time axis: round local times, with UTC below them where the two differ.

        It is an axis of numbers (milliseconds), since Vega-Lite would put the ticks of times at round UTC times.
        """
        at = self.ticks(ticks)
        length = self.hi_us - self.lo_us
        form = "%d %b %Y" if length > 40 * _DAY else "%d %b %H:%M" if length > _DAY else "%H:%M"
        form = "%H:%M:%S" if len(at) > 1 and (at[1] - at[0]) % 60_000_000 else form
        labels = {str(us // 1000): self._label(us, form) for us in at}
        return {
            "field": "t", "type": "quantitative", "title": self.clock.title(self.lo_us, self.hi_us) if title else None,
            "scale": {"domain": [self.lo_us // 1000, self.hi_us // 1000], "zero": False, "nice": False},
            "axis": {
                "values": [us // 1000 for us in at], "grid": False, "labelOverlap": "greedy",
                "labelExpr": f"({json.dumps(labels)})[datum.value]",
            },
        }  # fmt: skip

    def _label(self, us: int, form: str) -> str | list[str]:
        local = f"{self.clock.local(us):{form}}"
        return local if self.clock.zone == "UTC" else [local, f"{instant(us):{form}}"]

    def ticks(self, most: int) -> list[int]:
        """Round local times in the range, at most ``most``, in microseconds."""
        step = next((one for one in _STEPS if (self.hi_us - self.lo_us) / one <= most), _STEPS[-1])
        while (self.hi_us - self.lo_us) / step > most:
            step *= 2
        ahead = self.clock.offset_ms(self.lo_us) * 1000
        first = -(-(self.lo_us + ahead) // step) * step - ahead
        return list(range(first, self.hi_us + 1, step))


@dataclass(frozen=True)
class DaySpan(Span):
    """The same of whole UTC days that have one value each, which stands at noon."""

    def axis(self, *, title: bool = True, ticks: int = 8) -> Spec:
        """A horizontal axis that names days."""
        shown, form = _day_ticks(instant(self.lo_us).date(), instant(self.hi_us - 1).date())
        labels = {str(noon_us(day) // 1000): f"{day:{form}}" for day in shown}
        return {
            **super().axis(), "title": "UTC day" if title else None,
            "axis": {
                "values": [noon_us(day) // 1000 for day in shown], "grid": False, "labelOverlap": "greedy",
                "labelExpr": f"({json.dumps(labels)})[datum.value]",
            },
        }  # fmt: skip


def noon_us(day: date) -> int:
    """Where the value of a UTC day stands on an axis of days."""
    return day_number(day) * _DAY + _DAY // 2


def base(layers: Sequence[Spec], height: int, *, renderer: str = "svg") -> Spec:
    """Layers as one chart that is as wide as its page."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"},
        "usermeta": {"renderer": renderer}, "layer": list(layers),
    }  # fmt: skip


def legend(names: Iterable[str]) -> Spec:
    """A legend above the chart, in as many columns as fit the width of the window.

    The width of the plot would do, but it is known only when the height of the legend has been reserved.
    """
    room = max((_LETTER * len(name) for name in names), default=0) + _SIGN
    return {"orient": "top", "columns": {"expr": f"max(1, floor((containerSize()[0] - {_ROOM}) / {room}))"}}


def height_axis(field: str, title: str, *, zero: bool = False, **more: Any) -> Spec:
    """A vertical axis of numbers."""
    return {
        "field": field, "type": "quantitative", "title": title, "scale": {"zero": zero, "nice": True},
        "axis": {"minExtent": _ROOM, "maxExtent": _ROOM, "tickCount": 5, "titlePadding": 6}, **more,
    }  # fmt: skip


def thinned(points: Sequence[tuple[int, float | None]]) -> list[tuple[int, float | None]]:
    """A line with no more than `POINTS` points."""
    step = -(-len(points) // POINTS)
    return list(points[::step]) if step > 1 else list(points)


def with_gaps(points: Sequence[tuple[int, float | None]]) -> list[tuple[int, float | None]]:
    """A line with a break wherever two readings are much further apart than usual, since some are missing there."""
    if len(points) < 3:
        return list(points)
    steps = sorted(b[0] - a[0] for a, b in zip(points, points[1:], strict=False))
    usual = steps[len(steps) // 2]
    found = [points[0]]
    for before, after in zip(points, points[1:], strict=False):
        if after[0] - before[0] > 5 * max(usual, 1):
            found.append((before[0] + usual, None))
        found.append(after)
    return found


def line_values(lines: Mapping[str, Sequence[tuple[int, float | None]]]) -> list[Spec]:
    """Lines as rows of a chart: millisecond, value and key of each point."""
    return [
        {"t": us // 1000, "v": value, "k": key}
        for key, points in lines.items()
        for us, value in with_gaps(thinned(points))
    ]


def curve(
    span: Span,
    lines: Mapping[str, Sequence[tuple[int, float | None]]],
    marks: Sequence[Mark],
    shade: tuple[int, int] | None,
    *,
    title: str,
    height: int = 190,
    key: str = "key",
) -> Spec:
    """The values of some series around a match, with its events on them.

    Args:
        span: the time range shown.
        lines: key → microsecond and value of each event.
        marks: the events of the match.
        shade: ends of the window, which is shaded; None: no shade.
        title: title of the vertical axis, with its unit.
        height: height of the plot, in pixels.
        key: what a key is called.
    """
    x, y = span.axis(title=height > 150, ticks=8 if height > 150 else 4), height_axis("v", title)
    layers: list[Spec] = []
    if shade is not None:
        lo, hi = max(shade[0], span.lo_us), min(shade[1], span.hi_us)
        box = {"t": lo // 1000, "t2": hi // 1000}
        layers.append({"data": {"values": [box]}, "mark": {"type": "rect", "style": "shade"},
                       "encoding": {"x": x, "x2": {"field": "t2"}}})  # fmt: skip
    several = len(lines) > 1
    colour: Spec = {"field": "k", "type": "nominal", "title": key, "legend": legend(lines) if several else None}
    rows = line_values(lines)
    few = len(rows) <= _DOTTED
    layers.append({
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 1.5, "interpolate": "linear", "point": {"size": 14} if few else False},
        "encoding": {"x": x, "y": y, "color": colour},
    })  # fmt: skip
    there = [one for one in marks if one.value is not None]
    points = [{"t": one.us // 1000, "v": one.value, "n": one.name, "said": one.said} for one in there]
    layers.append({
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "size": 95, "style": ["loud", "shown-point"], "opacity": 1},
        "encoding": {
            "x": x, "y": y,
            "tooltip": [{"field": "n", "title": "bound to"}, {"field": "said", "title": "event"}],
        },
    })  # fmt: skip
    labelled = [one for one in there if one.label]
    values = [row["v"] for row in (*rows, *points) if row["v"] is not None]
    for side, some in sides(labelled, values, span.hi_us - span.lo_us, height).items():
        part = [{"t": one.us // 1000, "v": one.value, "n": one.name} for one in some]
        layers += _written(part, {**side.mark(), "fontWeight": 600}, {"x": x, "y": y})
    return base(layers, height)


def _written(rows: Sequence[Spec], mark: Spec, where: Spec) -> list[Spec]:
    """Labels, ``n`` of each row, drawn over what is behind them."""
    return [
        {
            "data": {"values": list(rows)},
            "mark": {"type": "text", **mark, "style": style},
            "encoding": {**where, "text": {"field": "n"}},
        }
        for style in ("halo", "label")
    ]


def bars(rows: Sequence[tuple[date, int]], *, title: str, height: int = 150) -> Spec:
    """Counts per UTC day.

    Args:
        rows: the days that are known, with their counts.
        title: title of the vertical axis.
        height: height of the plot, in pixels.
    """
    lo, hi = min(day for day, _ in rows), max(day for day, _ in rows)
    many = (hi - lo).days + 1
    share = 0.86 if many <= 400 else 1.0
    values = [{"d": day_number(day), "n": count} for day, count in rows]
    ticks, form = _day_ticks(lo, hi)
    labels = {str(day_number(one) + share / 2): f"{one:{form}}" for one in ticks}
    x: Spec = {
        "field": "d", "type": "quantitative", "title": "UTC day",
        "scale": {"domain": [day_number(lo) - (1 - share), day_number(hi) + 1], "zero": False, "nice": False},
        "axis": {
            "values": [day_number(one) + share / 2 for one in ticks], "grid": False, "labelOverlap": "greedy",
            "labelExpr": f"({json.dumps(labels)})[datum.value]",
        },
    }  # fmt: skip
    y = height_axis("n", title, zero=True)
    y["axis"] = {**y["axis"], "format": ",d", "tickMinStep": 1}
    tooltip = [{"field": "day", "title": "day"}, {"field": "n", "title": title, "format": ","}]
    layer = {
        "data": {"values": values},
        "transform": [
            {"calculate": f"datum.d + {share}", "as": "d2"},
            {"calculate": "utcFormat(datum.d * 864e5, '%Y-%m-%d')", "as": "day"},
        ],
        "mark": {"type": "rect", "style": "main", "opacity": 1},
        "encoding": {"x": x, "x2": {"field": "d2"}, "y": y, "y2": {"datum": 0}, "tooltip": tooltip},
    }
    return base([layer], height, renderer="canvas" if many > 800 else "svg")


def _day_ticks(lo: date, hi: date) -> tuple[list[date], str]:
    """The days that an axis labels, and the format of the labels."""
    many = (hi - lo).days + 1
    every = [lo + timedelta(days=number) for number in range(many)]
    if many > 1000:
        return [day for day in every if (day.month, day.day) == (1, 1)], "%Y"
    if many > 75:
        step = -(-many // 400)
        return [day for day in every if day.day == 1 and day.month % step == 0], "%b %Y"
    step = -(-many // 8)
    return every[::step], "%d %b %Y" if many <= 6 else "%d %b"


def series(
    span: Span,
    lines: Mapping[str, Sequence[tuple[int, float | None]]],
    *,
    title: str,
    height: int = 110,
    level: tuple[float, str] | None = None,
    changes: Sequence[int] = (),
    named: bool = True,
) -> Spec:
    """One or more lines over days, with a level and the times of changes.

    Args:
        span: the time range shown.
        lines: name → microsecond and value of each point.
        title: title of the vertical axis, with its unit.
        height: height of the plot, in pixels.
        level: value and name of a horizontal line; None: no line.
        changes: times of vertical lines, microseconds.
        named: whether the time axis has a title.
    """
    x, y = span.axis(title=named), height_axis("v", title, zero=level is not None)
    layers: list[Spec] = []
    if changes:
        values = [{"t": us // 1000} for us in changes]
        rule = {"type": "rule", "style": "loud", "strokeWidth": 1, "strokeDash": [3, 3], "opacity": 0.8}
        layers.append({"data": {"values": values}, "mark": rule, "encoding": {"x": x}})
    colour: Spec = {"field": "k", "type": "nominal", "title": None, "scale": {"domain": list(lines)}}
    colour["legend"] = legend(lines) if len(lines) > 1 else None
    rows = line_values(lines)
    few = max(map(len, lines.values()), default=0) <= _DOTTED
    line = {"type": "line", "strokeWidth": 1.3, "point": {"size": 18} if few else False}
    layers.append({"data": {"values": rows}, "mark": line, "encoding": {"x": x, "y": y, "color": colour}})
    if level is not None:
        layers += _level(level, y)
    return base(layers, height)


def _level(level: tuple[float, str], y: Spec) -> list[Spec]:
    """A dashed horizontal line with its name."""
    at, said = level
    rule = {"type": "rule", "style": "ink", "strokeDash": [6, 4]}
    name = {"align": "right", "dy": -7, "x": {"expr": "width - 4"}}
    return [
        {"data": {"values": [{"v": at}]}, "mark": rule, "encoding": {"y": y}},
        *_written([{"v": at, "n": said}], name, {"y": y}),
    ]


def dots(
    span: Span,
    points: Mapping[str, Sequence[tuple[int, float]]],
    *,
    title: str,
    height: int = 150,
    level: tuple[float, str] | None = None,
    changes: Sequence[int] = (),
) -> Spec:
    """Points of several kinds over days, distinguished by colour and shape, with the times of changes.

    Args:
        span: the time range shown.
        points: kind → microsecond and value of each point.
        title: title of the vertical axis.
        height: height of the plot, in pixels.
        level: value and name of a horizontal line, around which the axis is chosen; None: no line, and the axis has 0.
        changes: times of vertical lines, microseconds.
    """
    x, y = span.axis(), height_axis("v", title, zero=level is None)
    layers: list[Spec] = [] if level is None else _level(level, y)
    if changes:
        rule = {"type": "rule", "style": "loud", "strokeWidth": 1, "strokeDash": [3, 3], "opacity": 0.8}
        values = [{"t": us // 1000} for us in changes]
        layers.append({"data": {"values": values}, "mark": rule, "encoding": {"x": x}})
    scale: Spec = {"field": "k", "type": "nominal", "title": None, "scale": {"domain": list(points)}}
    scale["legend"] = legend(points)
    rows = [{"t": us // 1000, "v": value, "k": kind} for kind, some in points.items() for us, value in thinned(some)]
    mark = {"type": "point", "filled": True, "size": 28, "opacity": 0.8}
    layers.append(
        {"data": {"values": rows}, "mark": mark, "encoding": {"x": x, "y": y, "color": scale, "shape": scale}}
    )
    return base(layers, height)


def finite(value: float | None) -> float | None:
    """The value if JSON can hold it, else None."""
    return None if value is None or not math.isfinite(value) else float(value)
