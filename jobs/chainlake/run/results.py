"""What a step says it has done: printed by its verb, written as JSON for whoever started it, summed up by backfills."""

from __future__ import annotations

from typing import Literal, TypedDict


class ChangedRows(TypedDict):
    """Rows that came into the step's tables, were changed in them, and left them."""

    added: int
    changed: int
    withdrawn: int


class Computed(ChangedRows):
    """What came of days; ``days``: how many were published."""

    days: int


#: The numbers of ``Computed``, which are summed up over several steps.
COUNTS: tuple[Literal["days", "added", "changed", "withdrawn"], ...] = ("days", "added", "changed", "withdrawn")


class Detected(Computed):
    """What came of ``detect``; ``patterns``: how many came to their end."""

    patterns: int


class Monitored(Computed):
    """What came of ``monitor``; ``models``: how many came to their end."""

    models: int


class Taken(ChangedRows):
    """What came of landed files.

    Args:
        files: taken.
        rows: read.
        quarantined: rows of them.
        days: touched, as ISO dates.
        published: version of the events table; None if it did not move.
    """

    files: int
    rows: int
    quarantined: int
    days: list[str]
    published: int | None


class LeftFiles(TypedDict):
    """What a run of ``ingest`` leaves.

    Args:
        unread: files that cannot be read as they are.
        waiting: files that cannot be read for now.
        left: the first of them, with what is wrong.
    """

    unread: int
    waiting: int
    left: list[str]


class Ingested(Taken, LeftFiles):
    """What came of ``ingest``."""


class Written(Computed, total=False):
    """The file of a step that computes, as whoever started it reads it; ``error``: why it failed."""

    error: str
    exit_code: int


class MaintainedTables(TypedDict):
    """What came of ``maintain``.

    Args:
        tables: maintained.
        compacted: files merged.
        loads: raw loads removed.
        removed: files deleted.
        files: left.
        logs: old logs removed or cut, if all tables were maintained.
        cached: things removed from the cache, if all tables were.
    """

    tables: int
    compacted: int
    loads: int
    removed: int
    files: int
    logs: int
    cached: int


class RetiredDefinition(TypedDict):
    """What came of ``retire``.

    Args:
        definition: its name in ``ops``.
        days: marked.
        dropped: tables, or parts of tables, that were removed.
    """

    definition: str
    days: int
    dropped: list[str]


class Backfilled(Computed):
    """What came of many applications, one of which is a step and its days."""

    applications: int
