"""Linear learners that each see one example per round, and synchronise their weights when they must.

They hold a common reference, the mean at the last full synchronisation. A learner within ``radius`` of it is silent.
One that is not sends its weights, and further learners are polled until the mean of the weights collected is within the
radius. They all continue with that mean, so the mean over all learners stays what it was. If all were collected, their
mean is the new reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chainlake.model_change.statistics.statistics import Array


@dataclass(frozen=True)
class Loss:
    """One word of ``loss``.

    Args:
        of: (predictions, responses) → losses of the predictions, and their derivatives.
        wrong: (predictions, responses) → which predictions count as errors.
        curvature: bound on the second derivative of the loss.
        responses: what a learner learns in place of the responses as they are read; None: these themselves.
    """

    of: Callable[[Array, Array], tuple[Array, Array]]
    wrong: Callable[[Array, Array], Array]
    curvature: float
    responses: Callable[[Array], Array] | None = None


def _huber(predicted: Array, y: Array) -> tuple[Array, Array]:
    off = predicted - y
    return np.where(np.abs(off) <= 1, 0.5 * off**2, np.abs(off) - 0.5), np.clip(off, -1.0, 1.0)


def _far_off(predicted: Array, y: Array) -> Array:
    """Predictions that are more than 1 off."""
    found: Array = (predicted - y) ** 2 > 1
    return found


def _logistic(predicted: Array, y: Array) -> tuple[Array, Array]:
    margin = y * predicted
    return np.logaddexp(0.0, -margin), -y * np.exp(-np.logaddexp(0.0, margin))


def _other_sign(predicted: Array, y: Array) -> Array:
    """Predictions that do not have the sign of the response."""
    found: Array = y * predicted <= 0
    return found


def _signs(y: Array) -> Array:
    return np.where(y > 0, 1.0, -1.0)


#: By the word after ``loss:``.
LOSSES = {
    "huber": Loss(_huber, _far_off, 1.0),
    "logistic": Loss(_logistic, _other_sign, 0.25, _signs),
}


@dataclass(frozen=True)
class Sync:
    """A check at which some learners were outside the radius, or an unconditional synchronisation.

    Args:
        violators: these learners, ascending.
        balanced: all learners that sent their weights, in that order.
        full: whether all learners sent their weights, so that there is a new reference.
        model: the weights that these learners continue with.
        divergence: the mean distance of the learners from their mean afterwards.
    """

    violators: tuple[int, ...]
    balanced: tuple[int, ...]
    full: bool
    model: Array
    divergence: float

    @property
    def up(self) -> int:
        """Vectors sent up."""
        return len(self.balanced)

    @property
    def down(self) -> int:
        """Messages down: a poll to each learner that did not report, and the mean to all that sent their weights."""
        return 2 * len(self.balanced) - len(self.violators)


@dataclass
class Shared:
    """The learners' weights, and what they have in common.

    Args:
        weights: (k, m) the learners' weights.
        reference: (m,) the mean at the last full synchronisation, 0 at the start.
        violations: reports since that synchronisation.
    """

    weights: Array
    reference: Array
    violations: int = 0

    @classmethod
    def start(cls, k: int, m: int) -> Shared:
        """The state before the first round: all weights are 0."""
        return cls(np.zeros((k, m)), np.zeros(m))

    @property
    def divergence(self) -> float:
        """The mean distance of the learners from their mean."""
        # From the reference, so that rounding is in proportion to the radius and not to the weights.
        return divergence(self.weights - self.reference)

    def check(self, radius: float) -> Sync | None:
        """Test every learner, and bring together those that must be; None if all are within the radius."""
        k = len(self.weights)
        # NaN is a violation.
        violators = np.flatnonzero(~(_distance(self.weights, self.reference) <= radius))
        if not len(violators):
            return None
        self.violations += len(violators)
        order = np.concatenate([violators, np.setdiff1d(np.arange(k), violators)])
        means = np.cumsum(self.weights[order], axis=0) / np.arange(1, k + 1)[:, None]
        count = k
        # The counter can jump past k, so it is compared by ``<``.
        if self.violations < k:
            near = _distance(means[len(violators) - 1 : -1], self.reference) <= radius
            count = len(violators) + int(np.argmax(near)) if near.any() else k
        # They continue with the mean that was tested, to the last bit.
        collected, model = order[:count], means[count - 1]
        self.weights[collected] = model
        if count == k:
            self.reference, self.violations = model.copy(), 0
        return Sync(tuple(violators.tolist()), tuple(collected.tolist()), count == k, model, self.divergence)

    def average(self) -> Sync:
        """An unconditional synchronisation: every learner sends its weights and continues with their mean."""
        everybody = tuple(range(len(self.weights)))
        model = self.weights.mean(axis=0)
        self.weights[:] = model
        self.reference, self.violations = model.copy(), 0
        return Sync(everybody, everybody, True, model, 0.0)


@dataclass(frozen=True)
class Rule:
    """How a learner learns: its loss, the learning rate eta, and the weight lambda of the penalty on its norm."""

    loss: Loss
    rate: float
    penalty: float

    def step(self, weights: Array, x: Array, y: Array) -> tuple[Array, Array]:
        """One step of gradient descent of learners (..., k, m), each on its own example.

        Returns:
            the new weights, and the (..., k) losses before the step.
        """
        predicted = (weights * x).sum(axis=-1)
        loss, slope = self.loss.of(predicted, y)
        return weights - self.rate * (self.penalty * weights + slope[..., None] * x), loss

    def largest_rate(self, squared_norm: float) -> float:
        """The largest rate at which a step cannot drive weights apart, for the largest squared norm of an example.

        With neither an example nor a penalty, nothing moves however large the rate.
        """
        steepness = self.penalty + squared_norm * self.loss.curvature
        return 1.0 / steepness if steepness else math.inf


def divergence(weights: Array) -> float:
    """The mean distance of learners (k, m) from their mean."""
    return float(_distance(weights, weights.mean(axis=0)).mean())


def _distance(weights: Array, reference: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # overflow means infinitely far away
        found: Array = np.sqrt(((weights - reference) ** 2).sum(axis=-1))
    return found
