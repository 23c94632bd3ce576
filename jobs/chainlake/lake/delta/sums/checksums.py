"""Checksums of published rows, per owner and day: what ``ops.intervals`` keeps and ``chainlake check`` compares.

A checksum is the number of rows, and the xor and the sum of their hashes: ``3:…``. The xor alone would not notice if
two equal rows were replaced by two others. The checksum of the staged rows equals that of the published ones, because
publishing leaves exactly the staged rows of its days in the table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import day_of_us, day_start_us
from chainlake.lake.delta.sums.row_hashes import row_hashes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The owner, empty if the whole table has one writer, and the UTC day.
Place = tuple[str, date]

#: Key of a staged file's own checksums in its footer: the writer has the rows in memory, the publisher does not.
_FOOTER = b"chainlake.rows_checksums"
_WORD = (1 << 64) - 1
_DAY_US = day_start_us(date(1970, 1, 2))
#: How many rows of a staged file are in memory at a time.
_BATCH = 65_536


@dataclass(frozen=True)
class Checksum:
    """The number of rows, and the xor and the sum of their hashes, both below 2^64."""

    rows: int = 0
    xor: int = 0
    total: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, self.xor ^ other.xor, (self.total + other.total) & _WORD)

    def __str__(self) -> str:
        return f"{self.rows}:{self.xor:016x}{self.total:016x}"

    @classmethod
    def of(cls, text: str) -> Checksum:
        """Parse a checksum's text."""
        rows, _, sums = text.partition(":")
        return cls(int(rows), int(sums[:16], 16), int(sums[16:], 16))


def rows_of(text: str) -> int:
    """The number of rows that a checksum's text begins with."""
    return int(text.partition(":")[0])


@dataclass
class Sums:
    """Adds up the checksums of many parts of a table.

    Args:
        day_column: a timestamp whose UTC day owns the row, or a date.
        owner_column: the column that says whose row it is; ``None`` if there is one writer.
        volatile: columns that are left out.
        of: what was added so far.
    """

    day_column: str
    owner_column: str | None = None
    volatile: Collection[str] = ()
    of: dict[Place, Checksum] = field(default_factory=dict)

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add some rows."""
        for place, found in self._sums(rows):
            self.of[place] = self.of.get(place, Checksum()) + found

    def _sums(self, rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[Place, Checksum]]:
        if not len(rows):
            return
        hashes = row_hashes(rows, self.volatile)
        numbers = _day_numbers(rows.column(self.day_column))
        owners, names = np.zeros(len(rows), np.int64), [""]
        if self.owner_column is not None:
            column = rows.column(self.owner_column)
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            encoded = whole.dictionary_encode()
            owners, names = encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()
        if (numbers != numbers[0]).any() or (owners != owners[0]).any():
            order = np.lexsort((numbers, owners))
            hashes, numbers, owners = hashes[order], numbers[order], owners[order]
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (numbers[1:] != numbers[:-1]) | (owners[1:] != owners[:-1])
        starts = np.flatnonzero(first)
        xors, totals = np.bitwise_xor.reduceat(hashes, starts), np.add.reduceat(hashes, starts)
        counts = np.diff(np.append(starts, len(rows)))
        for at, start in enumerate(starts.tolist()):
            place = names[int(owners[start])], day_of_us(int(numbers[start]) * _DAY_US)
            yield place, Checksum(int(counts[at]), int(xors[at]), int(totals[at]))


def _day_numbers(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_timestamp(column.type):
        micros: np.ndarray = (
            pc.cast(column, pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy(zero_copy_only=False)
        )
        numbers: np.ndarray = micros // _DAY_US
        return numbers
    days: np.ndarray = pc.cast(pc.cast(column, pa.date32()), pa.int32()).to_numpy(zero_copy_only=False)
    return days.astype(np.int64)


def checksums(
    parts: Iterable[pa.Table | pa.RecordBatch], day_column: str, owner_column: str | None = None,
    volatile: Collection[str] = (),
) -> dict[Place, Checksum]:  # fmt: skip
    """The checksum of every owner and day that has rows; arguments as for :class:`Sums`."""
    sums = Sums(day_column, owner_column, volatile)
    for part in parts:
        sums.add(part)
    return sums.of


def checksums_of_files(
    paths: Sequence[str],
    columns: Sequence[str],
    day_column: str,
    volatile: Collection[str] = (),
    owner_column: str | None = None,
) -> dict[Place, Checksum]:
    """The same for Parquet files; from their footers if they hold checksums and there is one writer.

    Args:
        paths: paths of the files.
        columns: those of the table; a file may hold others.
        day_column, volatile, owner_column: see :class:`Sums`.
    """
    from chainlake.storage.parquet import parquet_file

    sums = Sums(day_column, owner_column, volatile)
    for path in paths:
        with parquet_file(path) as file:
            stored = (file.metadata.metadata or {}).get(_FOOTER)
            if stored is not None and owner_column is None:
                for day, text in json.loads(stored).items():
                    place = "", date.fromisoformat(day)
                    sums.of[place] = sums.of.get(place, Checksum()) + Checksum.of(text)
                continue
            for batch in file.iter_batches(_BATCH, columns=list(columns)):
                sums.add(batch)
    return sums.of


def footer(sums: Sums) -> dict[bytes, bytes]:
    """Metadata for :func:`checksums_of_files` to find in the file whose rows were added to ``sums``."""
    return {_FOOTER: json.dumps({day.isoformat(): str(one) for (_, day), one in sums.of.items()}).encode()}


def checksums_of_frame(
    frame: DataFrame, day_column: str, owner_column: str | None = None, volatile: Collection[str] = ()
) -> dict[Place, Checksum]:
    """The same for a Spark frame, whose tasks hash its rows; arguments as for :class:`Sums`."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _as_rows(checksums(batches, day_column, owner_column, volatile))

    found: dict[Place, Checksum] = {}
    rows = frame.mapInArrow(task, "owner string, day date, rows bigint, xor bigint, total bigint").collect()
    for owner, day, count, xor, total in rows:
        part = Checksum(count, xor & _WORD, total & _WORD)
        found[owner, day] = found.get((owner, day), Checksum()) + part
    return found


def _as_rows(found: Mapping[Place, Checksum]) -> pa.RecordBatch:
    """As a batch in Spark's types, whose integers are signed."""
    sums = list(found.values())
    return pa.record_batch(
        [
            pa.array([owner for owner, _ in found], pa.string()),
            pa.array([day for _, day in found], pa.date32()),
            pa.array([one.rows for one in sums], pa.int64()),
            pa.array(np.array([one.xor for one in sums], np.uint64).view(np.int64), pa.int64()),
            pa.array(np.array([one.total for one in sums], np.uint64).view(np.int64), pa.int64()),
        ],
        names=["owner", "day", "rows", "xor", "total"],
    )
