"""The log of files that ingest left for later (``ops.waiting_files``), and of those that are no longer there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime

from chainlake.definitions.source import Source
from chainlake.ingest.landing.outcomes import REMOVED
from chainlake.ingest.path_fields import path_fields
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.ops_rows import FileRow, WaitingFileRow

#: Why a file waits whose date has not come yet; most often the date is wrong.
EARLY = "dated in the future"


def early(file_date: date | None, now: datetime) -> bool:
    """Whether a date is in the future."""
    return file_date is not None and file_date > now.astimezone(UTC).date()


def note_waiting(home: Home, source: Source, waiting: Mapping[str, str], run_id: str, *, clear: bool = True) -> None:
    """Bring the log up to date; no row is written if nothing changed.

    Args:
        home: the installation.
        source: the source, whose lock the caller holds.
        waiting: why files wait, by path.
        run_id: the run that writes.
        clear: whether to record that files not among ``waiting`` no longer wait.
    """
    current = ops.current(home, "waiting_files", source=source.name)
    recorded = {row["path"]: row["reason"] for row in current if row["waits"]}
    rows: list[WaitingFileRow] = [
        {
            "source": source.name,
            "path": path,
            "waits": True,
            "reason": why,
            "file_date": path_fields(source, path).file_date,
        }
        for path, why in sorted(waiting.items())
        if recorded.get(path) != why
    ]
    if clear:
        rows += [
            {"source": source.name, "path": path, "waits": False} for path in sorted(recorded) if path not in waiting
        ]
    ops.append(home, "waiting_files", rows, run_id)


def removed_rows(rows: Iterable[FileRow]) -> list[FileRow]:
    """The ``ops.files`` rows that record that files from which nothing came are no longer there."""
    return [{**row, "path_fields": dict(row["path_fields"] or {}), "outcome": REMOVED} for row in rows]
