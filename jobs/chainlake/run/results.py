"""What a step reports: its verb prints it and writes it as JSON for the caller; backfills add it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class ChangedRows(TypedDict):
    """Numbers of rows that were added to the step's tables, changed in them, and withdrawn from them."""

    added: int
    changed: int
    withdrawn: int


class Computed(ChangedRows):
    """The result of computing days; ``days``: how many were published."""

    days: int


#: The numbers of ``Computed``, which are summed up over several steps.
COUNTS: tuple[Literal["days", "added", "changed", "withdrawn"], ...] = ("days", "added", "changed", "withdrawn")


#: What the numbers of rows of a step count.
_ROWS: dict[str, str] = {
    "ingest": "events",
    "detect": "rows of matches, episodes and rankings",
    "monitor": "rows of findings of models",
}
_OF_BOTH = "rows of matches, episodes, rankings and findings of models"


def counts_line(counts: Mapping[str, Any], step: str = "") -> str:
    """Counts in one line, such as ``days 2, added 3, changed 0, withdrawn 1 rows of findings of models``.

    Args:
        counts: values by name, in the order in which they are told.
        step: whose they are; of ``detect`` and ``monitor`` together if empty.
    """
    rows = f" {_ROWS.get(step, _OF_BOTH)}"
    return ", ".join(f"{name} {value}{rows if name == 'withdrawn' else ''}" for name, value in counts.items())


class Detected(Computed):
    """The result of ``detect``; ``patterns``: how many were finished."""

    patterns: int


class Monitored(Computed):
    """The result of ``monitor``; ``models``: how many were finished."""

    models: int


class Taken(ChangedRows):
    """The result of taking landed files.

    Args:
        files: number of files taken.
        rows: number of rows read.
        quarantined: number of these rows in quarantine.
        days: days touched, as ISO dates.
        published: version of the events table; None if it did not change.
    """

    files: int
    rows: int
    quarantined: int
    days: list[str]
    published: int | None


class LeftFiles(TypedDict):
    """What a run of ``ingest`` leaves undone.

    Args:
        unread: number of files that cannot be read as they are.
        waiting: number of files that cannot be read at the moment.
        left: the first of these files, with what is wrong.
    """

    unread: int
    waiting: int
    left: list[str]


class Ingested(Taken, LeftFiles):
    """The result of ``ingest``."""


class Written(Computed, total=False):
    """The result file of a step that computes, as its caller reads it; ``error``: why it failed."""

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
    """The result of many applications, each of which is a step and its days."""

    applications: int
