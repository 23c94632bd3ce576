"""Makes a lake of generated events for benchmarks of the pipeline, written day by day by delta-rs, not by ingest.

The stream is like the peers': types A, B and C of one source, a price that falls from A to C, and times in whole
milliseconds, here evenly spread over each day. Rows of a day's file are in no order, as ingest leaves them. The rows of
``ops.event_days`` and ``ops.rates`` are those that ingest would have written, except that the checksum is the day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.days import Days, day_start_us
from chainlake.definitions.source import find_source
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.events import events_table
from chainlake.schemas.table import TIMESTAMP

SOURCE = "ticks"
SOURCE_TEXT = """\
description: Generated ticks.
key: symbol
type: {column: kind}
zone: UTC
attributes:
  price: {type: double}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, symbol, kind, price], time: {column: ts, format: iso}}
"""
KINDS = ("A", "B", "C")
SYMBOLS = ("S0", "S1", "S2", "S3")
FIRST = date(2025, 1, 1)
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Stream:
    """What is generated.

    Args:
        days: number of days, from 2025-01-01 on.
        per_day: number of events of each day.
        share: share of type C; A and B have half of the rest each.
    """

    days: int
    per_day: int
    share: float

    @property
    def span(self) -> Days:
        """The days."""
        return Days(FIRST, FIRST + timedelta(days=self.days))

    @property
    def events(self) -> int:
        """Number of events in all."""
        return self.days * self.per_day


def make_lake(root: Path, stream: Stream, patterns: dict[str, str], cache: Path) -> Home:
    """An installation with the stream as its events table, complete on every day.

    Args:
        root: its folder, empty.
        stream: the events.
        patterns: name → text of a pattern file.
        cache: the cache folder.
    """
    texts = {f"patterns/{name}.sase": text for name, text in patterns.items()}
    home = installed(root, {f"sources/{SOURCE}.yaml": SOURCE_TEXT, **texts}, SOURCE, cache)
    days: list[dict[str, Any]] = []
    rates: list[dict[str, Any]] = []
    for number, day in enumerate(stream.span):
        made = day_rows(stream, number, day)
        days.append(add_day(home, SOURCE, day, made))
        grouped = made.group_by(["type", "symbol"]).aggregate([("ts", "count"), ("ts", "min"), ("ts", "max")])
        rates += [
            {"source": SOURCE, "day": day, "type": row["type"], "key": row["symbol"], "events": row["ts_count"],
             "first_ts": row["ts_min"], "last_ts": row["ts_max"]}
            for row in grouped.to_pylist()
        ]  # fmt: skip
    ops.append(home, "event_days", days, "made")
    ops.append(home, "rates", rates, "made")
    return home


def installed(root: Path, texts: dict[str, str], source: str, cache: Path) -> Home:
    """An installation with the definitions and an empty events table of a source.

    Args:
        root: its folder, empty.
        texts: file below ``config/`` → what it says.
        source: name of the source.
        cache: as of any other installation.
    """
    home = Home(root=root, lake=str(root / "lake"), config=root / "config", cache=cache)
    for name, text in texts.items():
        path = home.config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tables.ensure_table(home, events_table(find_source(home, source)))
    return home


def add_day(home: Home, source: str, day: date, rows: pa.Table) -> dict[str, Any]:
    """Write the events of a day; the row of ``ops.event_days`` that says so is returned."""
    from deltalake import write_deltalake

    made = rows.cast(events_table(find_source(home, source)).arrow())
    write_deltalake(home.table("events", source), made, mode="append", partition_by=["event_date"])
    return {
        "source": source, "day": day, "status": "complete", "rows": len(made), "duplicates": 0, "conflicts": 0,
        "superseded": 0, "checksum": str(day), "events_version": tables.version(home, "events", source),
    }  # fmt: skip


def day_rows(stream: Stream, number: int, day: date) -> pa.Table:
    """The events of a day in no order; the same arguments give the same events."""
    draw = np.random.default_rng([20250101, stream.per_day, round(stream.share * 1e6), number])
    n = stream.per_day
    ms = np.sort(draw.integers(0, DAY_MS - n, n))
    ms = np.maximum.accumulate(ms - np.arange(n)) + np.arange(n)  # no two events at the same time
    u = draw.random(n)
    kinds = np.where(u < stream.share, 2, np.where(u < stream.share + (1 - stream.share) / 2, 0, 1))
    price = np.round(100 - 1.8 * kinds + draw.standard_normal(n), 4)
    columns = {
        "event_id": hex_texts(draw.integers(0, 256, (n, 16), np.uint8)),
        "type": named(KINDS, kinds),
        "symbol": named(SYMBOLS, draw.integers(0, len(SYMBOLS), n)),
        "ts": pa.array(day_start_us(day) + 1000 * ms).cast(TIMESTAMP),
        "seq": pa.array(np.zeros(n, np.int64)),
        "price": pa.array(price),
        "event_date": pa.array(np.full(n, np.datetime64(day, "D"))),
        "file_id": named(["0" * 32], np.zeros(n, np.int64)),
        "line": pa.array(np.arange(2, n + 2)),
        "ingested_at": pa.array(np.full(n, day_start_us(day))).cast(TIMESTAMP),
    }
    return pa.table(columns).take(pa.array(draw.permutation(n)))


def hex_texts(octets: np.ndarray) -> pa.Array:
    """Rows of bytes, shape (n, k), as strings of 2k hexadecimal digits."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.empty((len(octets), 2 * octets.shape[1]), np.uint8)
    text[:, 0::2], text[:, 1::2] = digits[octets >> 4], digits[octets & 15]
    offsets = np.arange(len(octets) + 1, dtype=np.int32) * text.shape[1]
    return pa.Array.from_buffers(pa.string(), len(octets), [None, pa.py_buffer(offsets), pa.py_buffer(text.tobytes())])


def named(names: Sequence[str], codes: np.ndarray) -> pa.Array:
    """Strings by their place in a list."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names)).cast(pa.string())


def size_mb(folder: str | Path) -> int:
    """The size of all files below a folder, in MB."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) // 1_000_000
