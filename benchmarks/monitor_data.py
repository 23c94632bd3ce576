"""The seeded data sets of SPEEDD D6.6, section 4.5, and helpers to run the kernel on them and report costs."""

from __future__ import annotations

import json
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chainlake.model_change.kernel import Kernel
from chainlake.model_change.statistics.records import Settings, Trace

#: Defaults: nodes, features, noise, window, rounds of an epoch, epochs, rounds of the fixed set.
K, M, SIGMA, W = 10, 10, 10.0, 1300
EPOCH, EPOCHS, FIXED = 3900, 5, 16_900
#: Number of rounds between anchors, the minutes of a day.
DAY = 1440


@dataclass(frozen=True)
class Stream:
    """x (rounds, k, m) and y (rounds, k); messages are counted from round ``counted`` on."""

    x: np.ndarray
    y: np.ndarray
    counted: int


def fixed(seed: int, *, k: int = K, m: int = M, sigma: float = SIGMA, rounds: int = FIXED) -> Stream:
    """A stream with one fixed model; the first window is not counted."""
    rng = np.random.default_rng([1, seed])
    beta = rng.normal(size=m)
    x = rng.normal(size=(rounds, k, m))
    return Stream(x, x @ beta + sigma * rng.normal(size=(rounds, k)), W)


def drift(seed: int, scale: float, *, k: int = K, m: int = M, sigma: float = SIGMA) -> Stream:
    """A stream whose model moves in a straight line to a new N(0, scale^2) one in the last quarter of each epoch; the
    first epoch is not counted."""
    rng = np.random.default_rng([2, seed])
    targets = scale * rng.normal(size=(EPOCHS + 1, m))
    quiet, ramp = EPOCH - EPOCH // 4, EPOCH // 4
    share = np.concatenate([np.zeros(quiet), np.arange(1, ramp + 1) / ramp])
    beta = np.concatenate(
        [old + share[:, None] * (new - old) for old, new in zip(targets[:-1], targets[1:], strict=True)]
    )
    x = rng.normal(size=(len(beta), k, m))
    return Stream(x, (x @ beta[:, :, None])[:, :, 0] + sigma * rng.normal(size=(len(beta), k)), EPOCH)


def settings(stream: Stream, window: int, eps: float, constraint: str, **more: Any) -> Settings:
    """Settings of the kernel for a sliding window and the local detector."""
    _, k, m = stream.x.shape
    options = {"infinite": False, "local": True, "exact": False} | more
    return Settings(k=k, m=m, window=window, eps=eps, constraint=constraint, **options)


def run(config: Settings, stream: Stream) -> Trace:
    """Run all rounds at once, with an anchor every `DAY` rounds."""
    rounds = len(stream.x)
    anchor = np.arange(rounds) % DAY == 0
    return Kernel(config).feed(stream.x, stream.y, np.ones(rounds, np.int64), anchor)


def normalized_up(trace: Trace, k: int, counted: int) -> tuple[float, int]:
    """(messages up per node and round, synchronisations) from round ``counted`` on (docs/monitors.md#messages)."""
    reports, syncs = int(trace.reports[counted:].sum()), int(trace.synced[counted:].sum())
    return (reports + k * syncs) / (k * (len(trace.reports) - counted)), syncs


def peak_mib() -> float:
    """Largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(results: dict[str, Any], path: Path | None) -> None:
    """Print the peak of memory, and write the numbers as JSON if a file is named."""
    results["peak_mib"] = round(peak_mib(), 1)
    results["cores"] = os.cpu_count()
    print(f"peak memory {results['peak_mib']:.0f} MiB")
    if path is not None:
        path.write_text(json.dumps(results, indent=1) + "\n")
