"""Safe zones, shared learning and latent faults: the papers' experiments, and the cost of a year of machines.

Usage: ``python -m benchmarks.companions [zones|learning|sign|year] [--seeds 1,2]``. It prints Markdown tables; every
data set is made here, and its seed is printed. Times are CPU seconds of one process with one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402

import numpy as np  # noqa: E402

from chainlake.model_change.faults.sign import Scores, directions, standardised  # noqa: E402
from chainlake.model_change.learning.learners import Rule, Shared  # noqa: E402
from chainlake.model_change.zones.design import Smoothed, designed, within_budget  # noqa: E402
from chainlake.model_change.zones.monitor import ZoneMonitor  # noqa: E402
from chainlake.model_change.zones.region import Region, polygon_region  # noqa: E402

#: Number of rounds of history from which zones are designed, and number of rounds that are replayed.
HISTORY, ROUNDS = 500, 4000


def ratio_data(seed: int, n: int) -> tuple[Region, np.ndarray]:
    """Nodes that measure NO2 and NO, each with its own level, ratio and spreads; the region is NO <= 4 NO2 <= 1000."""
    rng = np.random.default_rng(seed)
    region = polygon_region([(0, 0), (250, 0), (250, 1000)])
    assert region is not None
    level, ratio = rng.uniform(80, 180, n), rng.uniform(1, 3, n)
    spread, noise = rng.uniform(0.15, 0.5, n), rng.uniform(0.15, 0.5, n)
    draws = rng.normal(size=(2, HISTORY + ROUNDS, n))
    no2 = level * np.exp(spread * draws[0] - spread**2 / 2)
    no = no2 * ratio * np.exp(noise * draws[1] - noise**2 / 2)
    return region, np.stack([no2, no], axis=2)


def best_translation(facets: np.ndarray, region: Region) -> np.ndarray:
    """Levels of a single zone, shifted for each node to maximise the smoothed shares; the shifts add up to zero."""
    from scipy.optimize import minimize

    k, normals, limits = facets.shape[1], np.array(region.normals), region.limits
    smoothed = [Smoothed.of(facets[:, i]) for i in range(k)]
    scale = np.array([50.0, 150.0])

    def levels(flat: np.ndarray) -> np.ndarray:
        moves = flat.reshape(k, 2) * scale
        found: np.ndarray = limits + (moves - moves.mean(axis=0)) @ normals.T
        return found

    def lost(flat: np.ndarray) -> tuple[float, np.ndarray]:
        told = [one.log_share(mine) for one, mine in zip(smoothed, levels(flat), strict=True)]
        slopes = np.stack([slope for _, slope in told]) @ normals
        return -sum(value for value, _ in told), -((slopes - slopes.mean(axis=0)) * scale).ravel()

    found = minimize(lost, np.zeros(2 * k), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return within_budget(levels(found.x), limits)


def violations(levels: np.ndarray, region: Region, facets: np.ndarray) -> int:
    """The number of nodes outside their zones, over all rounds, with zones as designed and never balanced."""
    del region
    return int((facets > levels).any(axis=2).sum())


def zones(seeds: list[int]) -> None:
    """Print local violations for each way of designing zones."""
    print(f"\nLocal violations over {ROUNDS} rounds, mean of seeds {seeds}; zones from {HISTORY} rounds before\n")
    print("| n | same zone | mean shift | best translation | own shapes (joint) | multipliers | hierarchy |"
          " own, balanced: vectors sent | every vector | design s |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n in (3, 5, 10):
        rows = []
        for seed in seeds:
            region, vectors = ratio_data(seed, n)
            facets = region.facets(vectors)
            past, now = facets[:HISTORY], facets[HISTORY:]
            centre = past.mean(axis=0)
            begun = time.process_time()
            own = designed(past, region.limits, "joint")
            took = time.process_time() - begun
            run = ZoneMonitor.start(region.limits, n)
            run.levels = own
            sent = int(run.feed(now)[1].sum())
            made = [np.tile(region.limits, (n, 1)), region.limits + centre - centre.mean(axis=0),
                    best_translation(past, region), own,
                    *(designed(past, region.limits, how) for how in ("multipliers", "hierarchy"))]  # fmt: skip
            rows.append([*(violations(levels, region, now) for levels in made), sent, n * ROUNDS, took])
        mean = np.mean(rows, axis=0)
        print(f"| {n} | " + " | ".join(f"{value:.0f}" for value in mean[:-1]) + f" | {mean[-1]:.2f} |")


def disjunction(seed: int, n: int, k: int, rounds: int, drift: float) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Examples of a disjunction of some of n bits that sometimes changes: rounds of (k, n + 1) bits and k labels."""
    rng = np.random.default_rng(seed)
    # The share of bits in the disjunction, and of bits that are on, makes half of the examples true.
    share = float(np.sqrt(1 - 2 ** (-1 / n)))
    member, drifts = rng.random(n) < share, 0
    for _ in range(rounds):
        if rng.random() < drift:
            member, drifts = rng.random(n) < share, drifts + 1
        x = np.concatenate([(rng.random((k, n)) < share).astype(float), np.ones((k, 1))], axis=1)
        yield x, np.where(x[:, :-1][:, member].any(axis=1), 1.0, -1.0), drifts


def learning(seeds: list[int], k: int, rounds: int) -> None:
    """Print errors and vectors of static and dynamic synchronisation on the drifting disjunction."""
    print(
        f"\nDrifting disjunction: n = 100, k = {k}, T = {rounds}, drift 0.0002 a round, logistic, eta = 1, lambda = 0\n"
    )
    print(
        "| seed | drifts | scheme | errors | share of static(8)'s reduction kept | vectors up | share of static(8)'s |"
    )
    print("|---|---|---|---|---|---|---|")
    rule, m = Rule("logistic", 1.0, 0.0), 101
    schemes: dict[str, tuple[float | None, int]] = {
        "none": (None, 0), "static(8)": (None, 8), "static(128)": (None, 128),
        "dynamic, radius 1.5": (1.5, 8), "dynamic, radius 3": (3.0, 8),
    }  # fmt: skip
    for seed in seeds:
        shared = {name: Shared.start(k, m) for name in schemes}
        errors, sent, drifted = dict.fromkeys(schemes, 0), dict.fromkeys(schemes, 0), 0
        for t, (x, y, drifts) in enumerate(disjunction(seed, 100, k, rounds, 0.0002), 1):
            drifted = drifts
            for name, (radius, every) in schemes.items():
                one = shared[name]
                errors[name] += int(rule.wrong((one.weights * x).sum(axis=1), y).sum())
                one.weights = rule.step(one.weights, x, y)[0]
                if every and t % every == 0:
                    sync = one.average() if radius is None else one.check(radius)
                    sent[name] += sync.up if sync is not None else 0
        gain = errors["none"] - errors["static(8)"]
        for name in schemes:
            kept = (errors["none"] - errors[name]) / gain
            share = sent[name] / sent["static(8)"]
            print(f"| {seed} | {drifted} | {name} | {errors[name]:,} | {kept:.1%} | {sent[name]:,} | {share:.1%} |")


def sign() -> None:
    """Print the cost of the sign test for a day of 260 machines with 123 counters."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(288, 260, 123))
    x[:, :8] += 0.7 * rng.normal(size=(8, 123))
    scaled, took = standardised(x), []
    for _ in range(5):
        begun = time.process_time()
        scores = Scores.of(directions(scaled).mean(axis=0), 288)
        took.append(time.process_time() - begun)
    found = np.flatnonzero(scores.p < 0.01).tolist()
    print(f"\nSign test, 260 machines x 123 counters x 288 rounds, seed 1: {min(took):.2f} CPU s (least of 5); "
          f"flagged {found} of 8 planted")  # fmt: skip


def year(machines: int, days: int) -> None:
    """Print the cost of days of machines with 20 counters every 5 minutes, one day after the other as in a backfill."""
    rng = np.random.default_rng(1)
    begun, flagged = time.process_time(), 0
    for _ in range(days):
        x = rng.normal(size=(288, machines, 20))
        x[:, 0] += 1.0
        flagged += int((Scores.of(directions(standardised(x)).mean(axis=0), 288).p < 0.01).sum())
    took = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nA year of {machines} machines x 20 counters x 288 rounds a day, seed 1, {days} days of it run:")
    print(f"{took / days:.1f} CPU s a day, {365 * took / days / 60:.0f} CPU min a year; peak {peak:.2f} GiB; "
          f"flagged on {flagged} of {days} days: the machine that was planted")  # fmt: skip


def main() -> None:
    """Run some or all of the experiments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["zones", "learning", "sign", "year"])
    parser.add_argument("--seeds", default="1,2,3,4,5,6", help="of zones; the first two of learning")
    parser.add_argument("--learners", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=25_000)
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--days", type=int, default=3)
    args = parser.parse_args()
    seeds = [int(one) for one in args.seeds.split(",")]
    if "zones" in args.what:
        zones(seeds)
    if "learning" in args.what:
        learning(seeds[:2], args.learners, args.rounds)
    if "sign" in args.what:
        sign()
    if "year" in args.what:
        year(args.machines, args.days)


if __name__ == "__main__":
    main()
