"""Files and folders that other users of the machine cannot read: secrets, logs, compiled code."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from chainlake.env.own_folders import own_folder


def private_folder(path: Path) -> Path:
    """Make a private folder, or close one that an earlier version left open.

    If other users could already pass through it to a folder of theirs below, they still can: the database runs under
    its own account when the launcher is root.

    Args:
        path: the folder; folders above it are made with the modes that the user's umask gives.

    Returns:
        ``path``.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    # The folder of another user keeps its mode, which only that user can change.
    if found.st_uid == os.geteuid() and found.st_mode & 0o076:
        path.chmod(found.st_mode & 0o7701)
    return path


def marked_folder(path: Path) -> Path:
    """Make a private folder whose old files may be swept; a folder that already held something does not get our mark.

    Args:
        path: the folder.

    Returns:
        ``path``.
    """
    return own_folder(private_folder(path))


def write_private(path: Path, text: str) -> None:
    """Write a file atomically that only this user can read: it is never visible half-written or with a wider mode.

    Args:
        path: the file; it is replaced, whatever mode it had.
        text: its content.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
