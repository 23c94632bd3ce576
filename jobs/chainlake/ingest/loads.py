"""Which contents a run parses, as which loads, and the ``ops.files`` rows that come of it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chainlake.days import instant
from chainlake.definitions.source import Source
from chainlake.ingest.landing.discovery import Landed
from chainlake.ingest.landing.outcomes import holds_nothing
from chainlake.ingest.landing.plan import Plan
from chainlake.ingest.parser_version import parser_version
from chainlake.ingest.rows.parsed import WAITING, Counts, Task

#: A content, and which formats may take it by its name: what is alike in both is parsed once.
Content = tuple[str, tuple[bool, ...]]
#: What rows of one load have in common.
_OF_LOAD = ("load_id", "rows_read", "rows_raw", "rows_quarantined", "first_ts", "last_ts", "outcome", "reason")


@dataclass(frozen=True)
class Loads:
    """The loads of the files that a run takes.

    Args:
        source: the source.
        taken: the files.
        tasks: what to parse.
        of_content: the new load of each content, or the row of a path that has it parsed already.
    """

    source: Source
    taken: tuple[Landed, ...]
    tasks: tuple[Task, ...]
    of_content: Mapping[Content, str | dict[str, Any]]

    @classmethod
    def of(cls, source: Source, plan: Plan) -> Loads:
        """Give each content that ``plan`` takes its load."""
        loads: dict[Content, str | dict[str, Any]] = {}
        tasks = []
        parsed = plan.reusable()
        for landed in plan.taken:
            content = _content(source, landed)
            if content in loads:
                continue
            loads[content] = parsed.get(landed.file_id) or uuid.uuid4().hex
            load = loads[content]
            if isinstance(load, str):
                tasks.append(Task.of(landed, load))
        return cls(source, plan.taken, tuple(tasks), loads)

    def lost(self, counts: Mapping[str, Counts]) -> dict[str, str]:
        """Why files could not be read after all, by path."""
        found = {}
        for landed in self.taken:
            load = self.of_content[_content(self.source, landed)]
            if isinstance(load, str) and counts[load].outcome == WAITING:
                found[landed.path] = counts[load].reason
        return found

    def rows(self, counts: Mapping[str, Counts], lost: Collection[str]) -> list[dict[str, Any]]:
        """The ``ops.files`` rows of all but ``lost``."""
        return [
            self._row(landed, self.of_content[_content(self.source, landed)], counts)
            for landed in self.taken
            if landed.path not in lost
        ]

    def _row(self, landed: Landed, load: str | dict[str, Any], counts: Mapping[str, Counts]) -> dict[str, Any]:
        row = {
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
        }
        if not isinstance(load, str):
            return row | {name: load[name] for name in _OF_LOAD}
        c = counts[load]
        return row | {
            "load_id": load,
            "rows_read": c.rows_read,
            "rows_raw": c.rows_raw,
            "rows_quarantined": c.rows_quarantined,
            "first_ts": _instant(c.first_us),
            "last_ts": _instant(c.last_us),
            "outcome": c.outcome,
            "reason": " ".join(c.reason.split()) or None,
        }


def load_of_contents(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The load of each file_id that tells what is wrong with it: one by which it was read, if there is one."""
    found: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: (holds_nothing(row), row["path"])):
        found.setdefault(row["file_id"], row["load_id"])
    return found


def _content(source: Source, landed: Landed) -> Content:
    return landed.file_id, tuple(form.fits_path(landed.path) for form in source.formats)


def _instant(us: int | None) -> datetime | None:
    return None if us is None else instant(us)
