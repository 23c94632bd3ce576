"""The part of a table that a writer owns: some days of some owners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from chainlake.lake.delta.where import Condition
from chainlake.lake.store.port import Part
from chainlake.schemas.table import Table

_ONE = timedelta(days=1)


def days_of(
    table: Table, days: Iterable[date], day_column: str, owner_column: str | None = None, owners: Sequence[str] = ()
) -> Part:
    """Whole days of a table.

    Args:
        table: the table.
        days: the UTC days, contiguous or not.
        day_column: a timestamp whose UTC day owns the row, or a date.
        owner_column: the column that says whose row it is, if the table has several owners.
        owners: the values of ``owner_column`` that belong to the part.
    """
    mine: list[Condition] = [] if owner_column is None else [(owner_column, "in", list(owners))]
    if not pa.types.is_timestamp(table.arrow().field(day_column).type):
        return Part([[(day_column, "in", sorted(days)), *mine]], day_column, owner_column)
    where = [
        [(day_column, ">=", _midnight(first)), (day_column, "<", _midnight(last + _ONE)), *mine]
        for first, last in _runs(sorted(days))
    ]
    return Part(where, day_column, owner_column)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _runs(days: Sequence[date]) -> list[tuple[date, date]]:
    """First and last day of each unbroken run."""
    found: list[tuple[date, date]] = []
    for day in days:
        if found and day == found[-1][1] + _ONE:
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found
