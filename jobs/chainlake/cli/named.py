"""Definitions on the command line: every verb takes the name of one, or the path of its file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from chainlake.errors import UsageError
from chainlake.paths import Home
from chainlake.words import closest, listed

#: Kind of definition → its folder in the configuration, and how its files end.
FOLDERS = {"source": ("sources", ".yaml"), "pattern": ("patterns", ".sase"), "model": ("models", ".yaml")}


class UnknownName(UsageError):
    """A word on the command line names no definition and no file."""

    name: str

    @classmethod
    def of(cls, name: str, kinds: Sequence[str], known: Sequence[str], folder: Path) -> UnknownName:
        """For the word, the kinds that could be meant, and the names that there are."""
        meant = closest(name, known)
        guess = f"There are {listed(known)} in {folder}." if known else f"There is none in {folder}."
        guess = guess if meant is None else f"Did you mean {meant}?"
        what = f"there is no {' or '.join(kinds)} '{name}', and no such file"
        return cls(what, hint=f"{guess} Give a name, or the path of a file.").holding(name=name)

    @classmethod
    def several(cls, name: str, kinds: Sequence[str]) -> UnknownName:
        """Definitions of several kinds are called so."""
        ways = " or ".join(f"{kind}/{name}" for kind in kinds)
        return cls(f"'{name}' is the name of a {' and a '.join(kinds)}", hint=f"Write {ways}.").holding(name=name)


def definition_file(home: Home, given: str, *kinds: str) -> Path:
    """The file of a definition.

    Args:
        home: the installation, whose definitions have names.
        given: its name, ``kind/name``, or the path of a file, which need not exist.
        kinds: the kinds that it can be of.

    Raises:
        UsageError: it is neither, or several are called so.
    """
    if os.path.exists(given) or given.endswith((".sase", ".yaml", ".yml")):
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


def name_of(kind: str) -> Callable[[str], str]:
    """Reads an argument that names a definition which is live: its name, or the path of its file.

    The function raises `argparse.ArgumentTypeError` for a file that is not one of the configuration.
    """

    def read(given: str) -> str:
        if not given.endswith((".sase", ".yaml", ".yml")):
            return given
        file = Path(given)
        live = _file(Home.from_env(), kind, file.stem)
        if file.resolve() != live.resolve():
            raise argparse.ArgumentTypeError(f"{given} is not live: a {kind} that runs is a file of {live.parent}")
        return file.stem

    return read


def definition_files(home: Home, kind: str) -> Iterator[Path]:
    """The files of all definitions of a kind, by name."""
    folder, ending = FOLDERS[kind]
    yield from sorted((home.config / folder).glob(f"*{ending}"))


def _file(home: Home, kind: str, name: str) -> Path:
    folder, ending = FOLDERS[kind]
    return home.config / folder / f"{name}{ending}"
