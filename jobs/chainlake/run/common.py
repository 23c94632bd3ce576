"""What the steps share: their sources, their folders for staged output, and how several failures become one."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Protocol, TypeVar

from chainlake.definitions.errors import UnknownDefinition
from chainlake.definitions.files import BrokenDefinition
from chainlake.definitions.source import Source, Sources, asked_source, load_sources
from chainlake.env.own_folders import MARKER
from chainlake.errors import AuditFailed, ChainlakeError, DefinitionError, InfrastructureError, InputError
from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.runs import error_line
from chainlake.paths import Home
from chainlake.storage.door import storage_of

log = logging.getLogger(__name__)


class Defined(Protocol):
    """A compiled pattern or a loaded model."""

    @property
    def definition(self) -> Definition: ...


T = TypeVar("T", bound=Defined)

#: Days that a scheduled run looks back for stale work (docs/semantics.md#staleness); older days are repaired by hand.
REPAIR_HORIZON = 7
#: States of days that were computed once and are not up to date.
STALE = ("stale", "failed")

#: No attempt works for so long.
_STALE_S = 7 * 86_400


def the_source(home: Home, name: str) -> tuple[Source, Sources]:
    """The source ``name``, and all sources.

    Raises:
        UsageError: there is none of that name.
        DefinitionError: its file is wrong.
    """
    asked = asked_source(home, name)
    return asked, load_sources(home)


def staging_folder(home: Home, run_id: str, what: str) -> str:
    """A folder that no other attempt uses: two attempts of one run can overlap."""
    storage_of(home.staging).own_folder(home.staging)
    run = re.sub(r"[^\w.-]", "-", run_id).lstrip(".") or "run"
    place = storage_of(home.staging).absolute(home.staging)
    return f"{place}/{run}/{what}-{uuid.uuid4().hex[:8]}"


def sweep_leftovers(home: Home) -> None:
    """Remove what killed attempts left over a week ago: staged output, folders of Spark and tasks.

    Only in folders that are marked as ours; of others with such leftovers it is said that they stay.
    """
    for folder in (home.staging, str(home.temporary)):
        if not storage_of(folder).sweep(folder, _STALE_S):
            log.warning("%s is not marked as Chainlake's (%s is missing): nothing in it is removed", folder, MARKER)


def discard(path: str) -> None:
    """Remove staged output that has been published."""
    storage_of(path).remove_all(path)


def chosen(
    kind: str, wanted: Sequence[str] | None, good: Iterable[T], bad: Iterable[BrokenDefinition], source: str
) -> tuple[list[T], list[BrokenDefinition]]:
    """The definitions of a source that a run is about: those named, or all.

    Args:
        kind: ``pattern`` or ``model``.
        wanted: names without the kind; all if None.
        good: what compiled, of all sources.
        bad: what did not; a file whose source cannot be read concerns every source.
        source: name of the source.

    Raises:
        UsageError: a name that no file of the source has.
    """
    mine = {one.definition.name.removeprefix(f"{kind}/"): one for one in good if one.definition.source == source}
    broken = {one.name: one for one in bad if one.source in (source, None)}
    if wanted is None:
        return list(mine.values()), list(broken.values())
    known = mine.keys() | broken.keys()
    unknown = sorted(set(wanted) - known)
    if unknown:
        raise UnknownDefinition.of_source(source, kind, unknown, sorted(known))
    return [one for name, one in mine.items() if name in wanted], [b for b in broken.values() if b.name in wanted]


def record_failure(
    home: Home, definition: Definition, fingerprints: Mapping[date, str], error: BaseException, run_id: str
) -> None:
    """Keep the reason in ``ops.intervals``, so that status shows it and the next run tries again.

    A failed audit is not noted here: publishing notes it, day by day.
    """
    ops.append(
        home,
        "intervals",
        [
            {
                "definition": definition.name,
                "day": day,
                "table_name": definition.table_name,
                "definition_hash": definition.definition_hash,
                "engine_version": definition.engine_version,
                "input_fingerprint": found,
                "status": "failed",
                "reason": error_line(error),
            }
            for day, found in fingerprints.items()
        ],
        run_id,
    )


def raise_together(failures: Sequence[tuple[str, BaseException]], done: str) -> None:
    """Raise one error for all that failed, after everything else was published.

    Args:
        failures: definition and error; nothing is raised if empty.
        done: what was done all the same, for the message.

    Raises:
        ChainlakeError: of the class of the most lasting failure: a definition's error, then a failed audit, then
            input, then infrastructure (which a retry can mend).
    """
    if not failures:
        return
    if len(failures) == 1 and isinstance(failures[0][1], ChainlakeError):
        raise failures[0][1]
    errors = [error for _, error in failures]
    kind: type[ChainlakeError] = InfrastructureError
    for candidate in (InputError, AuditFailed, DefinitionError):
        if any(isinstance(error, candidate) for error in errors):
            kind = candidate
    listed = "; ".join(f"{name}: {error_line(error)}" for name, error in failures)
    raise kind(f"{len(failures)} failed ({done}): {listed}") from errors[0]
