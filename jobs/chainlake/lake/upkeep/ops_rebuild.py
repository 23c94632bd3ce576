"""Rebuilds a log of ``ops`` from the data files in its folder, regardless of its Delta log.

The logs are only ever appended to, and every row has a key and a number, so the log is the rows of all readable files,
each taken once. If someone changed a row, the changed one is in a younger file than the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from chainlake.errors import InfrastructureError
from chainlake.lake.delta.log import TableLog, marked
from chainlake.lake.delta.reader import open_table
from chainlake.lake.locks import file_lock
from chainlake.lake.upkeep.set_aside import set_aside
from chainlake.paths import Home
from chainlake.schemas.ops import ALL
from chainlake.schemas.table import Table
from chainlake.storage.parquet import parquet_rows
from chainlake.storage.resolve import storage_of
from chainlake.words import counted


@dataclass(frozen=True)
class Rebuilt:
    """A log that was rebuilt.

    Args:
        rows: number of its rows.
        files_lost: names of data files that cannot be read; their rows are gone unless another file has them.
        entries_lost: versions whose log entries cannot be read; rows that others added in them count as ours.
    """

    rows: int
    files_lost: tuple[str, ...]
    entries_lost: tuple[int, ...]

    def __str__(self) -> str:
        text = counted(self.rows, "row")
        if self.files_lost:
            text += f"; left out, because they cannot be read: {', '.join(self.files_lost)}"
        if self.entries_lost:
            versions = ", ".join(map(str, self.entries_lost))
            text += f"; log entries that cannot be read, so that anybody may have written their rows: {versions}"
        return text


def rebuild(home: Home, name: str) -> Rebuilt:
    """Rebuild a log.

    Args:
        home: the installation.
        name: the table's name under ``ops``.

    Returns:
        how many rows it has, and which old files could not be read.
    """
    from deltalake import DeltaTable, write_deltalake

    definition = ALL[name]
    path = home.table("ops", name)
    with file_lock(home, "ops"):
        log = TableLog(home, "ops", name)
        foreign = log.foreign()
        strangers = {file for commit in foreign.commits if commit.appends for file in commit.files}
        rows, lost = _rows(path, definition, strangers)
        found = _numbered(rows, definition)
        if not _opens(home, name):
            set_aside(home, "ops", name)
            DeltaTable.create(
                path,
                definition.arrow(),
                name=definition.path_name,
                description=definition.comment,
                commit_properties=marked("repair"),
            )
        write_deltalake(path, found, mode="overwrite", schema_mode="overwrite", commit_properties=marked("repair"))
    return Rebuilt(len(found), lost, tuple(foreign.unreadable))


def _opens(home: Home, name: str) -> bool:
    from deltalake.exceptions import DeltaError

    try:
        open_table(home, "ops", name)
    except (DeltaError, InfrastructureError, OSError):
        return False
    return True


def _rows(folder: str, definition: Table, strangers: set[str]) -> tuple[pa.Table, tuple[str, ...]]:
    """The rows of all readable files, each once, the oldest file's first; and the names of the other files."""
    listed = [file for file in storage_of(folder).files(folder) if "/" not in file.path]
    files = [file for file in listed if file.path.endswith(".parquet") and file.path not in strangers]
    parts, lost = [], []
    for file in sorted(files, key=lambda file: (file.modified, file.path)):
        try:
            rows = parquet_rows(f"{folder}/{file.path}", page_checksum_verification=True)
            parts.append(_fitting(rows, definition))
        except (pa.ArrowException, OSError):
            lost.append(file.path)
    rows = pa.concat_tables([definition.arrow().empty_table(), *parts])
    key = [*definition.key, "seq"]
    numbered = rows.select(key).append_column("at", pa.array(range(len(rows)), pa.int64()))
    first = numbered.group_by(key).aggregate([("at", "min")])["at_min"]
    return rows.take(first), tuple(lost)


def _fitting(rows: pa.Table, definition: Table) -> pa.Table:
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in definition.arrow()
    ]
    return pa.table(columns, schema=definition.arrow())


def _numbered(rows: pa.Table, definition: Table) -> pa.Table:
    """The rows by key, numbered from 1, so that lost rows leave no gap to be found again."""
    key = list(definition.key)
    rows = rows.sort_by([(name, "ascending") for name in [*key, "seq"]])
    keys = zip(*(rows[name].to_pylist() for name in key), strict=True)
    numbers = [number for _, same in groupby(keys) for number, _ in enumerate(same, 1)]
    at = rows.column_names.index("seq")
    return rows.set_column(at, definition.arrow().field("seq"), pa.array(numbers, pa.int64()))
