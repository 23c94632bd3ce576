"""What each event adds to a score, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.ranking.rule import Score
from chainlake.cep.ranking.score import utility
from chainlake.cep.search.bounding.arrays import Columns
from chainlake.cep.search.bounding.terms import Term

#: Sums of doubles, in any order, differ from exact sums by less than this share of the sum of the sizes.
_ROUNDING = 1e-12
#: Sums are exact if all numbers are multiples of 1 or of 2^-_FINEST, and their sum is below _EXACT such units.
_FINEST, _EXACT = 16, 2.0**48
#: Larger sums may leave the range of doubles.
_MOST = 1e300


@dataclass(frozen=True)
class Steps:
    """What the candidates of each name add to a score.

    Args:
        gains: by name, what each candidate adds to the score; NaN where a match with it has no score.
        same: by name, a number that is equal for candidates that add the same in every part.
        exact: whether sums are exact, in any order.
        rounding: how far apart sums can be that differ only by rounding.
    """

    gains: dict[str, np.ndarray]
    same: dict[str, np.ndarray]
    exact: bool
    rounding: float


def steps_of(score: Score, terms: Sequence[Term], names: Sequence[str], scan: Scan, *, strict: bool) -> Steps | None:
    """What the candidates of each name add to a score.

    Args:
        score: the score.
        terms: the terms that it adds up.
        names: the names of the sequence.
        scan: the events and candidates to search.
        strict: whether times are in µs.

    Returns:
        the steps, or None if numbers are so large that sums may leave the range of doubles.
    """
    columns = Columns(scan, strict)
    weighted = score.combine == "wsum"
    # With one unit for all numbers, dividing would change no order, and would not leave whole ticks whole.
    plain = len(score.criteria) == 1 and score.criteria[0].norm is None and not weighted
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("", *names)}
    for term in terms:
        found = columns.values(term.name, term.node) if term.name else np.array([columns.constant(term.node)])
        if not plain:
            found = found / columns.unit(term.node)
        found = utility(term.criterion, term.sign * found)
        parts[term.name].append(term.criterion.weight * found if weighted else found)
    each = [np.where(np.isfinite(part), part, np.nan) for some in parts.values() for part in some]
    sizes = [float(np.nanmax(np.abs(part), initial=0.0)) for part in each]
    if not sum(sizes) < _MOST or any(np.isnan(part).all() for part in each[: len(parts[""])]):
        return None
    joins = any(len({term.name for term in terms if term.criterion is one}) > 1 for one in score.criteria)
    exact = not (weighted and joins) and _exact(each, sizes)
    if plain and not exact:
        each, exact = _from_zero(each)
    gains, same, at = {}, {}, 0
    for name, some in parts.items():
        mine, at = each[at : at + len(some)], at + len(some)
        if name:
            nothing = np.zeros(len(scan.candidates[name]))
            gains[name] = np.sum([nothing, *mine], axis=0)
            same[name] = nothing.astype(np.int32) if exact else _numbered([nothing, *mine])
    return Steps(gains, same, exact, 0.0 if exact else sum(sizes) * _ROUNDING)


def _exact(parts: Sequence[np.ndarray], sizes: Sequence[float]) -> bool:
    """Whether sums of these numbers are exact, in any order."""
    for shift in (0, _FINEST):
        scale = 2.0**shift
        if sum(sizes) * scale < _EXACT and all(_whole(part * scale) for part in parts):
            return True
    return False


def _from_zero(parts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], bool]:
    """Large whole numbers, such as times, as distances from the smallest of each part, if that makes sums exact."""
    lowest = [float(np.nanmin(part, initial=np.inf)) for part in parts]
    lowest = [low if np.isfinite(low) else 0.0 for low in lowest]
    moved = [part - low for part, low in zip(parts, lowest, strict=True)]
    spread = sum(float(np.nanmax(part, initial=0.0)) for part in moved)
    whole = all(_whole(part) and float(np.nanmax(np.abs(part), initial=0.0)) < 2.0**53 for part in parts)
    if whole and spread + abs(sum(lowest)) < _EXACT:
        return moved, True
    return list(parts), False


def _whole(part: np.ndarray) -> bool:
    return bool(np.all((part == np.floor(part)) | np.isnan(part)))


def _numbered(parts: Sequence[np.ndarray]) -> np.ndarray:
    """A number for each row, equal for rows that are equal in all parts."""
    codes = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        _, mine = np.unique(part, return_inverse=True)
        _, codes = np.unique(codes * (int(mine.max(initial=0)) + 1) + mine, return_inverse=True)
    return codes.astype(np.int32)
