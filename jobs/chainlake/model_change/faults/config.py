"""A file of ``kind: latent_faults`` in ``dags/config/models/`` as a checked value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chainlake.model_change.config.features import parse_columns
from chainlake.model_change.config.nodes import parse_groups, undated
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.series import ALERTING_KEYS, SeriesConfig, shared_values
from chainlake.model_change.faults.errors import WrongFaults

_KEYS = ("nodes", "groups", "counters", "window", "alpha", "sketch", "normalise")
_WINDOW = "day, or {sliding: ROUNDS}"
_CARRY = 12
#: Among fewer machines there is no majority from which one could differ.
_FEWEST = 3


@dataclass(frozen=True)
class FaultsConfig(SeriesConfig):
    """Machines of one kind, whose counters are the features.

    Args:
        length: rounds of the window that ends with a day; None: the rounds of the day.
        alpha: a machine is flagged if its p is below this.
        sketch: dimensions of a sketch whose scores are computed as well; None: no sketch.
        seed: seed of the sketch.
        low, high: limits of the zones of the variance by which counters are normalised, as shares of the reference's
            variance; None: counters are normalised by mean and variance over the window.
    """

    COLUMN_KEYS: ClassVar[tuple[str, str]] = ("counters", "counters")

    length: int | None
    alpha: float
    sketch: int | None
    seed: int
    low: float | None
    high: float | None

    @property
    def bound(self) -> float | None:
        """A machine is flagged if its p is below this."""
        return self.alpha


def checked_faults(name: str, top: Settings) -> FaultsConfig:
    """The machines that a file describes.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    top.only((*ALERTING_KEYS, *_KEYS))
    groups = undated(top, parse_groups(top), "machines that are compared")
    for group, nodes in groups.items():
        if len(nodes) < _FEWEST:
            key = ("groups", group) if group else ("nodes",)
            raise top.placed(WrongFaults.few(len(nodes), _FEWEST), *key)
    counters = parse_columns(top, "counters")
    length = _length(top)
    sketch, seed = _sketch(top, sum(len(one.names) for one in counters))
    low, high = _normalise(top, length)
    alpha = top.number("alpha", above=0) if top.data.get("alpha") is not None else 0.01
    if alpha >= 1:
        raise top.placed(WrongFaults.alpha(alpha), "alpha")
    return FaultsConfig(
        **shared_values(top, name, groups, _CARRY, None),
        response=counters[0],
        features=counters,
        window=1,
        session_gap_us=None,
        on_gap="continue",
        length=length,
        alpha=alpha,
        sketch=sketch,
        seed=seed,
        low=low,
        high=high,
    )


def _length(top: Settings) -> int | None:
    value = top.data.get("window", "day")
    if value == "day":
        return None
    if not isinstance(value, dict):
        raise top.placed(WrongFaults.no_window(value, _WINDOW), "window")
    section = top.mapping("window", _WINDOW)
    section.only(("sliding",))
    length: int = section.whole("sliding", least=2)
    return length


def _sketch(top: Settings, counters: int) -> tuple[int | None, int]:
    if top.data.get("sketch") is None:
        return None, 0
    section = top.mapping("sketch", "{dimensions: N, seed: 0}")
    section.only(("dimensions", "seed"))
    dimensions = section.whole("dimensions")
    if dimensions >= counters:
        raise section.placed(WrongFaults.long_sketch(dimensions, counters), "dimensions")
    return dimensions, section.whole("seed", 0, least=0)


def _normalise(top: Settings, length: int | None) -> tuple[float | None, float | None]:
    if top.data.get("normalise") is None:
        return None, None
    section = top.mapping("normalise", "{low: 0.9, high: 1.1}")
    section.only(("low", "high"))
    low, high = section.number("low", least=0), section.number("high")
    if not low < 1 < high:
        raise top.placed(WrongFaults.limits(), "normalise")
    if length is None:
        raise top.placed(WrongFaults.no_sliding(), "normalise")
    return low, high
