"""How several values become one, as in ``round: {aggregate: mean}``: those of a key's events in a round, and those of a
node's keys (docs/semantics.md#rounds)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Aggregate:
    """One word of ``aggregate``.

    Args:
        of_events: (values, segment of each, number of segments) → one value per segment, which is NaN for a segment
            without values. The values are known ones, by segment and in event order.
        of_keys: one value per row, of the values of a node's keys, (rounds, keys); called as NumPy's reductions are.
    """

    of_events: Callable[[Array, Array, int], Array]
    of_keys: Callable[..., Array] = np.mean


def _last(values: Array, segment: Array, n: int) -> Array:
    found = np.full(n, np.nan)
    found[segment] = values
    return found


def _first(values: Array, segment: Array, n: int) -> Array:
    return _last(values[::-1], segment[::-1], n)


def _sum(values: Array, segment: Array, n: int) -> Array:
    """Sums in event order."""
    total = np.bincount(segment, weights=values, minlength=n)
    # Infinities of both signs add up to NaN, which would look like no value: mark it as too large instead.
    return _where_any(np.where(np.isnan(total), np.inf, total), segment, n)


def _mean(values: Array, segment: Array, n: int) -> Array:
    return _sum(values, segment, n) / np.maximum(np.bincount(segment, minlength=n), 1)


def _smallest(values: Array, segment: Array, n: int) -> Array:
    found = np.full(n, np.inf)
    np.minimum.at(found, segment, values)
    return _where_any(found, segment, n)


def _largest(values: Array, segment: Array, n: int) -> Array:
    found = np.full(n, -np.inf)
    np.maximum.at(found, segment, values)
    return _where_any(found, segment, n)


def _where_any(found: Array, segment: Array, n: int) -> Array:
    return np.where(np.bincount(segment, minlength=n) > 0, found, np.nan)


AGGREGATES = {
    "last": Aggregate(_last),
    "first": Aggregate(_first),
    "mean": Aggregate(_mean),
    "sum": Aggregate(_sum, np.sum),
    "min": Aggregate(_smallest, np.min),
    "max": Aggregate(_largest, np.max),
}


def over_events(word: str, values: Array, starts: Array) -> Array:
    """The aggregate of each segment, without missing values.

    Args:
        word: a key of ``AGGREGATES``.
        values: by segment, in event order; NaN where missing.
        starts: where each segment starts, strictly rising from 0.

    Returns:
        one value per segment, NaN where all are missing.
    """
    n = len(starts)
    segment = np.repeat(np.arange(n), np.diff(np.concatenate([starts, [len(values)]])))
    known = ~np.isnan(values)
    return AGGREGATES[word].of_events(values[known], segment[known], n)
