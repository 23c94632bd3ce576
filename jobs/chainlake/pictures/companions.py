"""Pictures of all kinds of models but regression, drawn from their rows: events, losses, scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chainlake.days import us_of
from chainlake.pictures.sheet import COLOURS, LOUD, QUIET, days, entry, legend, save, sheet, time_axis
from chainlake.schemas.models import ALERTS, FAULT_SCORES, LEARNERS, ZONE_EVENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]
#: A smaller p is drawn as if it were this.
_LEAST_P = 1e-12


def draw_rows(table: str, title: str, found: Rows, metrics: Rows, path: Path) -> None:
    """Draw a group of a model over some days.

    Args:
        table: ``schema.name`` of the table of its kind.
        title: title of the picture.
        found, metrics: its rows in that table, and in ``models.metrics``.
        path: path of the PNG.

    Raises:
        UsageError: the file cannot be written.
    """
    figure = sheet(13, 8)
    figure.suptitle(title)
    axes = figure.subplots(2, 1)
    _PANELS[table](axes[0], found)
    _sent(axes[1], metrics)
    for axis in axes:
        legend(axis, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    save(figure, path)


def _at(row: Mapping[str, Any]) -> float:
    return float(days(us_of(row["ts"])))


def _alerts(axis: Axes, found: Rows) -> None:
    for kind, colour in (("below", LOUD), ("recovered", COLOURS[2])):
        mine = [row for row in found if row["kind"] == kind]
        axis.plot([_at(row) for row in mine], [row["mean"] for row in mine], "o", color=colour, label=kind)
    axis.set_ylabel("mean")
    time_axis(axis)


def _zones(axis: Axes, found: Rows) -> None:
    """Draw which node reported when, the periods outside the region, and the designs of zones."""
    names = sorted({name for row in found for name in row.get("violators") or ()})
    left = None
    for row in sorted(found, key=_at):
        if row["kind"] == "outside":
            left = _at(row)
        elif row["kind"] == "inside" and left is not None:
            axis.axvspan(left, _at(row), color=LOUD, alpha=0.2)
            left = None
        elif row["kind"] == "design":
            axis.axvline(_at(row), color=QUIET, linestyle=":")
    if left is not None:
        axis.axvline(left, color=LOUD)
    points = [(_at(row), names.index(name)) for row in found for name in row.get("violators") or ()]
    if points:
        axis.plot(*zip(*points, strict=True), ".", color=COLOURS[0], label="outside its zone")
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.set_title("reports; shaded: the mean is outside; dotted: zones designed")
    time_axis(axis)


def _learners(axis: Axes, found: Rows) -> None:
    """Draw the daily losses of the learners, and of the two kinds with which they are compared."""
    mine = [row for row in found if row["kind"] == "day"]
    of = sorted({row["event_date"] for row in mine})
    for i, (name, label) in enumerate((("loss_alone", "never sharing"), ("loss", "as they are"),
                                       ("loss_static", "sharing at every check"))):  # fmt: skip
        sums = [sum(row[name] for row in mine if row["event_date"] == day) for day in of]
        axis.bar(np.arange(len(of)) + 0.27 * (i - 1), sums, 0.25, color=COLOURS[i], label=label)
    _by_day(axis, of)
    axis.set_ylabel("sum of losses")


def _scores(axis: Axes, found: Rows) -> None:
    """Draw p of every machine and day; machines that are ever flagged stand out and are named."""
    of = sorted({row["day"] for row in found})
    for i, name in enumerate(sorted({row["machine"] for row in found})):
        mine = sorted((row for row in found if row["machine"] == name), key=lambda row: row["day"])
        loud = any(row["flagged"] for row in mine)
        p = [-np.log10(min(1.0, max(row["p"], _LEAST_P))) for row in mine]
        style = {"color": COLOURS[i % len(COLOURS)], "label": entry(name)} if loud else {"color": QUIET, "alpha": 0.5}
        axis.plot([of.index(row["day"]) for row in mine], p, "o-" if loud else ".-", **style)
    _by_day(axis, of)
    axis.set_ylabel("-log10 p (named: flagged)")


def _sent(axis: Axes, metrics: Rows) -> None:
    rows = sorted(metrics, key=lambda row: row["day"])
    of = [row["day"] for row in rows]
    sent = [row.get("normalized_up") for row in rows]
    if all(one is None for one in sent):
        axis.bar(range(len(of)), [row["rounds"] for row in rows], color=QUIET)
        axis.set_ylabel("rounds used")
    else:
        axis.bar(range(len(of)), [0.0 if one is None else one for one in sent], color=COLOURS[0])
        axis.set_ylabel("messages up per reading")
    _by_day(axis, of)


def _by_day(axis: Axes, of: Sequence[date]) -> None:
    axis.set_xticks(range(len(of)), [f"{day:%m-%d}" for day in of])
    axis.grid(True, alpha=0.3)


_PANELS: dict[str, Callable[[Axes, Rows], None]] = {
    ALERTS.path_name: _alerts,
    ZONE_EVENTS.path_name: _zones,
    LEARNERS.path_name: _learners,
    FAULT_SCORES.path_name: _scores,
}
