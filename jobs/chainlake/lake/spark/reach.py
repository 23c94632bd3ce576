"""Whether the workers of a cluster see the driver's lake: on another disk, rows would be lost without a word.

The driver leaves a mark in the folder in which tasks stage what they found, and whoever works looks for it before the
first item: a worker that has another disk under the same path would write where nobody reads. A landed file that a
worker does not see is an error of its own, and a lake in an object store is the same for all.
"""

from __future__ import annotations

import os
import socket
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chainlake.env.own_folders import NotWritable, own_folder
from chainlake.errors import InfrastructureError
from chainlake.lake.spark.site import Site
from chainlake.paths import Home


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
class Mark:
    """A file that the driver has written for its workers to see.

    Args:
        path: where it is, None if there is nothing to see; the last part of its name is what it holds.
    """

    path: str | None = None

    @classmethod
    def leave(cls, home: Home) -> Mark:
        """Leave one, once in this process, if there may be workers on other machines and the lake is on a disk.

        It is removed when this process ends in good order, and swept with what killed attempts leave.

        Raises:
            NotWritable: the folder cannot be written.
        """
        if Site.from_env().on_this_machine or "://" in home.staging:
            return cls()
        return _left(home.staging)


@cache
def _left(staging: str) -> Mark:
    import atexit

    folder = own_folder(Path(staging))
    try:
        handle, name = tempfile.mkstemp(prefix=".seen-", dir=folder)
        with os.fdopen(handle, "w") as stream:
            stream.write(Path(name).name)
        # Workers may be another account.
        os.chmod(name, 0o644)
    except OSError as error:
        raise NotWritable.home(folder, error) from None
    atexit.register(Path(name).unlink, missing_ok=True)
    return Mark(name)


@cache
def require_seen(mark: Mark) -> None:
    """See that this process sees what the driver does; called in a worker, and looked up once in each.

    Raises:
        FolderNotShared: it does not.
    """
    if mark.path is None:
        return
    path = Path(mark.path)
    try:
        seen = path.read_text() == path.name
    except (OSError, UnicodeDecodeError):
        seen = False
    if not seen:
        raise FolderNotShared.of(path.parent)
