"""Which raw rows of some days each task reads, so that events can be resolved without a shuffle.

What becomes of a row depends only on the rows of its place, that is, with its (type, key, ts). So the rows of a large
day are cut by time or by key, whichever groups the rows in the files: a task skips the row groups of other tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.definitions.source import Source
from chainlake.lake.delta.sums.pages import verified
from chainlake.lake.delta.where import Condition, expression
from chainlake.lake.store.port import DayFiles
from chainlake.schemas.events import events_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.table import Table
from chainlake.storage.parquet import parquet_dataset, parquet_file, parquet_footer

#: Rows per task, for up to ``_COLUMNS`` columns; the task has them in memory several times over.
_ROWS_PER_TASK = 500_000
_COLUMNS = 12
#: Compressed bytes of data files per task: less than Arrow's limit for the strings of one column, 2 GiB.
_BYTES_PER_TASK = 256 << 20
#: How many rows of a day are sampled to find the bounds of tasks.
_SAMPLED_ROWS = 500_000


@dataclass(frozen=True)
class RawSlice:
    """What one task reads: the rows of ``files`` with ``low <= column < high``; ``None`` means no bound.

    Args:
        files: paths of data files of the raw table.
        events: paths of the data files that hold the events of their days.
        column: ``ts`` or the key; empty if all rows are wanted.
        low, high: values of the column; µs since 1970 for ``ts``.
    """

    files: tuple[str, ...]
    events: tuple[str, ...]
    column: str = ""
    low: Any = None
    high: Any = None

    def read(self, source: Source, loads: Sequence[str]) -> pa.Table:
        """The rows of ``loads``, in the columns of the raw table."""
        table = raw_table(source)
        return self._read(self.files, table, [("load_id", "in", list(loads))])

    def held(self, source: Source) -> pa.Table:
        """The events that are in the events table."""
        return self._read(self.events, events_table(source), [])

    def _read(self, paths: Sequence[str], table: Table, wanted: list[Condition]) -> pa.Table:
        whole = pa.schema([pa.field(f.name, f.type) for f in table.arrow()])
        if not paths:
            return whole.empty_table()
        schema = whole.remove(whole.get_field_index("event_date"))
        if self.column:
            kind = schema.field(self.column).type
            bounds = ((">=", self.low), ("<", self.high))
            wanted = [*wanted, *((self.column, op, _scalar(at, kind)) for op, at in bounds if at is not None)]
        found = parquet_dataset(paths, schema)
        chosen = expression([wanted], schema)
        rows = found.to_table(filter=chosen, use_threads=False, fragment_scan_options=verified())
        return rows.append_column("event_date", rows["ts"].cast(pa.date32(), safe=False)).select(whole.names)


def raw_batches(
    source: Source, paths: Sequence[str], loads: Sequence[str], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Some columns of the rows of ``loads`` in data files of the raw table."""
    if paths and loads:
        schema = pa.schema([pa.field(f.name, f.type) for f in raw_table(source).arrow() if f.name != "event_date"])
        rows = parquet_dataset(paths, schema)
        chosen = expression([[("load_id", "in", list(loads))]], schema)
        yield from rows.to_batches(
            columns=list(columns), filter=chosen, use_threads=False, fragment_scan_options=verified()
        )


@dataclass(frozen=True)
class _File:
    path: str
    rows: int
    size: int


def raw_slices(
    source: Source, days: Sequence[date], raw: DayFiles, events: DayFiles, parallelism: int
) -> list[RawSlice]:
    """Cut all raw rows of ``days`` into slices; the rows of a place are in the same slice.

    Args:
        source: the source.
        days: the days, ascending.
        raw: the raw table's files of these days, including those with rows of loads that do not count.
        events: the events table's files of these days, with which the result is compared.
        parallelism: how many slices are worked on at a time.
    """
    held, there = _by_day(raw), _by_day(events)
    every = [file for files in held.values() for file in files]
    rows_of_all = sum(file.rows for file in every)

    def of(several: Sequence[date]) -> tuple[str, ...]:
        return tuple(file.path for day in several for file in there.get(day, []))

    most = _ROWS_PER_TASK * _COLUMNS // max(_COLUMNS, len(raw_table(source).columns))
    most = max(1, min(most, _BYTES_PER_TASK * rows_of_all // max(1, sum(file.size for file in every))))
    found: list[RawSlice] = []
    gathered: list[date] = []

    def end() -> None:
        if gathered:
            files = tuple(file.path for day in gathered for file in held.get(day, []))
            found.append(RawSlice(files, of(gathered)))
            gathered.clear()

    together = 0
    for day in days:
        rows = sum(file.rows for file in held.get(day, []))
        if together + rows > most:
            end()
            together = 0
        if rows > most:
            found += _cut(source, held[day], of([day]), most, _parts(rows, most, parallelism))
        else:
            # A day without rows is included, because its events must be withdrawn.
            gathered.append(day)
            together += rows
    end()
    return found


def _by_day(files: DayFiles) -> dict[date, list[_File]]:
    found: dict[date, list[_File]] = {}
    for file in files.files:
        found.setdefault(file.day, []).append(_File(file.path, file.rows, file.size))
    return found


def _parts(rows: int, most: int, parallelism: int) -> int:
    """In how many slices of at most ``most`` rows a day is cut, such that no core waits for others at the end."""
    needed = -(-rows // most)
    return needed if needed <= parallelism else -(-needed // parallelism) * parallelism


def _cut(source: Source, files: Sequence[_File], events: tuple[str, ...], most: int, number: int) -> list[RawSlice]:
    """A day's rows in about ``number`` slices of at most about ``most``, cut by the column that cuts them best.

    That is the column in which no value has too many rows, and among such, the one with which the fewest rows are read.
    """
    rows = sum(file.rows for file in files)
    paths = tuple(file.path for file in files)
    every = -(-rows // _SAMPLED_ROWS)
    ways: list[tuple[int, int, list[RawSlice]]] = []
    for column in ("ts", source.key):
        values = _sample(paths, column, every)
        cuts = _cuts(values, number)
        bounds = [None, *cuts, None]
        parts = [RawSlice(paths, events, column, low, high) for low, high in zip(bounds[:-1], bounds[1:], strict=True)]
        largest = every * _largest(values, cuts)
        ways.append((largest // (2 * most), _read_by(parts), parts))
    return min(ways, key=lambda way: way[:2])[2]


def _sample(paths: Sequence[str], column: str, every: int) -> pa.ChunkedArray:
    """The values of one in ``every`` rows, sorted."""
    parts = []
    for path in paths:
        with parquet_file(path) as file:
            for group in range(file.num_row_groups):
                values = _plain(file.read_row_group(group, columns=[column])[column])
                parts.append(values.take(pa.array(np.arange(0, len(values), every))))
    values = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return values.take(pc.sort_indices(values))


def _cuts(values: pa.ChunkedArray, parts: int) -> list[Any]:
    """Values that cut the rows into about ``parts`` equal parts; fewer if many rows share a value."""
    at = sorted({number * len(values) // parts for number in range(1, parts)})
    found = pc.unique(values.take(pa.array(at, pa.int64()))).to_pylist()
    return [cut for cut in found if cut != values[0].as_py()]


def _largest(values: pa.ChunkedArray, cuts: Sequence[Any]) -> int:
    """How many of the sorted ``values`` the largest part has."""
    below = [pc.sum(pc.less(values, cut)).as_py() for cut in cuts]
    ends = [0, *below, len(values)]
    return max(int(high - low) for low, high in zip(ends[:-1], ends[1:], strict=True))


def _read_by(parts: Sequence[RawSlice]) -> int:
    """Number of rows of all row groups that the parts of a day read."""
    read = 0
    for path in parts[0].files:
        footer = parquet_footer(path)
        number = footer.schema.to_arrow_schema().names.index(parts[0].column)
        for at in range(footer.num_row_groups):
            group = footer.row_group(at)
            known = group.column(number).statistics
            met = len(parts)
            if known is not None and known.has_min_max:
                low, high = _plain(pa.chunked_array([pa.array([known.min, known.max])])).to_pylist()
                met = sum((p.high is None or low < p.high) and (p.low is None or high >= p.low) for p in parts)
            read += group.num_rows * met
    return read


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as µs since 1970; strings unchanged."""
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _scalar(value: Any, kind: pa.DataType) -> Any:
    """A cut in the type of its column."""
    return pa.scalar(value, pa.int64()).cast(kind).as_py() if pa.types.is_timestamp(kind) else value
