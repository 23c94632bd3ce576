"""Hashes of Arrow rows are those of Spark's SQL, bit by bit: they are ids and checksums that were published."""

from __future__ import annotations

import hashlib
import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from chainlake.definitions.source import load_source
from chainlake.ingest.events import hashes
from chainlake.ingest.events.hashes import content_hashes, event_hashes, event_ids
from chainlake.lake.spark.types import frame_of
from chainlake.schemas.events import events_table
from chainlake.schemas.table import TIMESTAMP

SOURCE = """\
key: "k"
type: {column: kind}
attributes:
  number: {type: double}
  whole: {type: long}
  flag: {type: boolean}
  at: {type: timestamp}
  text: {type: string}
path: '(?P<revision>\\d)?'
formats:
  - time: {column: t}
"""
LETTERS = ["a", "é", "\U0001f600", "\0", "\x1f", " ", "\uffff"]
NUMBERS = [0.0, -0.0, 1.5, -1.5, 1e308, 5e-324, math.inf, -math.inf, math.nan]
WHOLES = [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**53, -5]


def hostile(n: int, seed: int) -> pa.Table:
    """Rows of ``events`` with values at every edge, and texts of every length around the hash's steps."""
    rng = random.Random(seed)

    def text(longest: int = 70) -> str:
        return "".join(rng.choices(LETTERS, k=rng.randint(0, longest)))

    def time() -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.choice([0, -1, 1, rng.randrange(2**51)]))

    ts = pa.array([time() for _ in range(n)], TIMESTAMP)
    numbers = np.array(rng.choices(NUMBERS, k=n))
    # Some that are no number have other bits than usual.
    numbers.view(np.int64)[np.isnan(numbers) & (np.arange(n) % 2 == 0)] = -1
    return pa.table(
        {
            "event_id": [f"{rng.getrandbits(128):032x}" for _ in range(n)],
            "type": [text(9) for _ in range(n)],
            "k": [text() for _ in range(n)],
            "ts": ts,
            "seq": pa.array([rng.randrange(9) for _ in range(n)], pa.int64()),
            "number": pa.array(numbers, mask=np.array([rng.random() < 0.1 for _ in range(n)])),
            "whole": pa.array(rng.choices(WHOLES, k=n), pa.int64()),
            "flag": pa.array(rng.choices([None, True, False], k=n), pa.bool_()),
            "at": pa.array([rng.choice([None, time()]) for _ in range(n)], TIMESTAMP),
            "text": pa.array([rng.choice([None, text(), text()]) for _ in range(n)], pa.string()),
            "event_date": ts.cast(pa.date32(), safe=False),
            "_copy": pa.array([rng.choice([0, 1, 12345]) for _ in range(n)], pa.int64()),
        }
    )


def hash_sql(number: int, names: list[str]) -> str:
    """Spark's hash of columns; it passes over nulls, so which columns are null is hashed as well."""
    return f"xxhash64({number}, {', '.join(f'cast({n} IS NULL AS int)' for n in names)}, {', '.join(names)})"


def event_id(*parts: str) -> str:
    """An id by the words of its definition: each part after its length in UTF-8, the first 128 bits."""
    text = "\x1f".join(f"{len(part.encode())}\x1f{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@pytest.mark.parametrize("identity", ["unique", "multiset"])
def test_they_are_what_sql_gives(
    tmp_path: Path, spark: SparkSession, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not all rows are hashed at a time.
    monkeypatch.setattr(hashes, "_SLAB", 700)
    file = tmp_path / "odd.yaml"
    file.write_text(SOURCE + f"identity: {identity}\n")
    source = load_source(file)
    rows = hostile(3_000, 1)
    # In two chunks, one of them a slice: offsets must not matter.
    rows = pa.concat_tables([rows.slice(1_000), rows.slice(0, 1_000)])
    c1, c2 = content_hashes(source, rows)
    rows = rows.append_column("_c1", pa.array(c1)).append_column("_c2", pa.array(c2))
    h1, h2 = event_hashes(events_table(source), rows)
    ids = event_ids(source, rows).to_pylist()
    content, row = [a.name for a in source.attributes], events_table(source).non_volatile
    sql = [hash_sql(number, names) for names in (content, row) for number in (1, 2)]
    found = frame_of(spark, rows).select(*(F.expr(one).alias(f"x{i}") for i, one in enumerate(sql))).toArrow()
    for ours, column in zip((c1.tolist(), c2.tolist(), h1.tolist(), h2.tolist()), found.columns, strict=True):
        assert ours == column.to_pylist()
    assert len(set(h1.tolist())) > 2_900
    places = [rows["type"].to_pylist(), rows["k"].to_pylist(), map(str, rows["ts"].cast(pa.int64()).to_pylist())]
    if identity == "multiset":
        places += [[f"{value & (1 << 64) - 1:X}" for value in part.tolist()] for part in (c1, c2)]
        places.append(map(str, rows["_copy"].to_pylist()))
    assert ids == [event_id(identity, "odd", *parts) for parts in zip(*places, strict=True)]


def test_nothing_is_hashed_to_nothing(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(SOURCE)
    source, rows = load_source(file), hostile(5, 2).slice(5)
    assert [len(part) for part in content_hashes(source, rows)] == [0, 0] and len(event_ids(source, rows)) == 0
