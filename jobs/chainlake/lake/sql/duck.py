"""DuckDB beside a step: in bounded memory, spilling to the disk."""

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
    """A connection whose times are UTC and whose rows come in any order.

    Args:
        home: the installation; what does not fit into memory lies under ``home.temporary`` meanwhile.
        threads: cores that may be used.
    """
    # A folder of its own: what a killed process leaves is swept with the other leftovers.
    folder = own_folder(home.temporary) / f"duckdb-{uuid.uuid4().hex[:8]}"
    try:
        with bounded(threads, folder) as con:
            yield con
    finally:
        shutil.rmtree(folder, ignore_errors=True)
