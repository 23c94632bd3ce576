"""The local detector: every node tests its drift; one violation synchronises all (docs/monitors.md#round-by-round)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from chainlake.model_change.detectors.constraints import TIE, Evaluator, Reference, clear_cut, violates
from chainlake.model_change.statistics.records import Event, Settings, State, Trace
from chainlake.model_change.statistics.statistics import Array, norm

#: Number of rounds tested together right after a synchronisation; doubled while nothing happens.
_SHORT = 16


class Monitored(Protocol):
    """What the detector needs of the monitor that it works for.

    Attributes:
        settings: of the model.
        state: of the group; the detector moves it on.
        evaluator: the local test.
        bounds: name of the constraint whose cheap bounds may decide first; empty for none.
    """

    settings: Settings
    state: State
    evaluator: Evaluator
    bounds: str


def install(state: State, k: int, sums: tuple[Array, Array, Array], beta: Array, monitored: Array) -> None:
    """Make this round's sums the reference of every node; a NaN model leaves the monitor unidentifiable.

    Args:
        state: gets the reference.
        k: number of nodes.
        sums: the pooled sums with ridge (m, m), and the sums of every node (k, m, m), (k, m).
        beta, monitored: (m,) the model in internal and in monitored coordinates.
    """
    assert state.basis is not None
    total, a, c = sums
    found = bool(np.all(np.isfinite(beta)))
    state.ref_average, state.ref_beta, state.ref_monitored, state.ref_model = (
        (total / k, beta.copy(), monitored.copy(), state.basis.original(beta[None])[0])
        if found
        else (None, None, None, None)
    )
    state.ref_a, state.ref_c, state.ref_basis = a.copy(), c.copy(), state.basis


def reference(state: State) -> Reference | None:
    """The reference in force, or None while unidentifiable."""
    if state.ref_average is None or state.ref_beta is None or state.ref_monitored is None:
        return None
    assert state.ref_basis is not None and state.basis is not None
    return Reference(state.ref_average, state.ref_beta, state.ref_monitored, state.ref_basis, state.basis)


def detect(kernel: Monitored, a: Array, c: Array, total: Array, beta: Array, place: int, trace: Trace) -> None:
    """Walk a block: node sums a (n, k, m, m) and c (n, k, m), pooled sums with ridge, internal models (n, m)."""
    st, s = kernel.state, kernel.settings
    eps = st.eps
    assert eps is not None
    monitored = trace.beta[place : place + len(beta)]
    ref = reference(st)
    at, size = 0, _SHORT
    while at < len(beta):
        value: float | None = None
        violators: tuple[int, ...] = ()
        if ref is None:
            end = at
        else:
            stop = min(at + size, len(beta))
            end, violators, value = _first_violation(kernel, ref, a[at:stop], c[at:stop], trace, place + at)
            end += at
            trace.error_local[place + at : place + end] = norm(monitored[at:end] - ref.monitored)
            if not violators:
                at, size = stop, size * 2
                continue
        old, model = ref, st.ref_model
        install(st, s.k, (total[end], a[end], c[end]), beta[end], monitored[end])
        ref = reference(st)
        now = place + end
        event = Event(
            place + end,
            "sync",
            model,
            st.ref_model,
            violators=violators,
            max_value=value,
            since=now - st.last["sync"],
        )
        if ref is None:
            event.kind = "unidentifiable"
        else:
            event.kind = "recovered" if old is None else "sync"
            trace.error_local[place + end] = 0.0
            if old is not None:
                event.error_before = float(norm((ref.monitored - old.monitored)[None])[0])
                event.exceeded = event.error_before > eps
        trace.events.append(event)
        trace.reports[place + end], trace.synced[place + end] = len(violators), True
        st.last["sync"] = now
        at, size = end + 1, _SHORT


def _first_violation(
    kernel: Monitored, ref: Reference, a: Array, c: Array, trace: Trace, place: int
) -> tuple[int, tuple[int, ...], float | None]:
    """(row, violators, largest value) of the first row with a violation; (number of rows, (), None) if none has."""
    st = kernel.state
    assert st.eps is not None and st.ref_a is not None and st.ref_c is not None
    n, k, m = c.shape
    ref_a, ref_c = ref.carried(st.ref_a, st.ref_c)
    d_a, d_c = (a - ref_a).reshape(-1, m, m), (c - ref_c).reshape(-1, m)
    fine, bad = clear_cut(kernel.bounds, ref, d_a, d_c, st.eps)
    open_ = np.flatnonzero(~fine & ~bad)
    near = np.zeros(n * k, dtype=bool)
    if len(open_):
        value, size = kernel.evaluator(ref, d_a[open_], d_c[open_], st.eps)
        bad[open_] = violates(value, size, st.eps)
        near[open_] = np.abs(value - st.eps) <= TIE * st.eps
    rows = np.flatnonzero(bad.reshape(n, k).any(axis=1))
    last = int(rows[0]) if len(rows) else n
    upto = min(last + 1, n)
    trace.near_tie[place : place + upto] = near.reshape(n, k)[:upto].any(axis=1)
    if trace.values is not None:
        value = kernel.evaluator(ref, d_a[: upto * k], d_c[: upto * k], st.eps)[0]
        trace.values[place : place + upto] = value.reshape(-1, k)
    if not len(rows):
        return n, (), None
    node = slice(last * k, last * k + k)
    value = kernel.evaluator(ref, d_a[node], d_c[node], st.eps)[0]
    return last, tuple(int(j) for j in np.flatnonzero(bad[node])), float(np.max(value))
