"""The error of a damaged table, and the one damage that no reader notices: an empty entry of its log."""

from __future__ import annotations

import os
import re

from chainlake.errors import InfrastructureError
from chainlake.paths import Home
from chainlake.storage.door import storage_of

_NUMBERED = re.compile(r"^(\d{20})\.(json|checkpoint.*\.parquet)$")


class DamagedTable(InfrastructureError):
    """A file of a table is damaged or missing."""

    @classmethod
    def of(cls, table: str, what: str, more: int = 0) -> DamagedTable:
        """Args: the table as ``schema.name``; what is wrong, file first; how much else is damaged in the lake."""
        rest = f" (and {more} more of the lake)" if more else ""
        return cls(
            f"table {table} is damaged: {what}{rest}",
            hint=f"Run 'python -m jobs check --table {table} --repair' and then the commands that it names.",
        )


def require_entries(home: Home, schema: str, name: str) -> None:
    """See to it that no entry of a table's log is empty: readers take the commit for one that changed nothing.

    A log that is being written is never seen so, since an entry gets its name when it is complete. Where
    files are there as a whole or not at all, none is looked at.

    Raises:
        DamagedTable: an entry that no checkpoint stands for is empty.
    """
    folder = os.path.join(home.table(schema, name), "_delta_log")
    if storage_of(folder).whole_files:
        return
    newest, empty = -1, -1
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found = _NUMBERED.match(entry.name)
                if found is None:
                    continue
                if found[2] != "json":
                    newest = max(newest, int(found[1]))
                elif not entry.stat().st_size:
                    empty = max(empty, int(found[1]))
    except FileNotFoundError:
        # There is no such table, or it or an old entry of its log is being removed.
        return
    if empty > newest:
        raise DamagedTable.of(f"{schema}.{name}", f"_delta_log/{empty:020}.json: the log entry is empty")
