"""Generated gas-sensor readings in the format of the shipped sensor files. Values are integers in thousandths."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa

from chainlake.generate.clock import Slots, slots_of
from chainlake.generate.noise import below, smooth
from chainlake.generate.shape import Cells, Grid, Planted, Shape

_SLOW, _FAST, _MOVE = range(300, 303)
_CHANNELS = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "temp", "humidity")
_R1, _R3, _R7, _R8, _TEMP, _HUMIDITY = 0, 2, 6, 7, 8, 9
_QUICK = (1, 2, 3, 6, 7)
#: Level, slow amplitude and fast amplitude of the gas sensors, of `temp` and of `humidity`.
_CURVES = ((10_000, 300, 60), (27_000, 2_000, 300), (60_000, 5_000, 800))


class SensorReadings(Shape):
    """A reading for every channel and minute. The first device has the shipped channels, others have `U2.R1` and so on.

    Background: gas sensors stay within 4 % of their level. Relation: R1 is a linear function of `temp` and `humidity`.
    """

    source = "sensor"
    key = "channel"
    nominal = 1_440
    min_keys = 10
    window = 20
    lead = 6
    relation = {
        "response": "value of R1",
        "features": ["1", "value of temp", "value of humidity"],
        "unit": "kOhm, C, %",
    }
    #: Intercept in thousandths, and slopes in thousandths per unit.
    _planes = ((2_000, 100, 120), (2_000, 100, 60), (5_000, -80, 120), (1_000, 200, 100))
    relations = tuple(
        {"1": a / 1_000, "value of temp": b / 1_000, "value of humidity": c / 1_000} for a, b, c in _planes
    )

    def slots(self, day: date) -> Slots:
        return slots_of(day, "America/Los_Angeles", 60, "%Y-%m-%dT%H:%M:%S")

    def key_names(self) -> list[str]:
        names = []
        for number in range(self.keys):
            device, channel = divmod(number, len(_CHANNELS))
            names.append(_CHANNELS[channel] if device == 0 else f"U{device + 1}.{_CHANNELS[channel]}")
        return names

    def file_name(self, day: date) -> str:
        return f"home_activity_{day:%Y-%m-%d}.csv.gz"

    def background(self, index: np.ndarray, keys: np.ndarray) -> Grid:
        channel = keys % len(_CHANNELS)
        kind = np.where(channel == _TEMP, 1, np.where(channel == _HUMIDITY, 2, 0))
        value = np.zeros(np.broadcast_shapes(index.shape, keys.shape), dtype=np.int64)
        for number, (level, slow, fast) in enumerate(_CURVES):
            curve = level + smooth(240, slow, self.seed, _SLOW, keys, index)
            curve = curve + smooth(16, fast, self.seed, _FAST, keys, index)
            value = np.where(kind == number, curve, value)
        return {"value": value}

    def relate(self, grid: Grid, index: np.ndarray, relation: np.ndarray, planted: np.ndarray) -> None:
        a, b, c = np.array(self._planes, dtype=np.int64)[relation[:, 0]].T
        temp, humidity = grid["value"][:, _TEMP], grid["value"][:, _HUMIDITY]
        noise = below(21, self.seed, _MOVE, index[:, 0]) - 10
        grid["value"][:, _R1] = a + (b * temp + c * humidity) // 1_000 + noise

    def table(self, grid: Grid, slots: Slots, slot: np.ndarray, key: np.ndarray, names: pa.Array) -> pa.Table:
        count = len(slot)
        return pa.table(
            {
                "time": pa.array(slots.local).take(pa.array(slot)),
                "channel": names.take(pa.array(key)),
                "value": grid["value"] / 1_000,
                "induction": np.full(count, slots.day.toordinal()),
                "class": pa.array(["background"]).take(pa.array(np.zeros(count, dtype=np.int64))),
            }
        )

    def conflict(self, grid: Grid) -> Grid:
        return grid | {"value": grid["value"] + 1}

    @property
    def plants(self) -> dict[str, Callable[[int, int, int], tuple[Cells, Planted]]]:
        return {
            "gas_onset": self._gas_onset,
            "gas_stays": self._gas_stays,
            "sensors_agree": self._sensors_agree,
            "air_changes": self._air_changes,
        }

    def _at(self, key: int, first: int, slot: int) -> int:
        return int(self.background(np.array([[first + slot]]), np.array([[key]]))["value"][0, 0])

    def _gas_onset(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key, gap = _QUICK[number % len(_QUICK)], 1 + number // 64 % 3
        cells = {(key, slot + gap): {"value": self._at(key, first, slot) * 6 // 10}}
        return cells, {"clean": (key, slot), "gas": (key, slot + gap)}

    def _gas_stays(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        level = self._at(_R3, first, slot)
        low = [slot + 1, slot + 2, slot + 3 + number % 2]
        cells = {(_R3, place): {"value": level * 75 // 100 - step} for step, place in enumerate(low)}
        return cells, {"clean": (_R3, slot), "gas": [(_R3, low[0]), (_R3, low[1])], "lasting": (_R3, low[2])}

    def _sensors_agree(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        gap = number % 2
        ends = {_R3: slot + 1, _R8: slot + 1 + gap}
        cells = {(key, end): {"value": self._at(key, first, slot) * 75 // 100} for key, end in ends.items()}
        match = {"a": (_R3, slot), "a_low": (_R3, ends[_R3]), "b": (_R8, slot), "b_low": (_R8, ends[_R8])}
        return cells, match

    def _air_changes(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        end = slot + 1 + number // 2 % 3
        if number % 2:
            cells = {(_HUMIDITY, end): {"value": self._at(_HUMIDITY, first, slot) + 2_500}}
            return cells, {"dry": (_HUMIDITY, slot), "humid": (_HUMIDITY, end)}
        cells = {(_R7, end): {"value": self._at(_R7, first, slot) * 55 // 100}}
        return cells, {"clean": (_R7, slot), "gas": (_R7, end)}
