"""The files of an events table, as the lake lists them; the process that needs the rows reads them with Arrow.

Whole columns come out with the values that Spark would give, without passing through the JVM row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import Days, day_of_us, day_start_us
from chainlake.lake.store.port import DayFiles
from chainlake.schemas.table import TIMESTAMP
from chainlake.storage.parquet import parquet_file

#: Type of the column ``type`` if only some event types are wanted.
TYPES = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class EventFiles:
    """The files of some days of an events table at one version.

    Args:
        schema: the table's columns and their types, without the day; a column that a file lacks is null there.
        paths: day → its files; days without events are absent.
        rows: day → number of events in its files.
    """

    schema: pa.Schema
    paths: Mapping[date, tuple[str, ...]]
    rows: Mapping[date, int]

    @classmethod
    def of(cls, found: DayFiles) -> EventFiles:
        """Group files by day."""
        paths: dict[date, tuple[str, ...]] = {}
        rows: dict[date, int] = {}
        for day, files in groupby(sorted(found.files, key=lambda file: (file.day, file.path)), lambda file: file.day):
            mine = list(files)
            paths[day] = tuple(file.path for file in mine)
            rows[day] = sum(file.rows for file in mine)
        return cls(found.schema, paths, rows)

    def within(self, lo: int, hi: int) -> list[date]:
        """The days that hold events with ts in ``[lo, hi)`` µs, ascending."""
        return sorted(day for day in self.paths if day_start_us(day) < hi and day >= day_of_us(lo))

    def count(self, lo: int, hi: int) -> int:
        """Number of events on these days."""
        return sum(self.rows[day] for day in self.within(lo, hi))

    def read(self, day: date, columns: Sequence[str], types: Iterable[str] | None, lo: int, hi: int) -> pa.Table:
        """Some events of a day, in no order.

        Args:
            day: the day, one of ``paths``.
            columns: names of columns of ``schema``, including ``ts`` and ``type``.
            types: the event types wanted; all if None.
            lo: the least ts wanted, µs.
            hi: the ts, µs, from which on events are no longer wanted.

        Returns:
            the columns with the types of ``schema``; ``type`` as a dictionary of all ``types`` if these are given.
        """
        names = None if types is None else pa.array(sorted(types), pa.string())
        kind = pa.string() if names is None else TYPES
        fields = [self.schema.field(name) for name in columns]
        schema = pa.schema([pa.field(f.name, kind if f.name == "type" else f.type) for f in fields])
        span = None if _whole(day, lo, hi) else (lo, hi)
        parts = [part for path in self.paths[day] for part in _row_groups(path, schema, names, span)]
        return pa.concat_tables(parts) if parts else schema.empty_table()


def _whole(day: date, lo: int, hi: int) -> bool:
    """Whether a span covers a whole day."""
    return lo <= day_start_us(day) and day_start_us(Days.one(day).end) <= hi


def _row_groups(
    path: str, schema: pa.Schema, types: pa.Array | None, span: tuple[int, int] | None
) -> Iterator[pa.Table]:
    """The wanted rows of each row group; the unwanted rows of a large file are never all in memory."""
    with parquet_file(
        path, read_dictionary=["type"], coerce_int96_timestamp_unit="us", page_checksum_verification=True
    ) as file:
        there = [name for name in schema.names if name in file.schema_arrow.names]
        for number in range(file.num_row_groups):
            if span is not None and _outside(file.metadata.row_group(number), span):
                continue
            # Spark gives each task one core, and other tasks run beside this one.
            found = file.read_row_group(number, columns=there, use_threads=False)
            codes = None if types is None else pc.index_in(found["type"], value_set=types)
            wanted = pc.is_valid(found["type"] if codes is None else codes)
            if span is not None:
                ts = found["ts"].cast(TIMESTAMP)
                lo, hi = (pa.scalar(tick, TIMESTAMP) for tick in span)
                wanted = pc.and_(wanted, pc.and_(pc.greater_equal(ts, lo), pc.less(ts, hi)))
            columns = []
            for field in schema:
                if field.name == "type" and codes is not None:
                    columns.append(_named(codes, types))
                elif field.name in there:
                    columns.append(found[field.name].cast(field.type))
                else:
                    columns.append(pa.nulls(len(found), field.type))
            table = pa.table(columns, schema=schema)
            yield table if pc.all(wanted).as_py() else table.filter(wanted)


def _named(codes: pa.ChunkedArray, types: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes.combine_chunks(), types)


def _outside(group: Any, span: tuple[int, int]) -> bool:
    """Whether a row group's statistics say that none of its times is in ``span``."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == "ts" and column.is_stats_set and column.statistics.has_min_max:
            bounds = pa.array([column.statistics.min, column.statistics.max]).cast(TIMESTAMP)
            first, last = bounds.cast(pa.int64()).to_pylist()
            return bool(last < span[0] or first >= span[1])
    return False
