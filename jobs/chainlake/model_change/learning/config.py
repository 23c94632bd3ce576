"""A file of ``kind: shared_learning`` in ``dags/config/models/`` as a checked value."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.model_change.config.features import parse_features, parse_series
from chainlake.model_change.config.nodes import parse_groups, undated
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.series import SHARED_KEYS, SeriesConfig, shared_values
from chainlake.model_change.learning.errors import WrongSync
from chainlake.model_change.learning.learners import LOSSES, Rule

_KEYS = ("nodes", "groups", "response", "features", "intercept", "loss", "learning_rate", "penalty", "sync")
_SYNC = "{dynamic: RADIUS, every: ROUNDS} or {static: ROUNDS}"
_CARRY = 60


@dataclass(frozen=True)
class LearningConfig(SeriesConfig):
    """Learners of one relation, one on each node, that share what they learn.

    Args:
        loss: a key of ``LOSSES``.
        learning_rate, penalty: eta and lambda of gradient descent.
        radius: how far a learner may be from the reference; None: they synchronise, whatever they have learnt.
        every: lengths of a round between checks, or between unconditional synchronisations. They are due whenever so
            many have passed since ``start``, and follow the first complete round that ends then or later.
    """

    loss: str
    learning_rate: float
    penalty: float
    radius: float | None
    every: int

    @property
    def bound(self) -> float | None:
        """How far apart learners may be after a check."""
        return 0.0 if self.radius is None else self.radius

    @property
    def rule(self) -> Rule:
        """How its learners learn."""
        return Rule(LOSSES[self.loss], self.learning_rate, self.penalty)


def checked_learning(name: str, top: Settings) -> LearningConfig:
    """The learners that a file describes.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    top.only((*SHARED_KEYS, *_KEYS))
    groups = undated(top, parse_groups(top), "learners")
    features = parse_features(top)
    radius, every = _sync(top)
    return LearningConfig(
        **shared_values(top, name, groups, _CARRY, None),
        response=parse_series(top, top.data.get("response"), "response"),
        features=features,
        window=1,
        session_gap_us=None,
        on_gap="continue",
        loss=top.choice("loss", tuple(LOSSES), "huber"),
        learning_rate=top.number("learning_rate", above=0),
        penalty=top.number("penalty", least=0) if top.data.get("penalty") is not None else 0.0,
        radius=radius,
        every=every,
    )


def _sync(top: Settings) -> tuple[float | None, int]:
    section = top.mapping("sync", _SYNC)
    section.only(("dynamic", "static", "every"))
    if ("dynamic" in section.data) == ("static" in section.data):
        raise top.placed(WrongSync.one_of_two(_SYNC), "sync")
    if "dynamic" in section.data:
        return section.number("dynamic", above=0), section.whole("every", 1)
    if "every" in section.data:
        raise section.placed(WrongSync.every(_SYNC), "every")
    return None, section.whole("static")
