"""Settings that can be tried without editing a file: how values are read, and the figures that judge them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Knob:
    """A setting that can be tried.

    Args:
        attribute: its name in the checked file.
        read: makes a value of a string; ValueError says what is allowed.
    """

    attribute: str
    read: Callable[[str], Any]


def any_number(text: str) -> float:
    """A finite number."""
    try:
        found = float(text)
    except ValueError:
        raise ValueError("a number") from None
    if not math.isfinite(found):
        raise ValueError("a number")
    return found


def above_zero(text: str) -> float:
    """A number above 0."""
    found = any_number(text)
    if found <= 0:
        raise ValueError("a number above 0")
    return found


def at_least(least: int) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"a whole number from {least} on")
        return int(text)

    return read


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """A reader of one of the given words."""

    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return text

    return read


def by_kind(rows: Rows) -> dict[str, float]:
    """How many rows there are of each kind."""
    return {kind: float(count) for kind, count in sorted(Counter(row["kind"] for row in rows).items())}


def losses(rows: Rows) -> dict[str, float]:
    """The sums of the learners' losses, next to those of learners that never share and of some that always do."""
    days = [row for row in rows if row["kind"] == "day"]
    return {name: math.fsum(row[name] for row in days) for name in ("loss", "loss_alone", "loss_static", "errors")}


def flagged(rows: Rows) -> dict[str, float]:
    """The number of flagged machine-days, and of different machines flagged."""
    mine = [row["machine"] for row in rows if row["flagged"]]
    return {"flagged": float(len(mine)), "machines": float(len(set(mine)))}
