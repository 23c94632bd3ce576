"""The files of a landing folder by name, without opening any; handles links, unreadable folders and odd names."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Literal

from chainlake.definitions.formats.globs import UNFINISHED, is_ignored
from chainlake.schemas.ops_rows import FileProblem
from chainlake.storage.errors import StoreFailed
from chainlake.storage.local import stamp_of
from chainlake.storage.port import Stamp
from chainlake.storage.resolve import storage_of
from chainlake.terminal import storable


@dataclass(frozen=True)
class Entry:
    """A file, or something else in a file's place.

    Args:
        relative: its path under the folder as text that can be stored and printed.
        file: its path or URI.
        stat: the stamp of the file, or of a link's target; ``None`` if it is not to be read.
        problem: code for why it can never be read as it is, else "".
        detail: the same in words.
    """

    relative: str
    file: str
    stat: Stamp | None
    problem: FileProblem | Literal[""] = ""
    detail: str = ""


@dataclass(frozen=True)
class Walked:
    """What a folder holds: entries sorted by path, and why others cannot be looked at for now, by path."""

    entries: tuple[Entry, ...]
    waiting: dict[str, str]


def walk(folder: str, *, follow_links: bool) -> Walked:
    """All files below ``folder`` except hidden and unfinished ones; a folder that does not exist holds none.

    Args:
        folder: the landing folder of a source, or its place in a store; it may itself be a link.
        follow_links: whether links out of the folder are followed.
    """
    if not storage_of(folder).on_disk:
        return _listed(folder)
    walker = _Walker(os.path.realpath(folder), follow_links)
    if os.path.lexists(folder):
        walker.look(folder, "", ())
    return Walked(tuple(sorted(walker.entries, key=lambda entry: entry.relative)), walker.waiting)


def _listed(folder: str) -> Walked:
    """The same for a store, which has neither folders nor links."""
    try:
        files = storage_of(folder).files(folder)
    except StoreFailed as error:
        return Walked((), {".": f"the folder cannot be listed: {error.what}"})
    entries = [
        Entry(file.path, f"{folder}/{file.path}", Stamp(file.size, round(file.modified * 1e9)))
        for file in files
        if not is_ignored(file.path)
    ]
    return Walked(tuple(entries), {})


class _Walker:
    def __init__(self, root: str, follow_links: bool) -> None:
        self.root = root
        self.follow_links = follow_links
        self.entries: list[Entry] = []
        self.waiting: dict[str, str] = {}

    def look(self, folder: str, relative: str, above: tuple[str, ...]) -> None:
        """Look through one folder; ``above`` are the folders that led to it, so that circular links end."""
        try:
            with os.scandir(folder) as listed:
                found = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            self.waiting[relative or "."] = f"the folder cannot be listed: {error.strerror}"
            return
        above = (*above, os.path.realpath(folder))
        for entry in found:
            if entry.name.startswith("."):
                continue
            path = storable(entry.name) if not relative else f"{relative}/{storable(entry.name)}"
            try:
                self._one(entry, path, above)
            except OSError as error:
                self.waiting[path] = error.strerror or str(error)

    def _one(self, entry: os.DirEntry[str], path: str, above: tuple[str, ...]) -> None:
        # This is tested first, without touching the file, because such files come and go.
        if entry.name.endswith(UNFINISHED) and not entry.is_dir():
            return
        known = os.stat(entry.path) if entry.is_symlink() else entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(known.st_mode)
        if entry.is_symlink() and not self._leads_on(entry, path, is_folder, above):
            return
        if is_folder:
            self.look(entry.path, path, above)
        elif stat.S_ISREG(known.st_mode):
            self.entries.append(Entry(path, entry.path, stamp_of(known)))
        else:
            self._refuse(entry, path, "not_a_file", "a pipe, socket or device")

    def _leads_on(self, entry: os.DirEntry[str], path: str, is_folder: bool, above: tuple[str, ...]) -> bool:
        """Whether a link is to be followed; a refused link becomes an entry that says so."""
        target = os.path.realpath(entry.path)
        inside = os.path.relpath(target, self.root) if _within(target, self.root) else None
        if inside is None and not self.follow_links:
            self._refuse(entry, path, "link", f"a link out of the landing folder, to {storable(target)}")
            return False
        if is_folder and inside is not None and not any(part.startswith(".") for part in inside.split(os.sep)):
            # The target is found under its own name.
            return False
        if is_folder and any(_within(one, target) for one in above):
            self._refuse(entry, path, "link", f"a link that leads back to a folder above it, {storable(target)}")
            return False
        return True

    def _refuse(self, entry: os.DirEntry[str], path: str, problem: FileProblem, detail: str) -> None:
        self.entries.append(Entry(path, entry.path, None, problem, detail))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
