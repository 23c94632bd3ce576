"""In-memory DuckDB databases that this process keeps open.

Opening a database takes tens of milliseconds of CPU time, longer than most queries on it; a cursor takes none. What a
cursor registers, creates as temporary or sets disappears with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

#: How much memory a database may take before it spills to disk.
_MEMORY = "1GB"

#: Idle databases. They are kept by process, since a forked process has none of its parent's threads.
_idle: dict[tuple[int, int], list[duckdb.DuckDBPyConnection]] = {}


@contextmanager
def bounded(threads: int, folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a database with bounded memory that nothing else uses at the same time.

    Args:
        threads: number of cores that may be used.
        folder: a folder that is made if data do not fit into memory; the caller removes it.
    """
    import duckdb

    idle = _idle.setdefault((os.getpid(), threads), [])
    try:
        database = idle.pop()
    except IndexError:
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": str(threads),
            "memory_limit": _MEMORY,
            "preserve_insertion_order": "false",
            # Extensions come with the wheel; looking for others could mean a download in the middle of a query.
            "autoinstall_known_extensions": "false",
            "python_enable_replacements": "false",
        }
        database = duckdb.connect(":memory:", config=config)
    again = False
    try:
        with database.cursor() as con:
            con.execute("SET TimeZone = 'UTC'")
            con.execute(f"SET temp_directory = '{str(folder).replace(chr(39), chr(39) * 2)}'")
            yield con
        # A database that has written there cannot be given another folder.
        again = not folder.exists()
    finally:
        if again:
            idle.append(database)
        else:
            database.close()


def cursor(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A connection for rows in memory, to the database that this whole process uses for them.

    Args:
        threads: number of cores that may be used.
    """
    return _shared(os.getpid(), threads).cursor()


@cache
def _shared(_process: int, threads: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": threads})
