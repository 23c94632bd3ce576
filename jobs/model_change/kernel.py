"""The monitor of spec 6.6/6.7: rounds in, synchronisations and changes out, in any chunks with the same bits.

Window sums are kept relative to anchors: at the first round of every UTC day (and at the first window) they are summed
anew from the raw window, from there on the per-round changes are added one after the other. So no chunking, and no
day's length, shows in a result, and rounding never piles up over more than a day (design §6). Where a value leaves the
window that is far larger than all that stay, subtracting it would leave its rounding behind: there too they are summed
anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jobs.model_change import exact, local
from jobs.model_change.basis import Basis
from jobs.model_change.constraints import EVALUATORS, Evaluator
from jobs.model_change.membership import Switch
from jobs.model_change.records import Event, Settings, State, Trace
from jobs.model_change.statistics import Array, Moments, fit_phi, identifiable, norm, pooled, running, solve

#: Numbers of one block of drifts that may be in memory at a time (8 bytes each), and its rounds at most, with the sums
#: of every node and with their total alone.
_BLOCK_NUMBERS = 2_000_000
_BLOCK_ROUNDS, _BLOCK_ROUNDS_TOTAL = 512, 1536
#: How many times larger than all others of its column a value must be for the sums to begin anew when it leaves: its
#: square then still leaves ten digits of theirs.
_WILD = 1e3


class Kernel:
    """One model (one group) over time.

    Args:
        settings: the model.
        state: where an earlier kernel stopped; None for the beginning.
        evaluator: the local test; by default the one ``settings.constraint`` names.
        record_values: also return every node's value in every round (costs a full evaluation; for tests and pictures).
    """

    def __init__(
        self,
        settings: Settings,
        state: State | None = None,
        *,
        evaluator: Evaluator | None = None,
        record_values: bool = False,
    ):
        self.settings = settings
        self.state = state or State(x=np.zeros((0, settings.k, settings.m)), y=np.zeros((0, settings.k)))
        self.evaluator = evaluator or EVALUATORS[settings.constraint]
        self.bounds = settings.constraint if evaluator is None else ""
        self.record_values = record_values

    def reset(self, k: int | None = None) -> None:
        """Forget the window and the reference (``on_gap: reset``), now with ``k`` nodes; basis, eps and phi stay."""
        old = self.state
        if k is not None:
            self.settings = replace(self.settings, k=k)
        s = self.settings
        self.state = State(
            fed=old.fed, x=np.zeros((0, s.k, s.m)), y=np.zeros((0, s.k)), basis=old.basis, eps=old.eps, phi=old.phi
        )

    def feed(self, x: Array, y: Array, gap: Array, anchor: Array) -> Trace:
        """Take the next n complete rounds.

        Args:
            x: (n, k, m) features, y: (n, k) responses, both finite.
            gap: (n,) rounds since the round before (1 where none is missing).
            anchor: (n,) whether the round is the first of its UTC day.
        """
        s, st = self.settings, self.state
        trace = Trace.empty(len(x), s.k, s.m, self.record_values)
        first = len(st.x)
        x, y, gap = np.concatenate([st.x, x]), np.concatenate([st.y, y]), np.concatenate([st.gap, gap])
        at = first if st.ready else self._warm_up(x, y, gap, first, trace)
        if st.ready and at < len(x):
            assert st.basis is not None
            z, u = st.basis.rows(x), st.basis.response(y)
            trace.counted[at - first :] = True
            wild = set() if s.infinite else self._wild(z, u, at)
            starts = [*(first + int(i) for i in np.flatnonzero(anchor)), *wild]
            longest = _BLOCK_ROUNDS if s.by_node else _BLOCK_ROUNDS_TOTAL
            block = int(max(16, min(longest, _BLOCK_NUMBERS // (s.k * s.m**2))))
            while at < len(x):
                fresh = at in wild
                if fresh or anchor[at - first]:
                    self._anchor(z[: at + fresh], u[: at + fresh], gap[: at + fresh])
                stop = min([at + block, len(x), *(i for i in starts if i > at)])
                self._block(z[:stop], u[:stop], gap[:stop], at, first, trace, summed=fresh)
                at = stop
        # Each block reports all its changes before its synchronisations: by round the order knows no blocks.
        trace.events.sort(key=lambda event: event.at)
        st.fed += len(x) - first
        keep = s.window if not s.infinite else (1 if st.ready else len(x))
        st.x, st.y, st.gap = x[-keep:].copy(), y[-keep:].copy(), gap[-keep:].copy()
        return trace

    @property
    def condition(self) -> float:
        """Condition number of the pooled matrix, ridge included, in the features' own coordinates."""
        st = self.state
        assert st.basis is not None and st.base_a is not None
        inside = np.linalg.inv(st.basis.to_internal)
        total = pooled((st.base_a + st.run_a)[None])[0] + self._penalty()
        return float(np.linalg.cond(inside @ total @ inside.T))

    def _sums(self, z: Array, u: Array, gap: Array) -> tuple[Array, Array]:
        a, c = Moments(self.state.phi).dense(z, u, gap)
        return (a, c) if self.settings.by_node else (pooled(a[None]), pooled(c[None]))

    def switch(self, change: Switch, x: Array, y: Array, gap: Array) -> Trace:
        """Take one round with another node set: everybody synchronises (spec 2.2).

        Args:
            change: who stays and who joins, with the joiners' rows before this round.
            x, y, gap: (1, k, m), (1, k) and (1,) of the round, with the nodes of the new set.
        """
        st = self.state
        s = self.settings = replace(self.settings, k=len(change.kept))
        carried = self._carried_sums(change, x, y, gap) if st.ready and s.infinite else None
        stays = change.kept >= 0
        n = len(st.x) if stays.all() else min(len(st.x), s.window - 1)
        place, joiners = change.kept[stays], len(change.y) - n
        rows = slice(len(st.x) - n, None)
        rows_x, rows_y = np.empty((n, s.k, s.m)), np.empty((n, s.k))
        rows_x[:, stays], rows_y[:, stays] = st.x[rows][:, place], st.y[rows][:, place]
        if not stays.all():
            rows_x[:, ~stays], rows_y[:, ~stays] = change.x[joiners:], change.y[joiners:]
        st.x, st.y, st.gap = rows_x, rows_y, st.gap[rows]
        if not st.ready:
            return self.feed(x, y, gap, np.zeros(1, dtype=bool))
        assert st.basis is not None
        w = s.window if not s.infinite else 1
        st.x, st.y = np.concatenate([st.x, x])[-w:], np.concatenate([st.y, y])[-w:]
        st.gap = np.concatenate([st.gap, gap])[-w:]
        z, u = st.basis.rows(st.x), st.basis.response(st.y)
        trace = Trace.empty(1, s.k, s.m, self.record_values)
        self._synchronise(carried or self._sums(z, u, st.gap), z[-1:], u[-1:], trace)
        st.fed += 1
        return trace

    def _carried_sums(self, change: Switch, x: Array, y: Array, gap: Array) -> tuple[Array, Array]:
        """Sums of an infinite window with the nodes of a new set, this round included."""
        st, s = self.state, self.settings
        assert st.basis is not None and st.base_a is not None and st.base_c is not None
        stays = change.kept >= 0
        a, c = np.empty((s.k, s.m, s.m)), np.empty((s.k, s.m))
        for whole, base, run in ((a, st.base_a, st.run_a), (c, st.base_c, st.run_c)):
            whole[stays] = (base + run)[change.kept[stays]]
        moments = Moments(st.phi)

        def rows(past_x: Array, past_y: Array, past_gap: Array, mine: Array) -> tuple[Array, Array, Array]:
            assert st.basis is not None
            z = st.basis.rows(np.concatenate([past_x, x[:, mine]]))
            return z, st.basis.response(np.concatenate([past_y, y[:, mine]])), np.concatenate([past_gap, gap])

        place = change.kept[stays]
        step_a, step_c = moments.changes(*rows(st.x[:, place], st.y[:, place], st.gap, stays), None, 1)
        a[stays] += step_a[0]
        c[stays] += step_c[0]
        if not stays.all():
            a[~stays], c[~stays] = moments.dense(*rows(change.x, change.y, change.gap, ~stays))
        return a, c

    def _synchronise(self, sums: tuple[Array, Array], z: Array, u: Array, trace: Trace) -> None:
        """Make the sums of one round, with rows z (1, k, m) and u (1, k), the reference of both detectors."""
        s, st = self.settings, self.state
        assert st.basis is not None and st.eps is not None
        st.base_a, st.base_c = sums
        st.run_a, st.run_c = np.zeros_like(st.base_a), np.zeros_like(st.base_c)
        total = pooled(st.base_a[None])[0] + self._penalty()
        beta = solve(total[None], pooled(st.base_c[None]))
        found = bool(np.isfinite(beta).all())
        old = st.ref_beta if s.local else st.exact_beta
        trace.counted[0], trace.beta[0] = True, st.basis.monitored(beta)[0]
        event = Event(
            0,
            "node_change",
            None if old is None else st.basis.original(old[None])[0],
            st.basis.original(beta)[0] if found else None,
            since=st.fed - st.last["sync" if s.local else "change"],
        )
        if found and old is not None:
            event.error_before = float(norm(trace.beta[:1] - st.basis.monitored(old[None]))[0])
            event.exceeded = event.error_before > st.eps
        trace.events.append(event)
        if s.local:
            local.install(st, s.k, total, beta[0], st.base_a, st.base_c)
            trace.synced[0] = True
            trace.error_local[0] = 0.0 if found else np.nan
        if s.exact and found:
            st.exact_beta, trace.error_exact[0] = beta[0].copy(), 0.0
        st.exact_lost = not found
        st.last = {"sync": st.fed, "change": st.fed}
        _fit(z, u, beta, trace, slice(0, 1))

    def _anchor(self, z: Array, u: Array, gap: Array) -> None:
        st = self.state
        if self.settings.infinite:
            assert st.base_a is not None and st.base_c is not None
            st.base_a, st.base_c = st.base_a + st.run_a, st.base_c + st.run_c
        else:
            w = self.settings.window
            st.base_a, st.base_c = self._sums(z[-w:], u[-w:], gap[-w:])
        st.run_a, st.run_c = np.zeros_like(st.base_a), np.zeros_like(st.base_c)

    def _wild(self, z: Array, u: Array, at: int) -> set[int]:
        """The rounds from place ``at`` on in which a value leaves that is far larger than all that stay."""
        w = self.settings.window
        size = np.concatenate([np.abs(z).max(axis=1), np.abs(u).max(axis=1)[:, None]], axis=1)
        leaving, coming = size[at - w : len(size) - w], size[at:]
        found = set()
        for i in np.flatnonzero((leaving > _WILD * coming).any(axis=1)).tolist():
            stays = size[at - w + i + 1 : at + i + 1].max(axis=0)
            if (leaving[i] > _WILD * stays).any():
                found.add(at + i)
        return found

    def _penalty(self) -> Array | float:
        assert self.state.basis is not None
        p = self.state.basis.ridge(self.settings.ridge_matrix)
        return 0.0 if p is None else p

    def _warm_up(self, x: Array, y: Array, gap: Array, first: int, trace: Trace) -> int:
        """Look for the first round that completes an identifiable window; returns the place after it."""
        w = self.settings.window
        for t in range(max(first, w - 1), len(x)):
            rows = slice(0 if self.settings.infinite else t - w + 1, t + 1)
            if self._begin(x[rows], y[rows], gap[rows], t - first, trace):
                return t + 1
        return len(x)

    def _begin(self, x: Array, y: Array, gap: Array, at: int, trace: Trace) -> bool:
        s, st = self.settings, self.state
        p = s.ridge_matrix
        basis = st.basis
        if basis is None:
            # A penalised intercept makes the fit depend on the level of y: then y keeps its level.
            centre_y = p is None or s.intercept is None or not np.any(p[s.intercept])
            plain = Basis.from_window(x, y, intercept=s.intercept, prediction=False, centre_y=centre_y)
            if s.prediction:
                a = pooled(Moments(None).dense(plain.rows(x), plain.response(y), gap)[0][None])
                if not identifiable(a)[0]:
                    return False
            basis = Basis.from_window(x, y, intercept=s.intercept, prediction=s.prediction, centre_y=centre_y)
        z, u = basis.rows(x), basis.response(y)
        penalty = basis.ridge(p)
        phi = st.phi
        if phi is None and s.phi == "fit":
            a, c = (pooled(v[None]) for v in Moments(None).dense(z, u, gap))
            beta = solve(a if penalty is None else a + penalty, c)[0]
            phi = fit_phi(z, u, gap, beta) if np.all(np.isfinite(beta)) else None
            if phi is None:
                return False
        elif phi is None and s.phi is not None:
            phi = float(s.phi)
        a, c = Moments(phi).dense(z, u, gap)
        total = pooled(a[None])[0] + (0.0 if penalty is None else penalty)
        beta = solve(total[None], pooled(c[None]))[0]
        if not np.all(np.isfinite(beta)):
            return False
        if st.eps is None:
            st.eps = s.eps * float(norm(basis.monitored(beta[None]))[0]) if s.eps_is_share else s.eps
        st.basis, st.phi, st.ready = basis, phi, True
        st.base_a, st.base_c = (a, c) if s.by_node else (pooled(a[None]), pooled(c[None]))
        st.run_a, st.run_c = np.zeros_like(st.base_a), np.zeros_like(st.base_c)
        st.exact_beta, st.exact_lost = beta, False
        if s.local:
            local.install(st, s.k, total, beta, st.base_a, st.base_c)
        st.last = {"sync": st.fed + at, "change": st.fed + at}
        trace.events.append(Event(at, "init", None, basis.original(beta[None])[0]))
        return True

    def _block(
        self, z: Array, u: Array, gap: Array, at: int, first: int, trace: Trace, *, summed: bool
    ) -> None:
        """Rounds ``at`` to the end of the given rows, which begin far enough back for the window.

        ``summed`` says that the sums are those of round ``at`` already.
        """
        s, st = self.settings, self.state
        assert st.basis is not None and st.run_a is not None and st.run_c is not None
        n = len(z) - at
        window = None if s.infinite else s.window
        lo = at - (window or (1 if st.phi else 0))
        moments = Moments(st.phi)
        changes = moments.changes if s.by_node else moments.total_changes
        d_a, d_c = changes(z[lo:], u[lo:], gap[lo:], window, n)
        if summed:
            d_a[0], d_c[0] = 0.0, 0.0
        d_a, d_c = running(st.run_a, d_a), running(st.run_c, d_c)
        st.run_a, st.run_c = d_a[-1].copy(), d_c[-1].copy()
        a, c = d_a + st.base_a, d_c + st.base_c
        total = pooled(a) + self._penalty()
        beta = solve(total, pooled(c))
        place = at - first
        trace.beta[place : place + n] = st.basis.monitored(beta)
        if s.exact:
            exact.detect(st, beta, place, trace, alone=not s.local)
        if s.local:
            local.detect(self, a, c, total, beta, place, trace)
        _fit(z[at:], u[at:], beta, trace, slice(place, place + n))


def _fit(z: Array, u: Array, beta: Array, trace: Trace, rows: slice) -> None:
    """How the models fit the rounds they end with: z (n, k, m), u (n, k), beta (n, m)."""
    with np.errstate(over="ignore", invalid="ignore"):  # a barely determined model can predict anything
        predicted = z[:, :, 0] * beta[:, 0, None]
        for i in range(1, z.shape[2]):
            predicted += z[:, :, i] * beta[:, i, None]
        squares = ((u - predicted) ** 2, u, u**2)
    trace.sse[rows], trace.sum_y[rows], trace.sum_yy[rows] = (pooled(v[:, :, None])[:, 0] for v in squares)
