"""Rows that tasks write for the process that asked for them, in a folder that all of them reach."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from chainlake.schemas.table import Table


@dataclass(frozen=True)
class Folder:
    """A folder of Parquet files.

    Args:
        path: on the file system, or a URI that Arrow knows.
    """

    path: str

    def write(self, table: Table, rows: pa.Table) -> str:
        """Write rows of a table; every call makes a file of its own, whose name it returns."""
        files, root = self._place()
        files.create_dir(root, recursive=True)
        name = f"{table.name}-{uuid.uuid4().hex}.parquet"
        pq.write_table(rows, f"{root}/{name}", filesystem=files, write_page_checksum=True)
        return name

    def read(self, schema: pa.Schema, names: Iterable[str]) -> pa.Table:
        """All rows of some of the files, which have the columns of ``schema``."""
        files, root = self._place()
        found = [
            pq.read_table(f"{root}/{name}", filesystem=files, partitioning=None, page_checksum_verification=True)
            for name in names
        ]
        return pa.concat_tables([schema.empty_table(), *(rows.cast(schema) for rows in found)])

    def _place(self) -> tuple[pyarrow.fs.FileSystem, str]:
        if "://" not in self.path:
            return pyarrow.fs.LocalFileSystem(), str(Path(self.path).absolute())
        # Hadoop has a name of its own for S3.
        files, root = pyarrow.fs.FileSystem.from_uri(self.path.replace("s3a://", "s3://", 1))
        return files, root
