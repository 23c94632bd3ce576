"""Compaction and clean-up of one Delta table, under its lock and without a JVM.

Nothing that a reader may still use is removed: a file goes only when the version that last held it is older than the
retention, so a reader pinned to a younger version can continue. Writers wait for the table's lock for the seconds that
a compaction takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from chainlake.lake.commits.places import table_lock
from chainlake.lake.delta import tables
from chainlake.lake.delta.kept import files_of, there
from chainlake.lake.delta.log import marked
from chainlake.lake.delta.own_files import is_table_file
from chainlake.lake.delta.reader import open_table
from chainlake.lake.delta.where import delta_literal
from chainlake.lake.faults import around
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.paths import Home

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: How long versions, and with them the change feed, are kept.
DATA_KEPT = timedelta(days=30)
#: ``ops.*`` are never read at an older version, so their files only need to outlive one read.
OPS_KEPT = timedelta(days=1)
#: Up to this many files per partition are left as they are, because a compaction copies rows and makes a version.
#: Tables of ``ops`` are also compacted when they are appended to (``chainlake.lake.records.ops``).
COMPACT_ABOVE = 8

#: The table properties for how long a version can be read, and how long a checkpoint remembers which files were
#: replaced and when.
_KEPT = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")


@dataclass(frozen=True)
class Maintained:
    """What was done to a table.

    Args:
        table: ``schema.name``.
        compacted: number of data files that were merged into fewer.
        loads: number of raw loads removed because they hold no current file.
        removed: number of files deleted because their retention has passed.
        files: number of data files that the table has now.
    """

    table: str
    compacted: int
    loads: int
    removed: int
    files: int


def lock_of(schema: str, name: str) -> str:
    """The lock that writers of a table hold; for what ingest writes, the source's."""
    if schema == "ops":
        return "ops"
    if schema == "matches":
        return table_lock(name)
    return f"source-{name}" if schema in ("raw", "events", "quarantine") else f"table-{schema}.{name}"


def maintain_table(
    home: Home, schema: str, name: str, *, keep: timedelta | None = None, wait_s: float = 600.0
) -> Maintained | None:
    """Compact a table and remove what is past its retention.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema.
        keep: how long replaced files and log entries are kept; ``DATA_KEPT`` or ``OPS_KEPT`` if not given.
        wait_s: how many seconds to wait for another writer of the table.

    Returns:
        what was done; None if the table was dropped before its turn came.

    Raises:
        InfrastructureError: the table was being written the whole time.
    """
    kept = keep if keep is not None else (OPS_KEPT if schema == "ops" else DATA_KEPT)
    with file_lock(home, lock_of(schema, name), wait_s=wait_s):
        if not tables.exists(home, schema, name):
            return None
        with around("maintain.loads"):
            loads = _remove_loads(home, name) if schema == "raw" else 0
        with around("maintain.compact"):
            compacted = _compact(open_table(home, schema, name, to_write=True))
        with around("maintain.clean"):
            removed = _clean(open_table(home, schema, name, to_write=True), kept)
        files = len(open_table(home, schema, name).file_uris())
    return Maintained(f"{schema}.{name}", compacted, loads, removed, files)


def _compact(delta: DeltaTable) -> int:
    """Merge small files, partition by partition; return how many were merged."""
    per_partition: dict[str, int] = {}
    for uri in delta.file_uris():
        folder = uri.rpartition("/")[0]
        per_partition[folder] = per_partition.get(folder, 0) + 1
    if max(per_partition.values(), default=0) <= COMPACT_ABOVE:
        return 0
    return int(delta.optimize.compact(commit_properties=marked("maintain"))["numFilesRemoved"])


def _remove_loads(home: Home, source: str) -> int:
    """Remove loads from ``raw`` that ``ops.files`` does not name: those of overwritten files and of attempts that died.

    The caller holds the source's lock, so no attempt is between its append to ``raw`` and its row in ``ops.files``.
    """
    delta = open_table(home, "raw", source, to_write=True)
    named = {row["load_id"] for row in ops.current(home, "files", source=source)}
    there = set(pc.unique(delta.to_pyarrow_table(columns=["load_id"])["load_id"]).to_pylist())
    gone = sorted(there - named)
    if gone:
        listed = ", ".join(map(delta_literal, gone))
        delta.delete(f"load_id IN ({listed})", commit_properties=marked("maintain"))
    return len(gone)


def _clean(delta: DeltaTable, kept: timedelta) -> int:
    """Delete files and log entries that are past their retention; no version is made if there are none."""
    hours = round(kept.total_seconds() / 3600)
    configuration = delta.metadata().configuration
    wanted = {name: f"interval {hours} hours" for name in _KEPT}
    if any(configuration.get(name) != value for name, value in wanted.items()):
        delta.alter.set_table_properties(wanted, commit_properties=marked("maintain"))
    # ``full`` also finds files that no version names, which are those of writers that died. They are deleted here,
    # because delta-rs would make two versions to record it and would take anything in the folder for the table's own.
    named = delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    found = there(delta, [path for path in named if is_table_file(path)])
    files = files_of(delta)
    for path in found:
        files.delete_file(path)
    delta.create_checkpoint()
    delta.cleanup_metadata()
    return len(found)
