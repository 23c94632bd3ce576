"""Wall time to UTC (design §3, "Local time"), vectorised.

DST gap: shifted forward by the gap. Double hour: the first pass, unless the times of the same series in the file step
back inside it, then the second from there on. Both are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

US = 1_000_000
_DAY_US = 86_400 * US
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Years for which a zone's transitions are looked up at once.
_SPAN = 4


def _offset_us(zone: ZoneInfo, at_us: int) -> int:
    delta = (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone).utcoffset()
    return (delta or timedelta()) // timedelta(microseconds=1)


@lru_cache(maxsize=256)
def _transitions(name: str, year: int) -> tuple[tuple[int, int, int], ...]:
    """``(instant, offset before, offset after)`` in microseconds for the ``_SPAN`` years from ``year``."""
    zone = ZoneInfo(name)
    first = int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * US
    last = int((datetime(year + _SPAN, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * US
    found = []
    before = _offset_us(zone, first)
    for day in range(first, last, _DAY_US):
        after = _offset_us(zone, day + _DAY_US)
        if after != before:
            low, high = day, day + _DAY_US
            while high - low > US:
                middle = (low + high) // 2 // US * US
                low, high = (middle, high) if _offset_us(zone, middle) == before else (low, middle)
            found.append((high, before, after))
            before = after
    return tuple(found)


class LocalTimes:
    """Converts the wall times of one file, block by block, remembering which series have entered a second pass.

    Args:
        zone: IANA name.

    Attributes:
        gap: how many rows stood in a DST gap so far.
        double: how many stood in a double hour.
    """

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self.gap = 0
        self.double = 0
        #: (double hour, series) → (latest wall time seen in it, whether the second pass has begun)
        self._passes: dict[tuple[int, object], tuple[int, bool]] = {}

    def to_utc(self, local_us: np.ndarray, series: Callable[[int], object] | None = None) -> np.ndarray:
        """UTC microseconds of wall times given as microseconds since 1970-01-01T00:00 on the wall (int64).

        Args:
            local_us: wall times in file order.
            series: what the row at a position belongs to (type and key); steps back are looked for within it.
        """
        if len(local_us) == 0:
            return local_us
        table = self._table(int(local_us.min()), int(local_us.max()))
        instants, before, after = (np.array(part, dtype=np.int64) for part in zip(*table, strict=True))
        # The offset before a transition holds on the wall until the later of its two readings of that instant.
        borders = instants + np.maximum(before, after)
        at = np.searchsorted(borders, local_us, side="right")
        offsets = np.concatenate((before[:1], after))[at]
        result = local_us - offsets
        nearest = np.minimum(at, len(table) - 1)
        start = (instants + np.minimum(before, after))[nearest]
        inside = (at < len(table)) & (local_us >= start)
        if inside.any():
            folds = inside & (after < before)[nearest]
            self.double += int(folds.sum())
            self.gap += int((inside & ~folds).sum())
            for row in np.flatnonzero(folds):
                name = series(int(row)) if series else None
                if self._second_pass(int(instants[nearest[row]]), name, int(local_us[row])):
                    result[row] = local_us[row] - after[nearest[row]]
        return result

    def _second_pass(self, instant: int, series: object, local: int) -> bool:
        latest, second = self._passes.get((instant, series), (local, False))
        second = second or local < latest
        self._passes[(instant, series)] = (max(latest, local), second)
        return second

    def _table(self, low: int, high: int) -> list[tuple[int, int, int]]:
        first = (_EPOCH + timedelta(microseconds=low)).year - 1
        last = (_EPOCH + timedelta(microseconds=high)).year + 1
        table: list[tuple[int, int, int]] = []
        for year in range(first // _SPAN * _SPAN, last + 1, _SPAN):
            table.extend(_transitions(self.zone, year))
        if not table:
            # A zone without transitions: one that changes nothing keeps the arithmetic above.
            offset = _offset_us(ZoneInfo(self.zone), low)
            table.append((low - _DAY_US, offset, offset))
        return table
