"""The exact detector: a change is the first round whose exact model is more than eps away from the reference."""

from __future__ import annotations

import numpy as np

from chainlake.model_change.detectors.constraints import TIE
from chainlake.model_change.statistics.records import Event, State, Trace
from chainlake.model_change.statistics.statistics import Array, norm
from chainlake.schemas.models import ChangeKind

#: Number of rounds tested together right after a change; doubled while nothing happens.
_SHORT = 16


def detect(state: State, beta: Array, place: int, trace: Trace, *, alone: bool) -> None:
    """Walk greedily through a block of internal models (n, m); NaN rows are unidentifiable and change nothing.

    Args:
        state: of the group; the detector moves it on.
        beta: the models.
        place: the block's place in the trace.
        trace: gets the errors and the events.
        alone: whether unidentifiable periods are reported here (the local detector reports them itself).
    """
    basis, eps = state.basis, state.eps
    assert basis is not None and eps is not None and state.exact_beta is not None and state.exact_model is not None
    monitored = trace.beta[place : place + len(beta)]
    held = [(-1, state.exact_model)]
    at, size = 0, len(beta)
    while at < len(beta):
        stop = min(at + size, len(beta))
        error = norm(monitored[at:stop] - state.exact_beta)
        hits = np.flatnonzero(error > eps * (1 + TIE))
        end = at + int(hits[0]) if len(hits) else stop
        trace.error_exact[place + at : place + end] = error[: end - at]
        at, size = end, size * 2
        if not len(hits):
            continue
        now = place + end
        model = basis.original(beta[end][None])[0]
        trace.events.append(
            Event(
                place + end,
                "change",
                state.exact_model,
                model,
                error_before=float(error[hits[0]]),
                exceeded=True,
                max_value=float(error[hits[0]]),
                since=now - state.last["change"],
            )
        )
        state.exact_beta, state.exact_model, state.last["change"] = monitored[end].copy(), model, now
        trace.error_exact[place + end] = 0.0
        held.append((end, state.exact_model))
        at, size = end + 1, _SHORT
    lost = np.isnan(beta[:, 0])
    if alone:
        before = np.concatenate([[state.exact_lost], lost[:-1]])
        for i in np.flatnonzero(lost != before):
            old, new = (next(model for row, model in reversed(held) if row < bound) for bound in (i, i + 1))
            after = None if lost[i] else new
            kind: ChangeKind = "unidentifiable" if lost[i] else "recovered"
            trace.events.append(Event(place + int(i), kind, old, after))
    state.exact_lost = bool(lost[-1])
