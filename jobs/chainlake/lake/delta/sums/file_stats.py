"""What the footer of a Parquet file says about its columns, as Delta's statistics of the file."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq

#: How many characters of a string Delta keeps in a file's bounds.
_CHARACTERS = 32
_LAST_CHARACTER = "\U0010ffff"
_LAST_MILLISECOND = datetime.max.replace(microsecond=999_000)


def _chunks(footer: pq.FileMetaData, columns: Collection[str]) -> Iterator[tuple[str, pq.ColumnChunkMetaData]]:
    """The given columns of each row group, with their names."""
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            if column.path_in_schema in columns:
                yield column.path_in_schema, column


def null_counts(footer: pq.FileMetaData, columns: Collection[str]) -> dict[str, int]:
    """Nulls of each column; those whose nulls the footer does not count are left out."""
    found = dict.fromkeys(columns, 0)
    for name, column in _chunks(footer, columns):
        if column.statistics is None or not column.statistics.has_null_count:
            found.pop(name, None)
        elif name in found:
            found[name] += column.statistics.null_count
    return found


def bounds(footer: pq.FileMetaData, columns: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Least and largest value of each column, as Delta writes them; unknown ones are left out."""
    values: dict[str, list[Any]] = {}
    unknown: set[str] = set()
    for name, column in _chunks(footer, columns):
        found = column.statistics
        if found is not None and found.has_min_max:
            values.setdefault(name, []).extend((found.min, found.max))
        elif found is None or found.null_count < column.num_values:
            unknown.add(name)
    known = {name: both for name, both in values.items() if name not in unknown}
    least = {name: _bound(min(both), up=False) for name, both in known.items()}
    most = {name: _bound(max(both), up=True) for name, both in known.items()}
    return {k: v for k, v in least.items() if v is not None}, {k: v for k, v in most.items() if v is not None}


def _bound(value: Any, *, up: bool) -> Any:
    """A bound as Delta writes it, never tighter than ``value``; ``None`` if there is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not up or len(value) <= _CHARACTERS:
            return value[:_CHARACTERS]
        return None if value[_CHARACTERS] == _LAST_CHARACTER else value[:_CHARACTERS] + _LAST_CHARACTER
    if isinstance(value, datetime):
        # Spark reads milliseconds.
        whole = value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)
        if up and value.microsecond % 1000:
            if whole == _LAST_MILLISECOND:
                return None
            whole += timedelta(milliseconds=1)
        return f"{whole.isoformat(timespec='milliseconds')}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None
