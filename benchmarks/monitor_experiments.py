"""The experiments of SPEEDD D6.6, section 4.5 (docs/papers.md): messages of the local detector compared with those of
a prototype, and the guarantee on random models.

Usage: ``python -m benchmarks.monitor_experiments [--seeds 5] [--random 200] [--json FILE]``. Exits with 1 if a number
is outside its tolerance: messages of residual must be within 10 % of the prototype's (20 % with drift of scale 4),
those of paper within 30 %; residual must send at most half as many as paper with drift of scale 4 at eps 0.5; and no
error may exceed eps.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from benchmarks import monitor_data as data  # noqa: E402

#: Messages up per node and round of a plain prototype: (data, eps) -> (paper, residual).
PROTOTYPE = {
    ("fixed", 0.25): (0.0660, 0.0414), ("fixed", 0.5): (0.0170, 0.0109), ("fixed", 1.35): (0.0027, 0.0018),
    ("drift 1", 0.25): (0.0685, 0.0440), ("drift 1", 0.5): (0.0185, 0.0125), ("drift 1", 1.35): (0.0035, 0.0026),
    ("drift 4", 0.25): (0.3125, 0.0657), ("drift 4", 0.5): (0.0807, 0.0217), ("drift 4", 1.35): (0.0138, 0.0057),
}  # fmt: skip
_TIE = 1e-9


def tolerance(constraint: str, name: str) -> float:
    """Allowed relative distance from the prototype's number."""
    return 0.3 if constraint == "paper" else 0.2 if name == "drift 4" else 0.1


def stream(name: str, seed: int) -> data.Stream:
    """One of the three data sets."""
    return data.fixed(seed) if name == "fixed" else data.drift(seed, float(name.split()[1]))


def messages(seeds: int) -> tuple[list[dict[str, Any]], bool]:
    """Mean messages over seeds for every data set, eps and constraint; and whether all are within tolerance."""
    rows: dict[tuple[str, float, str], list[tuple[float, int, float, int]]] = {}
    for name in ("fixed", "drift 1", "drift 4"):
        for seed in range(seeds):
            given = stream(name, seed)
            for eps in (0.25, 0.5, 1.35):
                for constraint in ("paper", "residual"):
                    trace = data.run(data.settings(given, data.W, eps, constraint), given)
                    up, syncs = data.normalized_up(trace, data.K, given.counted)
                    worst = float(np.nanmax(trace.error_local[given.counted :]))
                    passed = sum(bool(e.exceeded) for e in trace.events if e.at >= given.counted)
                    rows.setdefault((name, eps, constraint), []).append((up, syncs, worst, passed))
    print(f"\nMessages up per node and round, mean of {seeds} seeds")
    print("data     eps   constraint  measured  (range)          proto    ratio  syncs  exceeded  max error/eps")
    found, good = [], True
    for (name, eps, constraint), runs in rows.items():
        ups = [run[0] for run in runs]
        mean, prototype = float(np.mean(ups)), PROTOTYPE[name, eps][constraint == "residual"]
        worst = max(run[2] for run in runs) / eps
        fine = abs(mean / prototype - 1) <= tolerance(constraint, name) and worst <= 1 + _TIE
        good &= fine
        syncs, passed = (float(np.mean([run[i] for run in runs])) for i in (1, 3))
        print(
            f"{name:<8} {eps:<5} {constraint:<10} {mean:9.5f}  ({min(ups):.5f}-{max(ups):.5f})  {prototype:.4f}  "
            f"{mean / prototype:5.2f}  {syncs:6.1f}  {passed:7.1f}   {worst:6.3f}{'' if fine else '  OUTSIDE'}"
        )
        found.append(
            {"data": name, "eps": eps, "constraint": constraint, "up": ups, "mean": mean, "prototype": prototype,
             "syncs": syncs, "exceeded": passed, "max_error_over_eps": worst, "within": fine}
        )  # fmt: skip
    by = {(row["data"], row["eps"], row["constraint"]): row["mean"] for row in found}
    ratio = by["drift 4", 0.5, "residual"] / by["drift 4", 0.5, "paper"]
    print(f"drift 4, eps 0.5: residual sends {ratio:.2f} of what paper sends (at most 0.5 is asked)")
    return found, good and ratio <= 0.5


def dense_model(x: np.ndarray, y: np.ndarray, phi: float, ridge: np.ndarray) -> np.ndarray:
    """The generalised least squares model of a window x (W, k, m), y (W, k), with the full S^-1 of each node."""
    n, k, m = x.shape
    inverse = np.linalg.inv(phi ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))) * (1 - phi**2)
    a = ridge + sum(x[:, j].T @ inverse @ x[:, j] for j in range(k))
    return np.linalg.solve(a, sum(x[:, j].T @ inverse @ y[:, j] for j in range(k)))


def guarantee(count: int) -> tuple[dict[str, Any], bool]:
    """Check random models; errors after resolution come from dense models of every round, not from the kernel."""
    worst, checked, syncs = 0.0, 0, 0
    for seed in range(count):
        rng = np.random.default_rng([3, seed])
        k, m, window = int(rng.integers(1, 9)), int(rng.integers(1, 7)), int(rng.integers(12, 60))
        rounds, infinite = 4 * window, bool(rng.random() < 0.3)
        phi = float(rng.choice([0.0, 0.0, 0.5, 0.9]))
        ridge = np.eye(m) * float(rng.choice([0.0, 0.0, 3.0]))
        constraint = str(rng.choice(["paper", "residual", "onesided", "energy", "matfrac"]))
        x = rng.normal(size=(rounds, k, m)) * 10 ** rng.uniform(-0.5, 0.5, size=m)
        jump = rng.normal(size=m) * 10 ** rng.uniform(-1, 1)
        beta = rng.normal(size=m) + jump * np.clip(np.arange(rounds) / window - 2, 0, 1)[:, None]
        y = (x @ beta[:, :, None])[:, :, 0] + 10 ** rng.uniform(-2, 0.5) * rng.normal(size=(rounds, k))
        eps = 10 ** rng.uniform(-1.0, 0.7)
        given = data.Stream(x, y, window)
        trace = data.run(
            data.settings(
                given, window, eps, constraint, infinite=infinite, phi=phi or None,
                ridge=tuple(map(tuple, ridge.tolist())) if ridge.any() else None,
            ),
            given,
        )  # fmt: skip
        sync_at = {event.at for event in trace.events}
        reference = np.full(m, np.nan)
        for t in range(window - 1, rounds):
            rows = slice(0 if infinite else t - window + 1, t + 1)
            model = dense_model(x[rows], y[rows], phi, ridge)
            if t in sync_at:
                reference = model
            worst = max(worst, float(np.linalg.norm(model - reference)) / eps)
            checked += 1
        syncs += len(sync_at) - 1
    good = worst <= 1 + 1e-7
    print(f"\nguarantee: {count} random models, {checked} rounds, {syncs} syncs, largest error / eps {worst:.9f}")
    return {"models": count, "rounds": checked, "syncs": syncs, "worst": worst}, good


def main() -> int:
    """Run both, and return 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    began = time.perf_counter()
    checked, sound = guarantee(args.random)
    rows, near = messages(args.seeds)
    seconds = time.perf_counter() - began
    print(f"{seconds:.0f} s")
    data.report({"messages": rows, "guarantee": checked, "seconds": seconds}, args.json)
    return 0 if near and sound else 1


if __name__ == "__main__":
    sys.exit(main())
