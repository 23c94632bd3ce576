"""What became of landed files: read, not read and why, or left for a later ingest; and how a step reports it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

from chainlake.definitions.source import Source
from chainlake.errors import ChainlakeError, InfrastructureError, InputError
from chainlake.ingest.landing.expected import expected_globs, glob_matches
from chainlake.ingest.landing.walk import walk
from chainlake.ingest.path_fields import date_begins, path_fields
from chainlake.paths import Home
from chainlake.run.results import Ingested, LeftFiles
from chainlake.schemas.ops_rows import FileOutcome, FileRow
from chainlake.storage.resolve import storage_of
from chainlake.terminal import one_line
from chainlake.words import counted

REMOVED: Literal["removed"] = "removed"
#: Outcomes of files that were read to their end; rows from before outcomes were recorded have ``None``.
READ: tuple[FileOutcome | None, ...] = (None, "ok")
#: How many files a line names, and how many a result does.
_IN_LINE, IN_RESULT = 5, 20
#: How far from a file's date, in days, the days are sought for which ``expect`` names it.
_REACH = 8
_ONE = timedelta(days=1)


def nothing_landed(home: Home, source: Source) -> str | None:
    """A sentence if no file of the source lies in its landing folder, as where a variable names a wrong place.

    Args:
        home: the installation.
        source: the source.
    """
    folder = home.landed(source.name)
    walked = walk(folder, follow_links=source.follow_links)
    if walked.entries or walked.waiting:
        return None
    globs = ", ".join(dict.fromkeys(one.glob for one in source.formats if one.glob))
    missing = storage_of(folder).on_disk and not os.path.lexists(folder)
    return (
        f"nothing has landed for {source.name}: {folder} {'does not exist' if missing else 'has no files'}; its files "
        f"({globs}) are expected there. CHAINLAKE_HOME or CHAINLAKE_LANDING names another place"
    )


def is_read(row: FileRow) -> bool:
    """Whether a row of ``ops.files`` is for a file that was read to its end and whose path could be used."""
    return row.get("outcome") in READ


def holds_nothing(row: FileRow) -> bool:
    """Whether nothing at all came of the file, so that it must not replace another."""
    return not is_read(row) and not row["rows_raw"]


def unread(replaces: Collection[str], rows: Iterable[FileRow]) -> list[FileRow]:
    """The current rows of files that were not read as they should be, except those that a correction has replaced.

    Args:
        replaces: the scope of the source's corrections.
        rows: all current rows of ``ops.files`` for the source.
    """
    rows = list(rows)
    best: dict[date, int] = {}
    if tuple(replaces) == ("file_date",):
        for row in rows:
            if is_read(row) and row["file_date"] is not None:
                best[row["file_date"]] = max(best.get(row["file_date"], 0), row["revision"] or 0)
    return [
        row
        for row in rows
        if not is_read(row)
        and row["outcome"] != REMOVED
        and (row["file_date"] is None or (row["revision"] or 0) >= best.get(row["file_date"], 0))
    ]


def days_of(source: Source, path: str, file_date: date | None) -> set[date]:
    """The UTC days that a file is for: those for which ``expect`` names it, otherwise those that its date covers.

    A file without a date is for no known day.
    """
    if file_date is None:
        return set()
    near = [file_date + _ONE * n for n in range(-_REACH, _REACH + 1)]
    named = {day for day in near if any(glob_matches(glob, path) for glob in expected_globs(source, day))}
    if named:
        return named
    first = date_begins(file_date, source.file_date_zone).date()
    last = (date_begins(file_date + _ONE, source.file_date_zone) - timedelta(microseconds=1)).date()
    return {first + _ONE * n for n in range((last - first).days + 1)}


@dataclass(frozen=True)
class Left:
    """What a run did not read.

    Args:
        unread: why each file is not read as it should be, by path.
        waiting: why each file is left for a later run, by path.
        lasting: the ones among ``unread`` that make this run fail: it found them, or they are for its days.
        needed: the ones among ``waiting`` that make it fail: they are for its days, or for no known day.
    """

    unread: Mapping[str, str]
    waiting: Mapping[str, str]
    lasting: Collection[str] = ()
    needed: Collection[str] = ()

    def text(self) -> str:
        """One line that names the files; empty if there are none."""
        return "; ".join(
            f"{counted(len(files), 'file')} {word}: {_named(files, first)}"
            for word, files, first in (("not read", self.unread, self.lasting), ("waiting", self.waiting, self.needed))
            if files
        )

    def result(self) -> LeftFiles:
        """The numbers of files and, up to a reasonable length, their names."""
        return {
            "unread": len(self.unread),
            "waiting": len(self.waiting),
            "left": [f"{one_line(path)}: {why}" for path, why in [*self.unread.items(), *self.waiting.items()]][
                :IN_RESULT
            ],
        }

    def failure(self, source: Source, result: Ingested) -> ChainlakeError | None:
        """The error with which the run ends after all its work; ``None`` if nothing that it needs is missing."""
        if self.needed:
            return FilesWaiting(source, {path: self.waiting[path] for path in self.needed}, result)
        if self.lasting:
            return FilesUnread(source, {path: self.unread[path] for path in self.lasting}, result)
        return None


class FilesWaiting(InfrastructureError):
    """Files that a run needs cannot be read for now; all others are ingested.

    Args:
        source: the source.
        files: why each cannot be read, by path.
        result: the result of the run.
    """

    def __init__(self, source: Source, files: Mapping[str, str], result: Ingested) -> None:
        super().__init__(
            f"{counted(len(files), 'file')} of {source.name} cannot be read yet: {_named(files)}",
            hint="All other files are ingested; run this again when they can be read.",
        )
        self._given = (source, files, result)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class FilesUnread(InputError):
    """Files that a run needs can never be read as they are; all others are ingested. Args as above."""

    def __init__(self, source: Source, files: Mapping[str, str], result: Ingested) -> None:
        super().__init__(
            f"{counted(len(files), 'file')} of {source.name} cannot be read as they are: {_named(files)}",
            hint="All other files are ingested. Deliver a damaged file again under its name; describe one that no "
            f"format fits in {source.file}; remove others. 'chainlake lint {source.name}' says more about each.",
        )
        self._given = (source, files, result)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class RereadFailed(InfrastructureError):
    """After an edit of the definition, a file with events cannot be read, and the others must not continue without it.

    Args:
        source: the source.
        files: why each cannot be read, by path.
    """

    def __init__(self, source: Source, files: Mapping[str, str]) -> None:
        super().__init__(
            f"the definition of source {source.name} was edited, so all its files must be read again, but "
            f"{len(files)} cannot be read for now: {_named(files)}",
            file=source.file,
            hint="Nothing was written; run this again when they can be read.",
        )
        self._given = (source, files)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


def _named(files: Mapping[str, str], first: Collection[str] = ()) -> str:
    order = [*(path for path in files if path in first), *(path for path in files if path not in first)]
    more = f" and {len(order) - _IN_LINE} more" if len(order) > _IN_LINE else ""
    return ", ".join(f"{one_line(path)} ({files[path]})" for path in order[:_IN_LINE]) + more


def why_unread(row: FileRow) -> str:
    """Outcome and reason of a row of ``ops.files``, and how many rows of the file are ingested, in one line."""
    why = f"{row['outcome']}: {row['reason']}" if row["reason"] else str(row["outcome"])
    kept = row["rows_raw"]
    return f"{why}; {counted(kept, 'row')} of it {'is' if kept == 1 else 'are'} ingested" if kept else why


def quarantined_rows(source: str, rows: Iterable[FileRow]) -> str:
    """How many rows of files are in quarantine, of which files, and where they can be looked at; empty if none is.

    Args:
        source: the source.
        rows: rows of ``ops.files`` for it.
    """
    bad = sorted(((row["rows_quarantined"] or 0, row) for row in rows), key=lambda one: -one[0])
    files = {row["path"]: f"{number} of {row['rows_read']}" for number, row in bad if number}
    if not files:
        return ""
    return (
        f"{counted(sum(number for number, _ in bad), 'row')} of {source} in quarantine: {_named(files)}; "
        f'why: chainlake sql "SELECT line, reason, field, value, raw FROM quarantine.{source}"'
    )


def copies(source: str, rows: Iterable[FileRow]) -> str:
    """The files with rows that hold the same bytes as another one; empty if there are none. Args as above."""
    by_bytes: dict[str, list[str]] = {}
    for row in rows:
        if row["rows_raw"] and is_read(row) and row["checksum"]:
            by_bytes.setdefault(row["checksum"], []).append(row["path"])
    alike = {sorted(paths)[0]: ", ".join(map(one_line, sorted(paths)[1:])) for paths in by_bytes.values() if paths[1:]}
    if not alike:
        return ""
    named = _named({path: f"the same bytes as {others}" for path, others in sorted(alike.items())})
    return f"files of {source} that are copies: {named}; remove one if it landed under a wrong name"


def left_by(
    source: Source, unread_rows: Iterable[FileRow], waiting: Mapping[str, str], taken: Collection[str],
    days: Iterable[date], due: Collection[str],
) -> Left:  # fmt: skip
    """What a run left unread.

    Args:
        source: the source.
        unread_rows: from :func:`unread`.
        waiting: why files wait, by path.
        taken: paths that this run took.
        days: the run's days.
        due: paths that are only waiting to settle and that the run should have taken.
    """
    days = set(days)
    rows = sorted(unread_rows, key=lambda row: str(row["path"]))
    lasting = {
        row["path"] for row in rows
        if row["path"] in taken or days & days_of(source, row["path"], row["file_date"])
    }  # fmt: skip
    needed = set(due)
    for path in waiting:
        file_date = path_fields(source, path).file_date
        if file_date is None or days & days_of(source, path, file_date):
            needed.add(path)
    return Left(
        {row["path"]: why_unread(row) for row in rows},
        dict(sorted(waiting.items())),
        sorted(lasting),
        sorted(needed),
    )
