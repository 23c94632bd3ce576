"""Zones of different shapes for nodes that differ: each as large as the region allows where the node's vectors are.

A zone has the region's normals and its own levels, ``{v: G v <= h_i}``. The average of the zones lies in the region
if the mean of their levels is at most the region's (the *budget*). The design maximises the sum, over nodes, of the
logarithm of the share of the node's history that lies in its zone, with the history smoothed by a normal kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chainlake.model_change.statistics.statistics import Array

#: Up to this many levels are optimised together; for more, there is one multiplier per facet.
_TOGETHER = 64
#: About how many rows of a node's history the joint optimum uses.
_ROWS = 400
#: Normal quantiles at which `_log_ratio` is tabulated; it falls as they rise.
_GRID = np.linspace(-38.0, 38.0, 15_201)
METHODS = ("auto", "joint", "multipliers", "hierarchy")


@dataclass(frozen=True)
class Histories:
    """What zones are designed from.

    Args:
        samples: per node (or cluster of nodes) the (s, F) values of the facets of its past vectors.
        weights: how many nodes each sample stands for.
        limits: (F,) the region's levels.
    """

    samples: tuple[Array, ...]
    weights: Array
    limits: Array

    @classmethod
    def of(cls, facets: Array, limits: Array) -> Histories:
        """Each node by itself, from (s, k, F) values of the facets."""
        k = facets.shape[1]
        return cls(tuple(facets[:, i] for i in range(k)), np.ones(k), limits)

    @property
    def centres(self) -> Array:
        """(k, F) mean values."""
        return np.stack([rows.mean(axis=0) for rows in self.samples])

    @property
    def spreads(self) -> Array:
        """(k, F) standard deviations; one that is negligible next to the others' is raised."""
        found = np.stack([rows.std(axis=0) for rows in self.samples])
        least = np.maximum(1e-3 * found.max(axis=0), 1e-6 * np.maximum(np.abs(self.limits), 1e-6))
        lifted: Array = np.maximum(found, least)
        return lifted


def designed(facets: Array, limits: Array, method: str = "auto") -> Array:
    """Zones of nodes, designed from their history.

    Args:
        facets: (s, k, F) values of the facets of the nodes' past vectors.
        limits: (F,) the region's levels.
        method: ``joint``: all levels together (SLSQP); ``multipliers``: one multiplier per facet, for many nodes;
            ``hierarchy``: first clusters of similar nodes, then the nodes of each; ``auto``: ``joint`` for few levels,
            else ``multipliers``.

    Returns:
        (k, F) levels within the budget.
    """
    histories = Histories.of(facets, limits)
    if method == "auto":
        method = "joint" if facets.shape[1] * facets.shape[2] <= _TOGETHER else "multipliers"
    how: dict[str, Callable[[Histories], Array]] = {
        "joint": joint, "multipliers": multipliers, "hierarchy": hierarchy,
    }  # fmt: skip
    return how[method](histories)


def within_budget(levels: Array, limits: Array, weights: Array | None = None) -> Array:
    """The levels minus what their mean exceeds the region's by, so that the budget holds to the last bit."""
    mine = np.ones(len(levels)) if weights is None else weights
    levels = levels - (mine @ levels / mine.sum() - limits)
    for f, limit in enumerate(limits.tolist()):
        over = math.fsum([*(mine * levels[:, f]).tolist(), -float(mine.sum()) * limit])
        while over > 0:
            levels[0, f] = np.nextafter(levels[0, f] - over / mine[0], -np.inf)
            over = math.fsum([*(mine * levels[:, f]).tolist(), -float(mine.sum()) * limit])
    return levels


def multipliers(histories: Histories) -> Array:
    """Levels from one multiplier per facet; each facet's values are taken as normal, so nodes and facets separate.

    At the optimum, density over distribution, divided by the spread, is the same for every node. It equals the
    multiplier, which is found by bisection.
    """
    ratio = _log_ratio(_GRID)
    centres, spreads, weights = histories.centres, histories.spreads, histories.weights
    share = weights[:, None] / weights.sum()

    def levels(log_multiplier: Array) -> Array:
        wanted = log_multiplier + np.log(spreads)
        found: Array = centres + spreads * np.interp(-wanted, -ratio, _GRID)
        return found

    low, high = np.full(len(histories.limits), -700.0), np.full(len(histories.limits), 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        above = (share * levels(middle)).sum(axis=0) > histories.limits
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return within_budget(levels(high), histories.limits, weights)


def joint(histories: Histories) -> Array:
    """Levels that together maximise the smoothed shares of all nodes' histories."""
    from scipy.optimize import minimize

    start = multipliers(histories)
    k, facets = start.shape
    smoothed = [Smoothed.of(rows) for rows in histories.samples]
    scale = histories.spreads.mean(axis=0)
    share = histories.weights / histories.weights.sum()

    def lost(flat: Array) -> tuple[float, Array]:
        levels = flat.reshape(k, facets) * scale
        terms = [one.log_share(mine) for one, mine in zip(smoothed, levels, strict=True)]
        value = -float(sum(w * one for w, (one, _) in zip(share, terms, strict=True)))
        return value, -np.concatenate([w * slope * scale for w, (_, slope) in zip(share, terms, strict=True)])

    spent = np.zeros((facets, k * facets))
    for f in range(facets):
        spent[f, f::facets] = share
    budget = {
        "type": "ineq",
        "fun": lambda flat: histories.limits / scale - spent @ flat,
        "jac": lambda flat: -spent,
    }
    best = start
    for levels in (start, np.broadcast_to(histories.limits, start.shape)):
        begun = (levels / scale).ravel()
        found = minimize(lost, begun, jac=True, method="SLSQP", constraints=budget, options={"maxiter": 200})
        if np.isfinite(found.x).all():
            better = within_budget(found.x.reshape(k, facets) * scale, histories.limits, histories.weights)
            if lost((better / scale).ravel())[0] < lost((best / scale).ravel())[0]:
                best = better
    return best


@dataclass(frozen=True)
class Smoothed:
    """A node's history as a mixture of normal distributions, one around each row.

    Args:
        rows: (s, F) values of the facets.
        width: (F,) widths of the kernel.
    """

    rows: Array
    width: Array

    @classmethod
    def of(cls, rows: Array) -> Smoothed:
        """With widths by Silverman's rule, and at most `_ROWS` of the rows."""
        few = rows[:: max(1, -(-len(rows) // _ROWS))]
        spread = rows.std(axis=0)
        least = np.maximum(1e-3 * spread.max(), 1e-9 * np.maximum(np.abs(rows).max(axis=0), 1e-3))
        return cls(few, np.maximum(1.06 * spread * len(rows) ** -0.2, least))

    def log_share(self, levels: Array) -> tuple[float, Array]:
        """Logarithm of the share that lies in the zone with these levels, and its derivative in each level."""
        from scipy.special import erfcx, log_ndtr, logsumexp

        z = (levels - self.rows) / self.width
        each = log_ndtr(z)
        rows = each.sum(axis=1)
        total = float(logsumexp(rows))
        # Density over distribution; as a difference of logarithms it would be lost far outside of a zone.
        steep = math.sqrt(2 / math.pi) / erfcx(z / -math.sqrt(2)) / self.width
        return total - math.log(len(rows)), np.exp(rows - total) @ steep


def coverage(rows: Array, levels: Array) -> float:
    """The share of a node's past vectors, given by their values of the facets, that lies in a zone."""
    return float((rows <= levels).all(axis=1).mean())


def hierarchy(histories: Histories) -> Array:
    """Levels cluster by cluster: similar nodes are joined bottom-up, budgets are divided top-down.

    The average of two children's zones, which must lie in their parent's zone, is weighted by their numbers of nodes.
    """
    levels = np.empty((len(histories.samples), len(histories.limits)))

    def divide(tree: Tree, budget: Array) -> None:
        if isinstance(tree, int):
            levels[tree] = budget
            return
        members = [leaves(part) for part in tree]
        samples = tuple(np.concatenate([histories.samples[i] for i in mine]) for mine in members)
        weights = np.array([histories.weights[mine].sum() for mine in members])
        for part, mine in zip(tree, joint(Histories(samples, weights, budget)), strict=True):
            divide(part, mine)

    divide(clusters(histories), histories.limits)
    return within_budget(levels, histories.limits, histories.weights)


#: A node's place, or a pair of trees.
Tree = int | tuple["Tree", "Tree"]


def leaves(tree: Tree) -> list[int]:
    """The places of the nodes of a tree."""
    return [tree] if isinstance(tree, int) else [*leaves(tree[0]), *leaves(tree[1])]


def clusters(histories: Histories) -> Tree:
    """Nodes joined bottom-up, the two most similar first, by distance of mean and spread.

    Both are in units of a facet's spread over all nodes: in those of the means' own, nodes that differ in nothing but
    spread would be separated by the noise of their means.
    """
    rows = [(len(rows), rows.sum(axis=0), (rows**2).sum(axis=0)) for rows in histories.samples]

    def features(one: tuple[int, Array, Array]) -> Array:
        mean = one[1] / one[0]
        return np.concatenate([mean, np.sqrt(np.maximum(one[2] / one[0] - mean**2, 0.0))])

    spread = np.concatenate(histories.samples).std(axis=0)
    unit = np.tile(np.where(spread > 0, spread, 1.0), 2)
    trees: list[Tree] = list(range(len(rows)))
    while len(trees) > 1:
        at = np.stack([features(one) for one in rows]) / unit
        apart = np.linalg.norm(at[:, None] - at[None], axis=2)
        apart[np.tril_indices(len(at))] = np.inf
        i, j = (int(place) for place in np.unravel_index(int(np.argmin(apart)), apart.shape))
        (n, sums, squares), (other, more, their) = rows[i], rows[j]
        trees[i], rows[i] = (trees[i], trees[j]), (n + other, sums + more, squares + their)
        del trees[j], rows[j]
    return trees[0]


def _log_ratio(z: Sequence[float] | Array) -> Array:
    from scipy.special import log_ndtr

    z = np.asarray(z)
    ratio: Array = -0.5 * z**2 - 0.5 * math.log(2 * math.pi) - log_ndtr(z)
    return ratio
