"""Reading every row of a table for ``chainlake check``, file by file, verifying the checksums of pages.

Other readers give up at the first bad file, and do not always say which it is. Here each file is read separately, so
that all damaged files are named and the rows of the others still count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from chainlake.lake.delta.log import TableLog, first_line
from chainlake.lake.delta.reader import files_of, open_table
from chainlake.lake.delta.sums.pages import verified
from chainlake.paths import Home

#: How many rows are in memory at a time.
_BATCH = 65_536


@dataclass(frozen=True)
class BadFile:
    """A data file that is not as the log describes it: its path relative to the table, and what is wrong with it."""

    path: str
    what: str


class Unreadable(Exception):
    """A table that cannot be read as a whole; the text says why in one line."""


@dataclass(frozen=True)
class Part:
    """A data file of a table, as its log describes it.

    Args:
        path: relative to the table.
        size: size in bytes.
        rows: number of rows as its writer counted them; ``None`` if it did not.
        partition: value of the partition column; ``None`` if there is none.
        fragment: the Arrow fragment that reads it.
    """

    path: str
    size: int
    rows: int | None
    partition: Any
    fragment: Any


class Contents:
    """A table at its current version.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema.

    Raises:
        Unreadable: it cannot be opened.
    """

    def __init__(self, home: Home, schema: str, name: str) -> None:
        self.log = TableLog(home, schema, name)
        self.bad: list[BadFile] = []
        try:
            self.table = open_table(home, schema, name)
            self._dataset = files_of(self.table)
            self.parts = self._parts()
        except Exception as error:  # delta-rs raises errors of many kinds for what it cannot read
            raise Unreadable(first_line(error)) from error
        self.schema: pa.Schema = self._dataset.schema
        self.version = int(self.table.version())

    def _parts(self) -> list[Part]:
        actions = self.table.get_add_actions(flatten=True)
        names = actions.schema.names
        partitions = [name for name in names if name.startswith("partition.")]
        columns = [actions.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")]
        days = actions.column(partitions[0]).to_pylist() if partitions else [None] * len(columns[0])
        fragments = {unquote(one.path): one for one in self._dataset.get_fragments()}
        return [
            Part(unquote(path), size, rows, day, fragments[unquote(path)])
            for path, size, rows, day in zip(*columns, days, strict=True)
        ]

    def look(self) -> None:
        """Check that every file is there with its size, and list the others in ``bad``."""
        from pyarrow.fs import FileType

        paths = [f"{self.log.folder}/{part.path}" for part in self.parts]
        for part, info in zip(self.parts, self.log.files.get_file_info(paths), strict=True):
            if info.type != FileType.File:
                self.bad.append(BadFile(part.path, "it is missing"))
            elif info.size != part.size:
                self.bad.append(BadFile(part.path, f"it has {info.size} bytes, but {part.size} were written"))

    def batches(
        self, wanted: Callable[[Part], bool] = lambda part: True, columns: list[str] | None = None, where: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the files that are ``wanted`` and not in ``bad``; files that prove damaged are added there.

        Args:
            wanted: tells which files to read.
            columns: only these; all if not given.
            where: a filter expression; with it, the files' rows are not counted.
        """
        options = verified()
        known = {file.path for file in self.bad}
        for part in self.parts:
            if part.path in known or not wanted(part):
                continue
            rows = 0
            try:
                scanner = part.fragment.scanner(
                    schema=self.schema, columns=columns, filter=where, batch_size=_BATCH, fragment_scan_options=options
                )
                for batch in scanner.to_batches():
                    rows += len(batch)
                    yield batch
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                self.bad.append(BadFile(part.path, f"it cannot be read: {first_line(error)}"))
                continue
            if where is None and part.rows is not None and rows != part.rows:
                self.bad.append(BadFile(part.path, f"it has {rows} rows, but {part.rows} were written"))
