"""A small lake with one source and one model, made without Spark, and the same model by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from chainlake.lake.records import ops
from chainlake.paths import Home

SOURCE = """\
key: sensor
type: Reading
zone: UTC
attributes: {p: {type: double}, y: {type: double}}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, sensor, p, y], time: {column: ts, format: '%Y-%m-%d'},
     map: {sensor: sensor, p: p, y: y}}
"""
MODEL = """\
source: lab
start: 2025-03-01
nodes: [a, b, c]
response: y
features:
  - polynomial: {of: p, degree: 2, scale: [-1, 1], range: [10, 30]}
round: {length: 10 min}
window: {sliding: 12}
eps: 0.6
"""
FIRST = date(2025, 3, 1)
PLACES = {"a": 10.0, "b": 18.0, "c": 30.0}


def events(days: int = 3, seed: int = 0) -> pa.Table:
    """Three places, one reading in ten minutes each; the curve falls at noon of every day and rises at 18:00."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(days * 144):
        at = datetime(2025, 3, 1, tzinfo=UTC) + timedelta(minutes=10 * i)
        level = 50.0 - 4.0 * (12 <= at.hour < 18)
        for name, place in PLACES.items():
            y = level - 0.1 * (place - 20) + 0.2 * float(rng.normal())
            rows.append({"event_id": f"{name}{i}", "sensor": name, "ts": at, "p": place, "y": y,
                         "event_date": at.date()})  # fmt: skip
    schema = pa.schema(
        [("event_id", pa.string()), ("sensor", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("p", pa.float64()),
         ("y", pa.float64()), ("event_date", pa.date32())]
    )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def make(home: Home, monkeypatch, rows: pa.Table) -> Home:
    """Definitions, events and the days' rows; every day is complete."""
    config = home.root / "config"
    for folder, name, text in (("sources", "lab", SOURCE), ("models", "bend", MODEL)):
        (config / folder).mkdir(parents=True, exist_ok=True)
        (config / folder / f"{name}.yaml").write_text(text)
    (config / "patterns").mkdir(exist_ok=True)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    home = Home.from_env()
    write_deltalake(home.table("events", "lab"), rows, partition_by=["event_date"])
    days = sorted(set(rows["event_date"].to_pylist()))
    ops.append(
        home,
        "event_days",
        [{"source": "lab", "day": day, "status": "complete", "rows": 432, "checksum": f"{day}", "events_version": 0}
         for day in days],
        "test",
    )  # fmt: skip
    return home
