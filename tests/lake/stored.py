"""A table with columns of every kind, its rows, and short ways to publish and look at them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from chainlake.lake.delta import tables
from chainlake.lake.delta.where import Where
from chainlake.lake.store.port import Applied, Lake, Part, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.table import TIMESTAMP, Check, Column, Table

D1, D2, D3 = date(2025, 10, 1), date(2025, 10, 2), date(2025, 10, 3)
COLUMNS = (
    Column("id", pa.string(), "Which.", False),
    Column("owner", pa.string(), "Whose.", False),
    Column("ts", TIMESTAMP, "When.", False),
    Column("x", pa.float64(), "How much."),
    Column("text", pa.string(), "Words."),
    Column("a", pa.struct([pa.field("event_id", pa.string()), pa.field("f", pa.float64())]), "Nested."),
    Column("b", pa.list_(pa.field("element", pa.struct([pa.field("event_id", pa.string())]))), "Many."),
    Column("event_date", pa.date32(), "Day of ts.", False),
    Column("written_at", TIMESTAMP, "When it was written.", True, True),
)
RULES = (Check("x_not_minus_one", "x <> -1"), Check("event_date_is_day_of_ts", "event_date = to_date(ts)"))


def shaped(**options: Any) -> Table:
    more = {"key": ("id",), "checks": RULES, **options}
    return Table(schema="matches", name="rows", comment="For tests.", columns=COLUMNS, **more)


PLAIN, DAILY = shaped(), shaped(partition_by=("event_date",))
Row = dict[str, Any]


def row(name: str, day: date = D1, us: int = 0, x: float | None = 1.0, owner: str = "o", **more: Any) -> Row:
    ts = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(microseconds=us)
    nested = {"event_id": name, "f": x}
    return {
        "id": name, "owner": owner, "ts": ts, "x": x, "text": "é", "a": nested, "b": [{"event_id": name}],
        "event_date": day, "written_at": None, **more,
    }  # fmt: skip


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema([pa.field(f.name, f.type) for f in PLAIN.arrow()]))


def days_where(*days: date) -> Where:
    """Whole days by ``ts``."""
    starts = [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]
    return [[("ts", ">=", start), ("ts", "<", start + timedelta(days=1))] for start in starts]


def part_of(*days: date, by: str = "ts", owners: list[str] | None = None) -> Part:
    mine = [] if owners is None else [("owner", "in", owners)]
    where = days_where(*days) if by == "ts" else [[("event_date", "in", list(days))]]
    return Part([[*one, *mine] for one in where], by, None if owners is None else "owner")


def put(lake: Lake, rows: list[Row], part: Part, table: Table = PLAIN, force: bool = False) -> Applied:
    return lake.commit(lake.change(table, Staged(rows=table_of(rows)), part), Turn("test", force))


def held(home: Home) -> list[str]:
    """All rows, as text: NaN equals itself there, and -0.0 is not 0.0."""
    return sorted(map(str, tables.arrow(home, "matches", "rows").to_pylist()))


def feed(home: Home, version: int) -> list[tuple[str, str]]:
    rows = pa.table(DeltaTable(home.table("matches", "rows")).load_cdf(version, version))
    return sorted(zip(rows["id"].to_pylist(), rows["_change_type"].to_pylist(), strict=True))


def left_over(home: Home) -> list[Path]:
    """Folders of changes that were made or given up; there should be none."""
    return [*home.temporary.rglob("change-*"), *Path(home.staging).rglob("change-*")]


BEFORE = [
    row("a", x=float("nan")),
    row("b", us=123_456, x=-0.0),
    row("c", D2, x=None, a=None, b=None, text=None),
    row("d", D2, text="q" * 200_000),
    row("e", D3),
]
AFTER = [
    row("a", x=float("nan")),  # equal: NaN is NaN
    row("b", us=123_456, x=0.0),  # equal: both zeros are one number
    row("c", D2, x=None, a={"event_id": None, "f": None}, b=None, text=None),  # a struct of nulls is not null
    row("d", D2, text="q" * 199_999 + "r"),
    row("f", D2, b=[]),
    row("e", D3, b=[{"event_id": "e"}, {"event_id": None}]),
]
