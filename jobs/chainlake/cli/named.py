"""Definitions on the command line: every verb takes the name of a definition, or the path of its file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from chainlake.errors import UsageError
from chainlake.paths import Home
from chainlake.words import closest, listed

#: Kind of definition → its folder in the configuration, and the suffix of its files.
FOLDERS = {"source": ("sources", ".yaml"), "pattern": ("patterns", ".sase"), "model": ("models", ".yaml")}


class UnknownName(UsageError):
    """A word on the command line is neither the name of a definition nor a file."""

    name: str

    @classmethod
    def of(cls, name: str, kinds: Sequence[str], known: Sequence[str], folder: Path) -> UnknownName:
        """For the word, the kinds that could be meant, and the names that exist."""
        meant = closest(name, known)
        guess = f"There are {listed(known)} in {folder}." if known else f"There is none in {folder}."
        guess = guess if meant is None else f"Did you mean {meant}?"
        what = f"there is no {' or '.join(kinds)} '{name}', and no such file"
        return cls(what, hint=f"{guess} Give a name, or the path of a file.").holding(name=name)

    @classmethod
    def several(cls, name: str, kinds: Sequence[str]) -> UnknownName:
        """Definitions of several kinds have this name."""
        ways = " or ".join(f"{kind}/{name}" for kind in kinds)
        return cls(f"'{name}' is the name of a {' and a '.join(kinds)}", hint=f"Write {ways}.").holding(name=name)


def definition_file(home: Home, given: str, *kinds: str) -> Path:
    """The file of a definition.

    Args:
        home: the installation.
        given: the name of a definition, ``kind/name``, or the path of a file, which need not exist.
        kinds: the kinds that the definition may have.

    Raises:
        UsageError: it is neither, or definitions of several kinds have the name.
    """
    if not given.strip() or os.path.exists(given) or given.endswith((".sase", ".yaml", ".yml")):
        return Path(given)
    kind, _, name = given.rpartition("/")
    if kind and kind not in kinds:
        return Path(given)
    wanted = [kind] if kind else list(kinds)
    found = [one for one in wanted if _file(home, one, name).is_file()]
    if len(found) > 1:
        raise UnknownName.several(name, found)
    if not found:
        known = sorted({file.stem for one in wanted for file in definition_files(home, one)})
        raise UnknownName.of(name, wanted, known, home.config)
    return _file(home, found[0], name)


def name_of(*kinds: str) -> Callable[[str], str]:
    """A reader of an argument that names a live definition, by its name or by the path of its file.

    The reader raises `argparse.ArgumentTypeError` for a file that is not in the configuration.

    Args:
        kinds: the kinds that the definition may have; of several, the path of a file gives ``kind/name``.
    """

    def read(given: str) -> str:
        file = Path(given)
        if not given.endswith((".sase", ".yaml", ".yml")):
            return given
        # The file of a definition that is retired is gone, but its path still says which one it was.
        home = Home.from_env()
        lives = {kind: _file(home, kind, file.stem) for kind in kinds}
        for kind, live in lives.items():
            if file.resolve() == live.resolve():
                return file.stem if len(kinds) == 1 else f"{kind}/{file.stem}"
        if not file.exists():
            return given
        folders = ", ".join(f"a live {kind} is a file in {live.parent}" for kind, live in lives.items())
        raise argparse.ArgumentTypeError(f"{given} is not live: {folders}")

    return read


def definition_files(home: Home, kind: str) -> Iterator[Path]:
    """The files of all definitions of a kind, in the order of their names."""
    folder, ending = FOLDERS[kind]
    yield from sorted((home.config / folder).glob(f"*{ending}"))


def _file(home: Home, kind: str, name: str) -> Path:
    folder, ending = FOLDERS[kind]
    return home.config / folder / f"{name}{ending}"
