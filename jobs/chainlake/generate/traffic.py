"""Generated detector readings in the format of the shipped traffic files. Speeds are tenths of mph, occupancies
1/10,000."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.generate.clock import Slots, slots_of
from chainlake.generate.noise import below, smooth
from chainlake.generate.shape import Cells, Grid, Planted, Shape

_FLOW, _SPEED = 200, 201
#: The first generated road: the shipped stations, with their postmiles in thousandths.
_ROAD = (
    (1205168, 102_651), (1205175, 103_051), (1205204, 103_651), (1205215, 103_851), (1205262, 104_751),
    (1205303, 106_051), (1205320, 106_451), (1205330, 106_551), (1205375, 107_251), (1205341, 107_351),
    (1205380, 107_851), (1212001, 108_651), (1212115, 108_851), (1212216, 109_251), (1205432, 109_631),
)  # fmt: skip
_STATIONS = len(_ROAD)
_MILES = np.array([miles for _, miles in _ROAD], dtype=np.int64)
_FIRST, _LAST = int(_MILES[0]), int(_MILES[-1])
#: `(1 - x²)²` of each station in millionths, where x is its position scaled to [-1, 1]; computed in whole numbers.
_X = (2 * _MILES - _FIRST - _LAST) * 1_000_000 // (_LAST - _FIRST)
_HUMP = (1_000_000 - _X * _X // 1_000_000) ** 2 // 1_000_000
#: Stations with another one at most a mile ahead.
_FOLLOWED = [number for number in range(_STATIONS - 1) if _MILES[number + 1] - _MILES[number] <= 1_000]


class TrafficReadings(Shape):
    """A reading for every station and five minutes. The first road has the 15 shipped stations at their places, so that
    the shipped model can read it; further roads lie 20 miles apart, with 15 stations half a mile apart.

    Background: free flow at 61 mph or more. Relation: on the first road, speed is a quartic in the position x, scaled
    to [-1, 1]: `s(x) = c + a (1 - x²)²` plus at most 1 mph of noise. This is a dip in the middle of the road that
    grows and shrinks but stays above 44 mph, so that no pattern takes it for a jam.
    Patterns are planted on the last road, which differs from the relation's if there is more than one.
    """

    source = "traffic"
    key = "detector"
    nominal = 288
    min_keys = _STATIONS
    window = 24
    lead = 6
    relation = {
        "response": "speed of the stations of the first road",
        "features": ["1", "x", "x^2", "x^3", "x^4"],
        "x": "position scaled linearly so that postmile 102.651 is -1 and 109.631 is 1",
        "unit": "mph",
    }
    #: c and a in tenths of mph.
    _dips = ((680, -60), (660, -200), (700, -120), (640, -160))
    relations = tuple({"1": (c + a) / 10, "x": 0.0, "x^2": -2 * a / 10, "x^3": 0.0, "x^4": a / 10} for c, a in _dips)

    def slots(self, day: date) -> Slots:
        return slots_of(day, "America/Los_Angeles", 300, "%m/%d/%Y %H:%M:%S")

    def key_names(self) -> list[str]:
        return [str(_ROAD[key][0] if key < _STATIONS else 1_300_000 + key) for key in range(self.keys)]

    def file_name(self, day: date) -> str:
        return f"d12_station_5min_{day:%Y_%m_%d}.csv.gz"

    def _speed(self, index: Any, key: Any, relation: Any) -> np.ndarray:
        dips = np.array(self._dips, dtype=np.int64)[relation]
        hump = _HUMP[np.mod(key, _STATIONS)]
        noise = below(21, self.seed, _SPEED, key, index) - 10
        result: np.ndarray = dips[..., 0] + dips[..., 1] * hump // 1_000_000 + noise
        return result

    def background(self, index: np.ndarray, keys: np.ndarray) -> Grid:
        flow = 300 + smooth(48, 180, self.seed, _FLOW, keys, index)
        speed = self._speed(index, keys, np.zeros((1, 1), dtype=np.int64))
        return {"flow": flow, "speed": speed, "occupancy": _occupancy(speed)}

    def relate(self, grid: Grid, index: np.ndarray, relation: np.ndarray, planted: np.ndarray) -> None:
        keys = np.arange(_STATIONS, dtype=np.int64)[None, :]
        road = np.s_[:, :_STATIONS]
        speed = self._speed(index, keys, relation)
        grid["speed"][road] = np.where(planted[road], grid["speed"][road], speed)
        grid["occupancy"][road] = np.where(planted[road], grid["occupancy"][road], _occupancy(speed))

    def table(self, grid: Grid, slots: Slots, slot: np.ndarray, key: np.ndarray, names: pa.Array) -> pa.Table:
        count = len(slot)
        return pa.table(
            {
                "Timestamp": pa.array(slots.local).take(pa.array(slot)),
                "Station": names.take(pa.array(key)),
                "Freeway": np.full(count, 5),
                "Direction": pa.array(["N"]).take(pa.array(np.zeros(count, dtype=np.int64))),
                "AbsPM": position(key),
                "Samples": np.full(count, 50),
                "PctObserved": np.full(count, 100),
                "TotalFlow": grid["flow"],
                "AvgOccupancy": grid["occupancy"] / 10_000,
                "AvgSpeed": grid["speed"] / 10,
            }
        )

    def conflict(self, grid: Grid) -> Grid:
        return grid | {"flow": grid["flow"] + 1}

    @property
    def plants(self) -> dict[str, Callable[[int, int, int], tuple[Cells, Planted]]]:
        return {
            "breakdown": self._breakdown,
            "queue_spillback": self._queue_spillback,
            "stuck": self._stuck,
            "queue_tail": self._queue_tail,
            "jam_holds": self._jam_holds,
        }

    def _station(self, number: int) -> int:
        """A station of the last full road with another one at most a mile ahead."""
        return (self.full // _STATIONS - 1) * _STATIONS + _FOLLOWED[number % len(_FOLLOWED)]

    def _breakdown(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key, gap = self._station(number), 1 + number // 64 % 3
        cells = {(key, slot): _reading(640, 500), (key, slot + gap): _reading(380, 450)}
        return cells, {"before": (key, slot), "jam": (key, slot + gap)}

    def _queue_spillback(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key, gap = self._station(number), 1 + number // 64 % 3
        ahead = key + 1
        cells = {
            (key, slot): _reading(600, 400),
            (ahead, slot + gap): _reading(300, 420),
            (key, slot + gap + 1): _reading(280, 420),
        }
        return cells, {"before": (key, slot), "ahead": (ahead, slot + gap), "jam": (key, slot + gap + 1)}

    def _stuck(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key = self._station(number)
        cells = {(key, place): _reading(150, 300) for place in range(slot, slot + 7)}
        return cells, {"early": (key, slot), "late": (key, slot + 6)}

    def _jam_holds(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key = self._station(number)
        # Traffic is slow until the hour is over, but not so slow that it is stop and go.
        cells = {(key, slot): _reading(640, 400)} | {(key, slot + i): _reading(300, 420) for i in range(1, 13)}
        return cells, {"before": (key, slot), "jam": (key, slot + 1 + number // 64 % 3)}

    def _queue_tail(self, first: int, slot: int, number: int) -> tuple[Cells, Planted]:
        key, gap = self._station(number), number // 64 % 3 - 1
        cells = {(key, slot): _reading(650, 400), (key + 1, slot + gap): _reading(320, 420)}
        return cells, {"behind": (key, slot), "ahead": (key + 1, slot + gap)}


def position(key: np.ndarray) -> np.ndarray:
    """The postmiles of key numbers, in miles."""
    road, station = np.divmod(key, _STATIONS)
    return np.where(road == 0, _MILES[station] / 1_000, 100.0 + 20.0 * road + 0.5 * station)


def _occupancy(speed: Any) -> Any:
    return 300 + 2 * (800 - speed)


def _reading(speed: int, flow: int) -> dict[str, int]:
    return {"speed": speed, "flow": flow, "occupancy": int(_occupancy(speed))}
