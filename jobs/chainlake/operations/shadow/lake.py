"""A lake beside the real one, with the real events and one definition; a run in it changes nothing in the real one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from chainlake.env.own_folders import own_folder
from chainlake.errors import InfrastructureError
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

#: Folders of the lake that a step of patterns or models reads but never writes.
_READ = ("events", "ops/event_days", "ops/files", "ops/waiting_files", "ops/rates")
#: Folders of definitions from which only the file that is tried is needed, by its suffix.
_TRIED = {".sase": "patterns", ".yaml": "models"}


class NoShadow(InfrastructureError):
    """No shadow lake can be made beside this lake."""

    @classmethod
    def in_a_store(cls, lake: str) -> NoShadow:
        """The lake is not a folder on a disk."""
        what = f"the lake {lake} is in an object store, but shadow works only beside a lake on a disk"
        return cls(what, hint="Try it with a copy of the days on a disk.")


@contextmanager
def shadow_of(home: Home, file: Path) -> Iterator[Home]:
    """A home with the events of another one and only the definition in ``file``; it is removed afterwards.

    Args:
        home: the installation; it is only read.
        file: a pattern (``.sase``) or a model (``.yaml``), named by the file's stem.

    Raises:
        InfrastructureError: the lake is not a folder on a disk, or the home cannot be written to.
    """
    if not storage_of(home.lake).on_disk:
        raise NoShadow.in_a_store(home.lake)
    root = Path(tempfile.mkdtemp(prefix="shadow-", dir=own_folder(home.temporary)))
    try:
        lake = root / "lake"
        for name in _READ:
            there = Path(home.lake) / name
            if there.is_dir():
                (lake / name).parent.mkdir(parents=True, exist_ok=True)
                os.symlink(there.absolute(), lake / name, target_is_directory=True)
        yield replace(home, root=root, lake=str(lake), config=_config(home, file, root / "config"))
    finally:
        # Links are removed, not followed.
        shutil.rmtree(root)


def _config(home: Home, file: Path, folder: Path) -> Path:
    """The folder of definitions: everything that a definition may refer to, but only this pattern or model."""
    for there in home.config.iterdir():
        if there.is_dir() and there.name not in _TRIED.values():
            shutil.copytree(there, folder / there.name)
    kind = folder / _TRIED[file.suffix]
    kind.mkdir(parents=True)
    shutil.copyfile(file, kind / file.name)
    return folder
