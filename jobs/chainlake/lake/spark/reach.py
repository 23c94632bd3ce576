"""Whether the workers of a cluster see the driver's folders: without them, rows would be lost without a word.

The driver leaves a mark in the folders that tasks read and write, and whoever works looks for it before the first item:
a worker that has another disk under the same path would take landed files for missing ones, and write results where
nobody reads them.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chainlake.env.own_folders import NotWritable, own_folder
from chainlake.errors import InfrastructureError
from chainlake.lake.spark.site import Site
from chainlake.paths import Home

_PREFIX = ".seen-"
#: Longer than any step takes.
_KEPT_S = 30 * 86400.0


class FolderNotShared(InfrastructureError):
    """A worker does not see a folder of the driver."""

    @classmethod
    def of(cls, folder: Path) -> FolderNotShared:
        """For the folder; called by the worker."""
        return cls(
            f"the Spark worker on {socket.gethostname()} does not see the folder {folder} of the driver; nothing of "
            "this work is published",
            hint="All workers must have CHAINLAKE_HOME and the lake under the same paths, as on a shared file system "
            "(docs/deploy.md).",
        )


@dataclass(frozen=True)
class Marks:
    """Files that the driver has written for its workers to see.

    Args:
        paths: where they are; the last part of a name is what the file holds.
    """

    paths: tuple[str, ...] = ()

    @classmethod
    def leave(cls, home: Home) -> Marks:
        """Leave one in each folder that tasks use, if there are workers on other machines.

        They are removed when this process ends in good order.

        Raises:
            NotWritable: a folder cannot be written.
        """
        if Site.from_env().on_this_machine:
            return cls()
        return _left(tuple(_folders(home)))


def _folders(home: Home) -> list[str]:
    own = [path for path in (str(home.temporary), home.staging) if "://" not in path]
    for path in own:
        own_folder(Path(path))
    landing = home.root / "landing"
    # A site may mount it read-only; then it is taken to be where the rest is.
    return [*own, str(landing)] if os.access(landing, os.W_OK) else own


@cache
def _left(folders: tuple[str, ...]) -> Marks:
    import atexit

    found = []
    for folder in folders:
        try:
            _sweep(Path(folder))
            handle, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
            with os.fdopen(handle, "w") as stream:
                stream.write(Path(name).name)
            # Workers may be another account.
            os.chmod(name, 0o644)
        except OSError as error:
            raise NotWritable.home(Path(folder), error) from None
        found.append(name)
    atexit.register(_remove, tuple(found))
    return Marks(tuple(found))


def _sweep(folder: Path) -> None:
    """Remove the marks of processes that were killed long ago."""
    for path in folder.glob(f"{_PREFIX}*"):
        if path.stat().st_mtime < time.time() - _KEPT_S:
            path.unlink(missing_ok=True)


def _remove(paths: Sequence[str]) -> None:
    for path in paths:
        Path(path).unlink(missing_ok=True)


@cache
def require_seen(marks: Marks) -> None:
    """See that this process sees the driver's folders; called in a worker, and looked up once in each.

    Raises:
        FolderNotShared: it does not.
    """
    for path in map(Path, marks.paths):
        try:
            seen = path.read_text() == path.name
        except (OSError, UnicodeDecodeError):
            seen = False
        if not seen:
            raise FolderNotShared.of(path.parent)
