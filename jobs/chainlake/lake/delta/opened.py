"""Tables that this process has opened, kept for the next reader.

Opening a table takes longer than reading a small one, and a step opens the same few again and again. Whether a kept
table is still what opening it again would give is checked against the files of its log each time: another process may
commit at any moment, and a table can be removed and made again.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from chainlake.lake.delta.damaged import LogFiles

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: How many tables are kept: those that were asked for last.
_MOST = 64

#: Process, path, version (``None`` is the newest), and whether the table was opened without its list of files. A
#: process that was forked has none of its parent's threads, so it opens its own.
_Key = tuple[int, str, int | None, bool]

_kept: OrderedDict[_Key, tuple[LogFiles, DeltaTable]] = OrderedDict()
_lock = threading.Lock()


def kept(path: str, version: int | None, without_files: bool, log: LogFiles) -> DeltaTable | None:
    """A table that was opened when its log was what it is now; ``None`` if there is none.

    It is shared, so nobody may commit with it or move it to another version.

    Args:
        path: where the table is.
        version: the version; the newest if ``None``.
        without_files: whether it may lack its list of files; a table that has the list also serves.
        log: the files of its log now.
    """
    with _lock:
        for lacking in {False, without_files}:
            key = (os.getpid(), path, version, lacking)
            found = _kept.get(key)
            if found is not None and found[0] == log:
                _kept.move_to_end(key)
                return found[1]
    return None


def keep(path: str, version: int | None, without_files: bool, log: LogFiles, table: DeltaTable) -> None:
    """Keep a table for :func:`kept`.

    Args:
        path, version, without_files: how it was opened.
        log: the files of its log before it was opened, so that the table may be newer than they are, but never older.
        table: the table; nobody may commit with it.
    """
    with _lock:
        key = (os.getpid(), path, version, without_files)
        _kept[key] = (log, table)
        _kept.move_to_end(key)
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
