"""Generated minute bars of trades in the format of the shipped stock files. Prices are integers in cents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.generate.clock import Slots, slots_of
from chainlake.generate.noise import below, smooth
from chainlake.generate.shape import Cells, Grid, Planted, Shape

_BASE, _SLOW, _FAST, _VOLUME, _MOVE = range(100, 105)
_SPY, _AIG, _BAC, _IBM = range(4)
_NAMED = ("SPY", "AIG", "BAC", "IBM")


def ticker(number: int) -> str:
    """The ticker of a key number: four real tickers, then `QAAAA`, `QAAAB`, …"""
    if number < len(_NAMED):
        return _NAMED[number]
    letters = ""
    number -= len(_NAMED)
    for _ in range(4):
        number, digit = divmod(number, 26)
        letters = chr(ord("A") + digit) + letters
    return "Q" + letters


class StockBars(Shape):
    """A bar for every ticker and minute from 04:00 to 20:00 New York time.

    Background: prices move by less than 0.05 % a minute. Relation: the close of IBM is linear in the close of SPY.
    """

    source = "stock"
    key = "ticker"
    nominal = 960
    min_keys = 4
    window = 30
    lead = 8
    relation = {"response": "close of IBM", "features": ["1", "close of SPY"], "unit": "USD"}
    #: Intercept in cents and slope in hundredths; all lines meet where SPY is at 160 USD.
    _lines = ((2_000, 100), (6_000, 75), (-2_000, 125), (10_000, 50))
    relations = tuple({"1": a / 100, "close of SPY": b / 100} for a, b in _lines)

    def slots(self, day: date) -> Slots:
        return slots_of(day, "America/New_York", 60, "%Y-%m-%d %H:%M:%S", 4, 20)

    def key_names(self) -> list[str]:
        return [ticker(number) for number in range(self.keys)]

    def file_name(self, day: date) -> str:
        return f"us_equity_minute_trade_{day:%Y%m%d}.csv.gz"

    def _price(self, index: Any, key: Any) -> np.ndarray:
        base = 15_000 + below(20_000, self.seed, _BASE, key)
        base = np.where(np.asarray(key) == _SPY, 16_000, base)
        slow = smooth(512, 500, self.seed, _SLOW, key, index)
        result: np.ndarray = base + slow + smooth(64, 64, self.seed, _FAST, key, index)
        return result

    def background(self, index: np.ndarray, keys: np.ndarray) -> Grid:
        close, before = self._price(index, keys), self._price(index - 1, keys)
        return {
            "open": before,
            "high": np.maximum(close, before),
            "low": np.minimum(close, before),
            "close": close,
            "volume": 1_000 + below(9_000, self.seed, _VOLUME, keys, index),
        }

    def relate(self, grid: Grid, index: np.ndarray, relation: np.ndarray, planted: np.ndarray) -> None:
        lines = np.array(self._lines, dtype=np.int64)[relation[:, 0]]
        noise = below(5, self.seed, _MOVE, index[:, 0]) - 2
        close = lines[:, 0] + lines[:, 1] * grid["close"][:, _SPY] // 100 + noise
        # IBM moves little within a minute, so that a change of the relation alone is not a fall or a push.
        for name, value in (("open", close), ("high", close + 1), ("low", close - 1), ("close", close)):
            grid[name][:, _IBM] = value

    def table(self, grid: Grid, slots: Slots, slot: np.ndarray, key: np.ndarray, names: pa.Array) -> pa.Table:
        local = pa.array(slots.local)
        columns: dict[str, Any] = {"ticker": names.take(pa.array(key)), "ts": local.take(pa.array(slot))}
        columns |= {name: grid[name] / 100 for name in ("open", "high", "low", "close")}
        return pa.table(columns | {"volume": grid["volume"]})

    def conflict(self, grid: Grid) -> Grid:
        return grid | {"volume": grid["volume"] + 1}

    @property
    def plants(self) -> dict[str, Callable[[int, int, int], tuple[Cells, Planted]]]:
        return {
            "bank_follows_market": self._bank_follows_market,
            "shakeout": self._shakeout,
            "three_pushes": self._three_pushes,
            "fall_not_recovered": self._fall_not_recovered,
        }

    def _start(self, key: int, first: int, slot: int) -> int:
        return int(self._price(first + slot - 1, key))

    def _pick(self, number: int) -> int:
        """A key that is neither SPY, whose falls banks follow, nor IBM, which follows the relation."""
        choices = [key for key in (_AIG, _BAC, *range(len(_NAMED), min(self.full, 64)))]
        result: int = choices[number % len(choices)]
        return result

    def _bank_follows_market(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        bank, gap = (_AIG, _BAC)[number % 2], 1 + number // 2 % 3
        market, price = self._start(_SPY, first, slot), self._start(bank, first, slot + gap)
        cells = {
            (_SPY, slot): _bar(market, market - market * 8 // 10_000, 20_000),
            # The volume is so high that no bar exceeds it, and the price is back at once: neither a shakeout nor a
            # lasting fall.
            (bank, slot + gap): _bar(price, price - price * 15 // 10_000, 900_000),
            (bank, slot + gap + 1): _bar(price, price + 1, 5_000),
        }
        return cells, {"market": (_SPY, slot), "bank": (bank, slot + gap)}

    def _shakeout(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key, gap = self._pick(number), 1 + number // 64 % 6
        price = self._start(key, first, slot)
        cells = {
            (key, slot): _bar(price, price - price * 2 // 1_000, 20_000),
            (key, slot + gap): _bar(price - 2, price + 2, 30_000),
        }
        return cells, {"down": (key, slot), "back": (key, slot + gap)}

    def _three_pushes(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key, gap = self._pick(number), 1 + number // 64 % 2
        places, cells, price = (slot, slot + gap, slot + gap + 2), {}, self._start(key, first, slot)
        for step, place in enumerate(places):
            cells[key, place] = _bar(price, price + price // 1_000, 20_000 + 5_000 * step)
            price += price // 1_000
        return cells, {name: (key, place) for name, place in zip("abc", places, strict=True)}

    def _fall_not_recovered(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key, gap = self._pick(number), 8 + number // 64 % 3
        price = self._start(key, first, slot)
        low = price - price * 2 // 1_000
        cells = {(key, slot): _bar(price, low, 20_000)}
        for place in range(slot + 1, slot + 11):
            # It trades at the lower price until the window ends; only one of these bars ends below it.
            cells[key, place] = _bar(low, low - 3 if place == slot + gap else low, 2_000)
        return cells, {"down": (key, slot), "later": (key, slot + gap)}


def _bar(start: int, end: int, volume: int) -> dict[str, int]:
    return {"open": start, "high": max(start, end), "low": min(start, end), "close": end, "volume": volume}
