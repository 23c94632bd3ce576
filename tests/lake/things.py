"""A small table with the kinds of columns that match tables have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from chainlake.days import day_start_us
from chainlake.schemas.table import TIMESTAMP, Check, Column, Table

DAY = datetime(2025, 10, 1, tzinfo=UTC)
DAY_US = day_start_us(DAY.date())

THINGS = Table(
    schema="matches",
    name="things",
    comment="Things for tests.",
    columns=(
        Column("id", pa.string(), "Which thing.", False),
        Column("ts", TIMESTAMP, "When.", False),
        Column("price", pa.float64(), "How much, dollars."),
        Column("a", pa.struct([pa.field("event_id", pa.string()), pa.field("n", pa.int64())]), "Nested."),
        Column("b", pa.list_(pa.field("element", pa.struct([pa.field("event_id", pa.string())]))), "Many."),
    ),
    key=("id",),
    checks=(Check("price_positive", "price > 0"), Check("id_is_short", "length(id) <= 6")),
)


def thing(name: str, us: int = 0, price: float | None = 1.0) -> dict[str, Any]:
    """A row ``us`` microseconds into the day."""
    ts = DAY + timedelta(microseconds=us)
    return {"id": name, "ts": ts, "price": price, "a": {"event_id": name, "n": us}, "b": [{"event_id": name}]}


def things(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as an Arrow table."""
    return pa.Table.from_pylist(rows, schema=THINGS.arrow())
