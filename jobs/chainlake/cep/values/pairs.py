"""What the functions of pairs compute: arrays in, an array out (docs/semantics.md#functions)."""

from __future__ import annotations

import numpy as np

#: The mean radius of the Earth in metres (IUGG).
RADIUS = 6_371_008.8


def distance(lat1: np.ndarray, lon1: np.ndarray, lat2: np.ndarray, lon2: np.ndarray) -> np.ndarray:
    """Great-circle distances between pairs of places on a sphere, in metres.

    Args:
        lat1, lon1: the first place of each pair, in degrees.
        lat2, lon2: the second place, in degrees.
    """
    north, other = np.radians(np.asarray(lat1, np.float64)), np.radians(np.asarray(lat2, np.float64))
    east = np.radians(np.asarray(lon2, np.float64) - np.asarray(lon1, np.float64))
    with np.errstate(invalid="ignore"):
        half = np.sin((other - north) / 2) ** 2 + np.cos(north) * np.cos(other) * np.sin(east / 2) ** 2
        found: np.ndarray = 2 * RADIUS * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0)))
    return found


def similar(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How similar the strings of each pair are: 1 if equal, 0 if they have no character in common.

    It is twice the length of their longest common subsequence, divided by the sum of their lengths.

    Args:
        ones, others: the first and the second text of each pair.

    Example:
        >>> similar(np.array(["brandname"], object), np.array(["brand"], object)).round(3).tolist()
        [0.714]
    """
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cpdist

    if not len(ones):
        return np.empty(0)
    found: np.ndarray = cpdist(ones.tolist(), others.tolist(), scorer=Indel.normalized_similarity, dtype=np.float64)
    return found
