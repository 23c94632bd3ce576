"""Folders for what an attempt needs only while it works; leftovers of killed attempts are swept only there.

A folder is ours if it holds the marker file, which it gets only when it is made here or found empty. Without the
marker, nothing in a folder is ever removed, whatever its name.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from chainlake.errors import InfrastructureError

#: The marker file; its text is for people.
MARKER = ".made-by-chainlake"
TEXT = "Chainlake made this folder for its temporary files, and removes what has been in it for a week.\n"


class NotWritable(InfrastructureError):
    """A folder that we need cannot be written to."""

    @classmethod
    def home(cls, path: Path, error: OSError) -> NotWritable:
        """A folder of the data."""
        return cls(
            f"{path} cannot be written: {error.strerror}", hint="Set CHAINLAKE_HOME to a folder that you can write to."
        )

    @classmethod
    def whole_home(cls, path: Path, error: OSError) -> NotWritable:
        """The folder of all data."""
        hint = "Set CHAINLAKE_HOME to a folder that you can write to."
        return cls(f"the data folder {path} cannot be written ({error.strerror})", hint=hint)

    @classmethod
    def cache(cls, path: Path, error: OSError | None = None) -> NotWritable:
        """The folder of downloads; ``error`` if a write was tried."""
        if error is None:
            hint = "Set CHAINLAKE_CACHE to a folder that you can write to."
            return cls(f"the cache folder {path} cannot be written", hint=hint)
        hint = "Set CHAINLAKE_CACHE to a folder that you can write to."
        return cls(f"the cache folder {path} cannot be written: {error.strerror}", hint=hint)

    @classmethod
    def landing(cls, path: Path, error: OSError) -> NotWritable:
        """A landing folder."""
        return cls(f"files cannot be landed in {path}: {error.strerror}")


def own_folder(path: Path, refused: Callable[[Path, OSError], NotWritable] = NotWritable.home) -> Path:
    """Make the folder ``path`` if there is none, and mark it as ours if it is empty.

    Args:
        path: the folder.
        refused: makes the error if the folder cannot be written to.

    Raises:
        InfrastructureError: the folder cannot be written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not is_own(path) and not any(path.iterdir()):
            (path / MARKER).write_text(TEXT)
    except OSError as error:
        raise refused(path, error) from None
    return path


def is_own(path: Path) -> bool:
    """Whether the folder ``path`` is marked as ours."""
    return (path / MARKER).is_file()


def sweep(path: Path, age_s: float) -> bool:
    """Remove what is in ``path`` and has not been changed for ``age_s`` seconds, except links.

    Args:
        path: the folder; it need not exist.
        age_s: the age in seconds.

    Returns:
        False if ``path`` holds such things but is not marked as ours, so that they stay.
    """
    long_ago = time.time() - age_s
    old = []
    for entry in path.glob("*"):
        try:
            if entry.name != MARKER and entry.lstat().st_mtime < long_ago and not entry.is_symlink():
                old.append(entry)
        except FileNotFoundError:
            # Another step is sweeping, too.
            continue
    if old and not is_own(path):
        return False
    for entry in old:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            # Another step may have removed it, and a file of another user is not ours to remove.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                entry.unlink()
    return True
