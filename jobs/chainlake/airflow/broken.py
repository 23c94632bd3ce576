"""Reports broken definitions where Airflow reports broken DAG files: at the top of its page.

The steps leave a broken definition out and say so in their logs, but a person who has just edited a file does not look
there. Checking all files takes seconds, and DAG files are parsed all the time, so results are kept until a file
changes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from chainlake.digests import text_digest
from chainlake.env.own_folders import own_folder
from chainlake.errors import DefinitionError
from chainlake.paths import Home, code_files
from chainlake.words import counted


class BrokenDefinitions(DefinitionError):
    """Definitions that no step can use."""

    @classmethod
    def of(cls, lines: list[str]) -> BrokenDefinitions:
        """For the errors of all of them."""
        what = f"{counted(len(lines), 'definition')} cannot be used:\n" + "\n".join(lines)
        return cls(what, hint="All others run. Fix the files; chainlake lint FILE checks one.")


def check_definitions(home: Home) -> None:
    """Check that every source, pattern and model of an installation can be used.

    Args:
        home: the installation.

    Raises:
        BrokenDefinitions: some cannot be used; the error names each, with file and line.
    """
    now = _state(home)
    kept = own_folder(home.temporary) / f"definitions-{text_digest(str(home.config))[:16]}.json"
    lines = _kept(kept, now)
    if lines is None:
        lines = _looked_through(home)
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.write_text(json.dumps({"state": now, "lines": lines}))
        os.replace(part, kept)
    if lines:
        raise BrokenDefinitions.of(lines)


def _state(home: Home) -> str:
    """A digest that changes when a definition or its reader may have: of names, sizes and times of all their files."""
    files = [path for path in home.config.rglob("*") if path.is_file()] + code_files()
    return text_digest(repr(sorted((str(path), *_stat(path)) for path in files)))


def _stat(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _kept(file: Path, state: str) -> list[str] | None:
    """What was found when the files were as they are now; None if that is not kept."""
    try:
        stored = json.loads(file.read_text())
    except (OSError, ValueError):
        # Nothing is kept yet, or in the form of another version: the files are checked again.
        return None
    return stored["lines"] if isinstance(stored, dict) and stored.get("state") == state else None


def _looked_through(home: Home) -> list[str]:
    """The error of each broken definition, from the loaders that the steps use."""
    from chainlake.catalog.installed import Installed
    from chainlake.definitions.errors import SourceBroken
    from chainlake.definitions.source import load_sources

    sources = load_sources(home)
    broken: list[tuple[str, BaseException]] = [(f"source/{name}", error) for name, error in sources.broken.items()]
    for kind, each in Installed.load(home, sources).broken.items():
        broken += [(f"{kind}/{one.name}", one.error) for one in each]
    own, waiting = SourceBroken.apart(broken)
    return [
        *(str(error) for _, error in own),
        *SourceBroken.waiting_lines(waiting),
    ]
