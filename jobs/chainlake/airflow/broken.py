"""Definitions that are broken, told where Airflow tells of broken files: at the top of its page.

The steps leave a broken definition out and say so in their logs, where nobody looks who has just edited a file. Looking
through all files takes seconds, and DAG files are parsed all the time; so what was found is kept until a file changes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from chainlake.digests import text_digest
from chainlake.env.own_folders import own_folder
from chainlake.errors import ChainlakeError, DefinitionError
from chainlake.paths import Home, code_files
from chainlake.words import counted


class BrokenDefinitions(DefinitionError):
    """Definitions that no step can use."""

    @classmethod
    def of(cls, told: list[str]) -> BrokenDefinitions:
        """For what is wrong with each."""
        what = f"{counted(len(told), 'definition')} cannot be used:\n" + "\n".join(told)
        return cls(what, hint="All others run. Fix the files; chainlake lint FILE checks one.")


def check_definitions(home: Home) -> None:
    """See to it that every source, pattern and model of an installation can be used.

    Args:
        home: where the definitions lie.

    Raises:
        BrokenDefinitions: some cannot; it names each, with file and line.
    """
    now = _state(home)
    kept = own_folder(home.temporary) / f"definitions-{text_digest(str(home.config))[:16]}.json"
    told = _kept(kept, now)
    if told is None:
        told = _looked_through(home)
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.write_text(json.dumps({"state": now, "told": told}))
        os.replace(part, kept)
    if told:
        raise BrokenDefinitions.of(told)


def _state(home: Home) -> str:
    """What tells that a definition or its reader may have changed: names, sizes and times of all their files."""
    files = [path for path in home.config.rglob("*") if path.is_file()] + code_files()
    return text_digest(repr(sorted((str(path), *_stat(path)) for path in files)))


def _stat(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _kept(file: Path, state: str) -> list[str] | None:
    """What was found when the files were as now, if that was noted."""
    try:
        noted = json.loads(file.read_text())
    except (OSError, ValueError):
        # Not looked through yet, or a note of another version: looked through again.
        return None
    return noted["told"] if isinstance(noted, dict) and noted.get("state") == state else None


def _looked_through(home: Home) -> list[str]:
    """What is wrong with each definition that is broken, by the loaders that the steps use."""
    from chainlake.catalog.installed import Installed
    from chainlake.definitions.source import load_sources

    sources = load_sources(home)
    broken: list[ChainlakeError] = [*sources.broken.values()]
    broken += [one.error for each in Installed.load(home, sources).broken.values() for one in each]
    return [str(error) for error in broken]
