"""A results table that is gone is made again by the next run that publishes, but that run knows only a few of its
days.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from chainlake.lake.delta import tables
from chainlake.lake.delta.sums.checksums import rows_of
from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.paths import Home
from chainlake.schemas.models import FINDINGS, METRICS
from chainlake.schemas.ops_rows import IntervalRow
from chainlake.schemas.table import Table

_OF_MODELS = {table.path_name for table in FINDINGS}


def note_lost(home: Home, published: Sequence[Table], run_id: str) -> None:
    """Mark the days whose rows were in tables that no longer exist, before these are made again; under their locks.

    Args:
        home: the installation.
        published: tables that are about to be published to.
        run_id: the run under which it is recorded.
    """
    gone = {table.path_name for table in published if not tables.exists(home, table.schema, table.name)}
    if not gone:
        return
    rows = [row for row in ops.current(home, "intervals") if row["status"] == "done" and _lay_in(row, gone)]
    listed = ", ".join(sorted(gone))
    reason = f"its rows are gone with a table: {listed}"
    marks: list[IntervalRow] = [{**ops.again(row), "status": "failed", "reason": reason} for row in rows]
    ops.append(home, "intervals", marks, run_id)


def lost_days(
    definition: Definition, rows: np.ndarray, done: np.ndarray, gone: Callable[[str], bool]
) -> list[tuple[str, np.ndarray]]:
    """For each table of a definition that is gone, the reason to give, and a flag per day whose rows are gone with it.

    Args:
        definition: the pattern or model.
        rows: number of rows published for each day.
        done: whether each day is recorded as done.
        gone: whether a table (``schema.name``) does not exist.
    """
    with_rows = done & (rows > 0)
    found = []
    if with_rows.any() and gone(definition.table_name):
        found.append((f"its table {definition.table_name} is gone", with_rows))
    if definition.is_model and done.any() and gone(METRICS.path_name):
        # How many rows a day has there is not recorded separately.
        found.append((f"the table {METRICS.path_name} is gone", done))
    return found


def _lay_in(row: IntervalRow, gone: set[str]) -> bool:
    """Whether a day that is done had rows in one of the tables."""
    if row["table_name"] in gone and row["rows"]:
        return True
    if METRICS.path_name not in gone or row["table_name"] not in _OF_MODELS:
        return False
    # Before checksums were kept, nothing said how many rows a day had there.
    parts = (row["rows_checksum"] or "").split(" ")
    return len(parts) < 2 or rows_of(parts[1]) > 0
