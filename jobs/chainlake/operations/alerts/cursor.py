"""How far the alerts of a pattern were sent: a file per pattern in the home, which is replaced after each message."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from chainlake.env.private import private_folder, write_private
from chainlake.errors import InfrastructureError
from chainlake.paths import Home


class CursorBroken(InfrastructureError):
    """The file that says how far alerts were sent cannot be read."""

    @classmethod
    def of(cls, file: Path) -> CursorBroken:
        """For the file."""
        hint = "Remove it, and run 'alerts send NAME --from-version N': what came after version N is told again."
        return cls("the file that says how far alerts were sent is damaged", file=file, hint=hint)


@dataclass(frozen=True)
class Cursor:
    """Up to where alerts were sent.

    Args:
        version: of the match table, all of whose changes were sent.
        last: id of the last message of later versions that was sent, in the order of the feed.
        table: id of the table that has these versions; ``None`` if there was none yet.
    """

    version: int
    last: str | None = None
    table: str | None = None


def read_cursor(home: Home, pattern: str) -> Cursor | None:
    """How far the alerts of a pattern were sent; ``None`` if none were yet.

    Raises:
        InfrastructureError: the file is damaged.
    """
    file = _file(home, pattern)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Cursor(int(found["version"]), found["last"], found["table"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise CursorBroken.of(file) from None


def write_cursor(home: Home, pattern: str, cursor: Cursor) -> None:
    """Keep how far they were sent."""
    file = _file(home, pattern)
    private_folder(file.parent)
    write_private(file, json.dumps({"version": cursor.version, "last": cursor.last, "table": cursor.table}))


def _file(home: Home, pattern: str) -> Path:
    return home.root / "alerts" / f"{pattern}.json"
