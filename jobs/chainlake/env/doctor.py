"""``python -m chainlake.env.doctor``: can this machine run Chainlake? One sentence per check, never a stack trace."""

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
from chainlake.env.variables import check_variables
from chainlake.errors import ChainlakeError, InfrastructureError
from chainlake.paths import Home

#: Free disk needed; a run of the shipped data writes much less.
NEEDED_GB = 1.0


def _existing(path: Path) -> Path:
    """The nearest folder at or above ``path`` that exists."""
    while not path.exists():
        path = path.parent
    return path


class UnfitMachine(InfrastructureError):
    """Something on this machine has to be changed before Chainlake can run on it."""

    @classmethod
    def bracket(cls, root: Path) -> UnfitMachine:
        """The path of the data folder contains a bracket."""
        return cls(
            f"the data folder {root} has a bracket in its path, and Delta tables cannot be opened under such a path",
            hint="Set CHAINLAKE_HOME to a folder without [ and ].",
        )

    @classmethod
    def full_disk(cls, folder: Path, free: float) -> UnfitMachine:
        """The disk under a folder has only ``free`` GB left."""
        return cls(
            f"{NEEDED_GB:.0f} GB of free disk are needed in {folder}, but only {free:.1f} GB are free",
            hint="Free some space, or set CHAINLAKE_HOME to a folder on another disk.",
        )

    @classmethod
    def open_cache(cls, cache: Path) -> UnfitMachine:
        """Other users can put code into the cache."""
        return cls(
            f"every user of this machine can write to the cache folder {cache}, and Chainlake runs code from it",
            hint="Close it with chmod o-w, or set CHAINLAKE_CACHE to a folder of your own.",
        )


def check_java() -> str:
    """Check for Java 17 or 21."""
    home = java_home()
    return f"Java {java_version(home / 'bin' / 'java')} at {home}"


def check_home(home: Home) -> str:
    """Check that ``CHAINLAKE_HOME`` can be made and written to, and that Delta can address it."""
    if set("[]") & set(str(home.root)):
        raise UnfitMachine.bracket(home.root)
    try:
        home.root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home.root):
            return f"data goes to {home.root}"
    except OSError as error:
        raise NotWritable.whole_home(home.root, error) from None


def check_disk(home: Home) -> str:
    """Check that there is room for the tables and the database."""
    folder = _existing(home.root)
    free = shutil.disk_usage(folder).free / 1e9
    if free < NEEDED_GB:
        raise UnfitMachine.full_disk(folder, free)
    return f"{free:.0f} GB of disk are free"


def check_cache(home: Home) -> str:
    """Check that the cache can be written to, and not by every user."""
    folder = _existing(home.cache)
    if not os.access(folder, os.W_OK):
        raise NotWritable.cache(home.cache)
    if home.cache.exists() and home.cache.stat().st_mode & stat.S_IWOTH:
        raise UnfitMachine.open_cache(home.cache)
    return f"downloads are kept in {home.cache}"


def check_environment() -> str:
    """Check the values of our environment variables."""
    check_variables()
    return "the environment's settings can be used"


def problems(home: Home, say: Callable[[str], None]) -> list[ChainlakeError]:
    """Run every check, report good results to ``say``, and return the problems."""
    found: list[ChainlakeError] = []
    checks: list[Callable[[], str]] = [
        check_environment,
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
        InfrastructureError: something is missing; the message says what, and what to do.
    """
    for problem in problems(home, lambda text: None):
        raise problem


def main(argv: list[str] | None = None) -> int:
    """Print the results of the checks; returns 0 if all is well, else 5."""
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
