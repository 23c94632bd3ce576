"""``python -m chainlake.env.doctor``: is this machine able to run Chainlake? One sentence per thing, never a stack
trace."""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from chainlake.env.java import java_home, java_version
from chainlake.env.own_folders import NotWritable
from chainlake.errors import ChainlakeError, InfrastructureError
from chainlake.paths import Home

#: A run of the shipped data writes well under this.
NEEDED_GB = 1.0


def _existing(path: Path) -> Path:
    """The nearest folder at or above ``path`` that exists."""
    while not path.exists():
        path = path.parent
    return path


class UnfitMachine(InfrastructureError):
    """Something of this machine has to be changed before Chainlake can run on it."""

    @classmethod
    def bracket(cls, root: Path) -> UnfitMachine:
        """The path of the data folder."""
        return cls(
            f"the data folder {root} has a bracket in its path, which Delta tables cannot be addressed with",
            hint="Set CHAINLAKE_HOME to a folder without [ and ].",
        )

    @classmethod
    def full_disk(cls, folder: Path, free: float) -> UnfitMachine:
        """The disk under a folder has ``free`` GB."""
        return cls(
            f"{NEEDED_GB:.0f} GB of free disk are needed in {folder}, but only {free:.1f} GB are free",
            hint="Free some space, or set CHAINLAKE_HOME to a folder on another disk.",
        )

    @classmethod
    def open_cache(cls, cache: Path) -> UnfitMachine:
        """Others may put code into the cache."""
        return cls(
            f"every user of this machine can write to the cache folder {cache}, and Chainlake runs code from it",
            hint="Close it with chmod o-w, or set CHAINLAKE_CACHE to a folder of your own.",
        )


def check_java() -> str:
    """Java 17 or 21."""
    home = java_home()
    return f"Java {java_version(home / 'bin' / 'java')} at {home}"


def check_home(home: Home) -> str:
    """``CHAINLAKE_HOME`` can be made and written to, and Delta can address it."""
    if set("[]") & set(str(home.root)):
        raise UnfitMachine.bracket(home.root)
    try:
        home.root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home.root):
            return f"data goes to {home.root}"
    except OSError as error:
        raise NotWritable.whole_home(home.root, error) from None


def check_disk(home: Home) -> str:
    """Room for the tables and the database."""
    folder = _existing(home.root)
    free = shutil.disk_usage(folder).free / 1e9
    if free < NEEDED_GB:
        raise UnfitMachine.full_disk(folder, free)
    return f"{free:.0f} GB of disk are free"


def check_cache(home: Home) -> str:
    """The cache can be written, or is already filled."""
    folder = _existing(home.cache)
    if not os.access(folder, os.W_OK):
        raise NotWritable.cache(home.cache)
    if home.cache.exists() and home.cache.stat().st_mode & stat.S_IWOTH:
        raise UnfitMachine.open_cache(home.cache)
    return f"downloads are kept in {home.cache}"


def problems(home: Home, say: Callable[[str], None]) -> list[ChainlakeError]:
    """Run every check, report the good ones through ``say``, and return what is wrong."""
    found: list[ChainlakeError] = []
    checks: list[Callable[[], str]] = [
        check_java,
        lambda: check_home(home),
        lambda: check_disk(home),
        lambda: check_cache(home),
    ]
    for check in checks:
        try:
            say(f"ok       {check()}")
        except ChainlakeError as error:
            found.append(error)
    return found


def require(home: Home) -> None:
    """Raise the first problem of this machine, if any.

    Raises:
        InfrastructureError: what is missing and what to do about it.
    """
    for problem in problems(home, lambda text: None):
        raise problem


def main(argv: list[str] | None = None) -> int:
    """Print the checks; returns 0 when all is well, else 5."""
    parser = argparse.ArgumentParser(prog="python -m chainlake.env.doctor", description=__doc__)
    parser.add_argument("--quiet", action="store_true", help="print problems only")
    args = parser.parse_args(argv)
    try:
        found = problems(Home.from_env(), (lambda text: None) if args.quiet else print)
    except ChainlakeError as error:
        found = [error]
    for problem in found:
        print(f"chainlake: {problem.summary}", file=sys.stderr)
    return 5 if found else 0


if __name__ == "__main__":
    sys.exit(main())
