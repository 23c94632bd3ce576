"""The shipped models of the kinds beside regression: what their comments say, from the definition, row by row."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
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
LANES = {"1205204": 6} | dict.fromkeys("1205168 1205320 1205330 1212001 1212115 1205432".split(), 4)


def road(name: str, **changes: np.ndarray):
    """A shipped model over the shipped road, with some columns changed."""
    config = load_definition(FOLDER / f"{name}.yaml")
    key, events = SOURCES["traffic"][0], shipped("traffic")
    columns = {"ts", key, *config.reduction.stored(config.columns)}
    table = pa.table({column: pa.array(changes.get(column, events[column])) for column in columns})
    return config, monitor(config, table, key=key)


def readings(column: str) -> np.ndarray:
    """(rounds, stations) of a column; every station reports every five minutes."""
    config = load_definition(FOLDER / "road_queue.yaml")
    wide = shipped("traffic").pivot_table(index="ts", columns="detector", values=column)
    return wide[[node.name for node in config.groups[""]]].to_numpy()


def test_the_loop_that_sees_long_vehicles() -> None:
    config, result = road("loop_lengths")
    assert kind_name(config) == "latent_faults" and (shipped("traffic").pct_observed == 100).all()
    rows = {(r["day"], r["machine"]): r for r in result.found.to_pylist()}
    flagged = {(day.day, machine) for (day, machine), r in rows.items() if r["flagged"]}
    assert flagged == {(1, "1205320"), (2, "1205320"), (3, "1205320"), (2, "1205215")}
    assert rows[date(2025, 10, 2), "1205320"]["top_counters"][0]["value"] == pytest.approx(0.89, abs=0.005)
    assert rows[date(2025, 10, 2), "1205215"]["top_counters"][0]["value"] == pytest.approx(-0.81, abs=0.005)
    # One counter: the mean of signs, by ranks.
    names = [node.name for node in config.groups[""]]
    lanes = np.array([LANES.get(name, 5) for name in names])
    flow = readings("flow")
    length = 440 * readings("occupancy") * readings("speed") / flow * lanes
    length[flow < 30] = np.nan
    assert round(float(np.nanmedian(length))) == round(float(np.median(np.nanmedian(length, axis=0)))) == 26
    short, slow = length[:, names.index("1205215")], readings("speed")[:, names.index("1205215")] < 40
    assert np.nanmedian(short[slow]) == pytest.approx(24.75, abs=0.05) and np.nanmedian(short[~slow]) < 20.5
    for t in range(1, len(length)):
        length[t] = np.where(np.isnan(length[t]), length[t - 1], length[t])
    per_loop = np.nanmedian(length, axis=0)
    assert per_loop[names.index("1205320")] == pytest.approx(29.5, abs=0.05)
    assert per_loop[names.index("1205215")] == pytest.approx(20.5, abs=0.05)
    first = shipped("traffic").ts.min()
    midnight = int(datetime(2025, 10, 2, tzinfo=UTC).timestamp() * 1e6)
    part = length[(midnight - first) // 300_000_000 :][:288]
    signs = np.sign(part[:, :, None] - part[:, None]).sum(axis=2).mean(axis=0) / 14
    size = np.abs(signs)
    gamma = np.maximum(0, size - size.mean())
    for j, name in enumerate(names):
        p = 16 * math.exp(-288 * 15 * gamma[j] ** 2 / (2 * (math.sqrt(15) + 2) ** 2))
        assert rows[date(2025, 10, 2), name]["p"] == pytest.approx(p, rel=1e-6)


def test_a_planted_fault_of_a_loop_is_found_on_its_days() -> None:
    events = shipped("traffic")
    planted = (events.detector == "1205303") & (events.ts >= int(datetime(2025, 10, 2, tzinfo=UTC).timestamp() * 1e6))
    _, result = road("loop_lengths", occupancy=np.where(planted, 1.3 * events.occupancy, events.occupancy))
    days = [r["day"].day for r in result.found.to_pylist() if r["machine"] == "1205303" and r["flagged"]]
    assert days == [2, 3]


def test_the_queues_of_the_road() -> None:
    _, result = road("road_queue")
    speed, occupancy = readings("speed").mean(axis=1), readings("occupancy").mean(axis=1)
    direct, found = (speed < 45) | (occupancy > 0.15), []
    stamps = sorted(set(shipped("traffic").ts))
    for t, now in enumerate(direct):
        if now != (t > 0 and direct[t - 1]):
            at = datetime.fromtimestamp(stamps[t] / 1e6, ZoneInfo("America/Los_Angeles"))
            found.append((f"{at:%d %H:%M}", "outside" if now else "inside"))
    rows = result.found.to_pylist()
    zone = ZoneInfo("America/Los_Angeles")
    told = [(f"{r['ts'].astimezone(zone):%d %H:%M}", r["kind"]) for r in rows if r["kind"] in ("outside", "inside")]
    assert told == found
    assert [at for at, _ in told] == [
        "01 14:30", "01 14:35", "01 14:40", "01 19:35", "02 14:40", "02 19:25", "03 14:25", "03 19:40",
    ]  # fmt: skip
    assert direct.sum() == 180 and sum(r["reports_up"] for r in result.metrics.to_pylist()) == 3515
    assert sum(r["violators"] is not None for r in rows) == 170


def test_what_sharing_is_worth_to_stations_that_learn() -> None:
    _, result = road("next_speed")
    days = [r for r in result.found.to_pylist() if r["kind"] == "day"]
    sums = {name: sum(r[name] for r in days) for name in ("loss", "loss_alone", "loss_static")}
    speed, occupancy = readings("speed") / 10 - 6, 5 * readings("occupancy") - 0.5
    y = speed[2:] - speed[1:-1]
    x = np.stack([np.ones_like(y), speed[1:-1], occupancy[1:-1], speed[1:-1] - speed[:-2]], axis=2)

    def huber(e: np.ndarray) -> np.ndarray:
        return np.where(np.abs(e) <= 1, e**2 / 2, np.abs(e) - 0.5)

    lost = {"loss_alone": 0.0, "loss_static": 0.0}
    for name in lost:
        w = np.zeros((15, 4))
        for now, target in zip(x, y, strict=True):
            e = (w * now).sum(axis=1) - target
            lost[name] += float(huber(e).sum())
            w = w - 0.02 * np.clip(e, -1, 1)[:, None] * now
            w = w if name == "loss_alone" else np.tile(w.mean(axis=0), (15, 1))
    assert {name: sums[name] for name in lost} == pytest.approx(lost, rel=1e-9)
    assert [round(v, 1) for v in (sums["loss"], lost["loss_alone"], lost["loss_static"])] == [304.9, 315.6, 302.0]
    assert round(float(huber(y).sum()), 1) == 315.0 and np.linalg.norm(x, axis=2).max() == pytest.approx(5.9, abs=0.05)
    assert sum(r["reports_up"] for r in result.metrics.to_pylist()) == 2529 and result.warnings == ()
    gained = (lost["loss_alone"] - sums["loss"]) / (lost["loss_alone"] - lost["loss_static"])
    assert round(gained, 2) == 0.79
