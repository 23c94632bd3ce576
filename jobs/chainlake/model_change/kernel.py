"""The monitor of docs/monitors.md: rounds in, synchronisations and changes out, with the same bits in any chunks.

Window sums are kept relative to anchors. At the first round of every UTC day (and at the first window) they are summed
afresh from the raw window, in coordinates made from this window alone; from there on, the changes of each round are
added one after the other. So results depend neither on chunks nor on the length of a day, and rounding never piles up
over more than a day. Rounding would also show where most of what the sums once held is not part of the spread that
decides: a far-off value has left, the level has moved, two columns have become nearly the same, or a jump explains
nearly everything. Such a round is an anchor, too. An infinite window keeps its coordinates: its spread only grows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chainlake.model_change.detectors import exact, local
from chainlake.model_change.detectors.constraints import EVALUATORS, Evaluator
from chainlake.model_change.rounds.membership import Switch
from chainlake.model_change.statistics.basis import Basis, Measure
from chainlake.model_change.statistics.fit import fit
from chainlake.model_change.statistics.records import Event, Settings, State, Trace
from chainlake.model_change.statistics.residuals import clear, lost_to_rounding, spread_of
from chainlake.model_change.statistics.statistics import (
    Array,
    Factors,
    Moments,
    factors,
    fit_phi,
    identifiable,
    lasting,
    norm,
    pooled,
    running,
    solved,
)

#: Numbers (8 bytes each) that a block of drifts holds at most, and its most rounds with every node's sums or with their
#: total alone.
_BLOCK_NUMBERS = 2_000_000
_BLOCK_ROUNDS, _BLOCK_ROUNDS_TOTAL = 512, 1536
#: Rounds in a block right after an anchor that rounding made necessary; doubled while there is no other.
_SHORT = 16
#: How many rows are put into an anchor's coordinates at a time: this many windows, but at least this many rows.
_WINDOWS, _ROWS = 4, 2048


class Kernel:
    """One group of a model over time.

    Args:
        settings: the model.
        state: where an earlier kernel stopped; None for the beginning.
        evaluator: the local test; by default the one that ``settings.constraint`` names.
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
        """Forget the window and the reference (``on_gap: reset``), now with ``k`` nodes; frozen values stay."""
        old = self.state
        if k is not None:
            self.settings = replace(self.settings, k=k)
        s = self.settings
        self.state = State(
            x=np.zeros((0, s.k, s.m)), y=np.zeros((0, s.k)), measure=old.measure, eps=old.eps, phi=old.phi
        )

    def feed(self, x: Array, y: Array, gap: Array, anchor: Array) -> Trace:
        """Take the next n complete rounds.

        Args:
            x, y: (n, k, m) features and (n, k) responses, all finite.
            gap: (n,) rounds since the round before (1 where none is missing).
            anchor: (n,) whether the round is the first of its UTC day.
        """
        s, st = self.settings, self.state
        trace = Trace.empty(len(x), s.k, s.m, self.record_values)
        first = len(st.x)
        x, y, gap = np.concatenate([st.x, x]), np.concatenate([st.y, y]), np.concatenate([st.gap, gap])
        at = first if st.ready else self._warm_up(x, y, gap, first, trace)
        if st.ready and at < len(x):
            trace.counted[at - first :] = True
            self._advance((x, y, gap), at, first + np.flatnonzero(anchor), trace)
        # Each block reports all its changes before its synchronisations; sorted by round, blocks do not show.
        trace.events.sort(key=lambda event: event.at)
        self._passed(len(x) - first)
        keep = s.window if not s.infinite else (1 if st.ready else len(x))
        st.x, st.y, st.gap = x[-keep:].copy(), y[-keep:].copy(), gap[-keep:].copy()
        return trace

    def _reference_set(self, at: int) -> None:
        """Note that both detectors begin again at place ``at`` of the rounds that are fed."""
        self.state.last = {
            kind: at for kind, used in (("sync", self.settings.local), ("change", self.settings.exact)) if used
        }

    def _passed(self, rounds: int) -> None:
        self.state.last = {kind: at - rounds for kind, at in self.state.last.items()}

    @property
    def condition(self) -> float:
        """Condition number of the pooled matrix, ridge included, in the features' own coordinates."""
        st = self.state
        assert st.basis is not None and st.base_a is not None
        outside = st.basis.feature_map
        total = self._with_ridge(pooled((st.base_a + st.run_a)[None]), st.basis)[0]
        return float(np.linalg.cond(outside @ total @ outside.T))

    def _summed(self, rows: tuple[Array, Array, Array], phi: float | None) -> tuple[Basis, tuple[Array, Array]]:
        """The coordinates made from a window's rows x, y and their gaps, and the window's sums in them."""
        s = self.settings
        moments = Moments(phi)
        basis, (a, c) = Basis.from_window(rows, moments=moments, intercept=s.intercept, ridge=s.ridge_matrix)
        if not s.infinite and (slopes := self._lost_slopes(basis, rows, (a, c), moments)) is not None:
            finer = replace(basis, slopes=slopes)
            c_finer = moments.dense(basis.rows(rows[0]), finer.response(rows[0], rows[1]), rows[2])[1]
            if np.isfinite(c_finer).all():
                basis, c = finer, c_finer
        sums = (a, c) if s.by_node else (pooled(a[None]), pooled(c[None]))
        return replace(basis, measure=self.state.measure), sums

    def _lost_slopes(
        self, basis: Basis, rows: tuple[Array, Array, Array], sums: tuple[Array, Array], moments: Moments
    ) -> Array | None:
        """The window's slopes if some of them drown in what the others explain of the response; otherwise None."""
        a, c = (pooled(v[None]) for v in sums)
        total = self._with_ridge(a, basis)
        found = factors(total, basis.shape)
        slopes = basis.inner_slopes(self._models(found, total, c, basis))
        squares = moments.squares(basis.centred(rows[1]), rows[2])
        held = np.append(np.diag(total[0]), squares)[:, None]
        if not lost_to_rounding(found, slopes, held, basis.mix, basis.intercept is not None)[0]:
            return None
        slopes[:, : int(basis.intercept is not None)] = 0.0
        return np.asarray(slopes[0])

    def _with_ridge(self, total: Array, basis: Basis) -> Array:
        penalty = basis.ridge(self.settings.ridge_matrix)
        return total if penalty is None else total + penalty

    def _models(self, found: Factors, total: Array, c: Array, basis: Basis) -> Array:
        """Internal models of pooled sums; where the intercept is penalised, so is the centre of the response."""
        penalty = basis.ridge(self.settings.ridge_matrix)
        return solved(found, total, c if penalty is None else c - penalty @ basis.constant)

    def switch(self, change: Switch, x: Array, y: Array, gap: Array) -> Trace:
        """Take one round with a changed node set: all nodes synchronise.

        Args:
            change: who stays and who joins, with the joiners' rows before this round.
            x, y, gap: (1, k, m), (1, k) and (1,) values of the round, for the nodes of the new set.
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
        w = s.window if not s.infinite else 1
        st.x, st.y = np.concatenate([st.x, x])[-w:], np.concatenate([st.y, y])[-w:]
        st.gap = np.concatenate([st.gap, gap])[-w:]
        trace = Trace.empty(1, s.k, s.m, self.record_values)
        self._synchronise(carried, (st.x, st.y, st.gap), trace)
        self._passed(1)
        return trace

    def _carried_sums(self, change: Switch, x: Array, y: Array, gap: Array) -> tuple[Array, Array]:
        """Sums of an infinite window for the nodes of a new set, this round included."""
        st, s = self.state, self.settings
        assert st.basis is not None and st.base_a is not None and st.base_c is not None
        stays = change.kept >= 0
        a, c = np.empty((s.k, s.m, s.m)), np.empty((s.k, s.m))
        for whole, base, run in ((a, st.base_a, st.run_a), (c, st.base_c, st.run_c)):
            whole[stays] = (base + run)[change.kept[stays]]
        moments = Moments(st.phi)

        def rows(past_x: Array, past_y: Array, past_gap: Array, mine: Array) -> tuple[Array, Array, Array]:
            assert st.basis is not None
            all_x, all_y = np.concatenate([past_x, x[:, mine]]), np.concatenate([past_y, y[:, mine]])
            return st.basis.rows(all_x), st.basis.response(all_x, all_y), np.concatenate([past_gap, gap])

        place = change.kept[stays]
        step_a, step_c = moments.changes(*rows(st.x[:, place], st.y[:, place], st.gap, stays), None, 1)
        a[stays] += step_a[0]
        c[stays] += step_c[0]
        if not stays.all():
            a[~stays], c[~stays] = moments.dense(*rows(change.x, change.y, change.gap, ~stays))
        return a, c

    def _synchronise(self, carried: tuple[Array, Array] | None, rows: tuple[Array, Array, Array], trace: Trace) -> None:
        """Make the last row the reference of both detectors; ``carried``: the sums if the window is infinite."""
        s, st = self.settings, self.state
        assert st.eps is not None
        known, model = (st.ref_monitored, st.ref_model) if s.local else (st.exact_beta, st.exact_model)
        sums = carried
        if sums is None:
            st.basis, sums = self._summed(rows, st.phi)
        basis = st.basis
        assert basis is not None
        z, u = basis.rows(rows[0]), basis.response(rows[0], rows[1])
        st.base_a, st.base_c = sums
        total = self._with_ridge(pooled(st.base_a[None]), basis)
        beta = self._models(factors(total, basis.shape), total, pooled(st.base_c[None]), basis)
        self._begin_sums(total[0], u, rows[2])
        found = bool(np.isfinite(beta).all())
        trace.counted[0], trace.beta[0] = True, basis.monitored(beta)[0]
        event = Event(
            0,
            "node_change",
            model,
            basis.original(beta)[0] if found else None,
            since=-st.last["sync" if s.local else "change"],
        )
        if found and known is not None:
            event.error_before = float(norm(trace.beta[:1] - known)[0])
            event.exceeded = event.error_before > st.eps
        trace.events.append(event)
        if s.local:
            local.install(st, s.k, (total[0], st.base_a, st.base_c), beta[0], trace.beta[0])
            trace.synced[0] = True
            trace.error_local[0] = 0.0 if found else np.nan
        if s.exact and found:
            st.exact_beta, st.exact_model, trace.error_exact[0] = trace.beta[0].copy(), event.beta_after, 0.0
        st.exact_lost = s.exact and not found
        self._reference_set(0)
        fit((z[-1:], u[-1:], basis.centred(rows[1][-1:])), beta, basis, trace, slice(0, 1))

    def _begin_sums(self, total: Array, u: Array, gap: Array) -> None:
        """Start counting changes from an anchor, whose base sums are pooled in ``total`` (m, m); u: its responses."""
        st = self.state
        assert st.base_a is not None and st.base_c is not None
        st.run_a, st.run_c = np.zeros_like(st.base_a), np.zeros_like(st.base_c)
        st.squares = np.array([Moments(st.phi).squares(u, gap), 0.0])
        st.peak = np.append(np.diag(total), st.squares[0])

    def _advance(self, rows: tuple[Array, Array, Array], at: int, starts: Array, trace: Trace) -> None:
        """Take the rounds from place ``at`` on; the rounds at ``starts`` begin a day.

        The rows x, y and their gaps begin far enough back for the window.
        """
        s, st = self.settings, self.state
        n, first = len(rows[0]), len(rows[0]) - len(trace.beta)
        longest = _BLOCK_ROUNDS if s.by_node else _BLOCK_ROUNDS_TOTAL
        size = longest = int(max(_SHORT, min(longest, _BLOCK_NUMBERS // (s.k * s.m**2))))
        back = (1 if st.phi else 0) if s.infinite else s.window
        days, spent = {*starts.tolist()}, False
        while at < n:
            summed = (spent or at in days) and self._anchor(rows, at)
            assert st.basis is not None
            end = min([n, at + max(_WINDOWS * s.window, _ROWS), *(i for i in days if i > at)])
            lo = at - back
            inside = st.basis.inside(*(v[lo:end] for v in rows))
            spent = False
            while at < end and not spent:
                stop = min(at + size, end)
                done = at + self._block(tuple(v[: stop - lo] for v in inside), at - lo, at - first, trace, summed)
                spent, summed = done < stop, False
                at, size = done, _SHORT if spent else min(2 * size, longest)

    def _anchor(self, rows: tuple[Array, Array, Array], at: int) -> bool:
        """Begin the sums again at round ``at``; returns whether they already include its row."""
        st, s = self.state, self.settings
        assert st.base_a is not None and st.base_c is not None and st.squares is not None
        if s.infinite:
            st.base_a, st.base_c = st.base_a + st.run_a, st.base_c + st.run_c
            st.run_a, st.run_c = np.zeros_like(st.base_a), np.zeros_like(st.base_c)
            return False
        x, y, gap = (v[at + 1 - s.window : at + 1] for v in rows)
        st.basis, (st.base_a, st.base_c) = self._summed((x, y, gap), st.phi)
        total = self._with_ridge(pooled(st.base_a[None]), st.basis)
        self._begin_sums(total[0], st.basis.response(x, y), gap)
        return True

    def _warm_up(self, x: Array, y: Array, gap: Array, first: int, trace: Trace) -> int:
        """Look for the first round that completes an identifiable window, and return the place after it."""
        w = self.settings.window
        for t in range(max(first, w - 1), len(x)):
            rows = slice(0 if self.settings.infinite else t - w + 1, t + 1)
            if self._begin(x[rows], y[rows], gap[rows], t - first, trace):
                return t + 1
        return len(x)

    def _begin(self, x: Array, y: Array, gap: Array, at: int, trace: Trace) -> bool:
        s, st = self.settings, self.state
        rows, phi = (x, y, gap), st.phi
        basis, sums = self._summed(rows, None)
        measure = basis.measure
        if (phi is None and s.phi is not None) or (s.prediction and measure is None):
            a, c = (pooled(v[None]) for v in sums)
            if s.prediction and measure is None:
                if not identifiable(a, basis.shape)[0]:
                    return False
                measure = Measure.from_window(basis, a[0], y.size)
            if phi is None and s.phi is not None and s.phi != "fit":
                phi = float(s.phi)
            elif phi is None and s.phi == "fit":
                total = self._with_ridge(a, basis)
                beta = self._models(factors(total, basis.shape), total, c, basis)[0]
                if not np.all(np.isfinite(beta)):
                    return False
                phi = fit_phi(basis.rows(x), basis.response(x, y), gap, beta)
        if phi:
            basis, sums = self._summed(rows, phi)
        basis = replace(basis, measure=measure)
        total = self._with_ridge(pooled(sums[0][None]), basis)
        beta = self._models(factors(total, basis.shape), total, pooled(sums[1][None]), basis)
        if not np.all(np.isfinite(beta)):
            return False
        monitored, model = basis.monitored(beta)[0], basis.original(beta)[0]
        if st.eps is None:
            st.eps = s.eps * float(norm(monitored[None])[0]) if s.eps_is_share else s.eps
        st.basis, st.measure, st.phi, st.ready = basis, measure, phi, True
        st.base_a, st.base_c = sums
        self._begin_sums(total[0], basis.response(x, y), gap)
        if s.exact:
            st.exact_beta, st.exact_model, st.exact_lost = monitored, model, False
        if s.local:
            local.install(st, s.k, (total[0], *sums), beta[0], monitored)
        self._reference_set(at)
        trace.events.append(Event(at, "init", None, model))
        return True

    def _block(self, rows: tuple[Array, ...], at: int, place: int, trace: Trace, summed: bool) -> int:
        """Take rounds from ``at`` to the end of the rows, or up to one that must be an anchor.

        Args:
            rows: as ``Basis.inside`` gives them; they begin far enough back for the window.
            at, place: place of the first of these rounds among the rows, and in the trace.
            trace: gets what the rounds gave.
            summed: whether the sums already include round ``at``.

        Returns:
            the number of rounds taken.
        """
        s, st = self.settings, self.state
        assert st.basis is not None and st.run_a is not None and st.run_c is not None
        assert st.squares is not None and st.peak is not None
        z, u, gap, y = rows
        n = len(z) - at
        window = None if s.infinite else s.window
        lo = at - (window or (1 if st.phi else 0))
        moments = Moments(st.phi)
        changes = moments.changes if s.by_node else moments.total_changes
        d_a, d_c = changes(z[lo:], u[lo:], gap[lo:], window, n)
        squares = moments.square_changes(u[lo:], gap[lo:], window, n)
        if summed:
            d_a[0], d_c[0], squares[0] = 0.0, 0.0, 0.0
        d_a, d_c = running(st.run_a, d_a), running(st.run_c, d_c)
        squares = running(st.squares[1], squares)
        a, c = d_a + st.base_a, d_c + st.base_c
        pooled_a, pooled_c = pooled(a), pooled(c)
        total = self._with_ridge(pooled_a, st.basis)
        found = factors(total, st.basis.shape)
        peak = st.peak
        if not s.infinite:
            whole = squares + st.squares[0]
            spread = whole if s.intercept is None else spread_of(whole, pooled_a, pooled_c)
            held = np.concatenate([np.diagonal(total, axis1=1, axis2=2).T, whole[None]])
            left = np.concatenate([found.own, spread[None]])
            n, peak = lasting(found, held, left, st.peak, summed)
            found = found.first(n)
        beta = self._models(found, total[:n], pooled_c[:n], st.basis)
        if not s.infinite:
            slopes, known = st.basis.inner_slopes(beta), n
            n = clear(found, slopes, held[:, :n], st.peak, st.basis.mix, s.intercept is not None, summed)
            peak = peak if n == known else np.append(held[:, :n], st.peak[:, None], axis=1).max(axis=1)
        if not n:
            return 0
        a, c, total, beta, st.peak = a[:n], c[:n], total[:n], beta[:n], peak
        st.run_a, st.run_c, st.squares[1] = d_a[n - 1].copy(), d_c[n - 1].copy(), squares[n - 1]
        trace.beta[place : place + n] = st.basis.monitored(beta)
        if s.exact:
            exact.detect(st, beta, place, trace, alone=not s.local)
        if s.local:
            local.detect(self, a, c, total, beta, place, trace)
        rounds = slice(at, at + n)
        fit((z[rounds], u[rounds], y[rounds]), beta, st.basis, trace, slice(place, place + n))
        return n
