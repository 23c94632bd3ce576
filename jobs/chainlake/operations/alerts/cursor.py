"""How far the alerts of a definition were sent: a file of the lake for each, which is replaced after each message.

It lies in the lake, as the lock does that a sender holds meanwhile: of two machines that share a lake, one sends, and
the other one goes on from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from chainlake.errors import InfrastructureError
from chainlake.paths import Home
from chainlake.storage.door import storage_of

#: Folder of the lake.
FOLDER = "chainlake-alerts"


class CursorBroken(InfrastructureError):
    """The file that says how far alerts were sent cannot be read."""

    @classmethod
    def of(cls, file: str) -> CursorBroken:
        """For the file."""
        hint = "Remove it, and run 'alerts send NAME --from-version N': what came after version N is sent again."
        return cls("the file that says how far alerts were sent is damaged", file=Path(file), hint=hint)


@dataclass(frozen=True)
class Cursor:
    """Up to where alerts were sent.

    Args:
        version: of the table, all of whose changes were sent.
        last: id of the last message of later versions that was sent, in the order of the feed.
        table: id of the table that has these versions; ``None`` if there was none yet.
    """

    version: int
    last: str | None = None
    table: str | None = None


def read_cursor(home: Home, name: str) -> Cursor | None:
    """How far the alerts of a definition were sent; ``None`` if none were yet.

    Args:
        home: the installation.
        name: ``pattern/NAME`` or ``model/NAME``.

    Raises:
        InfrastructureError: the file is damaged, or the store is away.
    """
    file = _file(home, name)
    content = storage_of(file).read(file)
    if content is None:
        return None
    try:
        found = json.loads(content)
        return Cursor(int(found["version"]), found["last"], found["table"])
    except (ValueError, KeyError, TypeError):
        raise CursorBroken.of(file) from None


def write_cursor(home: Home, name: str, cursor: Cursor) -> None:
    """Keep how far they were sent."""
    file = _file(home, name)
    told = {"version": cursor.version, "last": cursor.last, "table": cursor.table}
    storage_of(file).write(file, json.dumps(told).encode())


def _file(home: Home, name: str) -> str:
    return f"{home.lake}/{FOLDER}/{name}.json"
