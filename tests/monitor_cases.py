"""Cases of ``monitor-cases.json`` through the product's public functions.

The one exception: the infinite-window constraint of SPEEDD D6.6 (4.8) exists only here, as an oracle that is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainlake.model_change.detectors.constraints import EVALUATORS, Reference, violates
from chainlake.model_change.detectors.periodic import best_periods, errors_by_period
from chainlake.model_change.detectors.threshold import ThresholdMonitor
from chainlake.model_change.faults.sign import Scores, directions
from chainlake.model_change.faults.variance import tangent
from chainlake.model_change.kernel import Kernel
from chainlake.model_change.learning.learners import Shared, divergence
from chainlake.model_change.rounds.carry import fill
from chainlake.model_change.statistics.basis import Basis
from chainlake.model_change.statistics.records import Settings, Trace
from chainlake.model_change.statistics.statistics import Moments, norm, solve, window_constant
from chainlake.model_change.zones.region import average_of_boxes, box_region, support_of_box, supports_fit


def _printed_infinite(ref: Reference, d_a: np.ndarray, d_c: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Printed eq. 4.8: ||Ahat0^-1 d|| + ||beta0||; unsound and useless (docs/monitors.md#local-tests)."""
    value = norm(ref.shift(ref.drift_of_c(d_a, d_c))) + norm(ref.monitored)
    return value, np.full(len(value), -np.inf)


def run_monitor_case(case: dict[str, Any], tolerance: dict[str, Any]) -> list[str] | None:
    """Differences between a case and what the product does: empty if equal, None if not supported yet."""
    if case["kind"] not in _KINDS:
        return None
    check = _Check(1e-5 if case["id"] == "traffic-quartic" else tolerance["rtol"], tolerance["atol"])
    _KINDS[case["kind"]](case, check)
    return check.differences


class _Check:
    def __init__(self, rtol: float, atol: float):
        self.rtol, self.atol = rtol, atol
        self.differences: list[str] = []

    def same(self, name: str, found: Any, wanted: Any) -> None:
        """Compare numbers (nested lists, None = undefined) within tolerance, everything else exactly."""
        left, right = _numbers(found), _numbers(wanted)
        if left is None or right is None:
            if found != wanted:
                self.differences.append(f"{name}: {found!r} instead of {wanted!r}")
        elif left.shape != right.shape:
            self.differences.append(f"{name}: shape {left.shape} instead of {right.shape}")
        else:
            off = ~np.isclose(left, right, rtol=self.rtol, atol=self.atol, equal_nan=True)
            if off.any():
                at = tuple(int(i) for i in np.argwhere(off)[0])
                self.differences.append(f"{name}{list(at)}: {left[at]!r} instead of {right[at]!r}")


def _numbers(value: Any) -> np.ndarray | None:
    if isinstance(value, bool):
        return None
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None
    return np.where(np.isfinite(array), array, np.nan)


def case_settings(case: dict[str, Any]) -> Settings:
    """Kernel settings of a case of kind ``monitor``."""
    p = case["params"]
    x = np.array(case["X"], dtype=float)
    ones = [i for i in range(p["m"]) if np.all(x[:, :, i] == 1.0)]
    ridge = p.get("ridge_RtR")
    return Settings(
        k=p["k"],
        m=p["m"],
        window=p["W"],
        infinite=p["model"] == "infinite",
        eps=p["eps"],
        constraint="onesided" if p["constraint"] == "printed_infinite" else p["constraint"],
        local=True,
        exact=True,
        intercept=ones[0] if ones else None,
        ridge=None if ridge is None else tuple(map(tuple, ridge)),
        phi=p.get("phi"),
    )


def _monitor(case: dict[str, Any], check: _Check) -> None:
    expect, settings = case["expect"], case_settings(case)
    x, y, complete = fill(np.array(case["X"], dtype=float), np.array(case["Y"], dtype=float))
    start = int(np.argmax(complete))
    check.same("first_complete_round", start, expect["first_complete_round"])
    printed = case["params"]["constraint"] == "printed_infinite"
    kernel = Kernel(settings, evaluator=_printed_infinite if printed else None, record_values=True)
    x, y = x[start:], y[start:]
    traces, at, state = [], start, None
    sizes = case["params"].get("chunk_sizes") or [len(x)]
    for size in sizes:
        rows = slice(at - start, at - start + size)
        traces.append((at, kernel.feed(x[rows], y[rows], np.ones(size, np.int64), np.zeros(size, bool))))
        at += size
        if state is None:
            state = _state(kernel, at)
    _compare(check, expect, settings, traces, state)


def _state(kernel: Kernel, at: int) -> dict[str, Any] | None:
    """The state after the first chunk in the features' own coordinates (there is none before the first window)."""
    st = kernel.state
    if st.basis is None or st.ref_a is None:
        return None
    j = st.ref_basis.feature_map
    e = st.ref_basis.constant
    a, c = j @ st.ref_a @ j.T, (st.ref_c + st.ref_a @ e) @ j.T
    a1, c1 = st.base_a + st.run_a, st.base_c + st.run_c
    j1, e1 = st.basis.feature_map, st.basis.constant
    inverse = st.ref_basis.beta_map @ np.linalg.inv(st.ref_average) @ st.ref_basis.beta_map.T
    return {
        "rounds_consumed": at,
        "last_sync_round": at + st.last["sync"],
        "A0": a.tolist(),
        "c0": c.tolist(),
        "Ahat_inv": inverse.tolist(),
        "beta0": st.ref_monitored.tolist(),
        "D": (j1 @ a1 @ j1.T - a).tolist(),
        "d": ((c1 + a1 @ e1) @ j1.T - c).tolist(),
    }


def _compare(
    check: _Check,
    expect: dict[str, Any],
    settings: Settings,
    traces: list[tuple[int, Trace]],
    state: dict[str, Any] | None,
) -> None:
    events = [(at + event.at, event) for at, trace in traces for event in trace.events]
    init = next((r, e) for r, e in events if e.kind == "init")
    syncs = [(r, e) for r, e in events if e.kind in ("sync", "recovered", "unidentifiable")]
    counted = np.concatenate([trace.counted for _, trace in traces])
    error = np.concatenate([trace.error_local for _, trace in traces])[counted]
    values = np.concatenate([trace.values for _, trace in traces])[counted]
    beta = np.concatenate([trace.beta for _, trace in traces])
    check.same("init_round", init[0], expect["init_round"])
    check.same("beta_init", init[1].beta_after, expect["beta_init"])
    check.same("values", values.tolist(), expect["values"])
    check.same("sync_rounds", [r for r, _ in syncs], expect["sync_rounds"])
    check.same("violations", [{"round": r, "nodes": list(e.violators)} for r, e in syncs], expect["violations"])
    wanted = [[None] * settings.m if b is None else b for b in expect["sync_betas"]]
    found = [[None] * settings.m if e.beta_after is None else e.beta_after.tolist() for _, e in syncs]
    check.same("sync_betas", found, wanted)
    check.same("beta_exact_last", beta[-1].tolist(), expect["beta_exact_last"])
    check.same("error_after_resolution", error.tolist(), expect["error_after_resolution"])
    worst = float(np.nanmax(error))
    check.same("max_error", worst, expect["max_error"])
    check.same("guarantee_holds", worst <= settings.eps * (1 + 1e-9), expect["guarantee_holds"])
    v, n = sum(len(e.violators) for _, e in syncs), len(syncs) * settings.k
    share = settings.k * int(counted.sum())
    messages = {
        "violation_reports": v,
        "poll_replies": n,
        "polls_down": n,
        "broadcasts_down": n,
        "monitored_rounds": int(counted.sum()),
        "normalized_up": (v + n) / share,
        "normalized_all": (v + 3 * n) / share,
    }
    for name, value in expect["messages"].items():
        check.same(f"messages.{name}", messages[name], value)
    for name, value in expect.get("state_after_first_chunk", {}).items():
        check.same(f"state_after_first_chunk.{name}", (state or {}).get(name), value)


def _constraint_values(case: dict[str, Any], check: _Check) -> None:
    a, c, d_a, d_c = (np.array(case[key], dtype=float) for key in ("A0hat", "c0hat", "D", "d"))
    beta = solve(a[None], c[None])[0]
    basis = Basis(np.zeros(len(c)), 0.0, None, None)
    ref = Reference(a, beta, beta, basis, basis)
    error = norm(solve((a + d_a)[None], (c + d_c)[None]) - beta)[0]
    check.same("true_error", float(error), case["expect"]["true_error"])
    for name, wanted in case["expect"]["values"].items():
        evaluate = _printed_infinite if name == "printed_infinite" else EVALUATORS[name]
        value, size = evaluate(ref, d_a[None], d_c[None], case["params"]["eps"])
        check.same(f"values.{name}", float(value[0]), wanted)
        if (
            name != "printed_infinite"
            and not violates(value, size, case["params"]["eps"])[0]
            and error > case["params"]["eps"]
        ):
            check.differences.append(f"{name} is silent although the error exceeds eps")


def _combine(case: dict[str, Any], check: _Check) -> None:
    a, c = np.array(case["A"]), np.array(case["c"])
    check.same("local", solve(a, c).tolist(), case["expect"]["local"])
    check.same("pooled", solve(a.sum(axis=0)[None], c.sum(axis=0)[None])[0].tolist(), case["expect"]["pooled"])


def _gls_stats(case: dict[str, Any], check: _Check) -> None:
    x, y = np.array(case["x"])[:, None, :], np.array(case["y"])[:, None]
    w, phi, expect = case["params"]["W"], case["params"]["phi"], case["expect"]
    moments, gap = Moments(phi), np.ones(len(x), np.int64)
    dense = [
        moments.dense(x[r - w + 1 : r + 1], y[r - w + 1 : r + 1], gap[r - w + 1 : r + 1]) for r in expect["rounds"]
    ]
    step_a, step_c = moments.changes(x, y, gap, w, len(x) - w)
    rolled = [dense[0]]
    for d_a, d_c in zip(step_a, step_c, strict=True):
        rolled.append((rolled[-1][0] + d_a, rolled[-1][1] + d_c))
    for how, found in (("dense", dense), ("incremental", rolled)):
        for scale, suffix in ((1.0, "_scaled"), (1.0 - phi**2, "")):
            check.same(f"B{suffix} {how}", [(a[0] / scale).tolist() for a, _ in found], expect[f"B{suffix}"])
            check.same(f"d{suffix} {how}", [(c[0] / scale).tolist() for _, c in found], expect[f"d{suffix}"])


def _window_constant(case: dict[str, Any], check: _Check) -> None:
    for row in case["expect"]:
        check.same(f"w_over_m k={row['k']}", window_constant(row["k"]), row["w_over_m"])


def _periodic(case: dict[str, Any], check: _Check) -> None:
    p, expect = case["params"], case["expect"]
    x, y = np.array(case["X"], dtype=float), np.array(case["Y"], dtype=float)
    settings = Settings(
        k=x.shape[1],
        m=x.shape[2],
        window=p["W"],
        infinite=False,
        eps=1e9,
        constraint="residual",
        local=False,
        exact=True,
    )
    trace = Kernel(settings).feed(x, y, np.ones(len(x), np.int64), np.zeros(len(x), bool))
    beta = np.concatenate([trace.events[0].beta_after[None], trace.beta[trace.counted]])
    errors = errors_by_period(beta, p["T_max"])
    check.same("max_error_by_T", errors.tolist(), expect["max_error_by_T"])
    star, mono = best_periods(errors, p["bound"])
    check.same("T_star", star, expect["T_star"])
    check.same("T_mono", mono, expect["T_mono"])
    check.same("normalized", 1 / star if star else None, expect["normalized"])


def _threshold(case: dict[str, Any], check: _Check) -> None:
    values = np.array(case["V"], dtype=float)
    monitor, expect = ThresholdMonitor.start(case["params"]["T"], values.shape[1]), case["expect"]
    found, up, down = monitor.feed(values)
    check.same("rounds", [c.at for c in found], [event["round"] for event in expect["events"]])
    for c, event in zip(found, expect["events"], strict=False):
        for name in ("violators", "collected", "balanced", "signal", "thresholds"):
            value = getattr(c, name)
            value = list(value) if isinstance(value, (tuple, np.ndarray)) else value
            check.same(f"round {c.at} {name}", value, event[name])
    check.same("up", int(up.sum()), expect["up"])
    check.same("down", int(down.sum()), expect["down"])
    check.same("final_thresholds", monitor.thresholds.tolist(), expect["final_thresholds"])
    check.same("below", monitor.below, expect["below"])


def _variance_zone(case: dict[str, Any], check: _Check) -> None:
    p, expect = case["params"], case["expect"]
    plane = tangent(p["mu"], p["lam"], p["H"])
    found = {"p": plane.at, "lambda_p": plane.square, "slope": plane.slope, "intercept": plane.intercept}
    for name, wanted in expect.items():
        check.same(name, found[name], wanted)


def _sign_test(case: dict[str, Any], check: _Check) -> None:
    x, expect = np.array(case["X"], dtype=float), case["expect"]
    scores = Scores.of(directions(x).mean(axis=0), len(x))
    flagged = np.flatnonzero(scores.p < case["params"]["alpha"]).tolist()
    found = {"v_norm": scores.size.tolist(), "p": scores.p.tolist(), "flagged": flagged}
    for name, wanted in expect.items():
        check.same(name, found[name], wanted)


def _dynamic_sync(case: dict[str, Any], check: _Check) -> None:
    expect, rho = case["expect"], case["params"]["rho"]
    weights = np.array(case["w0"])
    shared, up, down = Shared(weights, np.zeros(weights.shape[1])), 0, 0
    events = []
    for at, step in enumerate(case["steps"]):
        shared.weights = shared.weights + np.array(step)
        sync = shared.check(rho) if at % case["params"]["b"] == case["params"]["b"] - 1 else None
        if sync is not None:
            up, down = up + sync.up, down + sync.down
            events.append({"round": at, "violators": list(sync.violators), "balanced": list(sync.balanced),
                           "full": sync.full, "model": sync.model.tolist(), "divergence": sync.divergence})  # fmt: skip
        if divergence(shared.weights) > rho:
            check.differences.append(f"round {at}: the learners are further apart than the radius")
    check.same("number of events", len(events), len(expect["events"]))
    for found, wanted in zip(events, expect["events"], strict=False):
        for name, value in wanted.items():
            check.same(f"round {found['round']} {name}", found[name], value)
    check.same("models", shared.weights.tolist(), expect["models"])
    check.same("reference", shared.reference.tolist(), expect["reference"])
    check.same("counter", shared.violations, expect["counter"])
    check.same("up", up, expect["up"])
    check.same("down", down, expect["down"])


def _box_zones(case: dict[str, Any], check: _Check) -> None:
    p, expect = case["params"], case["expect"]
    region = box_region([tuple(one) for one in p["C"]], ["x", "y"])
    normals = np.array(region.normals)
    supports = np.array([[support_of_box(box, normal) for normal in normals] for box in p["S"]])
    check.same("minkowski_average", average_of_boxes(p["S"]).tolist(), expect["minkowski_average"])
    check.same("inside", supports_fit(region, supports), expect["inside"])

    def covered(box: list[list[float]], zone: np.ndarray) -> float:
        """Share of a box that lies in a zone with the region's normals: low and high of each axis in turn."""
        sides = [(low, high, -zone[2 * j], zone[2 * j + 1]) for j, (low, high) in enumerate(box)]
        return float(np.prod([max(0.0, min(b, d) - max(a, c)) / (b - a) for a, b, c, d in sides]))

    own = [covered(box, levels) for box, levels in zip(p["S"], supports, strict=True)]
    common = [covered(box, region.limits) for box in p["S"]]
    check.same("coverage_hgm", float(np.prod(own)), expect["coverage_hgm"])
    check.same("coverage_common", float(np.prod(common)), expect["coverage_common"])


_KINDS = {
    "variance_zone": _variance_zone,
    "sign_test": _sign_test,
    "dynamic_sync": _dynamic_sync,
    "box_zones": _box_zones,
    "monitor": _monitor,
    "constraint_values": _constraint_values,
    "combine": _combine,
    "gls_stats": _gls_stats,
    "window_constant": _window_constant,
    "periodic": _periodic,
    "threshold": _threshold,
}
