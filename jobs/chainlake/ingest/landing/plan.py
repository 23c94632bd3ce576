"""What an ingest run has to do, decided without a JVM from the landing folder and ``ops``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from chainlake.cep.values.arrow import text_array
from chainlake.days import Days
from chainlake.definitions.source import Source
from chainlake.errors import InputError
from chainlake.ingest.identity import identity
from chainlake.ingest.landing.discovery import Landed, Landing
from chainlake.ingest.landing.effective import Effective
from chainlake.ingest.landing.expected import expected_globs, glob_matches
from chainlake.ingest.landing.outcomes import REMOVED, RereadFailed, holds_nothing, is_read
from chainlake.ingest.parser_version import parser_version
from chainlake.ingest.path_fields import date_begins, path_fields
from chainlake.schemas.ops_rows import EventDayRow, FileRow
from chainlake.terminal import one_line

#: How many files a message names.
_NAMED = 10


@dataclass(frozen=True)
class Plan:
    """The work of one run.

    Args:
        taken: files that are new or changed, or all files after an edit of the definition.
        current: the current ``ops.files`` rows by path, except those of removed files.
        days: the current ``ops.event_days`` rows by day.
        redefined: whether the source definition or the parser changed since the files were read.
        waiting: why files are left for a later run, by path.
        due: the ones among them that this run should have taken and that are only growing or too young.
        removed: rows of files from which nothing came and that are no longer there.
    """

    taken: tuple[Landed, ...]
    current: dict[str, FileRow]
    days: dict[date, EventDayRow]
    redefined: bool
    waiting: dict[str, str]
    due: tuple[str, ...] = ()
    removed: tuple[FileRow, ...] = ()

    @property
    def changing(self) -> set[date]:
        """Days that an attempt left half written when it died."""
        return {day for day, row in self.days.items() if row["status"] == "changing"}

    @property
    def idle(self) -> bool:
        """Whether there is nothing to read and nothing to repair, so that no JVM is needed."""
        return not self.taken and not self.changing

    def reusable(self) -> dict[str, FileRow]:
        """file_id → the current row of a path whose content was already parsed."""
        found: dict[str, FileRow] = {}
        if not self.redefined:
            for _, row in sorted(self.current.items()):
                # A file that was not read may be readable under another name.
                if is_read(row) and not _unexplained(row):
                    found.setdefault(row["file_id"], row)
        return found

    def rows_touched(self) -> list[FileRow]:
        """Rows whose days must be resolved again: those with the same path, content or file date as a taken file."""
        if self.redefined:
            return list(self.current.values())
        paths = {landed.path for landed in self.taken}
        contents = {landed.file_id for landed in self.taken}
        dates = {landed.file_date for landed in self.taken if landed.file_date is not None}
        return [
            row
            for path, row in self.current.items()
            if path in paths or row["file_id"] in contents or row["file_date"] in dates
        ]


def make_plan(
    source: Source,
    days: Days,
    landing: Landing,
    files: Sequence[FileRow],
    event_days: Sequence[EventDayRow],
) -> Plan:
    """Decide which files this run takes.

    Args:
        days: the run's interval ``[s, e)``.
        landing: what has landed.
        files: current rows of ``ops.files`` for the source.
        event_days: current rows of ``ops.event_days`` for the source.

    Raises:
        InputError: the definition was edited and files that were read before are gone from landing.
        RereadFailed: the definition was edited and files that were read before cannot be read for now.
    """
    current = {row["path"]: row for row in files if row.get("outcome") != REMOVED}
    absent = sorted(path for path in current if path not in landing.files)
    removed = [path for path in absent if holds_nothing(current[path]) and not landing.waits(path)]
    rows = {path: row for path, row in current.items() if path not in set(removed)}
    redefined = any(not is_current(source, row) for row in rows.values())
    if redefined:
        _require_all_present(source, [path for path in absent if path in rows], landing)
    taken = []
    for path, landed in sorted(landing.files.items()):
        row = rows.get(path)
        changed = row is None or row["file_id"] != landed.file_id or _unexplained(row)
        known = row is not None and redefined
        if known or (changed and (row is not None or _due(source, days, path, landed.file_date))):
            taken.append(landed)
    due = tuple(p for p in sorted(landing.settling) if _due(source, days, p, path_fields(source, p).file_date))
    return Plan(
        taken=tuple(taken),
        current=rows,
        days={row["day"]: row for row in event_days},
        redefined=redefined,
        waiting=landing.waiting,
        due=due,
        removed=tuple(current[path] for path in removed),
    )


def _require_all_present(source: Source, absent: list[str], landing: Landing) -> None:
    waiting = {path: landing.why(path) for path in absent if landing.waits(path)}
    gone = [path for path in absent if path not in waiting]
    if gone:
        raise FilesGone.of(source, gone)
    if waiting:
        raise RereadFailed(source, waiting)


class FilesGone(InputError):
    """Files that must be read again are no longer in landing."""

    paths: tuple[str, ...]

    @classmethod
    def of(cls, source: Source, paths: list[str]) -> FilesGone:
        """For an edited source and the paths of its files."""
        return cls(
            f"the definition of source {source.name} was edited, so all its files must be read again, "
            f"but {len(paths)} are gone from landing: {_named(paths)}",
            file=source.file,
            hint=f"Put them back into landing/{source.name}/, or undo the edit.",
        ).holding(paths=tuple(paths))


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(one_line(path) for path in paths[:_NAMED])}{more}"


def _unexplained(row: FileRow) -> bool:
    """Whether nothing came of a file and no reason was recorded then; perhaps it just could not be read at that
    time.
    """
    return row.get("outcome") is None and row.get("rows_read") == 0


def is_current(source: Source, row: FileRow) -> bool:
    """Whether a row of ``ops.files`` was parsed under today's definition and parser."""
    return (row["definition_hash"], row["parser_version"]) == (source.definition_hash, parser_version(source))


def effective(source: Source, rows: Iterable[FileRow]) -> list[Effective]:
    """The distinct contents among current ``ops.files`` rows, each under the smallest path that holds it.

    A file from which nothing came does not count: it must neither stand in for the same content that was read under
    another name nor replace what it was meant to correct.
    """
    first: dict[str, FileRow] = {}
    for row in sorted(rows, key=lambda r: r["path"]):
        if is_current(source, row) and not holds_nothing(row):
            first.setdefault(row["file_id"], row)
    return [
        Effective(
            load_id=row["load_id"],
            file_date=row["file_date"],
            revision=int(row["revision"] or 0),
            name=row["path"],
            key=path_key(source, row["path"], dict(row["path_fields"] or {})),
            whole=is_read(row),
            first=_day(row.get("first_ts")),
            last=_day(row.get("last_ts")),
        )
        for row in first.values()
    ]


def _day(at: datetime | None) -> date | None:
    return None if at is None else at.astimezone(UTC).date()


def path_key(source: Source, path: str, fields: dict[str, str]) -> str | None:
    """The key that a path names, as events have it; ``None`` if the key is in the rows."""
    for form in source.formats:
        rule = form.mapping.get(source.key)
        if rule is not None and rule.path is not None and rule.path in fields and form.fits_path(path):
            (key,) = identity(text_array([fields[rule.path]]), rule.case).to_pylist()
            return None if key is None else str(key)
    return None


def _due(source: Source, days: Days, path: str, file_date: date | None) -> bool:
    """Whether a file belongs to the run: it is dated before the interval's end, not dated, or expected for its days."""
    if file_date is None:
        return True
    end = datetime(days.end.year, days.end.month, days.end.day, tzinfo=UTC)
    if date_begins(file_date, source.file_date_zone) < end:
        return True
    return any(glob_matches(glob, path) for day in days for glob in expected_globs(source, day))
