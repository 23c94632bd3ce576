"""What all pictures share: a figure, colours, and saving to a file."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chainlake.days import US_PER_DAY, instant
from chainlake.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that colour-blind people can distinguish (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
QUIET, LOUD = "#888888", "#D55E00"


def sheet(width: float, height: float) -> Figure:
    """An empty figure with a size in inches; no window is ever opened."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


class NotDrawn(UsageError):
    """A picture cannot be written where it was asked for."""

    @classmethod
    def of(cls, path: Path, error: OSError) -> NotDrawn:
        """For the file, and what the operating system says."""
        return cls(f"the picture cannot be written: {error.strerror}", file=path)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG, or an SVG if the file's name ends in ``.svg``; the same picture gives the same bytes.

    Raises:
        UsageError: the file cannot be written.
    """
    from matplotlib import rc_context

    _without_formulas(figure)
    try:
        if path.suffix.lower() == ".svg":
            # Without a fixed salt, the file would contain different ids each time.
            with rc_context({"svg.hashsalt": "chainlake", "svg.fonttype": "none"}):
                figure.savefig(path, format="svg", metadata={"Date": None})
            return
        figure.savefig(path, format="png", dpi=75, metadata={"Software": None})
    except OSError as error:
        raise NotDrawn.of(path, error) from None


def _without_formulas(figure: Figure) -> None:
    """Show every text as it is, since a name may hold dollar signs; powers on an axis are formulas, and stay."""
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatter

    scales = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    powers = [axis for axis in scales if isinstance(axis.get_major_formatter(), LogFormatter)]
    kept = {text for axis in powers for text in axis.get_ticklabels(which="both")}
    for text in figure.findobj(Text):
        if text not in kept:
            text.set_parse_math(False)


def entry(name: str) -> str:
    """A name as an entry of a legend, out of which Matplotlib leaves those that begin with ``_``."""
    return f"\N{ZERO WIDTH SPACE}{name}" if name.startswith("_") else name


def days(us: np.ndarray | float) -> np.ndarray:
    """Microseconds as positions on a time axis, which counts days since 1970."""
    return np.asarray(us) / US_PER_DAY


def stamp(us: int) -> str:
    """A time as text for a title."""
    return f"{instant(int(us)):%Y-%m-%d %H:%M} UTC"


def broken(us: np.ndarray, values: np.ndarray, longest_us: int) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line, with a gap where two of them are more than ``longest_us`` apart."""
    holes = np.flatnonzero(np.diff(us) > longest_us) + 1
    moved = np.insert(us, holes, us[holes] - 1)
    return days(moved), np.insert(values.astype(float), holes, np.nan, axis=0)


def time_axis(axis: Axes) -> None:
    """Give an axis short UTC labels."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=UTC)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))
    axis.grid(True, alpha=0.3)


def legend(axis: Axes, **options: Any) -> None:
    """Add a small legend, if there is anything to explain."""
    if axis.get_legend_handles_labels()[1]:
        axis.legend(fontsize=7, **options)
