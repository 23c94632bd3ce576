"""How far a definition's alerts have been sent: one file in the lake per definition, replaced after each message.

The file is in the lake, like the lock that a sender holds: of two machines that share a lake, one sends, and the
other later continues from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from chainlake.errors import InfrastructureError
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

#: Name of the folder in the lake.
FOLDER = "chainlake-alerts"


class CursorBroken(InfrastructureError):
    """The file that says how far alerts have been sent cannot be read."""

    @classmethod
    def of(cls, file: str) -> CursorBroken:
        """For the file."""
        hint = "Remove it, and run 'alerts send NAME --from-version N': what came after version N is sent again."
        return cls("the file that says how far alerts were sent is damaged", file=Path(file), hint=hint)


@dataclass(frozen=True)
class Cursor:
    """How far alerts have been sent.

    Args:
        version: version of the table up to which all changes have been sent.
        last: id of the last message sent for later versions, in the order of the feed.
        table: id of the table that has these versions; ``None`` if there was no table yet.
    """

    version: int
    last: str | None = None
    table: str | None = None


def read_cursor(home: Home, name: str) -> Cursor | None:
    """How far the alerts of a definition have been sent; ``None`` if it was never recorded.

    Args:
        home: the installation.
        name: ``pattern/NAME`` or ``model/NAME``.

    Raises:
        InfrastructureError: the file is damaged, or the store cannot be reached.
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
    """Note how far the alerts of a definition have been sent."""
    file = _file(home, name)
    state = {"version": cursor.version, "last": cursor.last, "table": cursor.table}
    storage_of(file).write(file, json.dumps(state).encode())


def _file(home: Home, name: str) -> str:
    return f"{home.lake}/{FOLDER}/{name}.json"
