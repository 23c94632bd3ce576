"""Rows that tasks write for the process that asked for them, in a folder that all of them reach."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from chainlake.schemas.table import Table


@dataclass(frozen=True)
class Folder:
    """A folder of Parquet files.

    Args:
        path: on the file system.
    """

    path: str

    def write(self, table: Table, rows: pa.Table) -> str:
        """Write rows of a table; every call makes a file of its own, whose name it returns."""
        root = Path(self.path)
        root.mkdir(parents=True, exist_ok=True)
        name = f"{table.name}-{uuid.uuid4().hex}.parquet"
        pq.write_table(rows, root / name, write_page_checksum=True)
        return name

    def read(self, schema: pa.Schema, names: Iterable[str]) -> pa.Table:
        """All rows of some of the files, which have the columns of ``schema``."""
        root = Path(self.path)
        found = [pq.read_table(root / name, partitioning=None, page_checksum_verification=True) for name in names]
        return pa.concat_tables([schema.empty_table(), *(rows.cast(schema) for rows in found)])
