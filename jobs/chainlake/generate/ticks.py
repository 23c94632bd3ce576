"""Generated trades in the vendor's tick format: many share ticker and millisecond, some are equal in every column."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np
import pyarrow as pa

from chainlake.generate.clock import slots_of
from chainlake.generate.noise import below, smooth
from chainlake.generate.stock import ticker

FILE_NAME = "us_equity_tick_trade_{:%Y%m%d}.csv.gz"
_MS = 1_000
_DAY_MS = 16 * 3_600 * 1_000
_TICKER, _OFFSET, _PRICE, _SIZE, _SAME, _BASE = range(400, 406)
_BURST = 3
_BLOCK = 200_000
_EXCHANGES = ("P", "Q", "N", "D", "Z", "K")


def ticks_of(day: date, count: int, keys: int, seed: int) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """The trades of a day in blocks, in time order.

    Trades come in bursts of three of one ticker within one millisecond; in half of the bursts, the third trade repeats
    the second. More than half of all bursts are of the first quarter of the tickers, and so on within that quarter.

    Args:
        day: local date; trades lie between 04:00 and 20:00 New York time.
        count: number of trades.
        keys: number of tickers.
        seed: the run's seed.
    Yields:
        rows in the form of the file, and their times (microseconds since the epoch, UTC, int64).
    """
    hour = slots_of(day, "America/New_York", 3_600, "%Y-%m-%d %H:%M:%S", 4, 20)
    utc_start = int(hour.utc[0])
    local_start = np.datetime64(hour.local[0].replace(" ", "T"), "ms").astype(np.int64)
    names = pa.array([ticker(number) for number in range(keys)])
    exchanges, conditions = pa.array(_EXCHANGES), pa.array(["20002000"])
    bursts = -(-count // _BURST)
    spacing = max(_DAY_MS // bursts, 1)
    ordinal = day.toordinal()
    for start in range(0, count, _BLOCK):
        row = np.arange(start, min(start + _BLOCK, count), dtype=np.int64)
        burst = row // _BURST
        member = row % _BURST
        ms = burst * _DAY_MS // bursts + below(spacing, seed, _OFFSET, ordinal, burst)
        key = _skewed(keys, seed, ordinal, burst)
        repeats = (member == 2) & (below(2, seed, _SAME, ordinal, burst) == 0)
        source = np.where(repeats, row - 1, row)
        price = 10_000 + below(20_000, seed, _BASE, key) + smooth(3_600_000, 300, seed, _PRICE, key, ms)
        price += below(3, seed, _PRICE, ordinal, source) - 1
        size = 100 * (1 + below(20, seed, _SIZE, ordinal, source))
        table = pa.table(
            {
                "ticker": names.take(pa.array(key)),
                "ts": pa.array(local_start + ms, type=pa.int64()).cast(pa.timestamp("ms")),
                "price": price / 100,
                "size": size,
                "exchange": exchanges.take(pa.array(below(len(_EXCHANGES), seed, _SIZE, ordinal, source, 1))),
                "condition": conditions.take(pa.array(np.zeros(len(row), dtype=np.int64))),
                "suspicious": np.zeros(len(row), dtype=np.int64),
            }
        )
        yield table, utc_start + ms * _MS


def _skewed(keys: int, seed: int, ordinal: int, burst: np.ndarray) -> np.ndarray:
    key = below(keys, seed, _TICKER, ordinal, burst, 0)
    limit = keys
    for level in range(1, 8):
        limit = max(limit // 4, 1)
        again = below(2, seed, _TICKER, ordinal, burst, level) == 0
        # Half of those in the previous, larger set are drawn again from the smaller one.
        key = np.where(again & (key < limit * 4), below(limit, seed, _TICKER, ordinal, burst, 100 + level), key)
    return key
