"""The events that a task of the monitor step needs, read one time range after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from chainlake.days import US_PER_DAY, Days, day_of_us, day_start_us
from chainlake.lake.delta.sums.pages import verified
from chainlake.lake.store.port import DayFile, DayFiles
from chainlake.schemas.table import TIMESTAMP
from chainlake.storage.parquet import parquet_dataset

#: About how many events the files of one piece may hold: some 100 MB if all of them are wanted.
ROWS_PER_PIECE = 500_000


@dataclass(frozen=True)
class Piece:
    """A time range, and the files with its events.

    Args:
        lo: first ts, µs.
        hi: first ts after it, µs.
        last: whether it ends at the end of a day.
        paths: Parquet files of its days.
    """

    lo: int
    hi: int
    last: bool
    paths: tuple[str, ...]

    @property
    def end(self) -> date:
        """The day after its last day."""
        return day_of_us(self.hi - 1) + timedelta(days=1)


@dataclass(frozen=True)
class Wanted:
    """Which events are read.

    Args:
        key: name of the key column.
        keys: its values that are wanted.
        columns: names of the other columns wanted; ``ts`` is always added.
    """

    key: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


def pieces(files: DayFiles, days: Days, step_us: int) -> Iterator[Piece]:
    """All of ``days`` in pieces with about the same number of events: several days, or parts of one.

    Args:
        files: the events' files.
        days: the days.
        step_us: parts of a day are multiples of this length, µs; it must divide a day.
    """
    of: dict[date, list[DayFile]] = {}
    for file in files.files:
        of.setdefault(file.day, []).append(file)
    start, rows = days.start, 0
    paths: tuple[str, ...] = ()
    for day in days:
        mine = of.get(day, [])
        more, its = sum(file.rows for file in mine), tuple(file.path for file in mine)
        if paths and rows + more > ROWS_PER_PIECE:
            yield Piece(day_start_us(start), day_start_us(day), True, paths)
            start, rows, paths = day, 0, ()
        if more > ROWS_PER_PIECE:
            if start < day:
                yield Piece(day_start_us(start), day_start_us(day), True, paths)
            yield from _parts(day, -(-more // ROWS_PER_PIECE), step_us, its)
            start, rows, paths = day + timedelta(days=1), 0, ()
        else:
            rows, paths = rows + more, (*paths, *its)
    if start < days.end:
        yield Piece(day_start_us(start), day_start_us(days.end), True, paths)


def _parts(day: date, count: int, step_us: int, paths: tuple[str, ...]) -> Iterator[Piece]:
    """About ``count`` parts of a day."""
    steps = US_PER_DAY // step_us
    length = step_us * -(-steps // min(count, steps))
    first, end = day_start_us(day), day_start_us(day) + US_PER_DAY
    for lo in range(first, end, length):
        yield Piece(lo, min(lo + length, end), lo + length >= end, paths)


def read_events(piece: Piece, wanted: Wanted, stored: pa.Schema) -> pa.Table:
    """The wanted events of a piece, in no particular order; row groups outside it are skipped.

    Args:
        piece: the time range.
        wanted: keys and columns.
        stored: the columns of the events table; a file that lacks one holds nulls there.

    Returns:
        the key, ``ts`` and the wanted columns, as far as the events table has them.
    """
    names = dict.fromkeys((wanted.key, "ts", *wanted.columns))
    schema = pa.schema([pa.field(name, _plain(stored.field(name).type)) for name in names if name in stored.names])
    if not piece.paths:
        return schema.empty_table()
    read = ds.ParquetReadOptions(
        dictionary_columns={wanted.key} if pa.types.is_string(schema.field(wanted.key).type) else None,
        coerce_int96_timestamp_unit="us",
    )
    files = parquet_dataset(piece.paths, schema, ds.ParquetFileFormat(read_options=read))
    lo, hi = (pa.scalar(tick, TIMESTAMP).cast(schema.field("ts").type) for tick in (piece.lo, piece.hi))
    inside = (pc.field("ts") >= lo) & (pc.field("ts") < hi)
    mine = pc.field(wanted.key).cast(pa.string()).isin(pa.array(wanted.keys, pa.string()))
    # A task has one core; other tasks run on the others.
    return files.to_table(filter=inside & mine, use_threads=False, fragment_scan_options=verified())


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type as the Parquet reader gives it; delta-rs names string views."""
    return pa.string() if pa.types.is_string_view(kind) else kind
