"""Parquet files in a staging folder, with unique names, in which tasks pass rows on."""

from __future__ import annotations

import uuid
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from chainlake.storage.parquet import parquet_writer
from chainlake.storage.resolve import storage_of

#: Rows that are gathered before they are written; also the most rows of a row group.
_ROWS_PER_GROUP = 50_000


class StagedFile:
    """A Parquet file, created with its first rows.

    Use it as a context manager and call ``close`` last in the block; if the block raises, the file is removed.

    Args:
        folder: an existing folder for the file.
        what: the first part of its name.
        schema: its columns.
    """

    def __init__(self, folder: str, what: str, schema: pa.Schema) -> None:
        self._path = f"{folder}/{what}-{uuid.uuid4().hex}.parquet"
        self._schema = schema
        self._gathered: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> StagedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abandon()

    def write(self, rows: pa.Table) -> None:
        """Take rows, which have at least the columns of the schema."""
        if len(rows):
            self._gathered.append(rows.select(self._schema.names).cast(self._schema))
        if sum(map(len, self._gathered)) >= _ROWS_PER_GROUP:
            self._flush()

    def close(self) -> tuple[str, ...]:
        """Finish the file; return its path, or nothing if there were no rows."""
        self._flush()
        if self._writer is None:
            return ()
        self._writer.close()
        return (self._path,)

    def abandon(self) -> None:
        """Remove the file; called in place of ``close``."""
        if self._writer is not None:
            self._writer.close()
            storage_of(self._path).remove(self._path)

    def _flush(self) -> None:
        if self._gathered:
            rows, self._gathered = pa.concat_tables(self._gathered), []
            self._writer = self._writer or parquet_writer(self._path, self._schema, write_page_checksum=True)
            self._writer.write_table(rows, row_group_size=_ROWS_PER_GROUP)


def staged(folder: str, what: str, rows: pa.Table) -> tuple[str, ...]:
    """Write ``rows`` to their own file; return its path, or nothing if there are no rows."""
    with StagedFile(folder, what, rows.schema) as file:
        file.write(rows)
        return file.close()
