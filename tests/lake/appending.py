"""Appends for tests that need rows in a table, whoever wrote them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.delta.reader import open_table
from chainlake.lake.store.delta_commits import commit_files, landed, turn_of
from chainlake.paths import Home
from chainlake.schemas.table import Table


def append_files(home: Home, table: Table, files: Sequence[DataFile], *, app: str, base_version: int, mark: str) -> int:
    """Make data files part of a table, as version ``base_version + 1``, which is returned."""
    at = open_table(home, table.schema, table.name, version=base_version, to_write=True)
    commit_files(at, table, files, turn_of(app, base_version, mark))
    return landed(home, table, mark, base_version)


def append_arrow(home: Home, table: Table, rows: pa.Table, *, app: str, base_version: int, mark: str) -> int:
    """Append rows, as version ``base_version + 1``, which is returned."""
    with DataFiles(home.table(table.schema, table.name), table) as out:
        out.write(rows)
        return append_files(home, table, out.close(), app=app, base_version=base_version, mark=mark)
