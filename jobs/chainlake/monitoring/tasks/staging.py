"""Staged rows, which tasks write for the process that started them, in a folder that all of them can reach."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from chainlake.schemas.table import Table
from chainlake.storage.parquet import parquet_rows, parquet_writer
from chainlake.storage.resolve import storage_of


@dataclass(frozen=True)
class Folder:
    """A folder of Parquet files.

    Args:
        path: path of the folder, on a disk or in a store.
    """

    path: str

    def write(self, table: Table, rows: pa.Table) -> str:
        """Write rows of a table to a new file, and return the file's name."""
        storage_of(self.path).make_folder(self.path)
        name = f"{table.name}-{uuid.uuid4().hex}.parquet"
        with parquet_writer(f"{self.path}/{name}", rows.schema, write_page_checksum=True) as file:
            file.write_table(rows)
        return name

    def read(self, schema: pa.Schema, names: Iterable[str]) -> pa.Table:
        """All rows of the named files, which have the columns of ``schema``."""
        found = [parquet_rows(f"{self.path}/{name}", page_checksum_verification=True) for name in names]
        return pa.concat_tables([schema.empty_table(), *(rows.cast(schema) for rows in found)])
