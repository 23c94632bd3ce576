"""Compares the rows of two lakes for the same days: kept, added, withdrawn, changed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import Days
from chainlake.lake.delta import tables
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.upkeep.same import same_value
from chainlake.paths import Home
from chainlake.schemas.table import Table

Row = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """What would happen to a table's rows.

    Args:
        table: ``schema.name``.
        kept: number of rows that stay as they are.
        changed: rows that stay with other values, each as it is and as it would be.
        added: rows that would be new, in the order of their key.
        withdrawn: rows that would disappear, in the same order.
        columns: names of columns that only one of the two tables has.
    """

    table: str
    kept: int
    changed: tuple[tuple[Row, Row], ...]
    added: tuple[Row, ...]
    withdrawn: tuple[Row, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """Which rows of a table are compared.

    Args:
        table: the table as it would be; its ``day_column`` says to which day a row belongs.
        owner: column and value that mark the definition's own rows, where a table has those of several.
    """

    table: Table
    owner: tuple[str, str] | None = None


def compare(now: Home, then: Home, rows: Rows, days: Days, done: Collection[date]) -> Compared:
    """The rows of some days in two lakes; a table that does not exist has none.

    Args:
        now: the lake as it is published.
        then: the lake as it would be.
        rows: which table, and which of its rows.
        days: the interval in which the days lie.
        done: the days whose rows are compared.
    """
    table = rows.table
    old, new = (_rows(home, rows, days, done) for home in (now, then))
    known = set(next(iter(old.values()), table.column_names))
    common = [name for name in table.column_names if name in known]
    changed, kept = [], 0
    for key in sorted(old.keys() & new.keys(), key=str):
        if same_value({name: old[key][name] for name in common}, {name: new[key][name] for name in common}):
            kept += 1
        else:
            changed.append((old[key], new[key]))
    return Compared(
        f"{table.schema}.{table.name.partition('/')[0]}",
        kept,
        tuple(changed),
        tuple(new[key] for key in sorted(new.keys() - old.keys(), key=str)),
        tuple(old[key] for key in sorted(old.keys() - new.keys(), key=str)),
        tuple(sorted(known ^ set(table.column_names))),
    )


def _rows(home: Home, rows: Rows, days: Days, done: Collection[date]) -> dict[tuple[Any, ...], Row]:
    table, day = rows.table, rows.table.day_column
    name = table.name.partition("/")[0]
    if table.schema == "matches":
        name = registered_table(home, name)
    if not tables.exists(home, table.schema, name):
        return {}
    kind = table.arrow().field(day).type
    start, end = map(pa.scalar, (days.start, days.end))
    if not pa.types.is_date(kind):
        start, end = (pa.scalar(us, kind) for us in days.micros())
    wanted = (pc.field(day) >= start) & (pc.field(day) < end)
    if rows.owner is not None:
        wanted &= pc.field(rows.owner[0]) == rows.owner[1]
    found = tables.arrow(home, table.schema, name, filters=wanted).to_pylist()
    return {tuple(row[part] for part in table.key): row for row in found if _day(row[day]) in done}


def _day(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment
