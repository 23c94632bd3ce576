"""The streams and the question for comparing kernels, those of the peers' ``gen.py``, and the exact answer."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

QUERY = (
    "---\nlimits: {matches_per_day: 1000000000}\n---\n"
    "PATTERN SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 60 s"
)
WINDOW_MS = 60_000
#: Streams by name: number of events, share of C, events per second.
STREAMS = {
    "small": [(20_000, 0.01, 5.0), (20_000, 0.10, 5.0), (20_000, 0.33, 5.0)],
    "middle": [(200_000, 0.01, 5.0), (200_000, 0.10, 5.0), (200_000, 0.33, 5.0)],
    "million": [(1_000_000, 0.01, 5.0), (1_000_000, 0.10, 5.0), (1_000_000, 0.33, 5.0)],
    "dense": [(200_000, 0.10, 50.0)],
}


@dataclass(frozen=True)
class Stream:
    """A stream: types (0, 1, 2 for A, B, C), ms and prices, in time order."""

    n: int
    share: float
    rate: float
    kinds: np.ndarray
    ms: np.ndarray
    price: np.ndarray

    @property
    def name(self) -> str:
        """The name that tables show."""
        return f"{self.n:,} events, {self.share:.0%} C, {self.rate:g}/s"

    def table(self) -> pa.Table:
        """The stream as an events table."""
        return pa.table({
            "event_id": pa.array(np.arange(self.n)),
            "type": pa.DictionaryArray.from_arrays(self.kinds, ["A", "B", "C"]),
            "ts": pa.array(self.ms * 1000).cast(pa.timestamp("us", tz="UTC")),
            "price": pa.array(self.price),
        })  # fmt: skip

    def exact(self) -> int:
        """The number of matches: for each B, the pairs of a fitting A before it and C after it in the window."""
        ms, price = ([self.ms[self.kinds == k] for k in range(3)], [self.price[self.kinds == k] for k in range(3)])
        found = 0
        for ts, p in zip(ms[1].tolist(), price[1].tolist(), strict=True):
            lo, hi = np.searchsorted(ms[0], [ts - WINDOW_MS, ts])
            first, last = np.searchsorted(ms[2], [ts + 1, ts + WINDOW_MS + 1])
            before = ms[0][lo:hi][price[0][lo:hi] < p]
            behind = ms[2][first:last][price[2][first:last] > p]
            found += len(before) * len(behind) - int(np.searchsorted(before, behind - WINDOW_MS).sum())
        return found


def stream(n: int, share: float, rate: float) -> Stream:
    """The stream that the peers' ``gen.py`` makes with these options (shift 1.8, its default seed)."""
    shift = 1.8
    draw = random.Random(f"20250101|{n}|{share:.6f}|{rate:.6f}|{shift:.6f}")
    t, last = 0.0, 0
    kinds, ms, price = np.zeros(n, np.int8), np.zeros(n, np.int64), np.zeros(n)
    for i in range(n):
        t += draw.expovariate(rate)
        last = max(last + 1, int(t * 1000))
        u = draw.random()
        kinds[i] = 2 if u < share else 0 if u < share + (1 - share) / 2 else 1
        ms[i] = last
        price[i] = round(100 - shift * int(kinds[i]) + draw.gauss(0, 1), 4)
        draw.randrange(100, 10000)
    return Stream(n, share, rate, kinds, ms, price)
