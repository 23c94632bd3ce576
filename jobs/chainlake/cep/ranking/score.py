"""Computes scores from criteria, in doubles and in the order written, so that every plan gives the same bits."""

from __future__ import annotations

from functools import reduce

import numpy as np

from chainlake.cep.ranking.kinds import COMBINES
from chainlake.cep.ranking.rule import Criterion, Rule, Score


def utility(criterion: Criterion, values: np.ndarray) -> np.ndarray:
    """How good the values of a criterion are; NaN where a value is missing."""
    if criterion.norm is None:
        return values if criterion.highest else -values
    low, high = criterion.norm
    distance = values - low if criterion.highest else high - values
    return np.clip(distance / (high - low), 0.0, 1.0)


def scores(score: Score, values: np.ndarray) -> np.ndarray:
    """The scores of matches.

    Args:
        score: how criteria are combined.
        values: a column per criterion, NaN where it is missing.

    Returns:
        shape (matches, ``score.width``), all NaN where a match has no score because a criterion is missing or a number
        is not finite.
    """
    with np.errstate(all="ignore"):
        parts = [utility(one, values[:, number]) for number, one in enumerate(score.criteria)]
        if score.combine == "wsum":
            parts = [one.weight * part for one, part in zip(score.criteria, parts, strict=True)]
        join = COMBINES[score.combine].join if score.combine else None
        if score.combine and join is None:
            found = np.stack(parts, axis=1)
        elif join is None or len(parts) == 1:
            found = parts[0][:, None]
        else:
            found = reduce(join, parts)[:, None]
            if score.combine == "avg":
                found = found / len(parts)
    missing = np.isnan(values[:, : len(score.criteria)]).any(axis=1)
    unknown = missing | ~np.isfinite(found).all(axis=1)
    # Adding 0.0 turns the negative zero into the positive one.
    return np.where(unknown[:, None], np.nan, found + 0.0)


def beyond_one(score: Score, values: np.ndarray) -> tuple[int, float] | None:
    """The number of a criterion of a product that is outside 0 to 1 in a match, and its value there; or None."""
    if score.combine and COMBINES[score.combine].within_one:
        for number, one in enumerate(score.criteria):
            found = utility(one, values[:, number])
            wrong = np.flatnonzero((found < 0) | (found > 1))
            if len(wrong):
                return number, float(found[wrong[0]])
    return None


def sort_keys(rule: Rule, found: np.ndarray) -> np.ndarray:
    """The keys by which matches are sorted, the smallest first: negated scores, rounded to steps of the quantum."""
    if rule.quantum is None:
        return -found
    with np.errstate(over="ignore"):
        return -np.floor(found / rule.quantum + 0.5)
