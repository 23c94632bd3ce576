"""Every shipped model over the shipped data: the engine and a plain loop find the same changes, which are pinned."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from chainlake.model_change.days.definitions import kind_name, load_definition
from chainlake.model_change.library import monitor
from chainlake.paths import PROJECT
from tests.shipped.shipped_data import SOURCES, shipped

pytestmark = pytest.mark.slow

FOLDER = PROJECT / "dags" / "config" / "models"

#: Local time of every change, and the coefficients that say what it means (the slope, beta; none for the road).
CHANGES: dict[str, list[tuple[str, float | None]]] = {
    "gas_array": [("26 07:04", 1.79), ("26 13:05", 0.45), ("26 18:04", 1.49), ("26 19:15", 0.92)],
    "bac_beta": [("09 11:18", 1.15)],
    "i5n_speed_profile": [
        (f"{day} {time}", None)
        for day, times in {
            "01": "08:10 11:45 14:35 15:00 15:25 16:15 17:30 19:40 20:00 20:15 20:35 21:10",
            "02": "08:30 12:20 14:35 15:05 15:30 16:10 19:40 19:55 20:10 20:25 20:50",
            "03": "09:45 12:55 14:30 14:50 15:15 16:55 19:40 20:00 20:15 20:30 21:00 22:35 23:15",
        }.items()
        for time in times.split()
    ],
}


class Plain:
    """Rounds of a source, made row by row: value of every (round, key, column), carried forward up to ``carry``."""

    def __init__(self, source: str, minutes: int, carry: int, nodes: list[str], least: int):
        key = SOURCES[source][0]
        delivered: dict[int, dict[str, list[dict]]] = {}
        for row in shipped(source).to_dict("records"):
            at = row["ts"] // (minutes * 60_000_000)
            delivered.setdefault(at, {}).setdefault(row[key], []).append(row)
        self.rounds = [at for at in sorted(delivered) if sum(node in delivered[at] for node in nodes) >= least]
        self._delivered, self._carry = delivered, carry

    def value(self, i: int, key: str, column: str) -> float | None:
        """The last value up to the i-th round, None if it is older than may be carried; a mean within the round."""
        for back in range(self._carry + 1):
            rows = self._delivered[self.rounds[i - back]].get(key) if i >= back else None
            if rows:
                return sum(row[column] for row in rows) / len(rows)
        return None


def gas() -> tuple[list, dict]:
    plain = Plain("sensor", 1, 2, ["R4", "R2"], 1)
    rows = []
    for i, at in enumerate(plain.rounds):
        r4, r2 = (plain.value(i, key, "value") for key in ("R4", "R2"))
        if r4 is not None and r2 is not None:
            rows.append((at, [[1.0, np.log(r2)]], [np.log(r4)]))
    return rows, {"window": 15, "eps": 0.2, "phi": 0.9, "prediction": True}


def beta() -> tuple[list, dict]:
    zone = ZoneInfo("America/New_York")
    returns: dict[str, dict[int, float]] = {"BAC": {}, "SPY": {}}
    for row in shipped("stock").to_dict("records"):
        at = datetime.fromtimestamp(row["ts"] / 1e6, zone)
        if row["ticker"] in returns and (9, 30) <= (at.hour, at.minute) < (16, 0):
            returns[row["ticker"]][row["ts"] // 60_000_000] = float(np.log(row["close"] / row["open"]))
    both = sorted(returns["BAC"].keys() & returns["SPY"].keys())
    return [(at, [[returns["SPY"][at]]], [returns["BAC"][at]]) for at in both], {"window": 390, "eps": 0.3}


def road() -> tuple[list, dict]:
    stations = load_definition(FOLDER / "i5n_speed_profile.yaml").keys("")
    plain = Plain("traffic", 5, 12, list(stations), 12)
    rows = []
    for i, at in enumerate(plain.rounds):
        place = [-1 + 2 * (plain.value(i, s, "position") - 102.651) / (109.631 - 102.651) for s in stations]
        speed = [plain.value(i, s, "speed") for s in stations]
        rows.append((at, [[p**n for n in range(5)] for p in place], speed))
    return rows, {"window": 12, "eps": 6.0, "prediction": True}


LOOPS = {"gas_array": (gas, 1), "bac_beta": (beta, 1), "i5n_speed_profile": (road, 5)}


def greedy(rows: list, window: int, eps: float, phi: float = 0.0, prediction: bool = False) -> list:
    """(round, coefficients) of the first model and of every change, straight from the definition."""
    found, reference = [], None
    for end in range(window, len(rows) + 1):
        part = rows[end - window : end]
        at = np.array([row[0] for row in part])
        s = np.linalg.inv(phi ** np.abs(at[:, None] - at[None, :]).astype(float)) if phi else np.eye(window)
        x, y = np.array([row[1] for row in part]), np.array([row[2] for row in part])
        a = sum(x[:, j].T @ s @ x[:, j] for j in range(x.shape[1]))
        c = sum(x[:, j].T @ s @ y[:, j] for j in range(x.shape[1]))
        now = np.linalg.solve(a, c)
        if reference is None:
            first, reference = x.reshape(-1, x.shape[2]), now
            found.append((at[-1], now))
            continue
        moved = first @ (now - reference) / np.sqrt(len(first)) if prediction else now - reference
        if np.linalg.norm(moved) > eps:
            reference = now
            found.append((at[-1], now))
    return found


def test_every_model_file_has_its_loop() -> None:
    """The other kinds have theirs in ``test_shipped_companions``."""
    linear = [path.stem for path in FOLDER.glob("*.yaml") if kind_name(load_definition(path)) == "model"]
    assert sorted(linear) == sorted(LOOPS) == sorted(CHANGES)


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_the_engine_finds_what_the_loop_finds(name: str) -> None:
    config = load_definition(FOLDER / f"{name}.yaml")
    key, _, zone, _, _ = SOURCES[config.source]
    events = shipped(config.source)
    table = pa.table({name: pa.array(events[name]) for name in {"ts", key, *config.reduction.stored(config.columns)}})
    result = monitor(config, table, key=key)
    loop, minutes = LOOPS[name]
    rows, settings = loop()
    wanted = greedy(rows, **settings)
    changes = result.changes.to_pylist()
    times = [datetime.fromtimestamp(int(at) * minutes * 60, UTC) for at, _ in wanted]
    assert [row["ts"] for row in changes] == times
    for row, (_, coefficients) in zip(changes, wanted, strict=True):
        np.testing.assert_allclose([b["value"] for b in row["beta_after"]], coefficients, rtol=1e-6, atol=1e-8)
    local = [f"{time.astimezone(ZoneInfo(zone)):%d %H:%M}" for time in times[1:]]
    assert local == [time for time, _ in CHANGES[name]]
    for (_, coefficients), (_, pinned) in zip(wanted[1:], CHANGES[name], strict=True):
        assert pinned is None or round(float(coefficients[-1]), 2) == pinned
    assert result.warnings == () and result.near_ties == 0
