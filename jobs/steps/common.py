"""What the steps share: their sources, their folders for staged output, and how several failures become one."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from jobs.errors import AuditFailed, ChainlakeError, DefinitionError, InfrastructureError, UsageError
from jobs.lake.runs import one_line
from jobs.paths import Home
from jobs.sources import Source, load_sources

#: Days that a scheduled run looks back for stale work (design §4); older days are repaired by hand.
REPAIR_HORIZON = 7

_STALE_STAGING_S = 7 * 86_400


def the_source(home: Home, name: str) -> tuple[Source, dict[str, Source]]:
    """The source ``name``, and all sources.

    Raises:
        UsageError: if there is none of that name.
    """
    sources = load_sources(home)
    if name not in sources:
        known = ", ".join(sorted(sources)) or "none yet"
        raise UsageError(
            f"there is no source '{name}'", hint=f"Sources are {known}; they are files of {home.config / 'sources'}."
        )
    return sources[name], sources


def staging_folder(home: Home, run_id: str, what: str) -> str:
    """A folder that no other attempt uses: two attempts of one run can overlap."""
    return f"{home.staging}/{run_id}/{what}-{uuid.uuid4().hex[:8]}".replace(":", "-").replace("+", "-")


def sweep_staging(home: Home) -> None:
    """Remove local staged output that attempts left behind more than a week ago."""
    folder = Path(home.staging)
    if not folder.is_dir():
        return
    now = time.time()
    for entry in folder.iterdir():
        if now - entry.stat().st_mtime > _STALE_STAGING_S:
            shutil.rmtree(entry, ignore_errors=True)


def discard(path: str) -> None:
    """Remove staged output that has been published."""
    shutil.rmtree(path, ignore_errors=True)


def raise_together(failures: Sequence[tuple[str, BaseException]], done: str) -> None:
    """Raise one error for all that failed, after everything else was published.

    Args:
        failures: definition and error; nothing is raised if empty.
        done: what was done all the same, for the message.

    Raises:
        ChainlakeError: of the class of the most lasting failure: a definition's error, then a failed audit, then
            infrastructure (which a retry can mend).
    """
    if not failures:
        return
    if len(failures) == 1 and isinstance(failures[0][1], ChainlakeError):
        raise failures[0][1]
    errors = [error for _, error in failures]
    kind: type[ChainlakeError] = InfrastructureError
    for candidate in (AuditFailed, DefinitionError):
        if any(isinstance(error, candidate) for error in errors):
            kind = candidate
    listed = "; ".join(f"{name}: {one_line(error)}" for name, error in failures)
    raise kind(f"{len(failures)} failed ({done}): {listed}")
