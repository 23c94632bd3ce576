"""What the steps share: their sources, their folders for staged output, and one error for several failures."""

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
from chainlake.storage.resolve import storage_of

log = logging.getLogger(__name__)


class Defined(Protocol):
    """A compiled pattern or a loaded model."""

    @property
    def definition(self) -> Definition: ...


T = TypeVar("T", bound=Defined)

#: How many days a scheduled run looks back for stale work (docs/semantics.md#staleness); older days are repaired by
#: hand.
REPAIR_HORIZON = 7
#: States of days that were computed before and are not up to date.
STALE = ("stale", "failed")

#: No attempt works for as long as this, seconds.
_STALE_S = 7 * 86_400


def the_source(home: Home, name: str) -> tuple[Source, Sources]:
    """The source ``name``, and all sources.

    Raises:
        UsageError: there is no source with that name.
        DefinitionError: its file is wrong.
    """
    asked = asked_source(home, name)
    return asked, load_sources(home)


def staging_folder(home: Home, run_id: str, what: str) -> str:
    """A folder that no other attempt uses, since two attempts of one run can overlap."""
    storage_of(home.staging).own_folder(home.staging)
    run = re.sub(r"[^\w.-]", "-", run_id).lstrip(".") or "run"
    place = storage_of(home.staging).absolute(home.staging)
    return f"{place}/{run}/{what}-{uuid.uuid4().hex[:8]}"


def sweep_leftovers(home: Home) -> None:
    """Remove what killed attempts left more than a week ago: staged output, folders of Spark and tasks.

    Only folders that are marked as ours are swept; for others with such leftovers a warning says that they stay.
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
        good: the definitions of all sources that compiled.
        bad: those that did not; a file whose source cannot be read concerns every source.
        source: name of the source.

    Raises:
        UsageError: no file of the source has one of the names.
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
    """Record the reason in ``ops.intervals``, so that status shows it and the next run tries again.

    A failed audit is not recorded here: publishing does that, day by day.
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
        failures: pairs of definition and error; nothing is raised if empty.
        done: what was done nevertheless, for the message.

    Raises:
        ChainlakeError: of the class of the most lasting failure: first a definition's error, then a failed audit, then
            input, then infrastructure (which a retry may fix).
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
    raise kind(f"{len(failures)} failed: {listed}. Apart from this, {done}") from errors[0]
