"""Appends of ingest, which does not use the lake's port yet (``chainlake.lake.store``)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from chainlake.lake.delta.columns import require_columns
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.delta.reader import open_table
from chainlake.lake.store.delta_commits import commit_files, turn_of
from chainlake.paths import Home
from chainlake.schemas.table import Table

#: Up to so many rows, an append is worth holding in the driver.
SMALL_APPEND = 50_000


def append_arrow(home: Home, table: Table, rows: pa.Table, *, app: str, base_version: int, mark: str) -> int:
    """Append ``rows`` as version ``base_version + 1``; see :func:`append_files`.

    Raises:
        AuditFailed: a row breaks a rule of the table; the message names rule and row, and nothing was written.
    """
    with DataFiles(home.table(table.schema, table.name), table) as out:
        out.write(rows)
        return append_files(home, table, out.close(), app=app, base_version=base_version, mark=mark)


def append_files(home: Home, table: Table, files: Sequence[DataFile], *, app: str, base_version: int, mark: str) -> int:
    """Make files that lie under the table's folder part of it, as version ``base_version + 1``; none is a commit too.

    Args:
        home: the installation; its lake is on a file system.
        table: the table, which must exist.
        files: what to add.
        app: purpose of the writer, recorded with the commit's turn.
        base_version: the version that the rows were computed against.
        mark: kept as the commit's user metadata.

    Returns:
        The version made.

    Raises:
        Overtaken: another writer made that version; the files are no part of it.
        OtherColumns: the table has other columns.
    """
    at = open_table(home, table.schema, table.name, version=base_version, to_write=True)
    require_columns(at, table)
    commit_files(at, table, files, turn_of(app, base_version, mark))
    return base_version + 1
