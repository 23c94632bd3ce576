"""Damaged files leave their table and are kept under ``CHAINLAKE_HOME/damaged``, where somebody can look at them."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from chainlake.lake.delta.log import HINT, marked
from chainlake.lake.delta.reader import open_table
from chainlake.lake.errors import NotLocal
from chainlake.paths import Home


def set_aside(home: Home, schema: str, name: str, file: str = "") -> Path:
    """Move a file of a table, or the whole table, out of the lake; the caller holds the table's lock.

    Args:
        home: the installation; its lake is on a local disk.
        schema: schema of the table.
        name: its name under the schema.
        file: relative to the table; all of it if empty.

    Returns:
        where it lies now; a file that is missing lies nowhere.

    Raises:
        UsageError: the lake is not on a local disk.
    """
    if "://" in home.lake:
        again = "and run 'python -m jobs check --repair' again."
        raise NotLocal.of(home.table(schema, name), f"Move {file or 'the folder'} away yourself, {again}")
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    target = home.root / "damaged" / f"{schema}.{name.replace('/', '.')}" / stamp
    origin = Path(home.table(schema, name), file)
    if file:
        target /= file
    target.parent.mkdir(parents=True, exist_ok=True)
    for path, place in ((origin, target), (_hadoop_checksum(origin), _hadoop_checksum(target))):
        if path.exists():
            shutil.move(path, place)
    return target


def _hadoop_checksum(path: Path) -> Path:
    """The file in which Spark keeps the checksum of another on a local disk."""
    return path.with_name(f".{path.name}.crc")


def take_out(home: Home, schema: str, name: str, file: str) -> Path:
    """Set a file of a table aside; a data file is taken out of the table, which has fewer rows then."""
    target = set_aside(home, schema, name, file)
    if not file.startswith("_delta_log/"):
        open_table(home, schema, name, to_write=True).repair(commit_properties=marked("repair"))
    elif "checkpoint" in file and not file.endswith(HINT):
        # It may name the checkpoint that has just gone.
        set_aside(home, schema, name, f"_delta_log/{HINT}")
    return target
