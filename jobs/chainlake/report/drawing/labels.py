"""Where the names of a match's events are placed on its curve, so that each can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

#: Shares of a chart's height in which a name stays away from the edge, and of its width in which two are close.
_EDGE, _CLOSE = 0.3, 0.2
#: Pixels from one line of names to the next.
_LINE = 14
#: Lines on one side of an event on which its name may stand.
_LINES = 3


@dataclass(frozen=True)
class Mark:
    """An event on a curve.

    Args:
        us: its time, microseconds.
        value: its height; None: not drawn.
        name: the name that it is bound to.
        said: text of the tooltip.
        label: whether the name is written next to it.
    """

    us: int
    value: float | None
    name: str
    said: str
    label: bool = True


@dataclass(frozen=True)
class Side:
    """Where the name of an event stands: above or below it, in which direction it reaches, and on which line."""

    below: bool
    align: str = "center"
    line: int = 0

    @property
    def dy(self) -> int:
        """Pixels from the event down to its name."""
        return 16 + self.line * _LINE if self.below else -13 - self.line * _LINE

    def mark(self) -> dict[str, Any]:
        """The same for Vega-Lite."""
        reach = {"center": 0, "right": -2, "left": 2}[self.align]
        return {"dy": self.dy, "dx": reach, "align": self.align, "clip": False}


@dataclass(frozen=True)
class _Named:
    """An event with its height in pixels, from the top, and where its name stands."""

    mark: Mark
    y: float
    side: Side

    def meets(self, other: _Named, close_us: float) -> bool:
        """Whether the names of two events, the other one's the earlier, overlap."""
        apart = (other.side.align, self.side.align) == ("right", "left")
        level = abs(self.y + self.side.dy - other.y - other.side.dy) < _LINE
        return level and not apart and self.mark.us - other.mark.us < close_us


def sides(marks: Sequence[Mark], values: Sequence[float], length_us: int, height: int) -> dict[Side, list[Mark]]:
    """Where names stand so that they meet neither one another nor the axis: by turns above and below, but away from
    the edge that is near; of two that are close, each reaches away from the other.

    Args:
        marks: the events that are named.
        values: all that is drawn.
        length_us: of what is shown.
        height: of the plot, in pixels.
    """
    lo, hi = min(values, default=0.0), max(values, default=0.0)
    close = _CLOSE * length_us
    placed: list[_Named] = []
    for number, one in enumerate(sorted(marks, key=lambda one: one.us)):
        share = 0.5 if hi <= lo or one.value is None else (one.value - lo) / (hi - lo)
        free = _EDGE <= share <= 1 - _EDGE
        below = number % 2 == 1 if free else share > _EDGE
        tried = [
            Side(where, align, line)
            for line in range(_LINES)
            for where in ((below, not below) if free else (below,))
            for align in ("center", "left")
        ]
        ways = (_with(placed, _Named(one, (1 - share) * height, side), close) for side in tried)
        apart = (way for way in ways if not any(b.meets(a, close) for a, b in combinations(way, 2)))
        placed = next(apart, [*placed, _Named(one, (1 - share) * height, tried[-1])])
    found: dict[Side, list[Mark]] = {}
    for each in placed:
        found.setdefault(each.side, []).append(each.mark)
    return found


def _with(placed: Sequence[_Named], here: _Named, close_us: float) -> list[_Named]:
    """One more name; those that stand in its way reach to the other side, if it does not stand in the middle itself."""
    turned = [
        replace(each, side=replace(each.side, align="right"))
        if here.side.align == "left" and each.side.align == "center" and here.meets(each, close_us)
        else each
        for each in placed
    ]
    return [*turned, here]
