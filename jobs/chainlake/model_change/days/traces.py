"""A model's rounds one by one, for pictures and sweeps: exact models, errors, messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import numpy as np
import pyarrow as pa

from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.days.daily import GroupMonitor
from chainlake.model_change.days.replay import by_day
from chainlake.model_change.rounds.rounds import Chunk
from chainlake.model_change.statistics.records import Event, Trace
from chainlake.model_change.statistics.statistics import Array


@dataclass(frozen=True)
class GroupTrace:
    """The n complete rounds of one group of a model.

    Args:
        config: the model.
        group: its group.
        eps: threshold in force; None if no first window was ever complete.
        ts: (n,) starts of the rounds, microseconds.
        nodes: (n,) how many nodes took part.
        counted: (n,) whether messages and errors of the round count: a model existed before it, and its number is not
            below the model's ``count_from``.
        beta: (n, m) exact models in the coordinates in which eps is measured; NaN where there is none.
        coefficients: (n, m) the same in the features' own units.
        error_local, error_exact: (n,) distance from the reference of each detector, after the round is resolved.
        reports: (n,) nodes whose local test failed.
        synced: (n,) whether all nodes synchronised.
        events: (round, event) pairs, in order.
        x, y: the nodes' rows in each round, (k, m) and (k,).
        begun: the references of the ``local`` and the ``exact`` detector before the first round, in the features' own
            units, where there was one.
        spans: the raw values at the ends of a polynomial's scale, by its place among the features.
    """

    config: ModelConfig
    group: str
    eps: float | None
    ts: Array
    nodes: Array
    counted: Array
    beta: Array
    coefficients: Array
    error_local: Array
    error_exact: Array
    reports: Array
    synced: Array
    events: list[tuple[int, Event]]
    x: list[Array]
    y: list[Array]
    begun: dict[str, Array]
    spans: dict[int, tuple[float, float]]

    def of_kind(self, *kinds: str) -> list[tuple[int, Event]]:
        """The events of these kinds in rounds that count."""
        return [(at, event) for at, event in self.events if event.kind in kinds and self.counted[at]]

    def reference(self, at: int, detector: str) -> Array | None:
        """A detector's reference model once round ``at`` is resolved, in the features' own units."""
        kinds = ("init", "node_change", *(("sync", "recovered") if detector == "local" else ("change",)))
        found = self.begun.get(detector)
        for i, event in self.events:
            if i <= at and event.kind in kinds:
                found = event.beta_after
        return found


def trace_group(
    config: ModelConfig, group: str, reduced: pa.Table, first: date, end: date, snapshot: str | None = None
) -> GroupTrace:
    """Run one group of a model over the days ``[first, end)``.

    Args:
        config: the model.
        group: the group.
        reduced: rounds of the days, from `reduce.reduce_rows`.
        first, end: the days.
        snapshot: state to continue from; None: begin with a first window.
    """
    run = GroupMonitor(config, group, snapshot)
    begun = _references(run)
    parts: list[tuple[Chunk, Trace]] = []
    for _, rows in by_day(reduced, first, end):
        parts += run.traces(rows)
    m = len(config.feature_names)

    def joined(name: str, empty: Array) -> Array:
        return np.concatenate([getattr(trace, name) for _, trace in parts]) if parts else empty

    none = np.zeros(0)
    counts = np.concatenate([chunk.counts for chunk, _ in parts]) if parts else none.astype(bool)
    starts = np.cumsum([0, *(len(chunk.ts) for chunk, _ in parts)])
    beta, measure = joined("beta", np.zeros((0, m))), run.kernel.state.measure
    own = beta if measure is None else measure.original(beta, config.intercept)
    return GroupTrace(
        config=config,
        group=group,
        eps=run.eps,
        ts=np.concatenate([chunk.ts for chunk, _ in parts]) if parts else np.zeros(0, np.int64),
        nodes=np.concatenate([np.full(len(chunk.ts), len(chunk.nodes)) for chunk, _ in parts]) if parts else none,
        counted=joined("counted", none.astype(bool)) & counts,
        beta=beta,
        coefficients=own,
        error_local=joined("error_local", none),
        error_exact=joined("error_exact", none),
        reports=joined("reports", none.astype(np.int64)),
        synced=joined("synced", none.astype(bool)),
        events=[
            (int(start) + event.at, event)
            for (start, _), (_, trace) in zip(pairwise(starts), parts, strict=True)
            for event in sorted(trace.events, key=lambda event: event.at)
        ],
        x=[row for chunk, _ in parts for row in chunk.x],
        y=[row for chunk, _ in parts for row in chunk.y],
        begun=begun,
        spans=_spans(run),
    )


def _spans(run: GroupMonitor) -> dict[int, tuple[float, float]]:
    found = {int(at): (float(ends[0]), float(ends[1])) for at, ends in run.rounds.carry.spans.items()}
    for i, feature in enumerate(run.config.features):
        if feature.low is not None and feature.high is not None:
            found[i] = (feature.low, feature.high)
    return found


def _references(run: GroupMonitor) -> dict[str, Array]:
    state = run.kernel.state
    held = {"local": state.ref_model, "exact": state.exact_model}
    return {name: beta for name, beta in held.items() if beta is not None}
