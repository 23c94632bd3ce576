"""Parquet data files of a Delta table, written from Arrow rows by the process that holds them: no Spark, no Delta.

Spark moves rows one by one into its own writers, which takes several times as long as parsing them. A task that holds
Arrow rows writes the files itself; the driver makes all of them part of the table in one commit
(``chainlake.lake.store``). Until then no reader sees them, and files that are never committed are removed by the next
clean-up (``chainlake.lake.upkeep.maintain``).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.lake.delta.rules import Rules
from chainlake.lake.delta.sums.file_stats import bounds, null_counts
from chainlake.schemas.table import Table
from chainlake.storage.parquet import parquet_file, parquet_footer, parquet_writer
from chainlake.storage.resolve import storage_of

#: Rows that are gathered before they are written, and the most rows of a row group: few enough that who reads a part of
#: a file reads little else, and enough that a group costs little beside its rows.
_ROWS_GATHERED, _ROWS_PER_GROUP = 65_536, 131_072
#: The most rows that are gathered, if they belong to many partitions: the rows of each become a group.
_MOST_GATHERED = 250_000
#: With at least this many rows, an existing Parquet file becomes a data file as it is; smaller ones are put together.
_ROWS_OF_A_FILE = 50_000
#: The most files that are open at a time; with more partitions, each gets a new file whenever rows are written.
_MOST_OPEN = 64


@dataclass(frozen=True)
class DataFile:
    """A file that can be committed; plain values, so that it travels between processes.

    Args:
        path: relative to the table's folder.
        size: size in bytes.
        rows: number of rows.
        partition: values of the partition columns, as Delta writes them.
        modified_ms: modification time, milliseconds since 1970.
        stats: Delta's statistics, as JSON.
    """

    path: str
    size: int
    rows: int
    partition: dict[str, str]
    modified_ms: int
    stats: str


class DataFiles:
    """Writes rows as data files under a table's folder.

    Use it as a context manager and call ``close`` last in the block; if the block raises, what was written is removed.

    Args:
        folder: the table's folder, in a place that all readers see.
        table: the table.

    Raises:
        TypeError: the table is partitioned by anything but one date that is never null.
    """

    def __init__(self, folder: str, table: Table) -> None:
        self._folder, self._files = folder, storage_of(folder)
        self._table = table
        self._schema = table.arrow()
        for name in table.partition_by:
            field = self._schema.field(name)
            if len(table.partition_by) > 1 or field.type != pa.date32() or field.nullable:
                raise TypeError(f"{table.path_name} is partitioned by {', '.join(table.partition_by)}")
        self._day_column = next(iter(table.partition_by), None)
        # Nulls are looked for separately, to say where they are; a cast to a column that must not be null says less.
        self._loose = pa.schema([pa.field(f.name, f.type) for f in self._schema])
        plain = [pa.field(f.name, f.type, f.nullable) for f in self._schema if f.name != self._day_column]
        self._stored = pa.schema(plain)
        self._rules = Rules(table)
        self._gathered: list[pa.Table] = []
        self._enough = _ROWS_GATHERED
        self._open: dict[date | None, _Open] = {}
        self._done: list[DataFile] = []
        self._written: list[str] = []

    def __enter__(self) -> DataFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abandon()

    def write(self, rows: pa.Table) -> None:
        """Take rows: all columns of the table, in any order.

        Raises:
            AuditFailed: a row breaks a rule of the table; the message names rule and row.
        """
        if not len(rows):
            return
        rows = rows.select(self._schema.names).cast(self._loose)
        self._rules.check(rows)
        self._gathered.append(rows)
        if sum(len(one) for one in self._gathered) >= self._enough:
            self._flush()

    def take(self, path: str) -> None:
        """Take the rows of a Parquet file; if the table has no partitions, a large file becomes a data file as it is.

        Args:
            path: of a file that nobody will change; it may be removed afterwards.

        Raises:
            AuditFailed: a row breaks a rule of the table; the message names rule and row.
        """
        with parquet_file(path, page_checksum_verification=True) as file:
            in_form = [(f.name, f.type) for f in file.schema_arrow] == [(f.name, f.type) for f in self._stored]
            if file.metadata.num_rows < _ROWS_OF_A_FILE or not in_form or self._day_column is not None:
                for batch in file.iter_batches():
                    self.write(pa.Table.from_batches([batch]))
                return
            for batch in file.iter_batches(columns=self._rules.columns):
                self._rules.check(pa.Table.from_batches([batch]))
        place, relative, partition = self._place(None)
        self._files.take(path, place)
        # Bounds that someone else wrote do not say whether a column has NaN.
        bound = {f.name for f in self._stored if not pa.types.is_nested(f.type) and not pa.types.is_floating(f.type)}
        self._done.append(_data_file(place, relative, partition, bound))

    def close(self) -> list[DataFile]:
        """Finish all files.

        Returns:
            the files, in the order of their partitions; none if there were no rows.
        """
        self._flush()
        self._end_all()
        return sorted(self._done, key=lambda file: sorted(file.partition.items()))

    def _flush(self) -> None:
        if not self._gathered:
            return
        rows, self._gathered = pa.concat_tables(self._gathered), []
        parts = self._days(rows)
        # Rows that come next are mostly of as many partitions.
        self._enough = min(_ROWS_GATHERED * len(parts), _MOST_GATHERED)
        for day, part in parts:
            part = part.select(self._stored.names).cast(self._stored)
            unbound = {f.name for f in self._stored if pa.types.is_floating(f.type) and _has_nan(part[f.name])}
            file = self._open.get(day)
            if file is not None and not unbound <= file.unbound:
                self._done.append(self._open.pop(day).end())
                unbound, file = unbound | file.unbound, None
            if file is None:
                if len(self._open) == _MOST_OPEN:
                    self._end_all()
                file = self._open[day] = self._begin(day, unbound)
            file.write(part)

    def _days(self, rows: pa.Table) -> list[tuple[date | None, pa.Table]]:
        """The rows of each partition, in their given order."""
        if self._day_column is None:
            return [(None, rows)]
        numbers = rows[self._day_column].cast(pa.int32()).to_numpy()
        found = np.unique(numbers)
        if len(found) > 1:
            sort = np.argsort(numbers, kind="stable")
            rows, numbers = rows.take(pa.array(sort)), numbers[sort]
        bounds = [*np.searchsorted(numbers, found).tolist(), len(numbers)]
        days = pa.array(found, pa.int32()).cast(pa.date32()).to_pylist()
        return [(day, rows.slice(a, b - a)) for day, a, b in zip(days, bounds[:-1], bounds[1:], strict=True)]

    def _begin(self, day: date | None, unbound: set[str]) -> _Open:
        return _Open(*self._place(day), self._stored, unbound)

    def _place(self, day: date | None) -> tuple[str, str, dict[str, str]]:
        """The path of a new file, absolute and relative to the table, and the values of its partition columns."""
        partition = {} if self._day_column is None or day is None else {self._day_column: day.isoformat()}
        # Nobody else gives this name, not even another attempt of this task.
        relative = "/".join([*(f"{k}={v}" for k, v in partition.items()), f"part-{uuid.uuid4().hex}.snappy.parquet"])
        path = f"{self._folder}/{relative}"
        self._files.make_folder(path.rpartition("/")[0])
        self._written.append(path)
        return path, relative, partition

    def _end_all(self) -> None:
        self._done += [file.end() for file in self._open.values()]
        self._open.clear()

    def abandon(self) -> None:
        """Remove what was written; called in place of ``close``."""
        for file in self._open.values():
            file.abandon()
        for path in self._written:
            self._files.remove(path)


def _has_nan(column: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(column)).as_py())


class _Open:
    """One file that is being written.

    Spark takes NaN for the largest number, but Arrow leaves it out of a column's bounds, so Spark would skip rows that
    it should find. That is why the columns with NaN (``unbound``) get no bounds. Neither do nested columns.
    """

    def __init__(
        self, path: str, relative: str, partition: dict[str, str], schema: pa.Schema, unbound: set[str]
    ) -> None:
        self._path, self._relative, self._partition = path, relative, partition
        self.unbound = unbound
        bound = [f.name for f in schema if not pa.types.is_nested(f.type) and f.name not in unbound]
        # Without an Arrow schema inside, the file looks like all others, no matter who wrote them.
        self._writer = parquet_writer(
            path,
            schema,
            compression="snappy",
            store_schema=False,
            write_statistics=bound or False,
            write_page_checksum=True,
        )
        self._nulls = dict.fromkeys((f.name for f in schema if not pa.types.is_nested(f.type)), 0)

    def write(self, rows: pa.Table) -> None:
        for name in self._nulls:
            self._nulls[name] += rows[name].null_count
        # Groups of one size: a small one at the end would cost whoever reads as much as a large one.
        groups = -(-len(rows) // _ROWS_PER_GROUP)
        self._writer.write_table(rows, row_group_size=-(-len(rows) // groups))

    def end(self) -> DataFile:
        self._writer.close()
        return _data_file(self._path, self._relative, self._partition, self._nulls.keys() - self.unbound, self._nulls)

    def abandon(self) -> None:
        self._writer.close()


def _data_file(
    path: str, relative: str, partition: dict[str, str], bound: Collection[str], nulls: dict[str, int] | None = None
) -> DataFile:
    """Describe a finished file, with the statistics of its footer.

    Args:
        path, relative, partition: as :meth:`DataFiles._place` gives them.
        bound: columns whose bounds in the footer hold for every value.
        nulls: the number of nulls in each column; as the footer says if not given.
    """
    footer = parquet_footer(path)
    least, most = bounds(footer, bound)
    counted = null_counts(footer, bound) if nulls is None else nulls
    stats = {"numRecords": footer.num_rows, "minValues": least, "maxValues": most, "nullCount": counted}
    size, now = storage_of(path).size(path), round(time.time() * 1000)
    assert size is not None
    return DataFile(relative, size, footer.num_rows, partition, now, json.dumps(stats))
