"""A small source with days of events, a pattern and a model, delivered as an ingest would leave them; no JVM."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from chainlake.definitions.source import load_sources
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.events import events_table

SOURCE = """\
key: sensor
type: Reading
zone: UTC
attributes:
  x: {type: double}
  y: {type: double}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, sensor, x, y], time: {column: ts, format: '%Y-%m-%dT%H:%M:%S'},
     map: {sensor: sensor, x: x, y: y}}
"""
MODEL = """\
source: lab
start: 2025-03-02
nodes: [a, b]
response: y
features: [x]
round: {length: 1 h}
window: {sliding: 8}
eps: 0.3
max_replay: 5
"""
#: A value of a and the same value of b within the window; one pair an hour, and pairs across midnight.
PATTERN = """\
---
source: lab
{more}---
PATTERN SEQ(Reading p, Reading q)
WHERE p.sensor = a AND q.sensor = b AND q.x >= p.x + {step}
WITHIN {window}
"""
FIRST = date(2025, 3, 1)


def day(n: int) -> date:
    """The n-th day of the history."""
    return FIRST + timedelta(days=n)


def pattern(window: str = "90 min", step: float = 0.0, more: str = "") -> str:
    """A pattern text."""
    return PATTERN.format(window=window, step=step, more=more)


def configured(home: Home, **patterns: str) -> Home:
    """The home with the source ``lab``, the model ``slope`` and the given patterns."""
    config = home.root / "config"
    files = {"sources/lab.yaml": SOURCE, "models/slope.yaml": MODEL}
    for name, text in (files | {f"patterns/{name}.sase": text for name, text in patterns.items()}).items():
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text(text)
    (config / "patterns").mkdir(exist_ok=True)
    return replace(home, config=config)


def readings(n: int, edition: int = 0) -> list[dict[str, Any]]:
    """Events of day ``n``: two sensors, four readings each; another ``edition`` has other values."""
    rows = []
    for hour in (0, 7, 8, 23):
        for minute, sensor in ((5, "a"), (40, "b")):
            ts = datetime(2025, 3, 1, hour, minute, tzinfo=UTC) + timedelta(days=n)
            draw = hashlib.md5(f"{n} {hour} {sensor} {edition}".encode()).digest()
            x = (draw[0] - 128) / 64
            rows.append({
                "event_id": hashlib.md5(f"{sensor} {ts}".encode()).hexdigest(), "type": "Reading", "sensor": sensor,
                "ts": ts, "seq": 0, "x": x, "y": (1.0 if n < 6 else 2.0) * x + draw[1] / 5000, "event_date": day(n),
            })  # fmt: skip
    return rows


def deliver(home: Home, contents: Mapping[int, list[dict[str, Any]]], status: str = "complete") -> None:
    """Replace the events of whole days, with their checksums, as an ingest leaves them."""
    table = events_table(load_sources(home)["lab"])
    tables.ensure_table(home, table)
    path = home.table("events", "lab")
    rows = pa.Table.from_pylist([row for rows in contents.values() for row in rows], schema=table.arrow())
    old = DeltaTable(path).to_pyarrow_table()
    kept = old.filter(pa.compute.invert(pa.compute.is_in(old["event_date"], pa.array([day(n) for n in contents]))))
    write_deltalake(
        path, pa.concat_tables([kept.cast(table.arrow()), rows]), mode="overwrite", partition_by=["event_date"]
    )
    version = tables.version(home, "events", "lab")
    ops.append(home, "event_days", [
        {"source": "lab", "day": day(n), "status": status, "rows": len(rows), "events_version": version,
         "checksum": hashlib.md5(repr(rows).encode()).hexdigest()}
        for n, rows in contents.items()
    ], "ingest")  # fmt: skip
