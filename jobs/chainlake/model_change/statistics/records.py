"""Input, state and output of the monitor: settings, state, events, traces."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from chainlake.model_change.statistics.basis import Basis, Measure
from chainlake.model_change.statistics.statistics import Array
from chainlake.schemas.models import ChangeKind


@dataclass(frozen=True)
class Settings:
    """What the kernel needs to know of a model: k nodes, m coefficients, W rounds; the rest as in `config.ModelConfig`.

    ``nodes_change`` keeps the sums of every node of an infinite window even where only their total is tested.
    """

    k: int
    m: int
    window: int
    infinite: bool
    eps: float
    constraint: str
    local: bool
    exact: bool
    eps_is_share: bool = False
    prediction: bool = False
    intercept: int | None = None
    ridge: tuple[tuple[float, ...], ...] | None = None
    phi: float | str | None = None
    nodes_change: bool = False

    @property
    def by_node(self) -> bool:
        """Whether sums are kept per node; the exact detector alone needs only their total."""
        return self.local or (self.infinite and self.nodes_change)

    @property
    def ridge_matrix(self) -> Array | None:
        return None if self.ridge is None else np.array(self.ridge)


@dataclass
class State:
    """Everything that one call of `Kernel.feed` hands to the next.

    Args:
        x, y, gap: raw rows kept (the last W of a sliding window).
        basis: the coordinates of the sums, since the last anchor.
        base_a, base_c: window sums at the last anchor, (k, m, m) and (k, m); k is 1 if only the total is kept.
        run_a, run_c: their changes since.
        squares: the sum of squares of the centred responses over all nodes: at the anchor, and its change since.
        peak: (m + 1,) largest sums of squares since the anchor, of each column and of the response.
        measure, eps, phi: values of the first window; they outlive a reset.
        ref_basis, ref_average, ref_beta: the local detector's reference and its coordinates; None while the model is
            unidentifiable.
        ref_monitored, ref_model: the same model in monitored coordinates, and in the features' own units.
        ref_a, ref_c: the sums at that reference.
        exact_beta, exact_model: the exact detector's reference in monitored coordinates, and in the features' own
            units; None where only the local detector is in use.
        exact_lost: whether the exact detector's last round was unidentifiable.
        last: place of the last synchronisation and of the last change, counted back from the next round: -1 is the
            last round.
    """

    ready: bool = False
    x: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))
    y: Array = field(default_factory=lambda: np.zeros((0, 0)))
    gap: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    base_a: Array | None = None
    base_c: Array | None = None
    run_a: Array | None = None
    run_c: Array | None = None
    squares: Array | None = None
    peak: Array | None = None
    basis: Basis | None = None
    measure: Measure | None = None
    eps: float | None = None
    phi: float | None = None
    ref_basis: Basis | None = None
    ref_average: Array | None = None
    ref_beta: Array | None = None
    ref_monitored: Array | None = None
    ref_model: Array | None = None
    ref_a: Array | None = None
    ref_c: Array | None = None
    exact_beta: Array | None = None
    exact_model: Array | None = None
    exact_lost: bool = False
    last: dict[str, int] = field(default_factory=dict)


@dataclass
class Event:
    """A row of ``models.changes`` that has no time yet: ``at`` is the round's place in the fed chunk."""

    at: int
    kind: ChangeKind
    beta_before: Array | None
    beta_after: Array | None
    error_before: float | None = None
    exceeded: bool | None = None
    violators: tuple[int, ...] = ()
    max_value: float | None = None
    since: int | None = None


@dataclass
class Trace:
    """What a chunk of n rounds gave, with one entry per round.

    ``counted`` is False up to the first window; ``error_local`` and ``error_exact`` are errors after resolution (NaN
    where undefined); ``reports`` counts violating nodes; ``synced`` marks synchronisations, including failed ones;
    ``near_tie`` marks rounds in which a node's value lies within 1e-9 of eps, so that a difference in the last bit, as
    on another machine, could decide otherwise; ``beta`` holds the exact monitored models; ``sse``, ``sum_y``,
    ``sum_yy`` (over nodes, of responses minus ``centre_y``) describe how well exact models fit their own round.
    """

    counted: Array
    beta: Array
    error_local: Array
    error_exact: Array
    reports: Array
    synced: Array
    near_tie: Array
    sse: Array
    sum_y: Array
    sum_yy: Array
    centre_y: Array
    values: Array | None
    events: list[Event] = field(default_factory=list)

    @classmethod
    def empty(cls, n: int, k: int, m: int, values: bool) -> Trace:
        nan = np.full(n, np.nan)
        return cls(
            np.zeros(n, bool),
            np.full((n, m), np.nan),
            nan.copy(),
            nan.copy(),
            np.zeros(n, np.int64),
            np.zeros(n, bool),
            np.zeros(n, bool),
            nan.copy(),
            nan.copy(),
            nan.copy(),
            nan.copy(),
            np.full((n, k), np.nan) if values else None,
        )
