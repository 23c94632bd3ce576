"""Which files in a table's folder are the table's: anything else was put there by someone else and stays."""

from __future__ import annotations

import re

from chainlake.storage.resolve import storage_of

#: As Delta's writers name them: data, change data and deletion vectors, in the folders of partitions.
_TABLE_FILE = re.compile(
    r"(?:_change_data/)?(?:[^/=]+=[^/]*/)*\.?(?:part-|cdc-|deletion_vector_)[^/]*\.(?:parquet|bin|crc)"
)
#: The table's log and the folders that Delta makes beside the data.
_LOG = "_delta_log"


def is_table_file(path: str) -> bool:
    """Whether ``path``, relative to the table's folder, is a file that a writer of Delta tables made."""
    return _TABLE_FILE.fullmatch(path) is not None


def remove_table(folder: str) -> list[str]:
    """Remove a table: its log first, so that it is no longer a table, then its files.

    Args:
        folder: the table's folder.

    Returns:
        paths of files in the folder that are not the table's, relative to it; if there are none, the folder is removed
        too.
    """
    files = storage_of(folder)
    files.remove_all(f"{folder}/{_LOG}")
    left = [file.path for file in files.files(folder) if not is_table_file(file.path)]
    files.remove_all(folder, left)
    return left
