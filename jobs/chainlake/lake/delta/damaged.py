"""The error for a damaged table, and the check for the one damage that no reader notices: an empty log entry."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from chainlake.errors import InfrastructureError
from chainlake.lake.delta.log import HINT
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

_NUMBERED = re.compile(r"^(\d{20})\.(json|checkpoint.*\.parquet)$")


@dataclass(frozen=True)
class LogFiles:
    """The files of a table's log that a reader looks at, as they are on a disk; equal values mean the same log.

    Args:
        files: name, inode, size in bytes and modification time in ns of each.
        exists: whether there is a commit or a checkpoint, and so a table.
    """

    files: frozenset[tuple[str, int, int, int]]
    exists: bool


class DamagedTable(InfrastructureError):
    """A file of a table is damaged or missing."""

    @classmethod
    def of(cls, table: str, what: str, more: int = 0) -> DamagedTable:
        """Args: the table as ``schema.name``; what is wrong, file first; how much else is damaged in the lake."""
        rest = f" (and {more} more of the lake)" if more else ""
        return cls(
            f"table {table} is damaged: {what}{rest}",
            hint=f"Run 'chainlake check --table {table} --repair' and then the commands that it names.",
        )

    @classmethod
    def no_folder(cls, table: str, place: str) -> DamagedTable:
        """A file is in the place of a folder."""
        return cls.of(table, no_folder(place))

    @classmethod
    def empty_entry(cls, table: str, version: int) -> DamagedTable:
        """The entry of a version in the table's log is empty."""
        return cls.of(table, f"_delta_log/{version:020}.json: the log entry is empty")


def no_folder(place: str) -> str:
    """The text about a file in the place of a folder."""
    return f"{place} should be a folder, but is a file"


def in_the_way(home: Home, schema: str, name: str) -> str | None:
    """The path of a file that is where a folder of a table should be; None if there is none."""
    path = home.table(schema, name)
    if not storage_of(path).on_disk:
        return None
    for place in (os.path.dirname(path), path, os.path.join(path, "_delta_log")):
        if os.path.lexists(place) and not os.path.isdir(place):
            return place
    return None


def require_entries(home: Home, schema: str, name: str) -> LogFiles | None:
    """Make sure that no entry of a table's log is empty: readers take an empty one for a commit that changed nothing.

    A log that is being written shows no empty entry, because an entry gets its name only when it is complete. In a
    store whose files are there completely or not at all, nothing is looked at.

    Returns:
        the files that were looked at; ``None`` in a store, and if there is no log or it is being removed.

    Raises:
        DamagedTable: an entry that no checkpoint stands for is empty, or a file is where a folder should be.
        OddPlace: no table can be in the lake's folder.
    """
    home.require_place()
    folder = os.path.join(home.table(schema, name), "_delta_log")
    if storage_of(folder).whole_files:
        return None
    newest, empty, exists = -1, -1, False
    files = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found = _NUMBERED.match(entry.name)
                if found is None and entry.name != HINT:
                    continue
                now = entry.stat()
                files.append((entry.name, now.st_ino, now.st_size, now.st_mtime_ns))
                if found is None:
                    continue
                exists = True
                if found[2] != "json":
                    newest = max(newest, int(found[1]))
                elif not now.st_size:
                    empty = max(empty, int(found[1]))
    except FileNotFoundError:
        # There is no such table, or it or an old entry of its log is being removed.
        return None
    except NotADirectoryError:
        place = in_the_way(home, schema, name) or folder
        raise DamagedTable.no_folder(f"{schema}.{name}", place) from None
    if empty > newest:
        raise DamagedTable.empty_entry(f"{schema}.{name}", empty)
    return LogFiles(frozenset(files), exists)
