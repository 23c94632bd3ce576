"""Which commits of a table can still be read in full: ``chainlake.lake.upkeep.maintain`` removes log entries and
files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem


@dataclass(frozen=True)
class Commit:
    """A commit whose changes can be read.

    Args:
        version: the version it made.
        at: when (UTC).
        other_columns: it rewrote the table with other columns; what it changed cannot be shown with
            either set of columns, but what came after it can.
    """

    version: int
    at: datetime
    other_columns: bool = False


def kept_commits(delta: DeltaTable) -> list[Commit]:
    """The unbroken run of readable commits that ends with the table's version, oldest first.

    The run begins no earlier than the last commit that gave the table other columns.

    A commit can be read if its log entry exists, and so do the files that show what it changed: its change files if it
    has any, otherwise the data files that it added and removed.
    """
    files = files_of(delta)
    found: list[Commit] = []
    for version in range(delta.version(), -1, -1):
        commit = _readable(delta, files, version)
        if commit is None:
            break
        found.append(commit)
        if commit.other_columns:
            break
    return found[::-1]


def there(delta: DeltaTable, paths: list[str]) -> list[str]:
    """The ones among ``paths``, relative to the table, that exist."""
    from pyarrow.fs import FileType

    if not paths:
        return []
    found = files_of(delta).get_file_info(paths)
    return [path for path, info in zip(paths, found, strict=True) if info.type != FileType.NotFound]


def files_of(delta: DeltaTable) -> FileSystem:
    """The table's folder as a file system; paths are relative to it."""
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler.from_table(delta._table))


def _readable(delta: DeltaTable, files: FileSystem, version: int) -> Commit | None:
    try:
        with files.open_input_stream(f"_delta_log/{version:020}.json") as stream:
            actions = [json.loads(line) for line in stream.read().decode().splitlines() if line.strip()]
    except FileNotFoundError:
        return None
    stamp = next((action["commitInfo"].get("timestamp") for action in actions if "commitInfo" in action), None)
    at = datetime.fromtimestamp((stamp or 0) / 1000, UTC)
    if any("metaData" in action for action in actions) and any("remove" in action for action in actions):
        return Commit(version, at, other_columns=True)
    paths = _telling(actions)
    if len(there(delta, paths)) < len(paths):
        return None
    return Commit(version, at)


def _telling(actions: list[dict[str, Any]]) -> list[str]:
    """Paths of the files that show what a commit changed."""
    changes = [action["cdc"]["path"] for action in actions if "cdc" in action]
    moved = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
    # A compaction moves rows and changes none: dataChange is false.
    return [unquote(path) for path in changes or (file["path"] for file in moved if file.get("dataChange", True))]
