"""How the states of days are shown: their colours, their words, and which of them need a look.

This is the only place in the report that knows the states of ``chainlake.lake.records.staleness``. What a colour looks
like in light and dark mode is in ``assets/report.css``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from chainlake.lake.records.staleness import State
from chainlake.markup import Html
from chainlake.report.showing import dot

#: Whether a day is as it should be (good), is to be computed or waits (open), or needs attention (bad).
Health = Literal["good", "open", "bad"]


@dataclass(frozen=True)
class Shown:
    """How a state is shown.

    Args:
        colour: name of its colour in ``report.css``.
        rank: of days that share a column of the grid, the one with the highest rank is shown.
        health: with which days it is counted and listed.
    """

    colour: str
    rank: int
    health: Health


#: How each state is shown, in the order in which states are counted.
SHOWN: Mapping[State, Shown] = {
    "done": Shown("done", 1, "good"),
    "suspect": Shown("stale", 6, "bad"),
    "missing": Shown("missing", 4, "open"),
    "stale": Shown("stale", 5, "open"),
    "following": Shown("stale", 5, "open"),
    "failed": Shown("failed", 9, "bad"),
    "audit_failed": Shown("failed", 9, "bad"),
    "waiting": Shown("waiting", 3, "open"),
    "retired": Shown("other", 0, "good"),
}
#: The legend of done days of which not all expected files had arrived; they are hatched.
PROVISIONAL = "done from provisional input"
#: For each colour, what the legend says.
LEGEND = (
    ("done", "done"), ("stale", "stale, following or suspect"), ("missing", "missing"), ("waiting", "waiting"),
    ("failed", "failed"), ("other", "retired"),
)  # fmt: skip


def words_of(state: State) -> str:
    """A state in words."""
    return state.replace("_", " ")


def shown(state: State, said: str | None = None) -> Html:
    """A state's colour with its words, or with ``said`` if that is given."""
    return dot(SHOWN[state].colour, words_of(state) if said is None else said)


def which_are(states: np.ndarray, *kinds: Health) -> np.ndarray:
    """Which of the given states have one of these kinds of health."""
    return np.isin(states, [state for state, one in SHOWN.items() if one.health in kinds])


def hatched(said: str = PROVISIONAL) -> Html:
    """The sign of days that are done from provisional input, with its words."""
    return dot(SHOWN["done"].colour, said, hatched=True)


def for_grid() -> list[list[str | int]]:
    """The states for the grid's script: words, colour, rank and whether they are hatched, indexed by number.

    The last one is for days that are done from provisional input.
    """
    done = SHOWN["done"]
    found: list[list[str | int]] = [[words_of(state), one.colour, one.rank, 0] for state, one in SHOWN.items()]
    return [*found, [PROVISIONAL, done.colour, done.rank + 1, 1]]
