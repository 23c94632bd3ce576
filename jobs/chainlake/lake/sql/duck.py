"""DuckDB beside a step: in bounded memory, spilling to the disk."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chainlake.env.own_folders import own_folder
from chainlake.paths import Home

if TYPE_CHECKING:
    import duckdb

#: What does not fit goes to the disk.
_MEMORY = "1GB"


@contextmanager
def connected(home: Home, threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose times are UTC and whose rows come in any order.

    Args:
        home: the installation; what does not fit into memory lies under ``home.temporary`` meanwhile.
        threads: cores that may be used.
    """
    import duckdb

    # A folder of its own: what a killed process leaves is swept with the other leftovers.
    folder = own_folder(home.temporary) / f"duckdb-{uuid.uuid4().hex[:8]}"
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": str(threads),
        "memory_limit": _MEMORY,
        "temp_directory": str(folder),
        "preserve_insertion_order": "false",
        # Extensions come with the wheel; looking for others would be a download in the middle of a query.
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    try:
        with duckdb.connect(":memory:", config=config) as con:
            con.execute("SET TimeZone = 'UTC'")
            yield con
    finally:
        shutil.rmtree(folder, ignore_errors=True)
