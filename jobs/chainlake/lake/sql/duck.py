"""DuckDB for use within a step: in bounded memory, spilling to disk."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chainlake.env.databases import bounded
from chainlake.env.own_folders import own_folder
from chainlake.paths import Home

if TYPE_CHECKING:
    import duckdb


@contextmanager
def connected(home: Home, threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that uses UTC and gives rows in any order.

    Args:
        home: the installation; what does not fit into memory is kept under ``home.temporary``.
        threads: how many cores may be used.
    """
    # It has its own folder, so that what a killed process leaves is swept with the other leftovers.
    folder = own_folder(home.temporary) / f"duckdb-{uuid.uuid4().hex[:8]}"
    try:
        with bounded(threads, folder) as con:
            yield con
    finally:
        shutil.rmtree(folder, ignore_errors=True)
