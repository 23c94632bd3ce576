"""Which contents a run parses, as which loads, and the ``ops.files`` rows that result."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from chainlake.days import instant
from chainlake.definitions.source import Source
from chainlake.ingest.landing.discovery import Landed
from chainlake.ingest.landing.outcomes import holds_nothing
from chainlake.ingest.landing.plan import Plan
from chainlake.ingest.parser_version import parser_version
from chainlake.ingest.rows.parsed import WAITING, Counts, Task
from chainlake.schemas.ops_rows import FileOutcome, FileRow


@dataclass(frozen=True)
class Loads:
    """The loads of the files that a run takes.

    Args:
        source: the source.
        taken: the files.
        tasks: the contents to parse.
        of_content: file_id → the new load of the content, or the row of a path whose content was already parsed.
    """

    source: Source
    taken: tuple[Landed, ...]
    tasks: tuple[Task, ...]
    of_content: Mapping[str, str | FileRow]

    @classmethod
    def of(cls, source: Source, plan: Plan) -> Loads:
        """Assign a load to each content that ``plan`` takes."""
        loads: dict[str, str | FileRow] = {}
        tasks = []
        parsed = plan.reusable()
        for landed in plan.taken:
            if landed.file_id in loads:
                continue
            load = loads[landed.file_id] = parsed.get(landed.file_id) or uuid.uuid4().hex
            if isinstance(load, str):
                tasks.append(Task.of(landed, load))
        return cls(source, plan.taken, tuple(tasks), loads)

    def lost(self, counts: Mapping[str, Counts]) -> dict[str, str]:
        """Path → why the file could not be read after all."""
        found = {}
        for landed in self.taken:
            load = self.of_content[landed.file_id]
            if isinstance(load, str) and counts[load].outcome == WAITING:
                found[landed.path] = counts[load].reason
        return found

    def rows(self, counts: Mapping[str, Counts], lost: Collection[str]) -> list[FileRow]:
        """The ``ops.files`` rows of all files except ``lost``."""
        return [
            self._row(landed, self.of_content[landed.file_id], counts)
            for landed in self.taken
            if landed.path not in lost
        ]

    def _row(self, landed: Landed, load: str | FileRow, counts: Mapping[str, Counts]) -> FileRow:
        figures = _Figures.of(counts[load]) if isinstance(load, str) else _Figures.of_row(load)
        return {
            "source": self.source.name,
            "path": landed.path,
            "file_id": landed.file_id,
            "size": landed.size,
            "checksum": landed.checksum,
            "path_fields": landed.fields,
            "file_date": landed.file_date,
            "revision": landed.revision,
            "definition_hash": self.source.definition_hash,
            "parser_version": parser_version(self.source),
            "load_id": figures.load_id,
            "rows_read": figures.rows_read,
            "rows_raw": figures.rows_raw,
            "rows_quarantined": figures.rows_quarantined,
            "first_ts": figures.first_ts,
            "last_ts": figures.last_ts,
            "outcome": figures.outcome,
            "reason": figures.reason,
        }


class _Figures(NamedTuple):
    """The part of a row of ``ops.files`` that comes from the parse that made its load."""

    load_id: str
    rows_read: int | None
    rows_raw: int | None
    rows_quarantined: int | None
    first_ts: datetime | None
    last_ts: datetime | None
    outcome: FileOutcome | None
    reason: str | None

    @classmethod
    def of_row(cls, row: FileRow) -> _Figures:
        """From the row of a path whose content was already parsed."""
        counts = row["rows_read"], row["rows_raw"], row["rows_quarantined"]
        return cls(row["load_id"], *counts, row["first_ts"], row["last_ts"], row["outcome"], row["reason"])

    @classmethod
    def of(cls, counts: Counts) -> _Figures:
        """From the counts of a content that was just parsed."""
        times = _instant(counts.first_us), _instant(counts.last_us)
        rows = counts.rows_read, counts.rows_raw, counts.rows_quarantined
        assert counts.outcome != WAITING
        return cls(counts.load_id, *rows, *times, counts.outcome, " ".join(counts.reason.split()) or None)


def load_of_contents(rows: Iterable[FileRow]) -> dict[str, str]:
    """file_id → the load that says what is wrong with the content: one by which it was read, if there is one."""
    found: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: (holds_nothing(row), row["path"])):
        found.setdefault(row["file_id"], row["load_id"])
    return found


def _instant(us: int | None) -> datetime | None:
    return None if us is None else instant(us)
