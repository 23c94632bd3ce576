"""A convex region as half-planes, and whether an average of zones lies in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from chainlake.model_change.statistics.statistics import Array

#: An interval per coordinate.
Box = Sequence[Sequence[float]]
#: How often a point inside is looked for, each time from where the last search got to.
_TRIALS = 5


@dataclass(frozen=True)
class Region:
    """The points v with ``normals @ v <= below``, facet by facet.

    Args:
        names: what results call the facets.
        normals: (F, d), row by row.
        below: (F,) the largest value allowed of each facet.
    """

    names: tuple[str, ...]
    normals: tuple[tuple[float, ...], ...]
    below: tuple[float, ...]

    @property
    def limits(self) -> Array:
        """(F,) ``below`` as an array."""
        return np.array(self.below)

    def facets(self, vectors: Array) -> Array:
        """Values of the facets, (..., F), of vectors (..., d).

        Products are added one after the other, so that the number of vectors changes no bit.
        """
        normals = np.array(self.normals)
        total: Array = vectors[..., :1] * normals[:, 0]
        for j in range(1, normals.shape[1]):
            total = total + vectors[..., j : j + 1] * normals[:, j]
        return total


def box_region(box: Sequence[tuple[float | None, float | None]], names: Sequence[str]) -> Region:
    """The region of one interval per coordinate; None: no bound on that side."""
    facets, normals, below = [], [], []
    for j, (low, high) in enumerate(box):
        for bound, sign, word in ((low, -1.0, ">="), (high, 1.0, "<=")):
            if bound is not None:
                facets.append(f"{names[j]} {word} {bound:g}")
                normals.append(tuple(sign if i == j else 0.0 for i in range(len(box))))
                below.append(sign * bound)
    return Region(tuple(facets), tuple(normals), tuple(below))


def polygon_region(corners: Sequence[tuple[float, float]]) -> Region | None:
    """The inside of a polygon with corners in either direction; None if it is not convex or has no inside."""
    points = np.array(corners, dtype=float)
    edges = np.roll(points, -1, axis=0) - points
    turns = edges[:, 0] * np.roll(edges[:, 1], -1) - edges[:, 1] * np.roll(edges[:, 0], -1)
    winding = np.sum(np.arctan2(turns, np.sum(edges * np.roll(edges, -1, axis=0), axis=1)))
    if len(points) < 3 or not (np.all(turns > 0) or np.all(turns < 0)) or abs(abs(winding) - 2 * np.pi) > 1e-6:
        return None
    outward = np.stack([edges[:, 1], -edges[:, 0]], axis=1) * np.sign(turns[0])
    names = tuple(f"edge {i + 1}" for i in range(len(points)))
    below = [float(normal[0] * point[0] + normal[1] * point[1]) for normal, point in zip(outward, points, strict=True)]
    return Region(names, tuple(tuple(map(float, normal)) for normal in outward), tuple(below))


def has_inside(region: Region) -> bool:
    """Whether a point inside the region, on none of its facets, can be found; the point is tested exactly.

    The linear program that looks for one is as precise as its numbers are alike. So each coordinate has its own
    unit, and the search is repeated from the point it has reached: a narrow region may be far off.
    """
    from scipy.optimize import linprog

    normals, point = np.array(region.normals), np.zeros(len(region.normals[0]))
    for _ in range(_TRIALS):
        room = np.array([
            float(Fraction(limit) - sum(Fraction(g) * Fraction(v) for g, v in zip(normal, point.tolist(), strict=True)))
            for normal, limit in zip(region.normals, region.below, strict=True)
        ])  # fmt: skip
        if (room > 0).all():
            return True
        reach = np.abs(room)[:, None] / np.where(normals, np.abs(normals), np.inf)
        unit = np.where(reach.any(axis=0), reach.max(axis=0), 1.0)
        scaled = normals * unit
        size = np.linalg.norm(scaled, axis=1)
        rows = np.column_stack([scaled / size[:, None], np.ones(len(size))])
        bounds = [(None, None)] * len(point) + [(None, 1.0)]
        found = linprog([*[0.0] * len(point), -1.0], A_ub=rows, b_ub=room / size, bounds=bounds)
        if found.status != 0:
            break
        point = point + unit * found.x[:-1]
    return False


def support_of_box(box: Box, normal: Array) -> float:
    """The largest value of a facet, given by its normal, over a box."""
    return math.fsum(max(g * low, g * high) for g, (low, high) in zip(normal, box, strict=True))


def average_of_boxes(boxes: Sequence[Box], weights: Sequence[float] | None = None) -> Array:
    """The Minkowski average of boxes, (d, 2), weighted by how many nodes each stands for."""
    return np.average(np.array(boxes, dtype=float), axis=0, weights=weights)


def supports_fit(region: Region, supports: Array, weights: Sequence[float] | None = None) -> bool:
    """Whether the average of zones lies in the region, judged facet by facet by the zones' support functions.

    Args:
        region: the region.
        supports: (k, F) the largest value of each facet over each zone; for a zone with the region's own normals, its
            levels, which are no smaller.
        weights: how many nodes each zone stands for.
    """
    mine = np.ones(len(supports)) if weights is None else np.array(weights, dtype=float)
    total = float(mine.sum())
    return all(
        math.fsum([*(mine * supports[:, f]).tolist(), -total * limit]) <= 0 for f, limit in enumerate(region.below)
    )
