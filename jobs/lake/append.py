"""Small appends by delta-rs: milliseconds where Spark takes seconds to write a few thousand rows.

The commit is made by this process, so it cannot land after its death, and it is tried for exactly one version: if
somebody else has made that version, it fails. It carries the same transaction as Spark's commits do, so that a late
commit of a dead attempt that went through Spark is refused afterwards.
"""

from __future__ import annotations

import pyarrow as pa

from jobs.errors import InfrastructureError
from jobs.paths import Home
from schemas.table import Table

#: Up to so many rows, an append is worth holding in the driver.
SMALL_APPEND = 50_000


class BrokenRule(Exception):
    """A row breaks a constraint of the table; delta-rs does not say which, Spark does."""


def append_arrow(home: Home, table: Table, rows: pa.Table, *, app: str, base_version: int, mark: str) -> int:
    """Append ``rows`` as version ``base_version + 1``; none of them is a commit too.

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
        BrokenRule: nothing was written.
        InfrastructureError: another writer made that version.
    """
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError

    properties = CommitProperties(
        custom_metadata={"userMetadata": mark},
        app_transactions=[Transaction(app, base_version + 1)],
        max_commit_retries=0,
    )
    kind = table.arrow()
    if any(rows[field.name].null_count for field in kind if not field.nullable):
        raise BrokenRule(f"a column of {table.path_name} that must not be null is")
    at = DeltaTable(home.table(table.schema, table.name), version=base_version)
    try:
        write_deltalake(at, rows.select(kind.names).cast(kind), mode="append", commit_properties=properties)
    except CommitFailedError:
        raise InfrastructureError(
            f"another writer has changed {table.path_name} in between; nothing was written", hint="Run this again."
        ) from None
    except DeltaError as error:
        if "failed validation check" in str(error):
            raise BrokenRule(str(error)) from error
        raise
    return base_version + 1
