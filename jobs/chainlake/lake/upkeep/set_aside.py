"""Moves damaged files out of their table and keeps them where someone can look at them."""

from __future__ import annotations

from datetime import UTC, datetime

from chainlake.lake.delta.log import HINT, marked
from chainlake.lake.delta.reader import open_table
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of


def set_aside(home: Home, schema: str, name: str, file: str = "") -> str:
    """Move a file of a table, or the whole table, out of the lake; the caller holds the table's lock.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema.
        file: path relative to the table; the whole table if empty.

    Returns:
        where it is now, unless it was missing.
    """
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    end = f"/{file}" if file else ""
    target = f"{home.damaged}/{schema}.{name.replace('/', '.')}/{stamp}{end}"
    origin = f"{home.table(schema, name)}{end}"
    files = storage_of(origin)
    for path, place in ((origin, target), (_hadoop_checksum(origin), _hadoop_checksum(target))):
        files.move(path, place)
    return target


def _hadoop_checksum(path: str) -> str:
    """The file in which Spark keeps another file's checksum on a disk."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.crc"


def take_out(home: Home, schema: str, name: str, file: str) -> str:
    """Set a file of a table aside; a data file is also taken out of the table, which then has fewer rows."""
    target = set_aside(home, schema, name, file)
    if not file.startswith("_delta_log/"):
        open_table(home, schema, name, to_write=True).repair(commit_properties=marked("repair"))
    elif "checkpoint" in file and not file.endswith(HINT):
        # The hint may name the checkpoint that was just moved.
        set_aside(home, schema, name, f"_delta_log/{HINT}")
    return target
