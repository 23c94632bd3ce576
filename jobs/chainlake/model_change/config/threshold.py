"""A threshold monitor's file (``kind: threshold`` in ``dags/config/models/``) as a checked value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chainlake.model_change.config.errors import WrongNodes
from chainlake.model_change.config.features import Feature, parse_series
from chainlake.model_change.config.nodes import parse_groups, undated
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.series import ALERTING_KEYS, SeriesConfig, shared_values

_KEYS = ("nodes", "value", "threshold", "weight")
#: For how many rounds a silent sensor's last reading is used, where ``max_carry`` is not given.
_CARRY = 60


@dataclass(frozen=True)
class ThresholdConfig(SeriesConfig):
    """A checked monitor of the mean of ``response`` over the nodes.

    ``threshold`` is T. With ``weighted``, the only feature is every node's weight (such as a number of vehicles), and
    the weighted mean is watched.
    """

    COLUMN_KEYS: ClassVar[tuple[str, str]] = ("value", "weight")

    threshold: float
    weighted: bool

    @property
    def bound(self) -> float | None:
        """The threshold of the mean."""
        return self.threshold


def checked_threshold(name: str, top: Settings) -> ThresholdConfig:
    """The monitor that a file describes.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    top.only((*ALERTING_KEYS, *_KEYS))
    if "nodes" not in top.data:
        raise top.placed(WrongNodes.missing(), "nodes")
    groups = undated(top, parse_groups(top), "sensors of a threshold monitor")
    value = parse_series(top, top.data.get("value"), "value")
    weight = top.text("weight", None)
    return ThresholdConfig(
        **shared_values(top, name, groups, _CARRY, None),
        response=value,
        features=(Feature(of=weight),),
        window=1,
        session_gap_us=None,
        on_gap="continue",
        threshold=top.number("threshold"),
        weighted=weight is not None,
    )
