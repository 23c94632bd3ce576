"""What the cost model needs to know about the events, measured on bounded, deterministic samples of them.

A sample consists of whole combinations in scope, since a single event does not show how often it meets another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.estimate.cost import PASSES, Density, Model
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.plan.steps import scope_of

#: Buckets of time sampled per name.
BUCKETS = 512
#: How many first events of combinations are sampled, and how many events of each further name for each of them.
ANCHORS = 256
FAN = 24
#: The most combinations that are sampled for a condition.
MOST = 1 << 15


def measure(branch: Branch, data: Dataset, candidates: Mapping[str, Candidates], window: int) -> Model:
    """The cost model of ``branch`` on these events.

    Args:
        branch: the branch.
        data: the events.
        candidates: those of every positive name.
        window: in ticks.
    """
    totals = {name: float(len(candidates[name])) for name in branch.positive}
    if branch.stream is not None:
        return neighbours(branch, totals)
    times = {name: candidates[name].ts for name in branch.positive if name not in branch.kleene}
    if len(times) < 2:
        return Model(branch, totals, density({}, window), {}, crowds(branch, candidates, window))
    rates = pass_rates(branch, data, candidates, window) if min(totals.values()) else {}
    return Model(branch, totals, density(times, window), rates, crowds(branch, candidates, window))


def neighbours(branch: Branch, totals: Mapping[str, float]) -> Model:
    """The cost model of a branch whose events are neighbours: each event is looked at once for each name."""
    counts = {name: np.array([total]) for name, total in totals.items()}
    return Model(branch, totals, Density(counts, np.ones(1), 0.0), {}, {})


def upper_bound(branch: Branch, candidates: Mapping[str, Candidates], window: int) -> Model:
    """The model as if all combinations passed all conditions; it is quick, since it looks only at times."""
    times = {name: candidates[name].ts for name in branch.positive if name not in branch.kleene}
    totals = {name: float(len(candidates[name])) for name in branch.positive}
    near = density(times if len(times) > 1 else {}, window)
    return Model(branch, totals, near, {}, crowds(branch, candidates, window))


def crowds(branch: Branch, candidates: Mapping[str, Candidates], window: int) -> dict[str, float]:
    """For each name bound to sets, how many of its events follow one of them within a window, on average."""
    found = {}
    for name in branch.kleene:
        ts = candidates[name].ts
        drawn = _spread(len(ts), ANCHORS, None)
        found[name] = float((np.searchsorted(ts, ts[drawn] + window, "right") - drawn - 1).mean()) if len(ts) else 0.0
    return found


def density(times: Mapping[str, np.ndarray], window: int) -> Density:
    """Counts per bucket of one window's length.

    Of each name, some events are drawn evenly, and their buckets are the sample. A bucket with many events is more
    likely to be drawn, and its weight corrects for that. Of a rare name, all buckets are in the sample.

    Args:
        times: for each name, the ascending times of its events, in ticks.
        window: in ticks.
    """
    if not times:
        return Density({}, np.ones(0), 1.0)
    length = window + 1
    drawn = {name: _spread(len(ts), BUCKETS, None) for name, ts in times.items()}
    buckets = np.unique(np.concatenate([ts[drawn[name]] // length for name, ts in times.items()]))
    counts: dict[str, np.ndarray] = {}
    missed = np.ones(len(buckets))
    for name, ts in times.items():
        found = np.searchsorted(ts, (buckets + 1) * length) - np.searchsorted(ts, buckets * length)
        counts[name] = found.astype(np.float64)
        missed *= 1.0 - np.minimum(1.0, counts[name] * len(drawn[name]) / max(len(ts), 1))
    return Density(counts, 1.0 / (1.0 - missed), window / length if window else 1.0)


def pass_rates(
    branch: Branch, data: Dataset, candidates: Mapping[str, Candidates], window: int
) -> dict[frozenset[str], float]:
    """For sets of single names, the share of combinations in scope that pass the conditions between exactly them."""
    together: dict[frozenset[str], list[Clause]] = {}
    singles = frozenset(branch.positive) - branch.kleene
    for clause in branch.clauses:
        if len(clause.names) > 1 and clause.names <= singles and not clause.heavy:
            together.setdefault(clause.names, []).append(clause)
    found = {}
    for names, clauses in together.items():
        rarest = sorted(names, key=lambda name: (len(candidates[name]), branch.positive.index(name)))
        bindings, weights = _combinations(branch, rarest, candidates, window)
        passed = np.ones(bindings.n, bool)
        view = bindings.view(data, dict(candidates))
        for clause in clauses:
            passed &= view.holds(clause, frozenset())
        # Half a combination more passes, since with a rate of zero all later steps would cost nothing.
        unit = float(weights.mean()) if bindings.n else 1.0
        found[names] = (float(weights[passed].sum()) + unit / 2) / (float(weights.sum()) + unit)
    for clause in branch.clauses:
        if clause.heavy and clause.names and clause.names <= singles:
            found[clause.names] = found.get(clause.names, 1.0) * PASSES
    return found


def _combinations(
    branch: Branch, names: Sequence[str], candidates: Mapping[str, Candidates], window: int
) -> tuple[Bindings, np.ndarray]:
    """Sampled combinations of the names' events in scope, and how many combinations each stands for."""
    draw = np.random.default_rng(0)
    of = candidates[names[0]]
    positions = _spread(len(of), ANCHORS, draw)
    ts = of.ts[positions]
    bindings = Bindings(len(ts), {names[0]: positions}, {}, ts, ts)
    weights = np.ones(len(ts))
    for number, name in enumerate(names[1:], 1):
        of = candidates[name]
        scope = scope_of(branch, name, list(names[:number]))
        lo, hi = bindings.scope(scope, window, dict(candidates), of)
        sizes = hi - lo
        taken = np.minimum(sizes, max(1, min(FAN, MOST // max(bindings.n, 1))))
        rows = np.repeat(np.arange(bindings.n), taken)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(taken) - taken, taken)
        # Evenly, but not at equal distances, since events may be periodic.
        positions = lo[rows] + ((within + draw.random(len(rows))) * sizes[rows] / taken[rows]).astype(np.int64)
        apart = bindings.apart(scope, dict(candidates), of, rows, positions)
        if apart is not None:
            rows, positions = rows[apart], positions[apart]
        weights = weights[rows] * (sizes[rows] / taken[rows])
        bindings = bindings.at(rows)
        bindings.singles[name] = positions
        bindings.start = np.minimum(bindings.start, of.ts[positions])
        bindings.end = np.maximum(bindings.end, of.ts[positions])
    return bindings, weights


def _spread(count: int, most: int, draw: np.random.Generator | None) -> np.ndarray:
    """At most ``most`` of ``count`` positions, evenly spread; with ``draw``, each is random within its bucket."""
    taken = min(count, most)
    shift = 0.5 if draw is None else draw.random(taken)
    return np.minimum(((np.arange(taken) + shift) * count / max(taken, 1)).astype(np.int64), max(count - 1, 0))
