"""DuckDB databases in memory that this process keeps open.

To open one takes tens of milliseconds of CPU time, longer than most of what is asked of it; a cursor takes none. What a
cursor registers, creates as temporary or sets goes with it.
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

#: Up to how much memory a database takes before it goes to the disk.
_MEMORY = "1GB"

#: Databases that nobody uses now. A process that was forked has none of its parent's threads, so it opens its own.
_idle: dict[tuple[int, int], list[duckdb.DuckDBPyConnection]] = {}


@contextmanager
def bounded(threads: int, folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a database that nobody else uses meanwhile, in bounded memory.

    Args:
        threads: cores that may be used.
        folder: made for what does not fit into memory, if anything; the caller takes it away.
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
            # Extensions come with the wheel; looking for others would be a download in the middle of a query.
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
        # One that has written there cannot be told of another folder.
        again = not folder.exists()
    finally:
        if again:
            idle.append(database)
        else:
            database.close()


def cursor(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A connection for rows that lie in memory, to the database that all in this process have for these.

    Args:
        threads: cores that may be used.
    """
    return _shared(os.getpid(), threads).cursor()


@cache
def _shared(_process: int, threads: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": threads})
