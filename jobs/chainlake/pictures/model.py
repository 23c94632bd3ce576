"""A model over some days as one picture: coefficients, error and eps, messages, and the speed profiles of a road."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chainlake.days import US_PER_DAY, day_of_us, day_start_us
from chainlake.model_change.config.features import Feature
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.days.traces import GroupTrace
from chainlake.pictures.sheet import COLOURS, LOUD, QUIET, broken, days, entry, legend, save, sheet, stamp, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How many profiles are drawn if no times are chosen: those at the largest changes.
PROFILES = 4


@dataclass(frozen=True)
class Mark:
    """A row of ``models.changes`` for the picture."""

    us: int
    kind: str
    exceeded: bool


@dataclass(frozen=True)
class Shown:
    """What the picture shows beyond the trace.

    Args:
        marks: synchronisations and changes on the days.
        messages: (day, messages up per node and round, changes) for each day.
        origin: where both came from, for the caption.
    """

    marks: list[Mark]
    messages: list[tuple[date, float | None, int | None]]
    origin: str


def shown_by_trace(trace: GroupTrace, first_us: int) -> Shown:
    """Marks and messages from the trace itself, from ``first_us`` on."""
    marks = [
        Mark(int(trace.ts[at]), event.kind, bool(event.exceeded))
        for at, event in trace.events
        if trace.ts[at] >= first_us
    ]
    local, exact = trace.config.detector != "exact", trace.config.detector != "local"
    number_of = trace.ts // US_PER_DAY
    changed = [int(trace.ts[at]) // US_PER_DAY for at, _ in trace.of_kind("change") if trace.ts[at] >= first_us]
    messages = []
    for number in np.unique(number_of[trace.ts >= first_us]):
        rows = (number_of == number) & trace.counted
        sent = float((trace.reports + trace.nodes * trace.synced)[rows].sum())
        changes = changed.count(int(number))
        up = sent / float(trace.nodes[rows].sum()) if local and rows.any() else None
        messages.append((day_of_us(int(number) * US_PER_DAY), up, changes if exact else None))
    return Shown(marks, messages, "recomputed")


def profile_feature(config: ModelConfig) -> int | None:
    """Place of the polynomial among the features if the model is a curve along one column, else None."""
    curves = [i for i, feature in enumerate(config.features) if feature.of is not None]
    alone = len(curves) == 1 and config.features[curves[0]].scale is not None
    return curves[0] if alone and not config.features[curves[0]].steps else None


def largest_changes(trace: GroupTrace, first_us: int) -> list[int]:
    """The rounds with the largest changes of the reference, in time order."""
    size: dict[int, float] = {}
    for at, event in trace.of_kind("change", "sync"):
        if trace.ts[at] >= first_us:
            size[at] = max(size.get(at, 0.0), event.error_before or 0.0)
    return sorted(sorted(size, key=lambda at: -size[at])[:PROFILES])


def draw_model(trace: GroupTrace, shown: Shown, first_us: int, end_us: int, at: Sequence[int], path: Path) -> None:
    """Draw one group.

    Args:
        trace: its rounds; those before ``first_us`` are not drawn.
        shown: marks and messages.
        first_us, end_us: the days as microseconds, half-open.
        at: rounds of the trace whose profiles are drawn (only for a curve along one column, see `profile_feature`).
        path: path of the PNG.
    """
    config = trace.config
    curve = profile_feature(config)
    profiles = list(at) if curve is not None else []
    kinds = alike(config)
    above = 2 + len(kinds)
    figure = sheet(13, 3.2 * above + (3.4 * -(-len(profiles) // PROFILES)))
    grid = figure.add_gridspec(above + -(-len(profiles) // PROFILES), max(1, min(PROFILES, len(profiles))))
    name = config.name + (f", group {trace.group}" if trace.group else "")
    window = f"{'first' if config.infinite else 'last'} {config.window} rounds"
    figure.suptitle(f"{name}: {window}, eps {config.eps:g}, detector {config.detector}; changes {shown.origin}; UTC")
    axes = [figure.add_subplot(grid[row, :]) for row in range(above)]
    for axis, (label, columns) in zip(axes, kinds.items(), strict=False):
        _coefficients(axis, trace, columns, shown.marks, first_us)
        axis.set_ylabel(label)
    _errors(axes[-2], trace, shown.marks, first_us)
    _messages(axes[-1], shown)
    for axis in axes:
        axis.set_xlim(float(days(first_us)), float(days(end_us)))
        time_axis(axis)
        legend(axis, loc="upper left", bbox_to_anchor=(1.05, 1.0))
    for i, row in enumerate(profiles):
        assert curve is not None
        axis = figure.add_subplot(grid[above + i // PROFILES, i % PROFILES])
        _profile(axis, trace, row, config.features[curve], trace.spans[curve])
        if i == 0:
            legend(axis)
    save(figure, path)


def _since(trace: GroupTrace, values: np.ndarray, first_us: int) -> tuple[Any, np.ndarray]:
    rows = trace.ts >= first_us
    return broken(trace.ts[rows], values[rows], 3 * trace.config.round_us)


def alike(config: ModelConfig) -> dict[str, list[int]]:
    """The coefficients that one axis can show, by its label: those with the response's unit, then each other one.

    The constant has that unit, and so do the powers of a column that is mapped to a range without a unit. The
    coefficient of any other column has the response's unit divided by the column's.
    """
    response = config.response.base
    found: dict[str, list[int]] = {}
    for feature in config.features:
        plain = feature.of is None or feature.scale is not None
        for name in feature.names:
            label = f"coefficients ({response})" if plain else f"{response} per {name}"
            found.setdefault(label, []).append(config.feature_names.index(name))
    return found


def _coefficients(axis: Axes, trace: GroupTrace, columns: list[int], marks: list[Mark], first_us: int) -> None:
    at, values = _since(trace, trace.coefficients, first_us)
    names = trace.config.feature_names
    for i in columns:
        style = "-" if i < len(COLOURS) else "--"
        axis.plot(at, values[:, i], style, color=COLOURS[i % len(COLOURS)], linewidth=1, label=entry(names[i]))
    for mark in marks:
        if mark.kind in ("change", "init", "node_change") or (mark.kind == "sync" and mark.exceeded):
            axis.axvline(float(days(mark.us)), color=QUIET, linewidth=0.6, alpha=0.7)


def _errors(axis: Axes, trace: GroupTrace, marks: list[Mark], first_us: int) -> None:
    detector = trace.config.detector
    for values, label, colour, wanted in (
        (trace.error_exact, "exact detector", COLOURS[2], detector != "local"),
        (trace.error_local, "local detector", COLOURS[6], detector != "exact"),
    ):
        if wanted:
            axis.plot(*_since(trace, values, first_us), color=colour, linewidth=0.9, label=f"error, {label}")
    if trace.eps is not None:
        axis.axhline(trace.eps, color=LOUD, linewidth=1, linestyle="--", label=f"eps = {trace.eps:.4g}")
    top = axis.get_ylim()[1]
    for label, height, marker, colour, chosen in (
        ("sync, eps not exceeded", -0.04, "|", QUIET, [m for m in marks if m.kind == "sync" and not m.exceeded]),
        ("sync, eps exceeded", -0.04, "|", LOUD, [m for m in marks if m.kind == "sync" and m.exceeded]),
        ("change", -0.10, "^", LOUD, [m for m in marks if m.kind == "change"]),
    ):
        if chosen:
            at = days(np.array([mark.us for mark in chosen]))
            text = f"{label} ({len(chosen)})"
            axis.plot(at, [height * top] * len(at), marker, color=colour, markersize=6, linestyle="", label=text)
    axis.set(ylabel="distance of models")


def _messages(axis: Axes, shown: Shown) -> None:
    noon = days(np.array([day_start_us(day) for day, _, _ in shown.messages])) + 0.5
    up = [value if value is not None else 0.0 for _, value, _ in shown.messages]
    changes = [value if value is not None else 0 for _, _, value in shown.messages]
    if any(value is not None for _, value, _ in shown.messages):
        axis.bar(noon, up, width=0.97, color=COLOURS[0], alpha=0.6, label="messages up per node and round")
        axis.set(ylabel="messages")
    if any(value is not None for _, _, value in shown.messages):
        other = axis.twinx() if axis.get_legend_handles_labels()[1] else axis
        other.plot(noon, changes, "o", color=LOUD, markersize=6)
        axis.plot([], [], "o", color=LOUD, markersize=6, label="changes of the day")
        other.set(ylabel="changes", ylim=(0, max(changes, default=1) * 1.15 + 0.5))


def _profile(axis: Axes, trace: GroupTrace, row: int, feature: Feature, spans: tuple[float, float]) -> None:
    """Draw the observations of the window and the curves along the road (the report's figure 4.7)."""
    config = trace.config
    low, high = spans
    a, b = feature.scale or (0.0, 1.0)
    column = config.feature_names.index(feature.names[0])
    begin = 0 if config.infinite else max(0, row - config.window + 1)
    # Newer readings are drawn over older ones, and darker.
    places: set[float] = set()
    for i in range(begin, row + 1):
        raw = low + (trace.x[i][:, column] - a) * (high - low) / (b - a)
        places.update(raw.tolist())
        share = (i - begin + 1) / (row - begin + 1)
        axis.plot(raw, trace.y[i], ".", color=COLOURS[3], markersize=3, alpha=0.15 + 0.6 * share)
    # The curve is drawn only as far as there are readings, since a polynomial can go anywhere beyond.
    where = np.linspace(min(places), max(places), 200)
    scaled = a + (where - low) * (b - a) / (high - low)
    powers = {name: scaled ** (i + 1) for i, name in enumerate(feature.names)}
    design = np.stack([powers.get(name, np.ones_like(scaled)) for name in config.feature_names], axis=1)
    axis.plot(where, design @ trace.coefficients[row], "--", color=COLOURS[6], label="exact model")
    detector = "local" if config.detector == "local" else "exact"
    for held, style, label in (
        (trace.reference(row - 1, detector), ":", "reference before"),
        (trace.reference(row, detector), "-", "reference after"),
    ):
        if held is not None:
            axis.plot(where, design @ held, style, color=COLOURS[0], label=label)
    axis.set(title=stamp(trace.ts[row]), xlabel=feature.base)
    axis.set_ylabel(config.response.base)
    axis.grid(True, alpha=0.3)
