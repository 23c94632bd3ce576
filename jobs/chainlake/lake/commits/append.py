"""Appends by delta-rs: small ones, where Spark takes seconds for a few thousand rows, and files that tasks wrote.

The commit is made by this process, so it cannot land after its death, and it is tried for exactly one version: if
somebody else has made that version, it fails. It carries the same transaction as Spark's commits do, so that a late
commit of a dead attempt that went through Spark is refused afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.errors import InfrastructureError
from chainlake.lake.delta.columns import require_columns
from chainlake.lake.delta.data_files import DataFile, DataFiles, tasks_write
from chainlake.lake.delta.reader import open_table
from chainlake.paths import Home
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from deltalake import CommitProperties

#: Up to so many rows, an append is worth holding in the driver.
SMALL_APPEND = 50_000


class BrokenRule(Exception):
    """A row breaks a constraint of the table; delta-rs does not say which, Spark does."""


def append_arrow(home: Home, table: Table, rows: pa.Table, *, app: str, base_version: int, mark: str) -> int:
    """Append ``rows`` as version ``base_version + 1``; none of them is a commit too.

    Where this process can, it writes the data file itself: delta-rs writes no checksums of pages.

    Args:
        home: the installation.
        table: the table, which must exist.
        rows: its columns, in its types.
        app: purpose of the writer, recorded with the commit's turn.
        base_version: the version that the rows were computed against.
        mark: kept as the commit's user metadata.

    Returns:
        The version made.

    Raises:
        AuditFailed: a row breaks a rule of the table; the message names rule and row, and nothing was written.
        BrokenRule: the same in an object store, where only Spark says which.
        InfrastructureError: another writer made that version.
    """
    if tasks_write(home.lake):
        with DataFiles(home.table(table.schema, table.name), table) as out:
            out.write(rows)
            files = out.close()
        return append_files(home, table, files, app=app, base_version=base_version, mark=mark)
    from deltalake import write_deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError

    properties = _properties(app, base_version, mark)
    kind = table.arrow()
    if any(rows[field.name].null_count for field in kind if not field.nullable):
        raise BrokenRule(f"a column of {table.path_name} that must not be null is")
    at = open_table(home, table.schema, table.name, version=base_version, to_write=True)
    try:
        write_deltalake(at, rows.select(kind.names).cast(kind), mode="append", commit_properties=properties)
    except CommitFailedError:
        raise _overtaken(table) from None
    except DeltaError as error:
        if "failed validation check" in str(error):
            raise BrokenRule(str(error)) from error
        raise
    return base_version + 1


def append_files(home: Home, table: Table, files: Sequence[DataFile], *, app: str, base_version: int, mark: str) -> int:
    """Make files that lie under the table's folder part of it, as version ``base_version + 1``; none is a commit too.

    Whoever wrote them has seen to it that no row breaks a rule of the table
    (``chainlake.lake.delta.data_files.DataFiles`` does).

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
        InfrastructureError: another writer made that version, or the table has other columns; the files are no part of
            it.
    """
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import AddAction

    at = open_table(home, table.schema, table.name, version=base_version, to_write=True)
    require_columns(at, table)
    adds = [AddAction(f.path, f.size, dict(f.partition), f.modified_ms, True, f.stats) for f in files]
    try:
        at.create_write_transaction(
            list(adds),
            "append",
            at.schema(),
            list(table.partition_by),
            commit_properties=_properties(app, base_version, mark),
        )
    except CommitFailedError:
        raise _overtaken(table) from None
    return base_version + 1


def _properties(app: str, base_version: int, mark: str) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"userMetadata": mark},
        app_transactions=[Transaction(app, base_version + 1)],
        max_commit_retries=0,
    )


def _overtaken(table: Table) -> InfrastructureError:
    return InfrastructureError(
        f"another writer has changed {table.path_name} in between; nothing was written", hint="Run this again."
    )
